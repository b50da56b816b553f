"""Runs a step on any division of a global batch; what it gives is compared with one replica's."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from fuzz.division import KINDS, Shares
from fuzz.placement import placed

import samegrad as tf
from samegrad.testing import assert_same_bits

Rows = Callable[[np.random.Generator, int], np.ndarray]
# The kind of a division and the number of replicas.
DIVISIONS = [
    ("chunks", 2), ("chunks", 3), ("chunks", 4), ("chunks", 5), ("chunks", 8), ("one each", 32),
    ("all on one", 4), ("cuts", 7), ("few cuts", 16), ("cuts at fours", 6), ("halves", 4),
]  # fmt: skip
LAYOUTS = ["slices", "apart", "shuffled", "gaps"]


@dataclasses.dataclass
class Results:
    """Results of a replica's step.

    Args:
        rows: Values with the examples on axis 0.
        sums: Per-replica sums, which are reduced over the replicas.
        same: Values that are equal on all replicas.
        own: Values that stay each replica's own, and are not compared.
    """

    rows: Sequence[Any] = ()
    sums: Sequence[Any] = ()
    same: Sequence[Any] = ()
    own: Sequence[Any] = ()


# A replica's step, and the variables and metrics to look at afterwards.
Built = tuple[Callable[..., Results], Sequence[Any]]


@dataclasses.dataclass
class Case:
    """A step and its data.

    Args:
        build: Makes variables, in the strategy's scope, and the step.
        columns: Makes the global batch.
        others: Makes a second batch, which has other numbers of examples.
        batches: Sizes of global batches.
        steps: How often the step runs.
        policy: Of Keras.
        cautious: What explain() names although no bit differs.
    """

    build: Callable[[], Built]
    columns: tuple[Rows, ...]
    others: tuple[Rows, ...] = ()
    batches: tuple[int, ...] = (5, 37)
    steps: int = 2
    policy: str = "float32"
    cautious: str = ""


CASES: dict[str, Case] = {}


def case(*columns: Rows, **options: Any) -> Callable[[Callable[[], Built]], Callable[[], Built]]:
    """Adds the function that makes a step to CASES."""

    def add(build: Callable[[], Built]) -> Callable[[], Built]:
        CASES[build.__name__] = Case(build, columns, **options)
        return build

    return add


# ---- data ----


def normal(*shape: int, dtype: str = "float32") -> Rows:
    return lambda rng, n: rng.normal(size=(n, *shape)).astype(dtype)


def positive(*shape: int) -> Rows:
    return lambda rng, n: rng.uniform(0.1, 2.0, size=(n, *shape)).astype("float32")


def integers(high: int, *shape: int) -> Rows:
    return lambda rng, n: rng.integers(0, high, size=(n, *shape)).astype(np.int32)


def wide(*shape: int) -> Rows:
    """Sizes from 1e-6 to 1e6, which show each change of order."""

    def make(rng: np.random.Generator, n: int) -> np.ndarray:
        values = rng.normal(size=(n, *shape)) * 10.0 ** rng.uniform(-6, 6, size=(n, *shape))
        return values.astype("float32")

    return make


def chosen(values: Sequence[float], *shape: int) -> Rows:
    """Each element is one of the values."""
    return lambda rng, n: rng.choice(values, size=(n, *shape)).astype("float32")


# ---- runs ----


def shares_of(kind: str, replicas: int, n: int) -> Shares:
    """The division of n examples."""
    return KINDS[kind](random.Random(f"{kind} {replicas} {n}"), n, replicas)


def _built(case: Case, strategy: Any) -> tuple[Any, Sequence[Any]]:
    """The traced step of all replicas, and its state."""
    tf.keras.utils.set_random_seed(7)
    with strategy.scope():
        step, state = case.build()

    def parts(*args: Any) -> tuple[list[Any], ...]:
        found = step(*args)
        return tuple(map(list, (found.rows, found.sums, found.same, found.own)))

    @tf.function
    def distributed(*args: Any) -> Any:
        rows, sums, same, own = strategy.run(parts, args=args)
        return rows, [strategy.reduce("SUM", value, axis=None) for value in sums], same, own

    return distributed, state


class Divided:
    """A case on a division of its global batch.

    Args:
        case: The step and its data.
        n: Examples of the global batch.
        kind: Of the division.
        replicas: Their number.
        layout: Where their rows are in memory.
        strategy_of: Makes a strategy of so many replicas.
    """

    def __init__(
        self, case: Case, n: int, kind: str, replicas: int, layout: str,
        strategy_of: Callable[[int], Any],
    ) -> None:  # fmt: skip
        self.case, self.n, self.layout = case, n, layout
        self.shares = shares_of(kind, replicas, n)
        self.other_shares = shares_of(kind, replicas, _size_of_others(n))
        tf.keras.config.set_dtype_policy(case.policy)
        self.strategy = strategy_of(replicas)
        self.call, self.state = _built(case, self.strategy)

    def batch(self, number: int) -> list[Any]:
        """The arguments of a step."""
        rng = np.random.default_rng([self.n, number])
        columns = [tf.constant(make(rng, self.n)) for make in self.case.columns]
        others = [tf.constant(make(rng, _size_of_others(self.n))) for make in self.case.others]
        return [
            *placed(columns, self.shares, self.layout, self.strategy),
            *placed(others, self.other_shares, self.layout, self.strategy),
        ]

    def explanation(self) -> list[str]:
        """Return explain()'s line about bits and the reasons below it."""
        lines = str(self.call.explain(*self.batch(0))).splitlines()
        return [line for line in lines if line.startswith(("bitwise identical", "  - "))]


def _size_of_others(n: int) -> int:
    return n // 2 + 3


def mirrored(replicas: int) -> Any:
    return tf.distribute.MirroredStrategy(replicas=replicas)


def results(
    case: Case, n: int, kind: str, replicas: int, layout: str,
    strategy_of: Callable[[int], Any] = mirrored,
) -> dict[str, np.ndarray]:  # fmt: skip
    """Global results after each step, and the state after the last, by name.

    Without rows of several processes, which have those of their replicas.
    """
    divided = Divided(case, n, kind, replicas, layout, strategy_of)
    local, found = divided.strategy.experimental_local_results, {}
    for number in range(case.steps):
        rows, sums, same, _ = divided.call(*divided.batch(number))
        at = f"step {number}"
        for i, value in enumerate([] if divided.strategy.processes else rows):
            found[f"rows[{i}], {at}"] = np.concatenate([_array(p) for p in local(value)])
        for i, value in enumerate(sums):
            found[f"sums[{i}], {at}"] = _array(value)
        for i, value in enumerate(same):
            for part in local(value):
                found.setdefault(f"same[{i}], {at}", _array(part))
                assert_same_bits(found[f"same[{i}], {at}"], _array(part))
    for i, value in enumerate(divided.state):
        found[f"state[{i}]"] = _array(value.result() if hasattr(value, "result") else value)
    return found


def _array(value: Any) -> np.ndarray:
    array = np.asarray(value)
    return array.astype(np.float32) if array.dtype.name in ("bfloat16", "float16") else array
