"""Every row of the catalogue is recognised in steps that make its mistake."""

from __future__ import annotations

import numpy as np
import pytest
from steps import REGULARISATION, WEIGHTS, X, Y, count, flat, losses, mean, total

from samegrad_doctor import CATALOGUE, Outcome, diagnose


def sum_of(shares):
    return sum(total(share) for share in shares)


def weighted(share):
    return total(share, share[2])


def all_weights(shares):
    return sum(share[2].sum() for share in shares)


def windows(step):
    """The step on lists of micro-batches, also where there is one."""
    return lambda shares: step([s if isinstance(s, list) else [s] for s in shares])


def filled(share, shares):
    """The share, made as long as the largest one by its own examples again."""
    rows = np.resize(np.arange(len(share[0])), max(len(p[0]) for p in shares))
    return tuple(array[rows] for array in share)


def mean_of_filled(shares):
    longer = [filled(share, shares) for share in shares]
    return sum_of(longer) / count(longer)


def all_rows(shares):
    return tuple(np.concatenate(leaves) for leaves in zip(*shares, strict=True))


def seen_by_sampler(shares):
    """The examples of all shares, the first ones again until the shares are even."""
    rows = count(shares)
    return tuple(array[np.arange(rows + -rows % len(shares)) % rows] for array in all_rows(shares))


def without_rest(shares):
    kept = count(shares) // len(shares) * len(shares)
    return tuple(array[:kept] for array in all_rows(shares))


def active(shares):
    return [share for share in shares if len(share[0])]


def accumulated(windows, gradient):
    """Gradients that are summed over the replicas again after every micro-batch."""
    kept = [np.zeros(40) for _ in windows]
    for k in range(len(windows[0])):
        added = [g + gradient(w[k], windows) for g, w in zip(kept, windows, strict=True)]
        kept = [sum(added)] * len(windows)
    return kept[0]


def longest(share):
    return len(share[0]) * share[2].max()


# Name, and steps that make the mistake, each in another way of writing it.
PLAIN = {
    "mean per replica, then sum": [
        lambda s: sum(mean(p) for p in s),
        lambda s: len(s) * sum(total(p) / (len(s) * len(p[0])) for p in s),
    ],
    "divided by the global batch, then averaged": [
        lambda s: sum_of(s) / count(s) / len(s),
        lambda s: np.mean([total(p) / count(s) for p in s], axis=0),
        lambda s: np.mean([total(p) / 64 for p in s], axis=0),  # a fixed batch size divides
    ],
    "mean of the replicas' means": [
        lambda s: np.mean([mean(p) for p in s], axis=0),
        lambda s: sum(total(p) / (len(p[0]) * len(s)) for p in s),
    ],
    "mean per replica, then divided by the replicas twice": [
        lambda s: np.mean([mean(p) / len(s) for p in s], axis=0),
        lambda s: sum(mean(p) for p in s) / len(s) ** 2,
    ],
    "padding counts as examples": [
        lambda s: sum_of(s) / (len(s) * max(len(p[0]) for p in s)),
        lambda s: np.mean([total(p) / max(len(q[0]) for q in s) for p in s], axis=0),
    ],
    "shards are padded by repeating examples": [
        lambda s: mean_of_filled(s),
        lambda s: np.mean([mean(filled(p, s)) for p in s], axis=0),
    ],
    "the last replica is left out": [
        lambda s: sum_of(s[: max(1, len(s) - 1)]) / count(s),
        lambda s: sum(total(p) for p in s[: max(1, len(s) - 1)]) / 64,
    ],
    "multiplied by the replicas": [
        lambda s: len(s) * total(all_rows(s)) / count(s),
        lambda s: sum(len(s) * total(p) / 64 for p in s),
    ],
    "divided by the count of the first replica": [
        lambda s: np.mean([total(p) / len(s[0][0]) for p in s], axis=0),
        lambda s: total(all_rows(s)) / (len(s) * len(s[0][0])),
    ],
    "examples are repeated until the shards are equal": [
        lambda s: mean(seen_by_sampler(s)),
        lambda s: total(seen_by_sampler(s)) / (count(s) + -count(s) % len(s)),
    ],
    "repeated examples are summed, though divided by the true count": [
        lambda s: total(seen_by_sampler(s)) / count(s),
        lambda s: total(seen_by_sampler(s)) / 64,
    ],
    "padded shards are summed, though divided by the true count": [
        lambda s: sum(total(filled(p, s)) for p in s) / count(s),
        lambda s: sum(total(filled(p, s)) for p in s) / 64,
    ],
    "the rest of the batch is dropped": [
        lambda s: mean(without_rest(s)),
        lambda s: total(without_rest(s)) / (count(s) // len(s) * len(s)),
    ],
    "only the last replica is kept": [
        lambda s: mean(s[-1]),
        lambda s: [mean(p) for p in s].pop(),
    ],
    "shares are weighted by their counts twice": [
        lambda s: (
            sum(len(p[0]) ** 2 * mean(p) for p in s) / np.square([len(p[0]) for p in s]).sum()
        ),
        lambda s: sum(total(p) * len(p[0]) for p in s) / sum(len(p[0]) ** 2 for p in s),
    ],
    "the replicas are not reduced": [lambda s: mean(s[0]), lambda s: total(s[0]) / len(s[0][0])],
    "the replicas are not reduced, though divided by all": [
        lambda s: total(s[0]) / count(s),
        lambda s: total(s[0]) / 64,
    ],
}
MICRO = {
    "micro-batches are not divided": [
        lambda w: np.mean([sum(mean(p) for p in r) for r in w], axis=0),
        lambda w: sum(mean(p) for p in flat(w)) / len(w),
    ],
    "micro-batches are divided twice": [
        lambda w: sum_of(flat(w)) / count(flat(w)) / len(w[0]),
        lambda w: sum(sum_of(r) / count(flat(w)) / len(r) for r in w),
    ],
    "mean of the micro-batches' means": [
        lambda w: np.mean([mean(p) for p in flat(w)], axis=0),
        lambda w: np.mean([np.mean([mean(p) for p in r], axis=0) for r in w], axis=0),
    ],
    "means of micro-batches are added over replicas": [
        lambda w: sum(np.mean([mean(p) for p in r], axis=0) for r in w),
        lambda w: sum(mean(p) / len(r) for r in w for p in r),
    ],
    "means of micro-batches are summed everywhere": [
        lambda w: sum(mean(p) for p in flat(w)),
        lambda w: sum(sum(mean(p) for p in r) for r in w),
    ],
    "mean of the micro-batches' global means": [
        lambda w: np.mean([mean(all_rows(k)) for k in zip(*w, strict=True)], axis=0),
        lambda w: sum(sum_of(k) / count(k) / len(w[0]) for k in zip(*w, strict=True)),
    ],
    "global means of micro-batches are summed": [
        lambda w: sum(mean(all_rows(k)) for k in zip(*w, strict=True)),
        lambda w: sum(sum_of(k) / count(k) for k in zip(*w, strict=True)),
    ],
    "multiplied by the micro-batches": [
        lambda w: len(w[0]) * sum_of(flat(w)) / count(flat(w)),
        lambda w: sum(len(r) * sum_of(r) / 64 for r in w),
    ],
    "divided by the count of the last micro-batch": [
        lambda w: np.mean([sum_of(r) / len(r[-1][0]) for r in w], axis=0),
        lambda w: sum(sum_of(r) / (len(w) * len(r[-1][0])) for r in w),
    ],
    "the first micro-batch is lost": [
        lambda w: sum(sum_of(r[1:] or r) for r in w) / count(flat(w)),
        lambda w: sum(sum_of(r[1:] or r) / 64 for r in w),
    ],
    "the first micro-batch is lost, and the others are averaged by themselves": [
        lambda w: np.mean([sum(mean(p) for p in r[1:] or r) / len(r) for r in w], axis=0),
        lambda w: sum(mean(p) for r in w for p in r[1:] or r) / len(flat(w)),
    ],
    "only the last micro-batch is kept, and divided by their number": [
        lambda w: np.mean([mean(r[-1]) / len(r) for r in w], axis=0),
        lambda w: sum(mean(r[-1]) for r in w) / len(flat(w)),
    ],
    "gradients are reduced again in every micro-batch": [
        lambda w: accumulated(w, lambda p, w: total(p) / count(flat(w))),
        lambda w: accumulated(w, lambda p, w: total(p) / 64),
    ],
    "means are reduced again in every micro-batch": [
        lambda w: accumulated(w, lambda p, w: mean(p) / len(flat(w))),
        lambda w: accumulated(w, lambda p, w: mean(p)) / len(flat(w)),
    ],
    "only the last micro-batch is kept": [
        lambda w: np.mean([mean(r[-1]) for r in w], axis=0),
        lambda w: sum(mean(r[-1]) for r in w) / len(w),
    ],
    "only the first micro-batch counts": [
        lambda w: np.mean([mean(r[0]) for r in w], axis=0),
        lambda w: sum(mean(r[0]) for r in w) / len(w),
    ],
    "the other micro-batches are lost": [
        lambda w: sum_of([r[-1] for r in w]) / count(flat(w)),
        lambda w: sum(total(r[-1]) for r in w) / 64,
    ],
}
WEIGHTED = {
    "divided by examples instead of weights": [
        lambda s: sum(weighted(p) for p in s) / count(s),
        lambda s: sum(weighted(p) / count(s) for p in s),
    ],
    "divided by the local number of examples instead of weights": [
        lambda s: np.mean([weighted(p) / len(p[0]) for p in s], axis=0),
        lambda s: sum(weighted(p) / (len(p[0]) * len(s)) for p in s),
    ],
    "mean of the replicas' means": [
        lambda s: np.mean([weighted(p) / p[2].sum() for p in s], axis=0),
    ],
    "padding counts as tokens": [
        lambda s: np.mean([weighted(p) / longest(p) for p in s], axis=0),
        lambda s: sum(weighted(p) / (len(s) * longest(p)) for p in s),
    ],
    "padding counts as tokens of the global batch": [
        lambda s: weighted(all_rows(s)) / longest(all_rows(s)),
        lambda s: sum(weighted(p) / longest(all_rows(s)) for p in s),
    ],
    "padding counts as examples of the largest shard": [
        lambda s: np.mean([weighted(p) / max(q[2].sum() for q in s) for p in s], axis=0),
        lambda s: weighted(all_rows(s)) / (len(s) * max(q[2].sum() for q in s)),
    ],
}
WEIGHTED_MICRO = {
    "padding counts as tokens of every micro-batch": [
        lambda w: np.mean([weighted(p) / longest(p) for p in flat(w)], axis=0),
        lambda w: sum(weighted(p) / longest(p) / len(w) / len(w[0]) for p in flat(w)),
    ],
}
EMPTY = {
    "empty replicas count in the divisor": [
        lambda s: sum_of(active(s)) / count(s) * len(active(s)) / len(s),
        lambda s: sum(total(p) for p in active(s)) / 64 * len(active(s)) / len(s),
    ],
    "empty replicas count in the divisor of the means": [
        lambda s: sum(mean(p) for p in active(s)) / len(s),
        lambda s: sum(total(p) / max(1, len(p[0])) for p in s) / len(s),
    ],
}


def cases(table):
    return [
        pytest.param(name, step, id=f"{name}-{i}")
        for name, steps in table.items()
        for i, step in enumerate(steps)
    ]


@pytest.mark.parametrize(("name", "step"), cases(PLAIN))
def test_a_mistake_over_replicas_is_named(name, step) -> None:
    found = diagnose(step, (X, Y))
    assert not found and found.cause.name == name, str(found)


@pytest.mark.parametrize(("name", "step"), cases(MICRO))
def test_a_mistake_over_micro_batches_is_named(name, step) -> None:
    found = diagnose(
        windows(step), (X, Y), replicas=(1, 2, 3), micro_batches=(1, 2), max_examples=14
    )
    assert not found and found.cause.name == name, str(found)


@pytest.mark.parametrize(("name", "step"), cases(WEIGHTED))
def test_a_mistake_with_weights_is_named(name, step) -> None:
    found = diagnose(step, (X, Y, WEIGHTS), weights=WEIGHTS)
    assert not found and found.cause.name == name, str(found)


@pytest.mark.parametrize(("name", "step"), cases(WEIGHTED_MICRO))
def test_a_mistake_with_weights_over_micro_batches_is_named(name, step) -> None:
    found = diagnose(
        windows(step), (X, Y, WEIGHTS), weights=WEIGHTS, micro_batches=(1, 2), max_examples=14
    )
    assert not found and found.cause.name == name, str(found)


@pytest.mark.parametrize(("name", "step"), cases(EMPTY))
def test_a_mistake_where_a_replica_is_empty_is_named(name, step) -> None:
    found = diagnose(step, (X, Y), empty_shard=True)
    assert not found and found.cause.name == name, str(found)


def test_the_mean_over_replicas_with_data_only_is_no_join() -> None:
    step = lambda s: np.mean([mean(p) for p in active(s)], axis=0)  # noqa: E731
    found = diagnose(step, (X, Y), empty_shard=True)
    assert found.cause.name == "mean of the replicas' means", str(found)


def test_every_row_is_tried_but_the_one_that_is_a_convention() -> None:
    tried = {*PLAIN, *MICRO, *WEIGHTED, *WEIGHTED_MICRO, *EMPTY}
    assert {row.name for row in CATALOGUE} - tried == {"summed and not divided"}


@pytest.mark.parametrize(
    ("step", "name"),
    [
        (lambda s: sum(total(p) / count(s) + REGULARISATION for p in s), "once on every replica"),
        (lambda s: sum_of(s) / count(s) + REGULARISATION / len(s), "divided by the replicas"),
        (lambda s: sum(mean(p) for p in s) + len(s) ** 2 * REGULARISATION * 0.0
         + REGULARISATION, "mean per replica, then sum"),
    ],
)  # fmt: skip
def test_a_term_without_examples_is_counted(step, name) -> None:
    found = diagnose(step, (X, Y))
    assert not found and name in found.cause.name, str(found)


def test_counts_that_one_number_of_replicas_cannot_tell_apart_are_all_named() -> None:
    step = lambda s: sum(total(p) / count(s) + REGULARISATION for p in s)  # noqa: E731
    found = diagnose(step, (X, Y), replicas=(2,))
    assert "once on every replica" in found.cause.name
    assert any("divided by the replicas" in other.name for other in found.alternatives)
    assert not diagnose(step, (X, Y), replicas=(2, 3)).alternatives


def test_clipping_before_the_replicas_are_joined_is_named() -> None:
    def step(shares):
        if len(shares) == 1:
            return mean(shares[0])
        parts = [total(p) / count(shares) for p in shares]
        return sum(g * min(1.0, 3.0 / np.linalg.norm(g)) for g in parts)

    found = diagnose(step, (X, Y))
    assert not found and "clipped before" in found.cause.name, str(found)


def test_clipping_in_every_micro_batch_is_named() -> None:
    def step(all_windows):
        parts = [total(p) / count(flat(all_windows)) for p in flat(all_windows)]
        if len(parts) == 1:
            return parts[0]
        return sum(g * min(1.0, 2.0 / np.linalg.norm(g)) for g in parts)

    found = diagnose(windows(step), (X, Y), replicas=(1, 2), micro_batches=(1, 2), max_examples=14)
    assert not found and "every micro-batch" in found.cause.name, str(found)


def test_a_world_size_of_another_run_is_a_factor() -> None:
    def step(shares):
        return sum(mean(p) for p in shares) / (8 if len(shares) > 1 else 1)

    found = diagnose(step, (X, Y))
    assert not found and "a factor of 0.125" in found.cause.name, str(found)


@pytest.mark.parametrize(
    ("report", "words"),
    [
        (lambda s: sum(losses(p).mean() for p in s), "mean per replica, then sum"),
        (lambda s: np.mean([losses(p).mean() for p in s]), "mean of the replicas' means"),
        (lambda s: sum(losses(p).sum() for p in s) / count(s) / len(s),
         "divided by the global batch, then averaged"),
    ],
)  # fmt: skip
def test_the_reported_loss_has_a_verdict_of_its_own(report, words) -> None:
    found = diagnose(lambda s: Outcome(sum_of(s) / count(s), report(s)), (X, Y))
    assert found.correct and words in found.reported_loss_issue


def test_copies_that_differ_are_seen() -> None:
    def step(shares):
        return Outcome(mean(shares[0]), replicas=[mean(p) for p in shares])

    assert "differ" in diagnose(step, (X, Y)).cause.name


def test_an_empty_share_that_makes_no_number_is_seen() -> None:
    def step(shares):
        if any(len(p[0]) == 0 for p in shares):
            return np.full(40, np.nan)
        return sum_of(shares) / count(shares)

    assert diagnose(step, (X, Y)).correct
    found = diagnose(step, (X, Y), empty_shard=True)
    assert not found and "without examples" in found.cause.name
