"""explain() names each operation whose results depend on the number of replicas, and no other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from fuzz.placement import placed
from op_members import COLUMNS, EXAMPLES, Member, members

import samegrad as tf
from samegrad import _core

SHARES = {1: (24,), 2: (17, 7), 3: (5, 0, 19)}  # examples of each replica
GROUP = 40  # members in one program
SEEDS = range(1, 17)  # of more batches
# Named though no value shows it, and why.
NOT_SHOWN = {
    "ravel_index": "indices into the examples that a replica has, whatever they are",
}


def drawn(seed: int) -> np.ndarray:
    """Random examples, equal ones, or an equal first half and random ones."""
    rows = np.random.default_rng(seed).random((EXAMPLES, COLUMNS), dtype=np.float32)
    equal = {1: (EXAMPLES, 0.75), 2: (EXAMPLES, 0.25), 3: (EXAMPLES // 2, 0.5)}
    count, value = equal.get(seed, (EXAMPLES // 2 if seed == 4 else 0, 0.0))
    rows[:count, :-1] = value
    return rows


CONSTANTS = np.random.default_rng(9).random(COLUMNS, dtype=np.float32)


class Strategies:
    """Members on 1, 2 and 3 replicas with unequal numbers of examples."""

    def __init__(self) -> None:
        self.strategies = {n: tf.distribute.MirroredStrategy(replicas=n) for n in SHARES}
        self.batches: dict[tuple[int, int], Any] = {}
        self.variables = {}
        for n, strategy in self.strategies.items():
            with strategy.scope():
                self.variables[n] = tf.Variable(1.0)

    def batch(self, replicas: int, seed: int) -> Any:
        """The examples of a seed, divided among the replicas."""
        if (replicas, seed) not in self.batches:
            layout = "slices" if seed % 2 else "apart"
            (self.batches[replicas, seed],) = placed(
                [tf.constant(drawn(seed))], SHARES[replicas], layout, self.strategies[replicas]
            )
        return self.batches[replicas, seed]

    def sums(self, member: Member, rows: tf.Tensor, replicas: int, part: int | None) -> list[Any]:
        """Losses and their gradients, summed over the replicas: all of them, or one part."""
        w = self.variables[replicas]
        with tf.GradientTape(persistent=True) as tape:
            losses = member.losses(rows, CONSTANTS, w)
        gradients = [] if part is not None and part < len(losses) else losses
        parts = [*losses, *(gradient_of(tape, loss, w) for loss in gradients)]
        wanted = parts if part is None else parts[part : part + 1]
        reduced = tf.distribute.get_replica_context().all_reduce
        return [None if value is None else reduced("SUM", value) for value in wanted]

    def reasons(self, member: Member, part: int) -> list[str]:
        """Return the reasons of explain() on two replicas, of a program that computes one part."""
        explained = self.strategies[2].explain(
            lambda rows: self.sums(member, rows, 2, part), args=(self.batch(2, 0),)
        )
        return [str(reason) for reason in explained.reasons]

    def values(self, group: list[Member], replicas: int, seed: int) -> list[Any]:
        """Per member: its parts as numbers, or the error that running it raises."""
        strategy = self.strategies[replicas]
        tf.random.set_seed(0)
        try:
            found = strategy.run(
                lambda rows: [self.sums(member, rows, replicas, None) for member in group],
                args=(self.batch(replicas, seed),),
            )
        except (ValueError, RuntimeError, TypeError) as error:
            if len(group) == 1:
                return [error]
            half = len(group) // 2
            pieces = (group[:half], group[half:])
            return [value for piece in pieces for value in self.values(piece, replicas, seed)]
        local = strategy.experimental_local_results
        return [
            [None if part is None else local(part)[0].numpy() for part in parts] for parts in found
        ]


def gradient_of(tape: tf.GradientTape, loss: tf.Tensor, w: tf.Variable) -> tf.Tensor | None:
    """None also where the operation has no derivative for these shapes."""
    try:
        return tape.gradient(loss, w)
    except (ValueError, NotImplementedError):
        return None


@dataclass
class Part:
    """One sum of a member: whether explain() names it, and whether its bits differ."""

    member: Member
    index: int
    reasons: list[str]
    differs: bool


@pytest.fixture(scope="module")
def found() -> list[Part]:
    """All members, explained and run; those that are named are run with more batches."""
    strategies, parts = Strategies(), []
    all_members = list(members())
    for start in range(0, len(all_members), GROUP):
        group = all_members[start : start + GROUP]
        found = [strategies.values(group, n, 0) for n in SHARES]
        for member, *values in zip(group, *found, strict=True):
            parts += parts_of(strategies, member, values)
    return parts


def parts_of(strategies: Strategies, member: Member, values: list[Any]) -> list[Part]:
    """The parts of a member that one and two replicas can compute."""
    if isinstance(values[0], Exception) or isinstance(values[1], Exception):
        return []
    parts = [
        Part(member, i, strategies.reasons(member, i), differs(values, i))
        for i, value in enumerate(values[0])
        if value is not None
    ]
    for seed in SEEDS:
        if all(part.differs or not part.reasons for part in parts):
            break
        again = [strategies.values([member], n, seed)[0] for n in SHARES]
        for part in parts:
            part.differs |= differs(again, part.index)
    return parts


def differs(values: list[Any], part: int) -> bool:
    """Return if a part depends on the replicas; some may raise for want of an example."""
    known = [value[part] for value in values if not isinstance(value, Exception)]
    return any(not same(known[0], other) for other in known[1:])


def same(a: np.ndarray, b: np.ndarray) -> bool:
    if a.dtype.kind == "f" and not np.array_equal(np.signbit(a[a == 0]), np.signbit(b[b == 0])):
        return False
    return np.array_equal(a, b, equal_nan=True)


def test_what_differs_is_named(found: list[Part]) -> None:
    broken = [part for part in found if not part.reasons and part.differs]
    assert not broken, [(str(part.member), part.index) for part in broken]


def test_what_is_named_can_differ(found: list[Part]) -> None:
    named: dict[Member, list[Part]] = {}
    for part in found:
        if part.reasons and part.member.op not in NOT_SHOWN:
            named.setdefault(part.member, []).append(part)
    alarms = [parts[0] for parts in named.values() if not any(part.differs for part in parts)]
    assert not alarms, [(str(part.member), part.index, part.reasons) for part in alarms]


def test_the_search_runs_each_operation_with_operands(found: list[Part]) -> None:
    table = [row for row in _core.op_table() if row["samples"] and row["operands"]]
    # Backward operations are in the gradients; draws of a given shape have no examples.
    names = {row["name"] for row in table if not row["backward"] and not row["random"]}
    assert names <= {part.member.op for part in found}
    assert len(found) > 3000
