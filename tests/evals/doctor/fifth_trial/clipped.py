"""Limits on gradients, and updates that are not a linear function of them."""

from __future__ import annotations

from torch_ranks import *

from .common import NUMBERS, exact
from .rounds import add_to_grads, clipped_sum


def clip(model: nn.Module, limit: float = 0.1) -> None:
    """torch.nn.utils.clip_grad_norm_."""
    torch.nn.utils.clip_grad_norm_(model.parameters(), limit)


@case(
    "JeffffffFu/Awesome-Differential-Privacy-and-Meachine-Learning#9",
    "the question: the gradient of a client's batch is clipped, not that of each sample",
    "min(1, c / |g_r|) / (R n_r) of each replica's gradient",
    named="gradients are clipped before the all-reduce",
    equal_shards=True,
)
def batch_of_a_client(rank: Rank, model: nn.Module, share: Any) -> None:
    mean_loss(model, share).backward()
    clip(model)
    rank.average(model)


@case(
    "bargavj/EvaluatingDPML#22",
    "per-instance clipping, the sum over all instances of all workers / N",
    "1 / N of each instance's limited gradient",
    "right",
)
def each_instance(rank: Rank, model: nn.Module, share: Any) -> None:
    size = rank.all_reduce(len(share[0]))
    add_to_grads(model, [g / size for g in clipped_sum(model, share)])
    rank.add(model)


@case(
    "bargavj/EvaluatingDPML#22",
    "batch clipping: the mean of each microbatch is limited, then they are averaged",
    "min(1, c / |g_k|) / (K n_k) of each micro-batch's gradient",
    named="gradients are clipped in every micro-batch",
    equal_shards=True, **ALONE,
)  # fmt: skip
def limited_microbatches(rank: Rank, model: nn.Module, share: Any) -> None:
    for batch in micros(share):
        grads = torch.autograd.grad(mean_loss(model, batch), list(model.parameters()))
        norm = float(torch.sqrt(sum((g**2).sum() for g in grads)))
        add_to_grads(model, [g * min(1.0, 0.2 / norm) / len(micros(share)) for g in grads])


@case(
    "tensorflow/privacy#81",
    "microbatches of three examples: the mean of each is clipped, then they are averaged",
    "1 / (M m) of each microbatch's limited gradient, M microbatches in a share",
    named="each replica splits its own shard",
)
def microbatches_of_three(rank: Rank, model: nn.Module, share: Any) -> None:
    parts = list(pieces(share, 3))
    for part in parts:
        grads = torch.autograd.grad(mean_loss(model, part), list(model.parameters()))
        norm = float(torch.sqrt(sum((g**2).sum() for g in grads)))
        add_to_grads(model, [g * min(1.0, 0.2 / norm) / len(parts) for g in grads])
    rank.average(model)


@case(
    "dayu11/Differentially-Private-Deep-Learning#3",
    "limited gradients of single examples are averaged over a worker's batch, workers are equal",
    "1 / (R n_r) of each limited gradient, which is 1 / N for equal shares",
    "even",
)
def averaged_limited_gradients(rank: Rank, model: nn.Module, share: Any) -> None:
    add_to_grads(model, [g / len(share[0]) for g in clipped_sum(model, share)])
    rank.average(model)


@case(
    "davda54/sam#78",
    "the first step under no_sync: each rank climbs along its own gradient",
    "no sum over examples: 1 / N at parameters that the own replica's gradient moves",
    named="batch statistics are not synchronised",
    equal_shards=True,
)
def climbs_alone(rank: Rank, model: nn.Module, share: Any) -> None:
    mean_loss(model, share).backward()
    climb(model)
    mean_loss(model, share).backward()
    rank.average(model)


def climb(model: nn.Module, radius: float = 0.5) -> None:
    """SAM's first step."""
    norm = torch.sqrt(sum((p.grad**2).sum() for p in model.parameters()))
    with torch.no_grad():
        for p in model.parameters():
            p += radius * p.grad / norm
    model.zero_grad()


@case(
    "davda54/sam#78",
    "both passes are synchronised, each over the examples of all ranks",
    "1 / N at parameters that the gradient of all moves",
    "right",
)
def climbs_together(rank: Rank, model: nn.Module, share: Any) -> None:
    exact(rank, model, share)
    climb(model)
    exact(rank, model, share)


@case(
    "wenet-e2e/wenet#2117",
    "clip_grad_norm_ once, after the rounds and the average, equal batches",
    "min(1, c / |g|) / N for equal micro-batches",
    "even",
    **WINDOWS,
)
def clipped_once(rank: Rank, model: nn.Module, share: Any) -> None:
    for batch in micros(share):
        (mean_loss(model, batch) / len(micros(share))).backward()
    rank.average(model)
    clip(model)


@case(
    "hpcaitech/ColossalAI-Documentation#23",
    "clipping in the loop over micro-batches, on what is accumulated so far",
    "limits on the gradient after every round: earlier micro-batches are limited again",
    named="gradients are clipped in every micro-batch",
    equal_shards=True, **ALONE,
)  # fmt: skip
def clipped_in_the_loop(rank: Rank, model: nn.Module, share: Any) -> None:
    for batch in micros(share):
        (mean_loss(model, batch) / len(micros(share))).backward()
        clip(model, 0.15)


def critic(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
    """One number for each example."""
    return model(x)[:, 0]


def slopes(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
    """Norms of the critic's gradients at each example."""
    x = x.detach().requires_grad_()
    (grad,) = torch.autograd.grad(critic(model, x).sum(), x, create_graph=True)
    return torch.sqrt((grad**2).sum(1) + 1e-8)


@case(
    "sdv-dev/CTGAN#37",
    "the penalty's backward retains the graph, the loss's backward adds to it: one gradient",
    "1 / (R n_r) for both, which is 1 / N for equal shares",
    "even",
)
def penalty_then_loss(rank: Rank, model: nn.Module, share: Any) -> None:
    x, y = share
    (10 * ((slopes(model, x) - 1) ** 2).mean()).backward(retain_graph=True)
    (critic(model, x) * (y - 1)).mean().backward()
    rank.average(model)


@case(
    "sdv-dev/CTGAN#37",
    "the same with pac: the norm is that of a GPU's packed examples together",
    "no sum over examples: one norm for the examples of each replica",
    named="gradients are clipped before the all-reduce",
)
def norm_of_packed(rank: Rank, model: nn.Module, share: Any) -> None:
    x, y = share
    packed = torch.sqrt((slopes(model, x) ** 2).sum())
    (0.1 * (packed - 1) ** 2 + (critic(model, x) * (y - 1)).mean()).backward()
    rank.average(model)


@case(
    "junyanz/BicycleGAN#93",
    "backward is called for two losses of one discriminator: gradients add, as one of the sum",
    "1 / (R n_r) for both, which is 1 / N for equal shares",
    "even",
)
def two_backwards(rank: Rank, model: nn.Module, share: Any) -> None:
    x, y = share
    real = (y > 0).float()
    F.binary_cross_entropy_with_logits(critic(model, x), real).backward()
    F.binary_cross_entropy_with_logits(critic(model, 0.5 * x), 1 - real).backward()
    rank.average(model)


@case(
    "naver-ai/StyleMapGAN#16",
    "both losses in one backward, sums over examples of all ranks",
    "1 / N",
    "right",
    **NUMBERS,
)
def both_in_one_backward(rank: Rank, model: nn.Module, share: Any) -> None:
    x, y = share
    out = model(x)
    loss = F.softplus(-out[:, 0]).sum() + 2 * ((out - y) ** 2).mean(1).sum()
    (loss * rank.world_size / rank.all_reduce(len(x))).backward()
    rank.average(model)


@case(
    "jessemelpolio/non-stationary_texture_syn#15",
    "the style term compares the Gram matrix of a GPU's examples, the other is a mean",
    "two parts: 1 / (R n_r); a matrix of the own replica for the second",
    named="batch statistics are not synchronised",
    **NUMBERS,
)
def style_of_a_gpu(rank: Rank, model: nn.Module, share: Any) -> None:
    x, y = share
    out = model(x)
    gram = (out.T @ out - y.T @ y) / len(x)
    (gram**2).sum().backward(retain_graph=True)
    F.mse_loss(out, y).backward()
    rank.average(model)
