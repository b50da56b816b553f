"""Hypotheses with unknowns for steps whose examples depend on the batch, or have two counts."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from samegrad_doctor import _hypotheses as unknowns
from samegrad_doctor._basis import EXACT, FLOOR, TELLING
from samegrad_doctor._catalogue import NO_GRADIENT_OF_EXCHANGE, FailureMode, beside
from samegrad_doctor._hypotheses import PROBED, Probe
from samegrad_doctor._layouts import Layout, if_taken, layout
from samegrad_doctor._measure import Runs
from samegrad_doctor._select import EQUAL, Hypothesis, residual
from samegrad_doctor._updates import Vector

_IN_PART = "in a part of the loss, "
_PAIRED = 5  # examples, in ten pairs
_TOLD_BY = 3  # layouts, of which one is that of one device
_SEVERAL = 4  # times the noise of one run, where sums of several runs are compared


def explain_shared_batch(seen: Runs) -> FailureMode | None:
    """Explain a step whose examples depend on the whole batch, which the replicas share.

    Each example's update is unknown. A term that belongs to no example is one more unknown vector;
    two counts in one loss are two unknown vectors for each example. What explains splits of a few
    must not be refuted by those of all, in which the examples may do something else.
    """
    if seen.settings.equal_shards:  # splits of a few cannot be
        return None
    probe, whole = unknowns.probe_of(seen), unknowns.probe_of(seen, seen.layouts)
    if probe.is_right:
        return None
    if (two := _of_two_counts(seen)) is not None:
        return two

    alike = []
    for name in (None, *unknowns.COUNTS):
        for (row, few), (_, own) in zip(probe.said, whole.said, strict=True):
            rank = (row is not None) + (name not in (None, *unknowns.RIGHT_COUNTS))
            free = _with_count(probe.layouts, few, name)
            refuted = partial(_refuted, probe, whole, few, own, name)
            made = partial(unknowns.with_term, name or "once", row)
            alike.append(Hypothesis(made, 0.0, free, refuted, rank))
    return probe.first(one for one in alike if one.rank)


def _with_count(layouts: Sequence[Layout], own: Vector, name: str | None) -> Vector:
    """Return a matrix of example counts, with a term."""
    return np.hstack([own, [[unknowns.COUNTS[name](item)] for item in layouts]]) if name else own


def _refuted(probe: Probe, whole: Probe, few: Vector, own: Vector, name: str | None) -> bool:
    """Return True if two batches are refuted: each example is free, and a term is one vector."""
    apart = [[few, np.zeros((len(few), own.shape[1]))], [np.zeros((len(own), few.shape[1])), own]]
    free = _with_count([*probe.layouts, *whole.layouts], np.block(apart), name)
    updates = np.concatenate([probe.updates, whole.updates])
    if residual(updates, free)[0] > max(probe.limit, whole.limit):
        return True
    # A term that is all of the update leaves the examples to explain what is little.
    made = np.linalg.lstsq(_with_count(probe.layouts, few, name), probe.updates)[0]
    data = few @ made[: few.shape[1]]
    return bool(np.linalg.norm(data) < TELLING * np.linalg.norm(probe.updates))


def _of_two_counts(seen: Runs) -> FailureMode | None:
    """Explain two counts, with the weights of the user or those that pairs of examples tell."""
    if seen.uneven:
        return _two_counts(seen)
    # A step may refuse single examples.
    if seen.given or (tangents := if_taken(lambda: _tangents(seen), None)) is None:
        return None
    for sign in (1, -1):  # which of both parts has the weights is seen in more than pairs
        own = (1 - sign * tangents) / (1 + sign * tangents)
        weights = np.concatenate([own, np.ones(seen.examples - len(own))])
        if (found := _two_counts(replace(seen, weights=weights))) is not None:
            return found
    return None


def _tangents(seen: Runs) -> Vector | None:
    """x_j = ±(w_0 - w_j) / (w_0 + w_j), where one part counts weights and the other examples.

    Two examples with g_i + p_i by themselves make their mean and x_ij (g_i - g_j) / 2 together, so
    that three pairs of three examples span a plane and tell x, but for one scale; that follows
    from x_jk = (x_k - x_j) / (1 - x_j x_k).
    """
    one = [seen.alone([i]).sketch for i in range(PROBED)]
    alone = {(i, j): seen.alone([i, j]).sketch - (one[i] + one[j]) / 2
             for i, j in itertools.combinations(range(PROBED), 2)}  # fmt: skip
    size = max(map(np.linalg.norm, alone.values()))
    if not np.isfinite(size) or size <= FLOOR * max(map(np.linalg.norm, one)):
        return None
    ref = max(range(1, PROBED), key=lambda j: float(np.linalg.norm(alone[0, j])))
    ratios, squares = np.zeros(PROBED), []
    ratios[ref] = 1.0
    for k in set(range(1, PROBED)) - {ref}:
        both = np.stack([alone[0, k], alone[0, ref]], axis=1)
        pair = alone[min(ref, k), max(ref, k)]
        (ahead, back), *_ = np.linalg.lstsq(both, pair, rcond=1e-6)
        # Equal weights of two leave nothing of their pair.
        flat, alike = (np.linalg.norm(own) <= EXACT * size for own in (alone[0, k], pair))
        if not flat and np.linalg.norm(both @ (ahead, back) - pair) > EXACT * size:
            return None
        ratios[k] = 0.0 if flat else 1.0 if alike else -back / ahead
        if not flat and not alike:
            squares.append((1 - (ratios[k] - 1) / (ahead * ratios[k])) / ratios[k])
    square = float(np.median(squares)) if squares else -1.0
    tangents = np.sqrt(max(square, 0.0)) * ratios
    return tangents if square > 0 and np.abs(tangents).max() < 1 else None


def explain_two_parts(seen: Runs) -> FailureMode | None:
    """Explain two parts of the loss with a count each, made by shards or together."""
    return _mean_and_sum(seen) or (None if seen.settings.equal_shards else _of_two_counts(seen))


def explain_even_parts(seen: Runs) -> FailureMode | None:
    """Explain two parts of the loss in equal shards, or a term, by a factor each.

    Examples count alike then, so that with u of one device, and factors a and b of the parts, an
    update is a u + (b - a) P, of which P is unknown: two layouts tell whether it is one vector.
    """
    if not seen.settings.equal_shards or len(seen.layouts) < _TOLD_BY:
        return None
    order = np.random.default_rng(0).permutation(seen.examples).tolist()
    others = [item.renumbered(order) for item in seen.layouts[1:]]  # refute functions of a share
    probe = unknowns.probe_of(seen, [*seen.layouts, *others])
    factors: dict[tuple[float, ...], FailureMode | None] = {}
    for row, table in (*probe.said, *probe.scaled):
        ratios = table / probe.right
        if (np.ptp(ratios, axis=1) <= EQUAL * np.abs(ratios).max()).all():
            factors.setdefault(tuple(np.round(ratios[:, 0], 9).tolist()), row)
    rows = [(row, np.array(own)[:, None]) for own, row in factors.items()]
    least = probe.limit / TELLING
    told = [own for own in rows if np.linalg.norm(probe.updates - own[1] * seen.one) > least]
    return probe.first(unknowns.pairs(told, rows, lambda a, b: a * seen.one, lambda a, b: b - a))


def _two_counts(seen: Runs) -> FailureMode | None:
    """Explain a loss of two parts: one counts weights and the other examples.

    Layouts of a part of the batch are among them: what is the same in all layouts of a batch could
    also be in each of its examples.
    """
    probe = unknowns.probe_of(seen, unknowns.few_of(seen, (PROBED, PROBED - 2)))
    plain = replace(probe, weights=np.ones(len(probe.weights)))
    return probe.first(
        unknowns.pairs(probe.said, plain.said, lambda a, b: 0.0, lambda a, b: np.hstack([a, b]))
    )


def _mean_and_sum(seen: Runs) -> FailureMode | None:
    """Explain a mean over the examples beside a sum over them by a row each.

    With g_i + p_i of one example, two make (g_i + g_j) / 2 + p_i + p_j, so that pairs tell all p_i;
    what three together leave over is noise.
    """
    even = seen.settings.equal_shards
    count = seen.examples if even else min(PROBED, seen.examples)
    one = np.stack([seen.alone([i]).sketch for i in range(count)])

    def together(i: int, j: int) -> Vector:  # p_i + p_j
        return np.asarray(2 * seen.alone([i, j]).sketch - one[i] - one[j])

    first = (together(0, 1) + together(0, 2) - together(1, 2)) / 2
    sums = np.stack([first, *(together(0, j) - first for j in range(1, count))])
    means = one - sums
    probe = unknowns.probe_of(seen, seen.layouts if even else None)
    scale = float(np.linalg.norm(one) + np.linalg.norm(sums))
    small = min(float(np.linalg.norm(part)) for part in (means, sums))
    threes = [[0, 1, j] for j in range(2, count)]
    made = [means[three].mean(axis=0) + sums[three].sum(axis=0) for three in threes]
    found = [seen.alone(three).sketch for three in threes]
    left = float(np.linalg.norm(np.subtract(found, made), axis=1).max(initial=0.0))
    if left > _SEVERAL * seen.noise.limit(seen.alive) * scale:
        return None
    limit = FLOOR * scale + _SEVERAL * left
    if limit > TELLING * small:
        return None
    probe.limit, nothing = limit, np.zeros((len(probe.layouts), 0))
    others = replace(probe, fixed=True).said
    return probe.first(
        unknowns.pairs(probe.said, others, lambda a, b: a @ means + b @ sums, lambda a, b: nothing)
    )


def explain_shares_and_examples(seen: Runs) -> FailureMode | None:
    """Explain a part of the loss that depends on the shard as a whole, beside a sum.

    The shares' own updates hold both parts; with row A for them and row B for the sum, an update is
    Σ A_g u(g) + Σ (B_i - A_i) p_i with unknown p_i.
    """
    if seen.settings.equal_shards:  # splits of a few cannot be
        return None
    probe = unknowns.probe_of(seen)
    for own in unknowns.alone_in(seen):
        rows = [
            (row, table, unknowns.of_groups(seen, probe.layouts, table, own.groups)[0])
            for row, table in probe.said
            if unknowns.alike_in(probe.layouts, table, own.groups)
        ]
        made = partial(beside, own.statistics, name=_IN_PART, what=_IN_PART)
        alike = (
            Hypothesis(partial(made, b), known, second - first, rank=bool(a) + bool(b))
            for (a, first, known), (b, second) in itertools.product(rows, probe.said)
        )
        if found := probe.first(alike):
            return found
    return None


def explain_pairs(seen: Runs) -> FailureMode | None:
    """Test if no gradient passes between replicas: pairs of examples then need one replica.

    The values that are exchanged are right, so that an update is Σ a_i, and b_ij for each pair of
    examples that a replica has together, with unknown vectors for a few examples.
    """
    if max(seen.settings.replicas) == 1 or 1 not in seen.settings.micro_batches:
        return None
    settings = replace(seen.settings, micro_batches=(1,))
    count = settings.multiple if settings.equal_shards else _PAIRED
    two = list(itertools.combinations(range(count), 2))
    number = 2 * len(two) + unknowns.SPARE
    probe = unknowns.probe_of(seen, [layout([count]), *settings.turning(count, number)])
    together = [[1.0, *(float(own[i] == own[j]) for i, j in two)] for own in probe.owners]
    return probe.first([Hypothesis(lambda: NO_GRADIENT_OF_EXCHANGE, 0.0, np.array(together))])
