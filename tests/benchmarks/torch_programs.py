"""The workloads in PyTorch: one process on all threads, or DDP with a process per replica."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable
from typing import Any

import numpy as np
from torch_bert import block_model
from workloads import (
    BERT_BLOCKS,
    CLASSES,
    DENSE,
    EMBEDDED,
    EMBEDDINGS,
    GIVEN,
    HEADS,
    HIDDEN,
    LAYERS,
    LENGTH,
    NOISE,
    PIXELS,
    TAGS,
    VOCABULARY,
    WIDTH,
    Arrays,
    Job,
    Program,
)

Step = Callable[[int], Any]
Rows = Callable[[int], list[Any]]


def build(job: Job, data: Arrays, rank: int = 0) -> Program:
    """Returns the training step of one process; under DDP, the one of process `rank`."""
    torch: Any = importlib.import_module("torch")
    cores = os.cpu_count() or 1
    torch.set_num_threads(job.threads or max(1, cores // job.replicas))
    torch.manual_seed(0)
    tensors = [torch.from_numpy(array) for array in data]
    if job.workload in ("cnn", "wgan_gp"):
        tensors[0] = tensors[0].permute(0, 3, 1, 2)
    order = torch.from_numpy(np.random.default_rng(0).permutation(len(data[0])))

    def rows(i: int) -> list[Any]:
        start = i * job.global_batch % (len(order) - job.global_batch) + rank * job.batch
        picked = order[start : start + job.batch]
        return [tensor[picked] for tensor in tensors]

    steps = {"cnn": cnn, "tiny": tiny, "wgan_gp": wgan_gp, "transformer": transformer}
    steps |= dict.fromkeys(DENSE, dense) | dict.fromkeys(EMBEDDINGS, embeddings)
    steps |= dict.fromkeys(GIVEN, given_gradients)
    steps |= dict.fromkeys(BERT_BLOCKS, bert_block)
    step = steps[job.workload](torch, job, rows)
    return Program(step, lambda loss: float(loss.item()), str(torch.__version__))


def mirrored(torch: Any, job: Job, model: Any) -> Any:
    """Wraps a model so that its gradients are averaged over the processes of a DDP job."""
    return torch.nn.parallel.DistributedDataParallel(model) if job.backend == "ddp" else model


def cnn(torch: Any, job: Job, rows: Rows) -> Step:
    nn = torch.nn
    model = nn.Sequential(
        nn.Conv2d(1, 32, 3),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 3),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(1600, 64),
        nn.ReLU(),
        nn.Linear(64, 10),
    )
    # PyTorch's advice for convolutions on a CPU, and here the faster layout.
    return classifier(torch, job, rows, model.to(memory_format=torch.channels_last))


def dense(torch: Any, job: Job, rows: Rows) -> Step:
    nn, width = torch.nn, DENSE[job.workload]
    first, second = nn.Linear(PIXELS, width), nn.Linear(width, width)
    model = nn.Sequential(first, nn.ReLU(), second, nn.ReLU(), nn.Linear(width, CLASSES))
    return classifier(torch, job, rows, model)


def classifier(torch: Any, job: Job, rows: Rows, model: Any) -> Step:
    """One step of Adam."""
    model = mirrored(torch, job, model)
    optimizer = torch.optim.Adam(model.parameters(), fused=True)
    loss_object = torch.nn.CrossEntropyLoss()

    def step(i: int) -> Any:
        images, labels = rows(i)
        optimizer.zero_grad()
        loss = loss_object(model(images), labels.long())
        loss.backward()
        optimizer.step()
        return loss

    return step


def embeddings(torch: Any, job: Job, rows: Rows) -> Step:
    """Sparse gradients: a step costs what the rows cost that it looks up."""
    name, count = EMBEDDINGS[job.workload]
    model = mirrored(torch, job, torch.nn.Embedding(count, EMBEDDED, sparse=True))
    sgd, adam = torch.optim.SGD, torch.optim.SparseAdam
    parameters = list(model.parameters())
    optimizer = sgd(parameters, 0.01) if name == "sparse_sgd" else adam(parameters, 0.001)

    def step(i: int) -> Any:
        (ids,) = rows(i)
        optimizer.zero_grad()
        loss = model(ids).square().sum(1).mean()
        loss.backward()
        optimizer.step()
        return loss

    return step


def given_gradients(torch: Any, job: Job, rows: Rows) -> Step:
    """All-reduce over the processes of a DDP job, and Adam, of gradients that are there."""
    gradient = torch.full((GIVEN[job.workload] * 1000, 1000), 1e-3)
    weights = torch.nn.Parameter(torch.zeros_like(gradient))
    weights.grad = gradient
    optimizer = torch.optim.Adam([weights], fused=True)

    def step(i: int) -> Any:
        if job.backend == "ddp":
            torch.distributed.all_reduce(gradient)
            gradient.div_(job.replicas)
        optimizer.step()
        return gradient[0, 0]

    return step


def bert_block(torch: Any, job: Job, rows: Rows) -> Step:
    """Tags every token; the loss is divided by the real tokens."""
    model = mirrored(torch, job, block_model(torch, BERT_BLOCKS[job.workload]))
    optimizer = torch.optim.Adam(model.parameters(), 1e-4, fused=True)
    loss_object = torch.nn.CrossEntropyLoss(ignore_index=-1)

    def step(i: int) -> Any:
        x, labels = rows(i)
        optimizer.zero_grad()
        logits = model(x, labels != 0)
        loss = loss_object(logits.reshape(-1, TAGS), labels.long().reshape(-1) - 1)
        loss.backward()
        optimizer.step()
        return loss

    return step


def tiny(torch: Any, job: Job, rows: Rows) -> Step:
    nn = torch.nn
    model = mirrored(torch, job, nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1)))
    optimizer = torch.optim.SGD(model.parameters(), 0.01)

    def step(i: int) -> Any:
        inputs, targets = rows(i)
        optimizer.zero_grad()
        loss = ((model(inputs) - targets) ** 2).mean()
        loss.backward()
        optimizer.step()
        return loss

    return step


def wgan_models(nn: Any) -> tuple[Any, Any]:
    """Returns the critic and the generator, which mirrors it."""
    critic = nn.Sequential(
        nn.Conv2d(1, 64, 5, 2, 2),
        nn.LeakyReLU(0.2),
        nn.Conv2d(64, 128, 5, 2, 2),
        nn.LeakyReLU(0.2),
        nn.Flatten(),
        nn.Linear(7 * 7 * 128, 1),
    )
    generator = nn.Sequential(
        nn.Linear(NOISE, 7 * 7 * 128),
        nn.LeakyReLU(0.2),
        nn.Unflatten(1, (128, 7, 7)),
        nn.ConvTranspose2d(128, 64, 5, 2, 2, 1),
        nn.LeakyReLU(0.2),
        nn.ConvTranspose2d(64, 1, 5, 2, 2, 1),
        nn.Tanh(),
    )
    return critic, generator


def wgan_gp(torch: Any, job: Job, rows: Rows) -> Step:
    if job.backend == "ddp":
        # DDP does not support gradients of gradients through its hooks.
        raise SystemExit("ddp: wgan_gp runs in one process only (use the backend torch)")
    critic, generator = wgan_models(torch.nn)
    adam = torch.optim.Adam
    critic_optimizer = adam(critic.parameters(), 1e-4, (0.5, 0.9), fused=True)
    generator_optimizer = adam(generator.parameters(), 1e-4, (0.5, 0.9), fused=True)

    def penalty(real: Any, fake: Any) -> Any:
        mix = torch.rand(job.batch, 1, 1, 1)
        between = (mix * real + (1 - mix) * fake).requires_grad_()
        (gradient,) = torch.autograd.grad(critic(between).sum(), between, create_graph=True)
        norm = (gradient.flatten(1).pow(2).sum(1) + 1e-12).sqrt()
        return 10 * ((norm - 1) ** 2).mean()

    def step(i: int) -> Any:
        (real,) = rows(i)
        noise = torch.randn(job.batch, NOISE)
        fake = generator(noise).detach()
        loss = (critic(fake) - critic(real)).mean() + penalty(real, fake)
        critic_optimizer.zero_grad()
        loss.backward()
        critic_optimizer.step()
        generator_loss = -critic(generator(noise)).mean()
        generator_optimizer.zero_grad()
        generator_loss.backward()
        generator_optimizer.step()
        return loss

    return step


def transformer_model(torch: Any) -> Any:
    nn = torch.nn

    class Transformer(nn.Module):  # type: ignore[misc, name-defined, unused-ignore]
        def __init__(self) -> None:
            super().__init__()
            self.source = nn.Embedding(VOCABULARY, WIDTH)
            self.target = nn.Embedding(VOCABULARY, WIDTH)
            self.position = nn.Parameter(torch.randn(LENGTH, WIDTH) * 0.02)
            self.body = nn.Transformer(WIDTH, HEADS, LAYERS, LAYERS, HIDDEN, 0.1, batch_first=True)
            self.logits = nn.Linear(WIDTH, VOCABULARY)

        def forward(self, source: Any, target: Any) -> Any:
            padding = source == 0
            h = self.body(
                self.source(source) * WIDTH**0.5 + self.position,
                self.target(target) * WIDTH**0.5 + self.position,
                tgt_mask=nn.Transformer.generate_square_subsequent_mask(LENGTH),
                tgt_is_causal=True,
                src_key_padding_mask=padding,
                memory_key_padding_mask=padding,
            )
            return self.logits(h)

    return Transformer()


def transformer(torch: Any, job: Job, rows: Rows) -> Step:
    model = mirrored(torch, job, transformer_model(torch))
    optimizer = torch.optim.Adam(model.parameters(), 1e-4, (0.9, 0.98), 1e-9, fused=True)
    loss_object = torch.nn.CrossEntropyLoss(ignore_index=0, label_smoothing=0.1)

    def step(i: int) -> Any:
        source, target = rows(i)
        logits = model(source, target[:, :-1])
        loss = loss_object(logits.reshape(-1, VOCABULARY), target[:, 1:].long().reshape(-1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    return step
