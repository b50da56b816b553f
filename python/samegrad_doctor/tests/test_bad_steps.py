"""What a step may return or do that cannot be judged, and what `diagnose` says of it."""

from __future__ import annotations

import numpy as np
import pytest
from steps import WEIGHTS, X, Y, count, mean, total

from samegrad_doctor import FailureMode, Outcome, StepError, diagnose, layout, unequal_sizes


def right(shares):
    return sum(total(p) for p in shares) / count(shares)


class Unreadable:
    def __array__(self, dtype=None, copy=None):
        raise RuntimeError("Can't call numpy() on Tensor that requires grad")


@pytest.mark.parametrize(
    ("step", "words"),
    [
        (lambda s: None, r"must return the update .*got None for 1 replica of 1"),
        (lambda s: [], r"must return the update .*got \[\]"),
        (lambda s: {"w": None}, "must return the update"),
        (lambda s: "gradient", "arrays of real numbers: got str"),
        (lambda s: right(s) * 1j, "arrays of real numbers: got ndarray .complex"),
        (lambda s: Unreadable(), "real numbers: got Unreadable .*requires grad.*detached"),
        (lambda s: Outcome(right(s), np.ones(3)), r"must be one number: got ndarray of shape \(3,"),
        (lambda s: right(s) * np.nan, "example 0 alone is not finite"),
        (
            lambda s: right(s) * (np.nan if count(s) > 1 else 1),
            r"not finite \(NaN or inf\) for 1 replica of 11",
        ),
        (
            lambda s: right(s) * (np.nan if len(s) > 1 else 1),
            r"not finite \(NaN or inf\) for 2 replicas of 4.7",
        ),
        (lambda s: right(s) * 0, "example 0 alone changes nothing"),
        (lambda s: right(s)[:4], "11 examples depend on each other: got 4 param.*least 11 param"),
        (lambda s: right(s) if len(s) == 1 else right(s)[:-1], r"got arrays of \[39\].* of \[40\]"),
        (lambda s: right(s) if len(s) == 1 else [right(s), 0], r"arrays of \[40, 1\].* of \[40\]"),
        (lambda s: Outcome(right(s), None, [right(s), right(s)[1:]]), "copies must have the same"),
    ],
)
def test_what_a_step_returns_is_checked(step, words) -> None:
    with pytest.raises(StepError, match=words):
        diagnose(step, (X, Y))


def test_a_step_that_takes_another_batch_is_told_what_it_was_given() -> None:
    with pytest.raises(
        StepError, match=r"raised TypeError .*got \[\(float64\[1, 6\], float64"
    ) as e:
        diagnose(lambda s: mean(s[0]["x"]), (X, Y))
    assert isinstance(e.value.__cause__, TypeError)
    with pytest.raises(StepError, match=r"raised KeyError .*got \[\{x: float64\[1, 6\]\}\]"):
        diagnose(lambda s: s[0]["y"], {"x": X})
    with pytest.raises(StepError, match=r"for 2 replicas of 4\+7.*equal_shards=True"):
        diagnose(
            lambda s: np.stack(s).mean(axis=(0, 1)), np.random.default_rng(0).normal(size=(12, 40))
        )


class Memory:
    """A step that goes on from where it was, by so much of a gradient."""

    def __init__(self, rate, momentum=0.0):
        self.moved, self.velocity = np.zeros(40), np.zeros(40)
        self.rate, self.momentum = rate, momentum

    def __call__(self, shares):
        self.velocity = self.momentum * self.velocity + right(shares)
        self.moved = self.moved + self.rate * self.velocity
        return self.velocity - self.moved  # a bowl: the gradient falls as the parameters move


@pytest.mark.parametrize(
    "step", [Memory(0.1), Memory(0.01), Memory(0.0, momentum=0.9), Memory(0.001)]
)
def test_a_step_that_goes_on_from_call_to_call_is_seen(step) -> None:
    with pytest.raises(StepError, match="the same input gave another update: it keeps state"):
        diagnose(step, (X, Y))


def test_a_step_that_changes_its_batch_is_no_worse() -> None:
    def step(shares):
        update = right(shares)
        for share in shares:
            share[0][:] = 0
        return update

    before = X.copy()
    assert diagnose(step, (X, Y)).correct
    np.testing.assert_array_equal(X, before)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"replicas": ()}, r"replicas must be integers >= 1: got \(\)"),
        ({"replicas": 2}, r"replicas must be a sequence of counts, such as \(2, 3\): got 2"),
        ({"replicas": (2.5,)}, "replicas must be integers"),
        ({"seed": 1.5}, "seed must be an integer >= 0: got 1.5"),
        ({"max_examples": 2.5}, "max_examples must be an integer >= 1: got 2.5"),
        ({"equal_shards": "no"}, "equal_shards must be True or False: got 'no'"),
        ({"empty_shard": "x"}, "empty_shard must be True, False or None: got 'x'"),
        ({"weights": "abc"}, "weights must be one positive number for each of the .* got 'abc'"),
        ({"replicas": (2, 0)}, "replicas must be integers"),
        ({"micro_batches": (-1,)}, "micro_batches must be integers"),
        ({"max_examples": 2}, "at least 3 examples .*max_examples=2"),
        ({"weights": WEIGHTS[:4]}, r"each of the 30 examples: got .* of shape \(4,\)"),
        ({"weights": -WEIGHTS}, "one positive number"),
        ({"weights": WEIGHTS * np.nan}, "one positive number"),
    ],
)
def test_options_that_cannot_be_tried_are_named(options, words) -> None:
    with pytest.raises(StepError, match=words):
        diagnose(right, (X, Y), **options)


@pytest.mark.parametrize("micro_batches", [0, -1, 2**63])
def test_a_layout_has_a_number_of_micro_batches_that_can_be_listed(micro_batches: int) -> None:
    with pytest.raises(ValueError, match=rf"\[layout\] .* got {micro_batches}; "):
        layout([4, 3], micro_batches)


@pytest.mark.parametrize("sizes", [(10.5, 3), (10, "3"), (10, 3, None)])
def test_sizes_of_shares_are_whole_numbers(sizes) -> None:
    with pytest.raises(TypeError, match=r"\[unequal_sizes\] \w+ must be an integer: got "):
        unequal_sizes(*sizes)


@pytest.mark.parametrize("words", [{"name": None}, {"sentence": 1}, {"fix": []}, {"remedy": []}])
def test_a_mistake_is_told_in_text(words) -> None:
    (name,) = words
    with pytest.raises(TypeError, match=rf"\[FailureMode\] {name} must be a string: got "):
        FailureMode(**{"name": "twice", "sentence": "all counts twice", **words})


def test_an_update_that_is_no_number_on_some_layouts_has_no_cause_in_the_weights() -> None:
    rows = np.random.default_rng(0).normal(size=(24, 40))

    def normalised(shares):
        rows = np.concatenate(shares)
        update = np.tanh(rows - rows.mean(0)).sum(0) / (rows.std(0) + 0.1)
        return update * (np.nan if len(shares) == 3 else 1.0)

    with pytest.raises(StepError, match=r"not finite \(NaN or inf\) for 3 replicas of 4\+7"):
        diagnose(normalised, rows)
