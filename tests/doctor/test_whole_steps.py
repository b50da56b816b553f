"""Steps that are not sums over examples are judged by whole updates."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from real_bugs import statistics as bn
from real_bugs.model import EXAMPLES, Outcome, clip, count, ddp, mean, total
from steps import REGULARISATION, X, Y

from samegrad_doctor import StepError, assert_replica_equivalent, diagnose


def gradient(share, slope, limit):
    """A batch-normalized or limited gradient, by turns."""
    x, y = share
    update = bn.normalised([(x * slope, y)], np.ones(1), np.array([float(len(x))]))
    return clip(update, limit)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    rows=st.integers(12, 30),
    kind=st.sampled_from(["norm", "clipped", "contrast", "dropped", "value", "sum"]),
    dtype=st.sampled_from([np.float64, np.float32]),
)
def test_correct_steps_that_are_no_sum_are_never_accused(seed, rows, kind, dtype) -> None:
    rng = np.random.default_rng(seed)
    batch = (rng.normal(size=(rows, 6)), rng.normal(size=(rows, 2)))
    limit = float(rng.uniform(0.1, 10))

    def step(shares):
        whole = tuple(np.concatenate(leaves) for leaves in zip(*shares, strict=True))
        update = {
            "norm": lambda: gradient(whole, 2.0, np.inf),
            "clipped": lambda: gradient(whole, 1.0, limit),
            "contrast": lambda: bn.gathered([(whole[0], np.tile(whole[1], 3))]),
            "dropped": lambda: bn.dropped(whole, seed),
            "value": lambda: np.clip(mean(whole), -limit / 10, limit / 10),
            "sum": lambda: clip(total(whole) / 64 + REGULARISATION, limit),
        }[kind]()
        return update.astype(dtype)

    found = diagnose(step, batch)
    assert found.correct, str(found)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    "step",
    [bn.synchronised, lambda s: clip(sum(total(p) for p in s) / count(s), 2.0)],
    ids=["normalized", "clipped"],
)
def test_noise_of_a_thousandth_accuses_no_step(step, seed) -> None:
    def noisy(shares):
        update = step(shares)
        key = abs(hash((seed, update.tobytes()))) % 2**32
        return update * (1 + 1e-3 * np.random.default_rng(key).normal(size=update.shape))

    found = diagnose(noisy, EXAMPLES)
    assert found.correct, str(found)


def test_a_step_that_refuses_one_example_is_judged_by_shares() -> None:
    def strict(shares):
        if any(len(share[0]) < 2 for share in shares):
            raise ValueError("more than 1 value per channel is needed")
        return bn.unsynchronised(shares)

    found = diagnose(strict, EXAMPLES)
    assert found.cause.name == "batch statistics are not synchronised", str(found)
    assert any("compared as a whole" in note for note in found.notes)


def test_the_error_of_a_step_that_always_fails_is_passed_on() -> None:
    def broken(shares):
        raise KeyError("labels")

    with pytest.raises(StepError, match="raised KeyError for 1 replica of 1: 'labels'") as error:
        diagnose(broken, EXAMPLES)
    assert isinstance(error.value.__cause__, KeyError)


def test_how_shares_are_weighted_is_told_besides() -> None:
    found = diagnose(bn.unsynchronised, bn.BIG)
    assert "mean of the replicas' means" in found.notes[1]
    assert len(diagnose(bn.unsynchronised_sum, bn.BIG).notes) == 1


def test_noise_that_differs_on_replicas_is_an_error() -> None:
    def own_seeds(shares):
        return ddp([bn.dropped(share, 42 + rank) for rank, share in enumerate(shares)])

    with pytest.raises(StepError, match="dropout or noise"):
        diagnose(own_seeds, bn.BIG)


def test_an_adaptive_optimizer_is_refused() -> None:
    with pytest.raises(StepError, match="adaptive optimizer"):
        diagnose(lambda s: 1e-3 * np.sign(sum(total(p) for p in s)), EXAMPLES)


def test_a_limit_hides_factors_which_a_note_says() -> None:
    found = diagnose(lambda s: clip(sum(mean(p) for p in s), 0.5), EXAMPLES)
    assert not found or any("limited" in note for note in found.notes)


@pytest.mark.parametrize(
    ("step", "name"),
    [
        (bn.moving_equal, "batch statistics are merged with equal weights"),
        (bn.moving_of_first, "the statistics are those of one replica"),
    ],
)
def test_statistics_are_judged_beside_a_right_update(step, name) -> None:
    assert_replica_equivalent(bn.moving_right, EXAMPLES)
    assert diagnose(step, EXAMPLES).cause.name == name

    def linear(shares):
        return Outcome(sum(total(p) for p in shares) / count(shares),
                       statistics=step(shares).statistics)  # fmt: skip

    assert diagnose(linear, (X, Y)).cause.name == name


def test_the_reported_loss_of_such_a_step_has_a_verdict() -> None:
    step = lambda s: Outcome(bn.synchronised(s), 3.0 * len(s))  # noqa: E731
    found = diagnose(step, EXAMPLES)
    assert found.correct and "multiplied by the replicas" in found.reported_loss_issue


def balanced(strength):
    """An auxiliary loss over each share's mean (load balancing), beside a right mean."""

    def balance(share):
        x, y = share
        z = np.tanh(x @ np.ones((6, 2)) / 3 + y)
        return np.ravel(x.T @ ((1 - z**2) * z.mean(axis=0))) / len(x)

    def step(shares):
        whole = sum(total(share) for share in shares) / count(shares)
        aux = np.mean([balance(share) for share in shares], axis=0)
        return whole + strength * np.pad(aux, (0, len(whole) - len(aux)))

    return step


def test_a_part_of_the_loss_that_depends_on_the_share_is_named() -> None:
    found = diagnose(balanced(10), EXAMPLES)
    assert found.cause is not None, str(found)
    assert "in a part of the loss, batch statistics" in found.cause.name, str(found)
    assert "the rest is correct" in found.cause.sentence


def test_what_examples_leave_unexplained_in_any_order_is_no_noise() -> None:
    """A weak term over the share must not hide itself."""
    assert not diagnose(balanced(1), EXAMPLES).correct


@pytest.mark.parametrize(
    "local",
    [
        lambda x: (x[: max(len(x) // 2, 1)] ** 3).mean(axis=0) + np.tanh(x).mean(axis=0),
        lambda x: np.mean([(p**2).mean(axis=0) / (1 + abs(p).mean()) for p in (x[:4], x[4:])
                           if len(p)], axis=0),
    ],
    ids=["the first half", "chunks of four"],
)  # fmt: skip
def test_pieces_that_a_replica_cuts_are_no_equal_noise(local) -> None:
    rows = np.random.default_rng(5).normal(size=(12, 60))
    found = diagnose(lambda s: np.mean([local(p) for p in s], axis=0), rows, equal_shards=True)
    assert found.cause is not None, str(found)
    assert found.cause.name == "each replica splits its own shard", str(found)


def test_counts_of_the_first_replica_are_not_merged_with_equal_weights() -> None:
    """A constant buffer beside them says nothing about weights."""

    def step(shares):
        n = sum(map(len, shares))
        counts = np.concatenate([(shares[0] > 0).sum(axis=0), np.ones(3)])
        return Outcome(sum(share.sum(axis=0) for share in shares) / n, statistics=counts)

    found = diagnose(step, X)
    assert found.cause is not None, str(found)
    assert found.cause.name == "the statistics are those of one replica", str(found)
