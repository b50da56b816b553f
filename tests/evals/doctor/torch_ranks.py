"""Ranks of a PyTorch job in threads of one process: each runs the user's function on its share.

A rank has what programs ask of torch.distributed: `all_reduce`, `all_gather`, a gather with a
gradient, and the mean over ranks that DistributedDataParallel takes of gradients.
"""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from eval_case import decorator
from torch import nn
from torch.nn import functional as F  # noqa: N812

from samegrad_doctor import Outcome

torch.set_num_threads(1)
PAD = -100


class Rank:
    """One process of the job, as its program sees it."""

    def __init__(self, number: int, slots: list[Any], barrier: threading.Barrier) -> None:
        self.rank, self.world_size = number, len(slots)
        self._slots, self._barrier = slots, barrier

    def exchange(self, value: Any) -> list[Any]:
        """What all ranks gave."""
        self._slots[self.rank] = value
        self._barrier.wait()
        got = list(self._slots)
        self._barrier.wait()
        return got

    def all_reduce(self, value: Any) -> torch.Tensor:
        """The sum over ranks."""
        return torch.stack(self.exchange(torch.as_tensor(value).detach().clone())).sum(0)

    def all_gather(self, value: torch.Tensor) -> list[torch.Tensor]:
        """Without a gradient, as torch.distributed.all_gather."""
        return self.exchange(value.detach().clone())

    def gather_with_grad(self, value: torch.Tensor) -> torch.Tensor:
        """As torch.distributed.nn.all_gather: its gradient is added over the ranks."""
        return torch.cat(_Gather.apply(self, value))

    def average(self, model: nn.Module) -> None:
        """What DistributedDataParallel does at the end of backward."""
        self.add(model)
        for p in model.parameters():
            p.grad /= self.world_size

    def add(self, model: nn.Module) -> None:
        """all_reduce(p.grad) of all parameters."""
        for p in model.parameters():
            p.grad = self.all_reduce(torch.zeros_like(p) if p.grad is None else p.grad)


class _Gather(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, rank: Rank, value: torch.Tensor) -> tuple[torch.Tensor, ...]:
        ctx.rank = rank
        got = rank.exchange(value.detach())
        return tuple(part.clone() for part in got)  # ranks must not share a tensor of the graph

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> Any:
        return None, torch.stack([g[ctx.rank.rank] for g in ctx.rank.exchange(grads)]).sum(0)


def _tensors(share: Any) -> Any:
    if isinstance(share, list):
        return [_tensors(part) for part in share]
    return tuple(torch.from_numpy(np.ascontiguousarray(a)) for a in share)


def _grads(model: nn.Module) -> list[np.ndarray]:
    return [
        np.zeros(p.shape, np.float32) if p.grad is None else p.grad.numpy().copy()
        for p in model.parameters()
    ]


def _statistics(model: nn.Module) -> Any:
    held = [b.numpy().copy() for b in model.buffers() if b.is_floating_point()]
    return held or None


def step_of(build: Callable[[], nn.Module], train: Callable[..., Any]) -> Callable[..., Outcome]:
    """The step of a job whose ranks run train(rank, model, share); rank 0 prints its result."""

    def step(shares: list[Any]) -> Outcome:
        torch.manual_seed(0)
        models = [copy.deepcopy(m) for m in [build()] for _ in shares]
        slots: list[Any] = [None] * len(shares)
        barrier = threading.Barrier(len(shares), timeout=60)
        said: list[Any] = [None] * len(shares)
        failed: list[BaseException] = []

        def run(number: int) -> None:
            try:
                rank = Rank(number, slots, barrier)
                said[number] = train(rank, models[number], _tensors(shares[number]))
            except BaseException as error:
                failed.append(error)
                barrier.abort()

        threads = [threading.Thread(target=run, args=(i,)) for i in range(len(shares))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        real = [e for e in failed if not isinstance(e, threading.BrokenBarrierError)]
        if failed:
            raise (real or failed)[0]
        all_grads = [_grads(model) for model in models]
        loss = None if said[0] is None else float(said[0])
        copies = all_grads if len(shares) > 1 else None
        return Outcome(all_grads[0], loss, copies, _statistics(models[0]))

    step.framework = "pytorch"  # type: ignore[attr-defined]
    return step


def micros(share: Any) -> list[Any]:
    """The micro-batches of a share: itself, where there is one."""
    return share if isinstance(share, list) else [share]


def _of_ranks(train: Callable[..., Any], settings: dict[str, Any]) -> Callable[[], Any]:
    batch, model = settings.pop("batch", vectors), settings.pop("model", mlp)
    return lambda: (step_of(model, train), batch())


case = decorator(_of_ranks)  # of train(rank, model, share)


def vectors(rows: int = 16) -> tuple[np.ndarray, np.ndarray]:
    """Features and classes."""
    rng = np.random.default_rng(11)
    return rng.normal(size=(rows, 8)).astype(np.float32), rng.integers(3, size=rows)


def targets(rows: int = 16) -> tuple[np.ndarray, np.ndarray]:
    """Features and numbers to predict."""
    rng = np.random.default_rng(12)
    return tuple(rng.normal(size=(rows, n)).astype(np.float32) for n in (8, 3))


LENGTHS = [3, 7, 1, 5, 2, 6, 4, 1, 7, 3, 5, 2, 6, 4, 2, 1]


def text(rows: int = 16) -> tuple[np.ndarray, np.ndarray]:
    """Embedded tokens, and labels that are PAD behind the end."""
    rng = np.random.default_rng(13)
    labels = rng.integers(4, size=(rows, 7))
    labels[np.arange(7) >= np.array(LENGTHS[:rows])[:, None]] = PAD
    return rng.normal(size=(rows, 7, 5)).astype(np.float32), labels


def images(rows: int = 16) -> tuple[np.ndarray, np.ndarray]:
    """Small images and classes."""
    rng = np.random.default_rng(14)
    return rng.normal(size=(rows, 2, 6, 6)).astype(np.float32), rng.integers(3, size=rows)


def weighted(rows: int = 16) -> tuple[np.ndarray, ...]:
    """Features, classes, and sample weights."""
    rng = np.random.default_rng(15)
    return *vectors(rows), rng.uniform(0.3, 3.0, size=rows).astype(np.float32)


WEIGHTS = weighted()[2].tolist()


def mlp() -> nn.Module:
    """Two layers."""
    return nn.Sequential(nn.Linear(8, 12), nn.Tanh(), nn.Linear(12, 3))


def tagger() -> nn.Module:
    """Classes of tokens."""
    return nn.Sequential(nn.Linear(5, 10), nn.Tanh(), nn.Linear(10, 4))


def convolutions() -> nn.Module:
    """A small convolutional classifier."""
    return nn.Sequential(nn.Conv2d(2, 5, 3), nn.ReLU(), nn.Flatten(), nn.Linear(80, 3))


def token_sum(model: nn.Module, batch: Any) -> tuple[torch.Tensor, torch.Tensor]:
    """The sum of the losses of tokens, and how many there are."""
    x, labels = batch
    logits = model(x).flatten(0, 1)
    loss = F.cross_entropy(logits, labels.flatten(), ignore_index=PAD, reduction="sum")
    return loss, (labels != PAD).sum()


def token_mean(model: nn.Module, batch: Any) -> torch.Tensor:
    """What language models of transformers return as loss."""
    total, count = token_sum(model, batch)
    return total / count


def mean_loss(model: nn.Module, batch: Any) -> torch.Tensor:
    """nn.CrossEntropyLoss()."""
    return F.cross_entropy(model(batch[0]), batch[1])


def sum_loss(model: nn.Module, batch: Any) -> torch.Tensor:
    """nn.CrossEntropyLoss(reduction="sum")."""
    return F.cross_entropy(model(batch[0]), batch[1], reduction="sum")


def scale_grads(model: nn.Module, factor: Any) -> None:
    """p.grad *= factor of all parameters."""
    for p in model.parameters():
        if p.grad is not None:
            p.grad *= factor


def pieces(batch: tuple[torch.Tensor, ...], size: int) -> Iterator[tuple[torch.Tensor, ...]]:
    """Consecutive chunks of a batch, as a step cuts them by itself."""
    for start in range(0, len(batch[0]), size):
        yield tuple(a[start : start + size] for a in batch)


ALONE: dict[str, Any] = {"micro_batches": (1, 2), "replicas": (1,)}
WINDOWS: dict[str, Any] = {"micro_batches": (1, 2), "replicas": (2,)}
WORDS: dict[str, Any] = {"batch": text, "model": tagger, "weights": LENGTHS}
SENTENCES: dict[str, Any] = {"batch": text, "model": tagger}

__all__ = [
    "ALONE", "LENGTHS", "PAD", "SENTENCES", "WEIGHTS", "WINDOWS", "WORDS", "Any", "F", "Rank",
    "case", "convolutions", "images", "mean_loss", "micros", "mlp", "nn", "np", "pieces",
    "scale_grads", "step_of", "sum_loss", "tagger", "targets", "text", "token_mean", "token_sum",
    "torch", "vectors", "weighted",
]  # fmt: skip
