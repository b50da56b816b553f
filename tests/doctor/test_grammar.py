"""Every point of the grammar is found again in a step that gives its weights."""

from __future__ import annotations

import numpy as np
import pytest
from test_combined_mistakes import GRADIENTS, WEIGHTS, layout_of

from samegrad_doctor import CATALOGUE, Layout, Outcome, Situation, StepError, diagnose
from samegrad_doctor._grammar import Point, points
from samegrad_doctor._select import with_powers

RNG = np.random.default_rng(12)
SOFT = RNG.uniform(0.03, 0.3, 30)  # sums below and above 1
WINDOW = {"replicas": (1, 2, 3), "micro_batches": (1, 2), "max_examples": 14}
KINDS = {
    "plain": (False, False, np.ones(30), {"replicas": (2, 3, 4), "max_examples": 13}),
    "weighted": (
        False,
        True,
        WEIGHTS,
        {"replicas": (2, 3, 4), "max_examples": 13, "weights": WEIGHTS},
    ),
    "micro": (True, False, np.ones(30), WINDOW),
    "both": (True, True, WEIGHTS, {**WINDOW, "weights": WEIGHTS}),
}


def step_of(point: Point, weights: np.ndarray):
    def step(shares):
        item, order = layout_of(shares)
        return point(Situation(item, weights[order])) @ GRADIENTS[order]

    return step


def splits(micro: bool) -> list[Layout]:
    """Others than those that are tried."""
    found = []
    for r in (1, 2, 3):
        for k in (1, 2) if micro else (1,):
            order = iter(RNG.permutation(30).tolist())
            sizes = RNG.integers(2, 5, size=(r, k))
            found.append(
                Layout(tuple(tuple(tuple(next(order) for _ in range(n)) for n in s) for s in sizes))
            )
    return found


def alike(first, second, weights: np.ndarray, micro: bool) -> bool:
    """Whether both give the same weights, in terms of those of single examples."""
    for item in splits(micro):
        places = {i: p for p, i in enumerate(item.examples)}
        parts = tuple(tuple(tuple(places[i] for i in p) for p in s) for s in item.parts)
        own = weights[list(item.examples)]
        said = []
        for row in (first, second):
            alone = Situation([Layout((((i,),),)) for i in range(len(own))], own)
            said.append(row(Situation(Layout(parts), own)) / row(alone))
        if not np.allclose(*said, rtol=1e-6):
            return False
    return True


def cases(kind: str) -> list[Point]:
    micro, weighted, *_ = KINDS[kind]
    found = []
    for place, point in enumerate(points(micro, weighted, 3, False)):
        below = [*(measure for measure, _ in point.over), *(m for m, _ in point.times)]
        if any("at least 1" in measure for measure in below):
            continue  # with soft weights, below
        for powers in [(0, 0), (-1, 0)] + ([(0, -1), (-1, -1)] if micro else []):
            found.append((place, with_powers(point, powers)))
    return [point for place, point in found]


def missed(kind: str, every: int, first: int = 0) -> list[str]:
    micro, _, weights, options = KINDS[kind]
    lost = []
    for point in cases(kind)[first::every]:
        try:
            found = diagnose(step_of(point, weights), (np.arange(30),), **options)
        except StepError as error:
            if "not finite" not in str(error):  # a sum that no seen example is in
                raise
            continue
        rows = [row for row in (found.cause, *found.alternatives) if row is not None]
        if found.correct and not weights_differ(point, weights, micro, options):
            continue
        if not any(alike(point, row.predict, weights, micro) for row in rows):
            lost.append(f"{point} -> {[row.name for row in rows]} {found.correct}")
    return lost


@pytest.mark.parametrize("row", CATALOGUE, ids=lambda row: row.name)
def test_a_row_is_its_own_example(row) -> None:
    """A new row needs no step: its point makes one, which must be told by its name."""
    kind = {(False, False): "plain", (False, True): "weighted", (True, False): "micro",
            (True, True): "both"}[row.point.micro, row.weighted]  # fmt: skip
    _, _, weights, options = KINDS[kind]
    options = {**options, "empty_shard": True} if row.empty else options
    found = diagnose(step_of(row.predict, weights), (np.arange(30),), **options)
    names = [other.name for other in (found.cause, *found.alternatives) if other is not None]
    convention = row.point.over == () and not row.point.times  # on one device as well
    assert row.name in names or (convention and found.correct), str(found)


def weights_differ(point: Point, weights: np.ndarray, micro: bool, options) -> bool:
    return not alike(point, Point(), weights, micro)


@pytest.mark.parametrize("kind", KINDS)
def test_points_are_found(kind: str) -> None:
    lost = missed(kind, every=max(1, len(cases(kind)) // 6))
    assert not lost, "\n".join(lost)


@pytest.mark.parametrize("what", ["at least 1", "mean at least 1"])
def test_a_maximum_with_one_is_found(what: str) -> None:
    point = Point(((what, "all" if what.startswith("mean") else "replica"),), powers=(-1, 0, 0))
    found = diagnose(step_of(point, SOFT), (np.arange(30),), weights=SOFT)
    assert found.cause is not None and "at least 1" in found.cause.name, str(found)


def test_a_point_without_a_name_prints_its_formula_and_how_much_examples_count() -> None:
    point = Point((("count", "replica"),), seen="first of share", powers=(-1, 0, 0))
    found = diagnose(step_of(point, np.ones(30)), (np.arange(30),))
    said = str(found)
    assert "m_i" in said and "only the first example of each share counts" in said
    assert "found / expected weight of each example, by replica: " in said


PENALTY = RNG.normal(size=GRADIENTS.shape)


def two_counts(local: bool, add: bool):
    """A loss by tokens of all replicas, beside one by examples."""

    def step(shares):
        rows = [share[0] for share in shares]
        tokens = sum(WEIGHTS[own] @ GRADIENTS[own] for own in rows)
        tokens = tokens / sum(WEIGHTS[own].sum() for own in rows)
        if not local:
            return tokens + sum(PENALTY[own].sum(axis=0) for own in rows) / sum(map(len, rows))
        means = [PENALTY[own].mean(axis=0) for own in rows]
        return tokens + np.sum(means, axis=0) / (1 if add else len(rows))

    return step


@pytest.mark.parametrize(
    ("local", "add", "name"),
    [
        (False, False, None),
        (True, False, "mean of the replicas' means"),
        (True, True, "mean per replica, then sum"),
    ],
)
def test_two_counts_in_one_loss(local: bool, add: bool, name: str | None) -> None:
    found = diagnose(two_counts(local, add), (np.arange(30),), weights=WEIGHTS)
    if name is None:
        assert found.correct, str(found)
        return
    assert found.cause is not None and "a part of the loss" in found.cause.name, str(found)
    assert name in found.cause.name


def test_one_device_has_a_table_of_its_micro_batches() -> None:
    def step(shares):
        (window,) = [s if isinstance(s, list) else [s] for s in shares]
        return sum(GRADIENTS[part[0]].mean(axis=0) for part in window)

    found = diagnose(
        step, (np.arange(30),), replicas=(1,), micro_batches=(1, 2, 3), max_examples=13
    )  # fmt: skip
    assert found.cause is not None and found.cause.name == "micro-batches are not divided"
    assert str(found).splitlines()[1].startswith("micro-batch  examples")
    assert [row.micro_batch for row in found.per_replica] == list(range(len(found.per_replica)))
    assert len(found.per_replica) > 1


@pytest.mark.parametrize(("scale", "warned"), [(2.0**16, True), (1.0, False), (100.0, False)])
def test_a_limit_before_unscaling_is_a_caution(scale: float, warned: bool) -> None:
    def step(shares):
        update = np.concatenate([GRADIENTS[s[0]] for s in shares]).mean(axis=0) * scale
        return update * min(1.0, 1.0 / np.linalg.norm(update)) / scale

    found = diagnose(step, (np.arange(30),))
    assert found.correct, str(found)
    assert ("before they are unscaled" in str(found)) == warned


def test_even_shares_tell_what_a_short_batch_would_do() -> None:
    found = diagnose(
        lambda shares: np.mean([GRADIENTS[s[0]].mean(axis=0) for s in shares], axis=0),
        (np.arange(30),), equal_shards=True,
    )  # fmt: skip
    assert found.correct
    (note,) = found.notes
    assert (
        note.startswith("correct while all shards are equal")
        and "counts up to 4 times in 3 replicas of 4+4+1" in note
    ), note


def test_a_count_that_is_rounded_down_shows_and_is_named() -> None:
    """Also where the first examples' weights could be divided by the replicas."""
    tokens = np.array([3, 2, 1, 6, 4, 2, 5, 1, 3, 3, 6, 6] + 18 * [1])

    def step(shares):
        each = sum(int(tokens[s[0]].sum()) for s in shares) // len(shares)
        return sum(tokens[s[0]] @ GRADIENTS[s[0]] for s in shares) / each / len(shares)

    found = diagnose(step, (np.arange(30),), weights=tokens)
    assert found.cause is not None and "rounded down" in found.cause.name, str(found)


def test_a_report_of_one_micro_batch_of_one_replica_is_named() -> None:
    losses = RNG.uniform(1, 3, size=30)

    def step(shares):
        window = shares[0] if isinstance(shares[0], list) else [shares[0]]
        _, order = layout_of(shares)
        return Outcome(GRADIENTS[order].mean(axis=0), losses[window[-1][0]].mean())

    found = diagnose(step, (np.arange(30),), **WINDOW)
    assert found.correct and "last micro-batch of the first replica" in found.reported_loss_issue, (
        str(found)
    )


@pytest.mark.parametrize(
    ("who", "over", "powers"),
    [
        ("later sums", "part", (0, 0, -1)),
        ("sized micro-batch", "all", (0, 0, 0)),
        ("by step", "part", (0, 0, 0)),
    ],
)
def test_accumulation_on_one_device_is_told_from_uneven_micro_batches(who, over, powers) -> None:
    point = Point((("weight", over),), who=who, powers=powers)
    found = diagnose(
        step_of(point, np.ones(30)), (np.arange(30),), replicas=(1,), micro_batches=(1, 2, 3)
    )
    assert found.layout is not None and sum(found.layout.sizes) == 11  # nothing divides it
    assert found.cause is not None and found.cause.point == point, str(found)
    assert not found.alternatives and "no_sync" not in found.cause.fix_for("pytorch")


def test_sums_that_are_weighted_by_sizes_are_told() -> None:
    def step(shares):
        count = sum(len(share) for share in shares)
        return sum(len(share) / count * share.sum(axis=0) for share in shares)

    found = diagnose(step, GRADIENTS)
    assert found.cause is not None and found.cause.formula.startswith("w_i n_r/n / W"), str(found)


def test_a_penalty_of_the_first_micro_batch_in_each_of_them_is_told() -> None:
    def step(shares):
        found = []
        for window in shares:
            parts = window if isinstance(window, list) else [window]
            means = [GRADIENTS[part].mean(axis=0) + PENALTY[parts[0]].mean(axis=0)
                     for part in parts]  # fmt: skip
            found.append(np.mean(means, axis=0))
        return np.mean(found, axis=0)

    found = diagnose(step, np.arange(30), replicas=(1,), micro_batches=(1, 2, 3))
    assert found.cause is not None and "only the first micro-batch counts" in found.cause.name
    assert "mean of the micro-batches' means" in found.cause.sentence, str(found)
