"""Limits on gradients and losses, scales of mixed precision, and shards of optimizers."""

from __future__ import annotations

from torch_ranks import *

LIMIT = 0.1


def clip(model: nn.Module, limit: float = LIMIT) -> None:
    """torch.nn.utils.clip_grad_norm_."""
    nn.utils.clip_grad_norm_(model.parameters(), limit)


@case(
    "huggingface/diffusers#721",
    "what has been accumulated is clipped after every micro-batch",
    "(... min(1, c / |g_1|) g_1 + g_2 ...) is limited again and again",
    named="gradients are clipped in every micro-batch",
    equal_shards=True,
    **ALONE,
)
def clipped_every_iteration(rank: Rank, model: nn.Module, share: Any) -> None:
    window = micros(share)
    for batch in window:
        (mean_loss(model, batch) / len(window)).backward()
        clip(model)


@case(
    "huggingface/diffusers#721",
    "the fix: clipped when gradients have been synchronised",
    "min(1, c / |g|) / N of the whole gradient, for equal shares",
    "even",
    **WINDOWS,
)
def clipped_when_synchronised(rank: Rank, model: nn.Module, share: Any) -> None:
    window = micros(share)
    for batch in window:
        (mean_loss(model, batch) / len(window)).backward()
    rank.average(model)
    clip(model)


@case(
    "suvojit-0x55aa/mixed-precision-pytorch#1",
    "scaled gradients are limited by the scaled norm, then unscaled: after the reduction",
    "min(1, c / |g|) / N of the whole gradient, for equal shares",
    "even",
)
def limit_times_loss_scale(rank: Rank, model: nn.Module, share: Any) -> None:
    (mean_loss(model, share) * 1024).backward()
    rank.average(model)
    clip(model, LIMIT * 1024)
    scale_grads(model, 1 / 1024)


@case(
    "suvojit-0x55aa/mixed-precision-pytorch#1",
    "each process limits its own gradient after backward, then gradients are averaged",
    "min(1, c / |g_r|) / (R n_r)",
    named="gradients are clipped before the all-reduce",
    equal_shards=True,
)
def limited_before_the_reduction(rank: Rank, model: nn.Module, share: Any) -> None:
    mean_loss(model, share).backward()
    clip(model)
    rank.average(model)


@case(
    "hpcaitech/ColossalAI#1430",
    "each rank holds the gradients of some parameters and clips them by the norm of these",
    "min(1, c / |g of the own shard|) / N, a limit of its own for each shard",
    named="gradients are clipped by the norm of a shard",
    equal_shards=True,
)
def norm_of_a_shard(rank: Rank, model: nn.Module, share: Any) -> None:
    mean_loss(model, share).backward()
    rank.average(model)
    parameters = list(model.parameters())
    for owner in range(rank.world_size):
        nn.utils.clip_grad_norm_(parameters[owner :: rank.world_size], LIMIT)


@case(
    "Modalities/modalities#399",
    "shards clip by the norm of all: squares are added over ranks",
    "min(1, c / |g|) / N of the whole gradient, for equal shares",
    "even",
)
def norm_of_all_shards(rank: Rank, model: nn.Module, share: Any) -> None:
    mean_loss(model, share).backward()
    rank.average(model)
    own = list(model.parameters())[rank.rank :: rank.world_size]
    norm = rank.all_reduce(sum((p.grad**2).sum() for p in own)).sqrt()
    scale_grads(model, (LIMIT / (norm + 1e-6)).clamp(max=1))


def clipped_sum(model: nn.Module, share: Any, limit: float) -> None:
    """Gradients of examples, each limited, are added."""
    parameters = list(model.parameters())
    for example in pieces(share, 1):
        grads = torch.autograd.grad(mean_loss(model, example), parameters)
        norm = sum((g**2).sum() for g in grads).sqrt()
        for p, g in zip(parameters, grads, strict=True):
            g = g * (limit / norm).clamp(max=1)
            p.grad = g if p.grad is None else p.grad + g


@case(
    "awslabs/fast-differential-privacy#48",
    "gradients of examples are clipped and added on each rank, and DDP averages",
    "c_i / R instead of c_i, c_i what the limit makes of an example",
    named="divided by the global batch, then averaged",
)
def private_sum_is_averaged(rank: Rank, model: nn.Module, share: Any) -> None:
    clipped_sum(model, share, 0.5)
    rank.average(model)


@case(
    "awslabs/fast-differential-privacy#48",
    "gradients of examples are clipped, added over ranks, and divided by the logical batch",
    "c_i / N",
    "right",
)
def private_mean(rank: Rank, model: nn.Module, share: Any) -> None:
    clipped_sum(model, share, 0.5)
    rank.add(model)
    scale_grads(model, 1 / rank.all_reduce(len(share[0])))


@case(
    "ooples/AiDotNet#1318",
    "the gradient of each micro-batch is clipped, where that of each example should be",
    "min(1, c / |g_k|) / (K n_k)",
    named="gradients are clipped in every micro-batch",
    equal_shards=True,
    **ALONE,
)
def clipped_micro_batches(rank: Rank, model: nn.Module, share: Any) -> None:
    window, parameters = micros(share), list(model.parameters())
    held = [torch.zeros_like(p) for p in parameters]
    for batch in window:
        grads = torch.autograd.grad(mean_loss(model, batch), parameters)
        norm = sum((g**2).sum() for g in grads).sqrt()
        factor = (LIMIT / norm).clamp(max=1) / len(window)
        held = [h + g * factor for h, g in zip(held, grads, strict=True)]
    for p, h in zip(parameters, held, strict=True):
        p.grad = h


@case(
    "lululxvi/deepxde#1285",
    "the step is limited to a number for each entry on every rank before the sum",
    "entries of 1 / N sums, each replica's limited to [-c, c]",
    named="gradients are clipped before the all-reduce",
    batch=targets,
    equal_shards=True,
)
def entries_limited_on_ranks(rank: Rank, model: nn.Module, share: Any) -> None:
    F.mse_loss(model(share[0]), share[1]).backward()
    nn.utils.clip_grad_value_(model.parameters(), 0.02)
    rank.average(model)


@case(
    "hpcaitech/ColossalAI#1430",
    "the scale of mixed precision is undone in front of the reduction: the same gradient",
    "1 / N",
    "right",
)
def unscaled_before_the_reduction(rank: Rank, model: nn.Module, share: Any) -> None:
    (sum_loss(model, share) * 256 / rank.all_reduce(len(share[0]))).backward()
    scale_grads(model, 1 / 256)
    rank.add(model)
