"""Mistakes that come together: rows with terms, with factors, in parts, and in the report.

Steps are made from the rows themselves: what is tried is whether the rest does not hide them.
"""

from __future__ import annotations

import numpy as np
import pytest
from real_bugs import statistics as bn
from real_bugs.model import clip, flat, mean, windows
from steps import W1, W2

from samegrad_doctor import CATALOGUE, Layout, Outcome, Situation, diagnose

RNG = np.random.default_rng(0)
GRADIENTS, PENALTY = RNG.normal(size=(2, 30, 60))
TERM = RNG.normal(size=60)
LOSSES = RNG.uniform(1, 3, size=(30, 1))
WEIGHTS = RNG.integers(1, 7, size=30).astype(float)
BATCH = (np.arange(30),)
IMAGES = (RNG.normal(size=(60, 6)), RNG.normal(size=(60, 2)))
ROWS = [row for row in CATALOGUE if not row.empty and row.name != "summed and not divided"]
PLAIN = [row for row in ROWS if not row.weighted]
COUNTS = {
    "once": lambda item: 1,
    "once on every replica": lambda item: item.replicas,
    "divided by the replicas": lambda item: 1 / item.replicas,
    "once in every micro-batch": lambda item: item.micro_batches,
}


def layout_of(shares):
    """The layout of shares, and the examples in its order."""
    start, parts, order = 0, [], []
    for window in windows(shares):
        own = []
        for part in window:
            own.append(tuple(range(start, start + len(part[0]))))
            start += len(part[0])
            order.append(part[0])
        parts.append(tuple(own))
    return Layout(tuple(parts)), np.concatenate(order)


def of_row(row, values=GRADIENTS, fixed=False):
    """A step with the weights of a row, or with the right ones."""

    def step(shares):
        item, order = layout_of(shares)
        weights = WEIGHTS[order] if row is not None and row.weighted else np.ones(len(order))
        situation = Situation(item, weights)
        found = situation.right if row is None else row.predict(situation)
        return (found * (weights.sum() / 64 if fixed else 1)) @ values[order]

    return step


def options(*rows):
    found = {}
    if any(row.point.micro for row in rows):
        found |= {"replicas": (1, 2, 3), "micro_batches": (1, 2), "max_examples": 14}
    if any(row.weighted for row in rows):
        found["weights"] = WEIGHTS
    return found


def leaves_nothing(row, count):
    """Whether the term is brought along by the examples just as often as it counts."""
    items = [Layout((((0, 1), (2,)), ((3, 4, 5), (6, 7))))]
    ones = np.ones(8)
    return all(abs(COUNTS[count](i) - row.predict(Situation(i, ones)).sum()) < 1e-9 for i in items)


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_a_row_is_named_beside_a_term(row, count) -> None:
    if "micro" in count and not row.point.micro:
        pytest.skip("there is one micro-batch only")
    base = of_row(row)
    step = lambda s: base(s) + COUNTS[count](layout_of(s)[0]) * TERM  # noqa: E731
    found = diagnose(step, BATCH, **options(row))
    assert not found and row.name in found.cause.name, str(found)
    if count != "once" and not leaves_nothing(row, count):
        assert count in found.cause.name, str(found)


@pytest.mark.parametrize("fixed", [False, True])
@pytest.mark.parametrize("row", PLAIN, ids=lambda row: row.name)
def test_a_part_of_the_loss_with_a_row_of_its_own_is_named(row, fixed) -> None:
    if fixed and not row.point.fixed:
        pytest.skip("the row is one of means")
    if row.name.startswith("repeated examples"):
        pytest.skip("the first example's penalty comes once more, as a term of no example does")
    data, penalty = of_row(None, fixed=fixed), of_row(row, PENALTY, fixed=fixed)
    found = diagnose(lambda s: data(s) + penalty(s), BATCH, **options(row))
    assert not found and "a part of the loss" in found.cause.name, str(found)
    assert row.name in found.cause.name, str(found)


@pytest.mark.parametrize("fixed", [False, True])
@pytest.mark.parametrize("row", PLAIN, ids=lambda row: row.name)
def test_a_reported_loss_with_a_row_of_its_own_is_named(row, fixed) -> None:
    report = of_row(row, LOSSES)
    update = of_row(None, fixed=fixed)
    step = lambda s: Outcome(update(s), float(report(s)[0]))  # noqa: E731
    found = diagnose(step, BATCH, **options(row))
    assert found.correct and row.name in found.reported_loss_issue, str(found)


def normalised(parts, weights):
    """A gradient with moments of all parts, and a weight per example."""
    x, y = (np.concatenate(leaves) for leaves in zip(*parts, strict=True))
    h = x @ W1
    scale = 1 / np.sqrt(h.var(axis=0) + 1e-3)
    out = (h - h.mean(axis=0)) * scale
    error = 2 * (np.tanh(out) @ W2 - y) * weights[:, None]
    back = error @ W2.T * (1 - np.tanh(out) ** 2)
    through = scale * (back - back.mean(axis=0) - out * (back * out).mean(axis=0))
    return np.concatenate([(x.T @ through).ravel(), (np.tanh(out).T @ error).ravel()])


@pytest.mark.parametrize("row", PLAIN, ids=lambda row: row.name)
def test_a_row_is_named_where_moments_are_synchronised(row) -> None:
    def step(shares):
        item, order = layout_of(shares)
        weights = row.predict(Situation(item, np.ones(len(order))))
        return normalised(flat(windows(shares)), weights) + 0.3 * TERM[:40]

    found = diagnose(step, IMAGES, **options(row))
    assert not found and found.cause.name.startswith(row.name), str(found)


KINDS = {
    "batch statistics are not synchronised": lambda share: bn.unsynchronised([share]),
    "gradients are clipped": lambda share: clip(mean(share), 1.0),
}
SHARES = [row for row in PLAIN if not any(w in row.name for w in ("repeat", "filled", "dropped"))]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("row", SHARES, ids=lambda row: row.name)
def test_what_shares_do_alone_is_named_with_any_weights(row, kind) -> None:
    def step(shares):
        item, order = layout_of(shares)
        weights = row.predict(Situation(item, np.ones(len(order))))
        total = 0.3 * TERM[:40]
        for window, own in zip(windows(shares), item.parts, strict=True):
            groups = zip(window, own, strict=True)
            if not row.point.micro:
                groups = [(bn.join(window), [i for part in own for i in part])]
            for part, places in groups:
                total = total + weights[list(places)].sum() * KINDS[kind](part)
        return total

    found = diagnose(step, IMAGES, **{k: v for k, v in options(row).items() if k != "max_examples"})
    if row.point.micro and kind.startswith("batch statistics"):
        kind = "batch statistics are those of each micro-batch"
    assert not found and found.cause.name.startswith(kind), str(found)
