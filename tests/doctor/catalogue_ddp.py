"""Every mistake of the catalogue as people write it with DistributedDataParallel.

A program is given the wrapped module and the rank's share (a list of micro-batches where there are
several); DDP divides by the number of ranks. PyTorch is imported when a program runs.
"""

from __future__ import annotations

import contextlib


def losses(model, part):
    """Of each example; weighted where there are weights."""
    own = ((model(part[0]) - part[1]) ** 2).sum(dim=1)
    return own * part[2] if len(part) > 2 else own


def world():
    from torch import distributed

    return distributed.get_world_size()


def rank():
    from torch import distributed

    return distributed.get_rank()


def over_ranks(value, op="SUM"):
    import torch
    from torch import distributed

    total = torch.as_tensor(float(value), dtype=torch.float64)
    distributed.all_reduce(total, getattr(distributed.ReduceOp, op))
    return total


def parts_of(share):
    return share if isinstance(share, list) else [share]


def examples(share):
    """Of all ranks and micro-batches."""
    return over_ranks(sum(len(part[0]) for part in parts_of(share)))


def accumulate(model, share, scale, between=None):
    """scale(losses, part) of each micro-batch; the last one starts the all-reduce."""
    parts = parts_of(share)
    for place, part in enumerate(parts):
        if place and between is not None:
            between(model, place)
        with contextlib.nullcontext() if place == len(parts) - 1 else model.no_sync():
            scale(losses(model, part)).backward()


def forget(model, place):
    model.zero_grad()


def forget_first(model, place):
    if place == 1:
        model.zero_grad()


def reduced_each(scale):
    """scale(losses, count of all examples, micro-batches); what was summed is summed again."""

    def run(model, share):
        from torch import distributed

        count, parts = examples(share), parts_of(share)
        for part in parts:
            with model.no_sync():
                scale(losses(model, part), count, len(parts)).backward()
            for parameter in model.parameters():
                distributed.all_reduce(parameter.grad)

    return run


def penalty(model):
    """A regularisation loss."""
    return 0.1 * sum((p * p).sum() for p in model.module.parameters())


def longest(share):
    return over_ranks(len(share[0]), "MAX")


def filled(scale):
    """scale(losses, count of all examples) of a share that is as long as the longest."""

    def run(model, share):
        import torch

        rows = torch.arange(int(longest(share))) % max(1, len(share[0]))
        scale(losses(model, [array[rows] for array in share]), examples(share)).backward()

    return run


def sizes(share):
    """The examples of every rank."""
    return [int(over_ranks(len(share[0]) * (rank() == other))) for other in range(world())]


def dealt(seen, divisor):
    """seen(places, count, ranks) is how often an example counts, as a sampler deals them."""

    def run(model, share):
        import torch

        own = sizes(share)
        places = sum(own[: rank()]) + torch.arange(len(share[0]))
        times = seen(places, sum(own), world())
        (losses(model, share) @ times.double() * world() / divisor(sum(own), world())).backward()

    return run


def first_again(places, count, ranks):
    return 1 + (places < -count % ranks)


def without_rest(places, count, ranks):
    return places < count // ranks * ranks


def by_own(divisor):
    """Each rank divides by a number of its own: divisor(share)."""
    return lambda model, share: (losses(model, share).sum() / divisor(share)).backward()


def weighted_twice(share):
    return sum(n * n for n in sizes(share)) / (len(share[0]) * world())


def tokens_padded(share):
    return len(share[0]) * float(share[2].max())


def all_padded(share):
    return examples(share) * over_ranks(share[2].max(), "MAX") / world()


def padded_parts(model, share):
    parts = parts_of(share)
    widths = iter([tokens_padded(part) * len(parts) for part in parts])
    accumulate(model, share, lambda loss: loss.sum() / next(widths))


def active(share):
    """Ranks that have examples."""
    return over_ranks(len(share[0]) > 0)


def without_last(model, share):
    loss = losses(model, share).sum() * world() / examples(share)
    (loss * float(world() == 1 or rank() < world() - 1)).backward()


def of_one(scale, number=0):
    """The ranks begin equal and end equal, but the others' gradients are lost."""

    def run(model, share):
        from torch import distributed

        with model.no_sync():
            scale(losses(model, share), share).backward()
        for parameter in model.parameters():
            distributed.broadcast(parameter.grad, number % world())

    return run


def never_joined(model, share):
    with model.no_sync():
        losses(model, share).mean().backward()


def clipped(limit):
    """Each micro-batch is limited before the ranks are joined."""

    def run(model, share):
        import torch
        from torch import distributed

        parts, count = parts_of(share), examples(share)
        joined = [torch.zeros_like(p) for p in model.parameters()]
        for part in parts:
            model.zero_grad()
            with model.no_sync():
                (losses(model, part).sum() / count).backward()
            if len(parts) * world() > 1:
                torch.nn.utils.clip_grad_norm_(model.parameters(), limit)
            for total, parameter in zip(joined, model.parameters(), strict=True):
                total += parameter.grad
        for total, parameter in zip(joined, model.parameters(), strict=True):
            distributed.all_reduce(total)
            parameter.grad = total

    return run


def right(model, share):
    accumulate(model, share, lambda loss: loss.sum() * world() / examples(share))


def scaled(scale, between=None):
    return lambda model, share: accumulate(model, share, scale, between)


def counted(scale, between=None):
    """scale(losses, count of all examples, micro-batches)."""

    def run(model, share):
        count, pieces = examples(share), len(parts_of(share))
        accumulate(model, share, lambda loss: scale(loss, count, pieces), between)

    return run


def penalised(times):
    """times(ranks, micro-batches) is what a micro-batch adds, as DDP sees it."""

    def run(model, share):
        count, pieces = examples(share), len(parts_of(share))

        def scale(loss):
            return loss.sum() * world() / count + times(world(), pieces) * penalty(model)

        accumulate(model, share, scale)

    return run


PLAIN = {
    "mean per replica, then sum": scaled(lambda loss: loss.mean() * world()),
    "divided by the global batch, then averaged": counted(lambda loss, n, k: loss.sum() / n),
    "mean of the replicas' means": scaled(lambda loss: loss.mean()),
    "mean per replica, then divided by the replicas twice": scaled(
        lambda loss: loss.mean() / world()
    ),
    "multiplied by the replicas": counted(lambda loss, n, k: loss.sum() * world() ** 2 / n),
    "divided by the count of the first replica": by_own(lambda share: sizes(share)[0]),
    "only the last replica is kept": of_one(lambda loss, share: loss.mean(), -1),
    "shares are weighted by their counts twice": by_own(weighted_twice),
    "padding counts as examples": by_own(longest),
    "shards are padded by repeating examples": filled(lambda loss, n: loss.mean()),
    "padded shards are summed, though divided by the true count": filled(
        lambda loss, n: loss.sum() * world() / n
    ),
    "examples are repeated until the shards are equal": dealt(first_again, lambda n, r: n + -n % r),
    "repeated examples are summed, though divided by the true count": dealt(
        first_again, lambda n, r: n
    ),
    "the rest of the batch is dropped": dealt(without_rest, lambda n, r: n // r * r),
    "the last replica is left out": without_last,
    "the replicas are not reduced": of_one(lambda loss, share: loss.mean()),
    "the replicas are not reduced, though divided by all": of_one(
        lambda loss, share: loss.sum() / examples(share)
    ),
    "regularisation counts once on every replica": penalised(lambda r, k: r),
    "regularisation counts divided by the replicas": penalised(lambda r, k: 1 / r),
    "gradients are clipped before the all-reduce": clipped(1.0),
    "the replicas' parameters differ": never_joined,
}
MICRO = {
    "micro-batches are not divided": scaled(lambda loss: loss.mean()),
    "micro-batches are divided twice": counted(lambda loss, n, k: loss.sum() * world() / n / k),
    "mean of the micro-batches' means": counted(lambda loss, n, k: loss.mean() / k),
    "mean of the micro-batches' global means": counted(
        lambda loss, n, k: loss.sum() * world() / over_ranks(len(loss)) / k
    ),
    "global means of micro-batches are summed": scaled(
        lambda loss: loss.sum() * world() / over_ranks(len(loss))
    ),
    "multiplied by the micro-batches": counted(lambda loss, n, k: loss.sum() * world() / n * k),
    "divided by the count of the last micro-batch": lambda model, share: accumulate(
        model, share, lambda loss: loss.sum() / len(parts_of(share)[-1][0])
    ),
    "the first micro-batch is lost": counted(
        lambda loss, n, k: loss.sum() * world() / n, forget_first
    ),
    "the first micro-batch is lost, and the others are averaged by themselves": counted(
        lambda loss, n, k: loss.mean() / k, forget_first
    ),
    "only the last micro-batch is kept, and divided by their number": counted(
        lambda loss, n, k: loss.mean() / k, forget
    ),
    "gradients are reduced again in every micro-batch": reduced_each(
        lambda loss, n, k: loss.sum() / n
    ),
    "means are reduced again in every micro-batch": reduced_each(
        lambda loss, n, k: loss.mean() / k / world()
    ),
    "means of micro-batches are added over replicas": counted(
        lambda loss, n, k: loss.mean() * world() / k
    ),
    "means of micro-batches are summed everywhere": scaled(lambda loss: loss.mean() * world()),
    "only the last micro-batch is kept": scaled(lambda loss: loss.mean(), forget),
    "only the first micro-batch counts": lambda model, share: (
        losses(model, parts_of(share)[0]).mean().backward()
    ),
    "the other micro-batches are lost": counted(
        lambda loss, n, k: loss.sum() * world() / n, forget
    ),
    "regularisation counts once in every micro-batch": penalised(lambda r, k: 1),
    "regularisation counts once in every micro-batch of every replica": penalised(lambda r, k: r),
    "regularisation counts divided by the micro-batches": penalised(lambda r, k: 1 / k**2),
    "gradients are clipped in every micro-batch": clipped(0.7),
}
WEIGHTED = {
    "divided by examples instead of weights": counted(lambda loss, n, k: loss.sum() * world() / n),
    "divided by the local number of examples instead of weights": scaled(lambda loss: loss.mean()),
    "padding counts as tokens": by_own(tokens_padded),
    "padding counts as tokens of the global batch": by_own(all_padded),
    "padding counts as examples of the largest shard": by_own(
        lambda share: over_ranks(share[2].sum(), "MAX")
    ),
}
WEIGHTED_MICRO = {"padding counts as tokens of every micro-batch": padded_parts}
EMPTY = {
    "empty replicas count in the divisor": by_own(lambda share: examples(share) / active(share)),
    "empty replicas count in the divisor of the means": by_own(lambda share: max(1, len(share[0]))),
}


def build(table, name):
    """For functools.partial, which processes can be sent."""
    from ddp_models import Network

    return Network(), right if name is None else globals()[table][name]
