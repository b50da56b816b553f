"""Every mistake of the catalogue in JAX, as the loss that is differentiated over all replicas.

A program is given the parameters and the replicas' lists of micro-batches. JAX is imported when it
runs; gradients that are changed after they are taken are written out.
"""

from __future__ import annotations

import numpy as np

DRAWS = np.random.default_rng(2)
START = (DRAWS.normal(size=(6, 5)), DRAWS.normal(size=(5, 2)))


def losses(w, part):
    from jax import numpy as jnp

    own = ((jnp.tanh(part[0] @ w[0]) @ w[1] - part[1]) ** 2).sum(axis=1)
    return own * part[2] if len(part) > 2 else own


def size(replica):
    return sum(len(part[0]) for part in replica)


def examples(replicas):
    return sum(map(size, replicas))


def total(w, replicas):
    """The sum over all examples."""
    return sum(losses(w, part).sum() for replica in replicas for part in replica)


def means(w, replica):
    """The sum of the means of a replica's micro-batches."""
    return sum(losses(w, part).mean() for part in replica)


def penalty(w):
    return 0.1 * sum((leaf * leaf).sum() for leaf in w)


def filled(replica, longest):
    rows = np.resize(np.arange(size(replica)), longest)
    return [tuple(np.asarray(array)[rows] for array in replica[0])]


def of_filled(divisor):
    """divisor(shares, longer shares)"""

    def loss(w, s):
        longer = [filled(replica, max(map(size, s))) for replica in s]
        return total(w, longer) / divisor(s, longer)

    return loss


def dealt(again, divisor):
    """The examples of all replicas, the first ones again or without the last ones."""

    def loss(w, s):
        rows = examples(s)
        kept = np.arange(rows + -rows % len(s)) % rows if again else np.arange(rows - rows % len(s))
        arrays = zip(*(replica[0] for replica in s), strict=True)
        whole = tuple(np.concatenate(list(leaves))[kept] for leaves in arrays)
        return losses(w, whole).sum() / divisor(rows, len(kept))

    return loss


def global_means(w, s):
    """The sum over micro-batches of their means over all replicas."""
    return sum(
        total(w, [[part] for part in parts]) / examples([[part] for part in parts])
        for parts in zip(*s, strict=True)
    )


def reduced_again(value):
    """value(w, micro-batch, all), as if what was summed were summed again with the next."""

    def loss(w, s):
        return sum(
            len(s) ** (len(replica) - 1 - k) * value(w, part, s)
            for replica in s
            for k, part in enumerate(replica)
        )

    return loss


def padded(part):
    """As many tokens as the longest example has, for all."""
    return len(part[0]) * np.max(np.asarray(part[2]))


def tokens(replica):
    return float(np.asarray(replica[0][2]).sum())


def present(s):
    return [replica for replica in s if size(replica)]


def right(w, s):
    return total(w, s) / examples(s)


def regularised(times):
    return lambda w, s: right(w, s) + times(len(s), len(s[0])) * penalty(w)


def clipped(limit, groups):
    """The gradients of groups of micro-batches, limited one by one, as a loss linear in w."""

    def loss(w, s):
        import jax

        if sum(map(len, s)) == 1:
            return right(w, s)
        value, here = 0.0, jax.lax.stop_gradient(w)
        for group in groups(s):
            own = jax.grad(lambda v, group=group: total(v, [group]) / examples(s))(here)
            norm = jax.numpy.sqrt(sum((leaf**2).sum() for leaf in own))
            factor = jax.numpy.minimum(1.0, limit / norm)
            value += factor * sum((g * leaf).sum() for g, leaf in zip(own, w, strict=True))
        return value

    return loss


PLAIN = {
    "mean per replica, then sum": lambda w, s: sum(means(w, r) for r in s),
    "divided by the global batch, then averaged": lambda w, s: right(w, s) / len(s),
    "mean of the replicas' means": lambda w, s: sum(means(w, r) for r in s) / len(s),
    "mean per replica, then divided by the replicas twice": lambda w, s: (
        sum(means(w, r) for r in s) / len(s) ** 2
    ),
    "padding counts as examples": lambda w, s: total(w, s) / (len(s) * max(map(size, s))),
    "multiplied by the replicas": lambda w, s: right(w, s) * len(s),
    "divided by the count of the first replica": lambda w, s: total(w, s) / (len(s) * size(s[0])),
    "only the last replica is kept": lambda w, s: means(w, s[-1]),
    "shares are weighted by their counts twice": lambda w, s: (
        sum(size(r) * total(w, [r]) for r in s) / sum(size(r) ** 2 for r in s)
    ),
    "shards are padded by repeating examples": of_filled(lambda s, longer: examples(longer)),
    "padded shards are summed, though divided by the true count": of_filled(
        lambda s, longer: examples(s)
    ),
    "examples are repeated until the shards are equal": dealt(True, lambda rows, kept: kept),
    "repeated examples are summed, though divided by the true count": dealt(
        True, lambda rows, kept: rows
    ),
    "the rest of the batch is dropped": dealt(False, lambda rows, kept: kept),
    "the last replica is left out": lambda w, s: total(w, s[: max(1, len(s) - 1)]) / examples(s),
    "the replicas are not reduced": lambda w, s: total(w, s[:1]) / examples(s[:1]),
    "the replicas are not reduced, though divided by all": lambda w, s: (
        total(w, s[:1]) / examples(s)
    ),
    "regularisation counts once on every replica": regularised(lambda r, k: r),
    "regularisation counts divided by the replicas": regularised(lambda r, k: 1 / r),
    "gradients are clipped before the all-reduce": clipped(2.0, lambda s: s),
}
MICRO = {
    "micro-batches are not divided": lambda w, s: sum(means(w, r) for r in s) / len(s),
    "micro-batches are divided twice": lambda w, s: right(w, s) / len(s[0]),
    "mean of the micro-batches' means": lambda w, s: sum(means(w, r) / len(r) for r in s) / len(s),
    "mean of the micro-batches' global means": lambda w, s: global_means(w, s) / len(s[0]),
    "global means of micro-batches are summed": global_means,
    "multiplied by the micro-batches": lambda w, s: right(w, s) * len(s[0]),
    "divided by the count of the last micro-batch": lambda w, s: (
        sum(total(w, [r]) / size(r[-1:]) for r in s) / len(s)
    ),
    "the first micro-batch is lost": lambda w, s: total(w, [r[1:] or r for r in s]) / examples(s),
    "the first micro-batch is lost, and the others are averaged by themselves": lambda w, s: (
        sum(means(w, r[1:] or r) / len(r) for r in s) / len(s)
    ),
    "only the last micro-batch is kept, and divided by their number": lambda w, s: (
        sum(means(w, r[-1:]) / len(r) for r in s) / len(s)
    ),
    "gradients are reduced again in every micro-batch": reduced_again(
        lambda w, part, s: losses(w, part).sum() / examples(s)
    ),
    "means are reduced again in every micro-batch": reduced_again(
        lambda w, part, s: losses(w, part).mean() / len(s) / len(s[0])
    ),
    "means of micro-batches are added over replicas": lambda w, s: sum(
        means(w, r) / len(r) for r in s
    ),
    "means of micro-batches are summed everywhere": lambda w, s: sum(means(w, r) for r in s),
    "only the last micro-batch is kept": lambda w, s: sum(means(w, r[-1:]) for r in s) / len(s),
    "only the first micro-batch counts": lambda w, s: sum(means(w, r[:1]) for r in s) / len(s),
    "the other micro-batches are lost": lambda w, s: total(w, [r[-1:] for r in s]) / examples(s),
    "regularisation counts once in every micro-batch": regularised(lambda r, k: k),
    "regularisation counts once in every micro-batch of every replica": regularised(
        lambda r, k: r * k
    ),
    "regularisation counts divided by the micro-batches": regularised(lambda r, k: 1 / k),
    "gradients are clipped in every micro-batch": clipped(
        1.5, lambda s: [[part] for r in s for part in r]
    ),
}
WEIGHTED = {
    "divided by examples instead of weights": right,
    "divided by the local number of examples instead of weights": lambda w, s: (
        sum(means(w, r) for r in s) / len(s)
    ),
    "padding counts as tokens": lambda w, s: sum(total(w, [r]) / padded(r[0]) for r in s) / len(s),
    "padding counts as tokens of the global batch": lambda w, s: (
        right(w, s) / max(np.max(np.asarray(r[0][2])) for r in s)
    ),
    "padding counts as examples of the largest shard": lambda w, s: (
        total(w, s) / (len(s) * max(map(tokens, s)))
    ),
}
WEIGHTED_MICRO = {
    "padding counts as tokens of every micro-batch": lambda w, s: (
        sum(losses(w, part).sum() / padded(part) for r in s for part in r) / len(s) / len(s[0])
    ),
}
EMPTY = {
    "empty replicas count in the divisor": lambda w, s: (
        right(w, present(s)) * len(present(s)) / len(s)
    ),
    "empty replicas count in the divisor of the means": lambda w, s: (
        sum(means(w, r) for r in present(s)) / len(s)
    ),
}


def step_of(program):
    def step(shares):
        import jax

        replicas = [s if isinstance(s, list) else [s] for s in shares]
        w = [jax.numpy.asarray(leaf, dtype="float32") for leaf in START]
        return [np.asarray(g) for g in jax.grad(lambda w: program(w, replicas))(w)]

    return step
