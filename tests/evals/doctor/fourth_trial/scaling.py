"""Sums, means, and factors of the number of processes."""

from __future__ import annotations

from torch_ranks import *

from .settings import PICTURES, encoder, squares


def features(model: nn.Module, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """A sparse autoencoder's features, and what it makes of them."""
    hidden = torch.relu(model[0](x))
    return hidden, model[2](hidden)


def autoencoder() -> nn.Module:
    """Eight inputs, twelve features."""
    return nn.Sequential(nn.Linear(8, 12), nn.ReLU(), nn.Linear(12, 8))


@case(
    "WongKinYiu/yolov7#1713",
    "losses times the batch size of a GPU, times WORLD_SIZE: DDP's mean leaves the sum of all",
    "1",
    "right",
    model=convolutions,
    **PICTURES,
)
def yolo_sums_in_ddp(rank: Rank, model: nn.Module, share: Any) -> None:
    bs = len(share[0])
    loss = mean_loss(model, share) * bs
    loss *= rank.world_size
    loss.backward()
    rank.average(model)


@case(
    "WongKinYiu/yolov7#1713",
    "losses times the batch size of a GPU, DDP averages: without WORLD_SIZE",
    "1 / R instead of 1",
    named="divided by the global batch, then averaged",
    model=convolutions,
    **PICTURES,
)
def yolo_sums_are_averaged(rank: Rank, model: nn.Module, share: Any) -> None:
    bs = len(share[0])
    (mean_loss(model, share) * bs).backward()
    rank.average(model)


@case(
    "ai-safety-foundation/sparse_autoencoder#63",
    "the batch is reduced by .sum(), the processes are averaged",
    "1 / R instead of 1",
    named="divided by the global batch, then averaged",
    batch=lambda: (targets()[0],),
    model=autoencoder,
)
def batchwise_sum(rank: Rank, model: nn.Module, share: Any) -> None:
    (x,) = share
    hidden, out = features(model, x)
    losses = (out - x).square().mean(1) + 0.01 * hidden.abs().sum(1)
    losses.sum().backward()
    rank.average(model)


@case(
    "ai-safety-foundation/sparse_autoencoder#63",
    "the batch is reduced by .mean(), processes have equal batches",
    "1 / (R n_r), which is 1 / N for equal shares",
    "even",
    batch=lambda: (targets()[0],),
    model=autoencoder,
)
def batchwise_mean(rank: Rank, model: nn.Module, share: Any) -> None:
    (x,) = share
    hidden, out = features(model, x)
    losses = (out - x).square().mean(1) + 0.01 * hidden.abs().sum(1)
    losses.mean().backward()
    rank.average(model)


@case(
    "udlbook/udlbook#152",
    "the book's equation: the gradients of all examples are added, also those of all workers",
    "1",
    "right",
)
def equation_of_the_book(rank: Rank, model: nn.Module, share: Any) -> None:
    sum_loss(model, share).backward()
    rank.add(model)


@case(
    "udlbook/udlbook#152",
    "the mean that is proposed there, by each worker, and the workers' gradients are added",
    "1 / n_r, R times too much",
    named="mean per replica, then sum",
)
def means_are_added(rank: Rank, model: nn.Module, share: Any) -> None:
    mean_loss(model, share).backward()
    rank.add(model)


@case(
    "danijar/layered#1",
    "each worker averages the gradients of its part of a batch, and workers are averaged",
    "1 / (R n_r)",
    named="mean of the replicas' means",
    batch=targets,
)
def average_of_averages(rank: Rank, model: nn.Module, share: Any) -> None:
    x, y = share
    (0.5 * (model(x) - y).square().sum(1)).mean().backward()
    rank.average(model)


@case(
    "marvis/pytorch-yolo2#104",
    "summed losses, learning_rate / batch_size and decay * batch_size, of the whole batch",
    "1 / N, the decay once",
    "right",
    model=convolutions,
    **PICTURES,
)
def rate_over_the_batch_size(rank: Rank, model: nn.Module, share: Any) -> None:
    batch_size = rank.all_reduce(len(share[0])).item()
    sum_loss(model, share).backward()
    rank.add(model)
    weight_decay = 0.01 * batch_size
    for p in model.parameters():
        p.grad = (p.grad + weight_decay * p.detach()) / batch_size


@case(
    "marvis/pytorch-yolo2#104",
    "the same where batch_size is that of a process, whose gradients are averaged",
    "1 / (R n_0) for all on the first copy: every copy divides by its own batch",
    named="the replicas' parameters differ",
    model=convolutions,
    **PICTURES,
)
def rate_over_the_own_batch_size(rank: Rank, model: nn.Module, share: Any) -> None:
    sum_loss(model, share).backward()
    rank.average(model)
    scale_grads(model, 1.0 / len(share[0]))


@case(
    "andy-yun/pytorch-0.4-yolov3#46",
    "losses are divided by nB, and the rate once more by the batch size of a process",
    "1 / (R n_r^2) for equal shares: R times too much",
    named=(
        "the weights of each replica divides; the weights of each replica divides; all is "
        "divided by the replicas"
    ),
    model=convolutions,
    equal_shards=True,
    **PICTURES,
)
def divided_by_batch_size_twice(rank: Rank, model: nn.Module, share: Any) -> None:
    nB = len(share[0])  # noqa: N806
    (sum_loss(model, share) / nB).backward()
    rank.average(model)
    scale_grads(model, 1.0 / nB)


@case(
    "BVLC/caffe#4409",
    "iter_size: the layer averages a batch, the solver divides by iter_size, GPUs are averaged",
    "1 / (R K n_rk), which is 1 / N for equal shares",
    "even",
    **WINDOWS,
)
def solver_with_iter_size(rank: Rank, model: nn.Module, share: Any) -> None:
    window = micros(share)
    for batch in window:
        mean_loss(model, batch).backward()
    scale_grads(model, 1.0 / len(window))
    rank.average(model)


@case(
    "BVLC/caffe#4409",
    "the same solver, whose layer does not average: the sum over a GPU, over iter_size",
    "1 / (R K) instead of 1",
    named="divided by the global batch, then averaged; and micro-batches are divided twice",
    **WINDOWS,
)
def layer_does_not_average(rank: Rank, model: nn.Module, share: Any) -> None:
    window = micros(share)
    for batch in window:
        sum_loss(model, batch).backward()
    scale_grads(model, 1.0 / len(window))
    rank.average(model)


@case(
    "cleverhans-lab/cleverhans#529",
    "the loss is a sum; the batches of GPUs shrink with their number, and are averaged",
    "1 / R instead of 1",
    named="divided by the global batch, then averaged",
)
def attack_loss_is_a_sum(rank: Rank, model: nn.Module, share: Any) -> None:
    x, y = share
    clean = F.cross_entropy(model(x), y, reduction="sum")
    moved = F.cross_entropy(model(x + 0.3 * x.sign()), y, reduction="sum")
    (0.5 * clean + 0.5 * moved).backward()
    rank.average(model)


@case(
    "cleverhans-lab/cleverhans#529",
    "the mean, invariant to the batch size of a GPU",
    "1 / (R n_r), which is 1 / N for equal shares",
    "even",
)
def attack_loss_is_a_mean(rank: Rank, model: nn.Module, share: Any) -> None:
    x, y = share
    clean = F.cross_entropy(model(x), y)
    moved = F.cross_entropy(model(x + 0.3 * x.sign()), y)
    (0.5 * clean + 0.5 * moved).backward()
    rank.average(model)


@case(
    "datawhalechina/d2l-ai-solutions-manual#47",
    "the devices' losses are summed and added, and sgd divides by the size of the whole batch",
    "1 / N",
    "right",
    batch=targets,
)
def sgd_divides_by_batch_size(rank: Rank, model: nn.Module, share: Any) -> None:
    x, y = share
    ((model(x) - y) ** 2 / 2).sum().backward()
    rank.add(model)
    batch_size = rank.all_reduce(len(x))
    scale_grads(model, 0.1 / batch_size)


@case(
    "datawhalechina/d2l-ai-solutions-manual#47",
    "the mean loss instead of the sum, and sgd still divides by the batch size",
    "1 / (R n_r N) where gradients are averaged: means of devices over N",
    named="mean of the replicas' means",
    batch=targets,
)
def mean_and_sgd_divide(rank: Rank, model: nn.Module, share: Any) -> None:
    x, y = share
    ((model(x) - y) ** 2 / 2).mean().backward()
    rank.average(model)
    scale_grads(model, 1.0 / rank.all_reduce(len(x)))


@case(
    "shubham-goel/4D-Humans#85",
    "keypoint losses are summed over all dimensions, never divided, under DDP",
    "1 / R instead of 1",
    named="divided by the global batch, then averaged",
    batch=targets,
)
def summed_over_all_dimensions(rank: Rank, model: nn.Module, share: Any) -> None:
    x, y = share
    conf = y[:, :1].abs()
    (conf * (model(x) - y).abs()).sum().backward()
    rank.average(model)


@case(
    "verl-project/verl-SpeCo#29",
    "the all-reduced loss over all tokens has a gradient of the own part only; FSDP averages",
    "w_i / (R W)",
    named="divided by the global batch, then averaged",
    **WORDS,
)
def reduction_without_a_gradient(rank: Rank, model: nn.Module, share: Any) -> None:
    loss, tokens = token_sum(model, share)
    global_tokens = rank.all_reduce(tokens)
    others = rank.all_reduce(loss) - loss.detach()
    ((loss + others) / global_tokens).backward()
    rank.average(model)


@case(
    "verl-project/verl-SpeCo#29",
    "the fix: local sums times the ranks over the tokens of all",
    "w_i / W",
    "right",
    **WORDS,
)
def scaled_by_the_ranks(rank: Rank, model: nn.Module, share: Any) -> None:
    loss, tokens = token_sum(model, share)
    (loss * rank.world_size / rank.all_reduce(tokens)).backward()
    rank.average(model)


@case(
    "facebookresearch/fairscale#565",
    "predivided by a factor, reduced, and divided by the rest",
    "w_i / W",
    "right",
    batch=text,
    model=tagger,
)
def predivide_and_postdivide(rank: Rank, model: nn.Module, share: Any) -> None:
    loss, tokens = token_sum(model, share)
    (loss * rank.world_size / rank.all_reduce(tokens)).backward()
    pre = rank.world_size**0.5
    scale_grads(model, 1 / pre)
    rank.add(model)
    scale_grads(model, pre / rank.world_size)


@case(
    "facebookresearch/fairscale#565",
    "predivided, and the division after the reduction is left out",
    "1 / (sqrt(R) n_r), sqrt(R) times too much",
    named="the whole update is multiplied by the replicas (their square root)",
    equal_shards=True,
    batch=images,
    model=convolutions,
)
def postdivide_is_left_out(rank: Rank, model: nn.Module, share: Any) -> None:
    mean_loss(model, share).backward()
    scale_grads(model, rank.world_size**-0.5)
    rank.add(model)


@case(
    "gpauloski/kfac-pytorch#34",
    "gradients are averaged by the reduction, and the hook still divides by the world size",
    "1 / (R^2 n_r)",
    named="divided by the global batch, then averaged",
    equal_shards=True,
)
def hook_divides_an_average(rank: Rank, model: nn.Module, share: Any) -> None:
    mean_loss(model, share).backward()
    rank.average(model)
    scale_grads(model, 1.0 / rank.world_size)


@case(
    "nyu-mll/jiant#989",
    "DataParallel: the GPUs' mean losses are summed",
    "w_i / W_r, R times too much",
    named="mean per replica, then sum",
    batch=text,
    model=tagger,
    equal_shards=True,
)
def gpu_losses_are_summed(rank: Rank, model: nn.Module, share: Any) -> None:
    token_mean(model, share).backward()
    rank.add(model)


@case(
    "nyu-mll/jiant#989",
    "DataParallel after the change: the mean of the GPUs' mean losses, equal chunks",
    "1 / (R n_r), which is 1 / N for equal shares",
    "even",
)
def gpu_losses_are_averaged(rank: Rank, model: nn.Module, share: Any) -> None:
    (mean_loss(model, share) / rank.world_size).backward()
    rank.add(model)


@case(
    "neuroailab/tfutils#121",
    "every GPU adds the decay of all weights to its loss, losses are added over GPUs",
    "1 / N for examples, the decay R times",
    named="regularisation counts once on every replica",
)
def decay_of_every_tower(rank: Rank, model: nn.Module, share: Any) -> None:
    n = rank.all_reduce(len(share[0]))
    (sum_loss(model, share) / n + 0.05 * squares(model)).backward()
    rank.add(model)


@case(
    "Jongchan/tensorflow-vdsr#21",
    "l2_loss of the weights once for each step, the residual's errors over all examples",
    "1 / N, the decay once",
    "right",
    batch=targets,
)
def decay_once(rank: Rank, model: nn.Module, share: Any) -> None:
    x, y = share
    n = rank.all_reduce(len(x))
    ((model(x) - y).square().sum() / n).backward()
    rank.add(model)
    for p in model.parameters():
        p.grad += 1e-2 * p.detach()


@case(
    "tflearn/tflearn#678",
    "the regularizer of the weights is added to the loss of every accumulated batch",
    "1 / N for examples, the regularizer K times",
    named="regularisation counts once in every micro-batch",
    **ALONE,
)
def regularizer_of_every_batch(rank: Rank, model: nn.Module, share: Any) -> None:
    window = micros(share)
    n = sum(len(x) for x, _ in window)
    for batch in window:
        (sum_loss(model, batch) / n + 0.02 * squares(model)).backward()


@case(
    "alexrame/fishr#2",
    "the variance of single gradients over the own batch, these times the batch size",
    "1 / (R n_r) for the loss, the penalty with the moments of the own share",
    named="batch statistics are not synchronised",
    equal_shards=True,
    model=encoder,
    batch=targets,
)
def variance_of_gradients(rank: Rank, model: nn.Module, share: Any) -> None:
    x, y = share
    out = model(x)[:, :3]
    loss = (out - y).square().mean()
    single = 2 * (out - y) / out.numel() * len(x)  # of the mean, times the batch size
    (loss + single.var(0, unbiased=False).sum()).backward()
    rank.average(model)


@case(
    "pytorch/xla#2840",
    "a summed loss, and xm.optimizer_step, which averages over the cores",
    "1 / R instead of 1",
    named="divided by the global batch, then averaged",
    model=convolutions,
    **PICTURES,
)
def xla_averages_over_cores(rank: Rank, model: nn.Module, share: Any) -> None:
    sum_loss(model, share).backward()
    rank.add(model)
    scale_grads(model, 1.0 / rank.world_size)


@case(
    "pytorch/xla#2840",
    "a mean loss and the average over cores, whose batches are equal",
    "1 / (R n_r), which is 1 / N for equal shares",
    "even",
    model=convolutions,
    **PICTURES,
)
def xla_mean_loss(rank: Rank, model: nn.Module, share: Any) -> None:
    mean_loss(model, share).backward()
    rank.add(model)
    scale_grads(model, 1.0 / rank.world_size)
