"""One replica only, gradients of a coarse format behind a limit, examples without a gradient."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from steps import X, Y, count, mean, total

from samegrad_doctor import StepError, diagnose


def right(shares: list[Any]) -> Any:
    return np.concatenate(shares).mean(axis=0)


def mean_then_sum(shares: list[Any]) -> Any:
    return sum(share.mean(axis=0) for share in shares if len(share))


@pytest.mark.parametrize("examples", [4, 12, 31])
@pytest.mark.parametrize("limit", [None, 0.1])
def test_one_replica_only(examples, limit):
    x = np.random.default_rng(examples).normal(size=(examples, 20))

    def step(shares: list[Any]) -> Any:
        update = right(shares)
        return update if limit is None else np.clip(update, -limit, limit)

    assert diagnose(step, x, replicas=(1,)).correct
    assert diagnose(step, x, replicas=(1,), micro_batches=(1,), equal_shards=True).correct


def bfloat16(values: Any) -> Any:
    """Rounded to the nearest number of the format, as float32."""
    bits = np.asarray(values, np.float32).view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) & np.uint32(0xFFFF0000)).view(np.float32)


@pytest.mark.parametrize("divided", ["before", "after"])
@pytest.mark.parametrize("limit", [0.03, 0.1, 1.0, 2.0])
@pytest.mark.parametrize("seed", range(4))
def test_gradients_in_bfloat16_clipped_by_value(divided, limit, seed):
    random = np.random.default_rng(seed)
    shape = (int(random.integers(6, 25)), int(random.choice([20, 200, 1000])))
    x = (random.normal(size=shape) + 0.2 * random.normal(size=shape[1])).astype(np.float32)

    def step(shares: list[Any], share_of: Any = None) -> Any:
        count = sum(map(len, shares))
        if divided == "before":
            total = sum(bfloat16(share.sum(axis=0) / count) for share in shares)
        else:
            total = sum(bfloat16(bfloat16(share).sum(axis=0)) for share in shares) / count
        return np.clip(total, -limit, limit)

    def clipped_on_replicas(shares: list[Any]) -> Any:
        count = sum(map(len, shares))
        return sum(np.clip(bfloat16(s.sum(axis=0) / count), -0.5, 0.5) for s in shares)

    assert diagnose(step, x).correct
    assert not diagnose(clipped_on_replicas, x).correct


@pytest.mark.parametrize("examples", [4, 5, 6, 7, 12])
@pytest.mark.parametrize("without", [[0], [2], [-1], [0, -1]])
def test_examples_without_a_gradient(examples, without):
    x = np.random.default_rng(examples).normal(size=(examples, 30))
    x[without] = 0
    assert diagnose(right, x).correct
    found = diagnose(mean_then_sum, x)
    assert not found.correct
    if examples - len(without) >= 3:  # with fewer, whole updates are judged
        names = {row.name for row in (found.cause, *found.alternatives)}
        assert "mean per replica, then sum" in names


def test_a_hinge_loss_without_a_loss_for_some_examples():
    random = np.random.default_rng(0)
    x, y = random.normal(size=(10, 20)), random.choice([-1.0, 1.0], size=10)
    w = random.normal(size=20)
    y[3], y[7] = np.sign(x[[3, 7]] @ w)
    x[[3, 7]] *= 100  # far on the right side

    def gradients(share: Any) -> Any:
        inputs, labels = share
        lost = labels * (inputs @ w) < 1
        return -(labels * lost) @ inputs

    def hinge(shares: list[Any]) -> Any:
        return sum(map(gradients, shares)) / sum(len(share[1]) for share in shares)

    def each_mean(shares: list[Any]) -> Any:
        return sum(gradients(share) / max(1, len(share[1])) for share in shares)

    assert diagnose(hinge, (x, y)).correct
    assert not diagnose(each_mean, (x, y)).correct


@pytest.mark.parametrize(("replicas", "micro_batches"), [((4,), (1,)), ((2, 3), (2, 3))])
@pytest.mark.parametrize("step", [right, mean_then_sum])
def test_a_step_that_is_compared_with_nothing_is_not_called_right(step, replicas, micro_batches):
    x = np.random.default_rng(3).normal(size=(3, 20))
    with pytest.raises(StepError, match=r"no split .* got 3 examples .*use more examples"):
        diagnose(step, x, replicas=replicas, micro_batches=micro_batches)


@pytest.mark.parametrize("power", [-2, -1, 2])
def test_a_mean_times_a_power_of_the_examples_is_judged_as_a_mean(power) -> None:
    """Such as a mean that an optimizer divides by the size of the batch once more."""

    def step(shares):
        return np.mean([mean(share) for share in shares], axis=0) * float(count(shares)) ** power

    found = diagnose(step, (X, Y))
    assert found.cause is not None and found.cause.name == "mean of the replicas' means"
    assert any(f"N^{power} times the mean" in note for note in found.notes)
    right = diagnose(lambda s: sum(map(total, s)) * float(count(s)) ** (power - 1), (X, Y))
    assert right.correct, str(right)


@pytest.mark.parametrize(("value", "words"), [(0.0, "without gradient"), (np.nan, "NaN or inf")])
def test_an_example_that_is_left_out_is_noted(value, words) -> None:
    x = np.random.default_rng(0).normal(size=(12, 40))
    assert not diagnose(right, x).notes
    x[4] = value
    note, *more = diagnose(right, x).notes
    assert note.startswith("left out: 1 of 11 examples") and words in note
    compared = ["with them, the updates of the whole batch are those of one device on all splits"]
    assert more == (compared if value == 0 else [])


def test_a_step_that_takes_a_batch_for_a_list_is_told() -> None:
    def step(shares: list[Any]) -> Any:
        return sum(sum(part.sum(axis=0) for part in share) for share in shares)

    x = np.random.default_rng(0).normal(size=(12, 40))
    with pytest.raises(StepError, match="a list of micro-batches where there are several"):
        diagnose(step, x, replicas=(1,), micro_batches=(3,))
