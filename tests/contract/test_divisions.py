"""One program has one result, for any division of the global batch over replicas: random draws.

The long run is `python tests/fuzz/divisions.py --draws 5000`.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

import numpy as np
import pytest
from fuzz.division import KINDS, MOST_REPLICAS, trials
from fuzz.divisions import check, named, outcomes
from fuzz.placement import LAYOUTS, placed
from fuzz.processes import Workers
from fuzz.source import divided_text

SEEDS, SEEDS_IN_A_TEST = 200, 10


@pytest.fixture(scope="module")
def workers() -> Iterator[Workers]:
    made = Workers()
    yield made
    made.close()


@pytest.mark.parametrize("first", range(0, SEEDS, SEEDS_IN_A_TEST))
def test_any_division_gives_the_bits_of_one_replica(first: int, workers: Workers) -> None:
    for seed in range(first, first + SEEDS_IN_A_TEST):
        for trial in trials(seed):
            for mode, found in check(trial, workers):
                raise AssertionError(f"seed {seed}: {found}\n\n{divided_text(trial.program, mode)}")


def test_explain_promises_most_programs(workers: Workers) -> None:
    drawn = [o for seed in range(20) for t in trials(seed) for o in outcomes(t, workers)[1:]]
    assert all(outcome.plan.count("bitwise identical") == 1 for outcome in drawn)
    assert sum(not named(outcome) for outcome in drawn) > 0.7 * len(drawn)


def test_divisions_draw_every_batch_and_every_kind() -> None:
    modes = [
        (kind, mode)
        for seed in range(SEEDS)
        for trial in trials(seed)
        for kind, mode in zip(trial.kinds[1:], trial.modes[1:], strict=True)
    ]
    shares = [mode.shares for _, mode in modes]
    assert len(modes) == 10 * SEEDS
    assert {kind for kind, _ in modes} == set(KINDS)
    assert {mode.layout for _, mode in modes} == {*LAYOUTS, "mixed", "dataset"}
    assert {len(s) for s in shares} >= {1, 2, 3, 4, 5, 8, MOST_REPLICAS}
    assert min(map(sum, shares)) == 0
    assert max(map(sum, shares)) > 300
    assert sum(0 in s for s in shares) > len(shares) // 10


@pytest.mark.parametrize("kind", KINDS)
def test_divisions_have_all_examples(kind: str) -> None:
    rng = random.Random(3)
    for _ in range(300):
        n, replicas = rng.randint(0, 50), rng.randint(1, 12)
        shares = KINDS[kind](rng, n, replicas)
        assert len(shares) == replicas
        assert sum(shares) == n
        assert min(shares) >= 0


@pytest.mark.parametrize("layout", [*LAYOUTS, "mixed"])
def test_layouts_keep_the_rows_of_each_replica(layout: str) -> None:
    import samegrad as tf

    shares = (3, 0, 4, 1, 0, 2)
    rows = np.arange(30).reshape(10, 3)
    strategy = tf.distribute.MirroredStrategy(replicas=len(shares))
    columns = [tf.constant(rows.astype(dtype)) for dtype in ("float32", "int32", "float64")]
    for value in placed(columns, shares, layout, strategy):
        parts = [part.numpy() for part in strategy.experimental_local_results(value)]
        assert tuple(map(len, parts)) == shares
        np.testing.assert_array_equal(np.concatenate(parts), rows)
