"""Random steps, seeded by crc32: right ones give no false positives, wrong ones are named.

`python tests/doctor/test_random_steps.py 5000` prints the counts.
"""

from __future__ import annotations

import sys
import zlib
from collections import Counter
from typing import Any, NamedTuple

import numpy as np
from test_correct_steps import ROUGH, a_step
from test_noise import a_correct_step, are_too_few

from samegrad_doctor import StepError, diagnose

KINDS = ("mean", "sum", "fixed", "weighted")
MICRO_BATCHES = ((1,), (1, 2), (2, 3))


class Case(NamedTuple):
    step: Any
    batch: Any
    options: dict[str, Any]


def draws(what: str, number: int):
    rng = np.random.default_rng(zlib.crc32(f"{what} {number}".encode()))
    return rng, lambda options: options[int(rng.integers(len(options)))]


def any_step(number: int) -> Case:
    """Sums and others, limited or not, in all roughness."""
    rng, one_of = draws("any", number)
    rows, parameters = int(rng.integers(3, 25)), int(rng.integers(16, 81))
    spread, held = one_of([0.0, 1.0, 2.0]), one_of([0.0, 0.01, 1.0, 10.0])
    over = one_of(["nothing", "moments", "softmax", "norm", "peak"])
    gradients = rng.normal(size=(rows, parameters)) * np.exp(spread * rng.normal(size=(rows, 1)))
    term, limit = held * rng.normal(size=parameters), float(rng.uniform(0.2, 5))
    step = a_step(rng, one_of(KINDS), over, one_of(list(ROUGH)), term, limit)
    options = {
        "replicas": one_of([(2, 3), (2,), (3, 4), (2, 5)]),
        "micro_batches": one_of(MICRO_BATCHES),
    }
    return Case(step, (gradients, rng.uniform(0.5, 2, rows)), options)


def a_sum(number: int) -> Case:
    """A sum over examples in noise."""
    rng, one_of = draws("sum", number)
    rows, kind = int(rng.integers(4, 21)), one_of(KINDS)
    gradients = rng.normal(size=(rows, int(rng.integers(60, 401))))
    weights = rng.uniform(0.5, 2, rows)
    term = one_of([0.0, 0.1, 1.0]) * rng.normal(size=gradients.shape[1])
    step = a_correct_step(
        rng, gradients, weights, term / (64 if kind == "fixed" else 1), kind,
        one_of(["thousandth", "bfloat16", "float32"]),
    )  # fmt: skip
    options: dict[str, Any] = {
        "replicas": one_of([(2,), (3,), (4,), (2, 3), (2, 4), (3, 4)]),
        "micro_batches": one_of(MICRO_BATCHES),
    }
    if kind == "weighted" and one_of([True, False]):
        options["weights"] = weights
    return Case(step, (gradients, weights), options)


def a_dense_layer(number: int) -> Case:
    """Gradients of few directions, and of very different sizes."""
    rng, one_of = draws("layer", number)
    rows, kind, held = int(rng.integers(4, 21)), one_of(KINDS), one_of([0.0, 0.1, 1.0])
    x, error = (rng.normal(size=(rows, int(rng.integers(*ends)))) for ends in ((6, 21), (1, 5)))
    gradients = np.einsum("nf,no->nfo", x, error).reshape(rows, -1)
    gradients *= np.exp(one_of([0.0, 2.0]) * rng.normal(size=(rows, 1)))
    weights, term = rng.uniform(0.5, 2, rows), held * rng.normal(size=gradients.shape[1])
    step = a_correct_step(
        rng, gradients, weights, term / (64 if kind == "fixed" else 1), kind,
        one_of(["thousandth", "bfloat16", "float32"]),
    )  # fmt: skip
    return Case(step, (gradients, weights), {"micro_batches": one_of(MICRO_BATCHES)})


def whole(parts):
    return sum(part.sum(axis=0) for part in parts) / sum(map(len, parts))


WRONG = {
    "mean of the replicas' means": lambda p, t: sum(q.mean(axis=0) for q in p) / len(p) + t,
    "mean per replica, then sum": lambda p, t: sum(q.mean(axis=0) for q in p) + t,
    "the last replica is left out": lambda p, t: sum(q.sum(axis=0) for q in (p[:-1] or p))
    / sum(map(len, p)) + t,
    "once on every replica": lambda p, t: whole(p) + t * len(p),
    "divided by the global batch, then averaged": lambda p, t: whole(p) / len(p) + t,
}  # fmt: skip


def a_wrong_step(number: int) -> tuple[str, Case]:
    """A mistake in noise, of examples of very different sizes, often beside a large term."""
    rng, one_of = draws("wrong", number)
    rows, parameters = int(rng.integers(5, 25)), int(rng.integers(16, 81))
    name, rough = one_of(list(WRONG)), ROUGH[one_of(["float32", "bfloat16", "thousandth"])]
    spread, held = one_of([0.0, 1.0, 2.0]), one_of([0.1, 1.0, 10.0])
    gradients = rng.normal(size=(rows, parameters)) * np.exp(spread * rng.normal(size=(rows, 1)))
    term = held * rng.normal(size=parameters)
    return name, Case(lambda s: rough(WRONG[name](s, term), rng), gradients, {})


def verdict(case: Case) -> str:
    try:
        found = diagnose(case.step, case.batch, **case.options)
    except StepError as error:
        replicas = case.options.get("replicas", (2, 3))
        few = are_too_few(error, replicas, case.options.get("micro_batches", (1,)))
        return "too few" if few else "refused"
    return "right" if found.correct else str(found)


def right_steps(count: int) -> Counter[str]:
    kinds = (any_step, a_sum, a_dense_layer)
    return Counter(verdict(kinds[i % 3](i)) for i in range(count))


def wrong_steps(count: int) -> Counter[str]:
    found: Counter[str] = Counter()
    for number in range(count):
        name, case = a_wrong_step(number)
        said = verdict(case)
        named = "named" if name in said else "detected"
        found[said if said in ("right", "refused") else named] += 1
    return found


def test_right_steps_are_never_accused_and_seldom_refused() -> None:
    found = right_steps(900)
    assert not set(found) - {"right", "refused", "too few"}, found
    assert found["too few"] <= 0.02 * found.total(), found  # a few examples for many parts
    assert found["refused"] <= 0.02 * found.total(), found


def test_wrong_steps_in_noise_are_named() -> None:
    found = wrong_steps(120)
    assert found["right"] == 0 and found["refused"] <= 0.1 * found.total(), found
    assert found["named"] >= 0.9 * found.total(), found


def test_a_small_term_on_every_replica_shows_beside_weak_examples_in_noise() -> None:
    """Noise leaves their weights exact to a fifth only, but not a direction of all updates."""
    name, case = a_wrong_step(758)
    assert name == "once on every replica" and name in verdict(case)


if __name__ == "__main__":
    print("right:", right_steps(int(sys.argv[1])))
    print("wrong:", wrong_steps(int(sys.argv[1]) // 4))
