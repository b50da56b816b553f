"""Steps that take even shares alone are judged on these, and the verdict says what stays open."""

from __future__ import annotations

import numpy as np
import pytest
from steps import X, Y, count, mean, total

from samegrad_doctor import StepError, diagnose


def equal_shares(step):
    """The step, which takes equal shares only."""

    def run(shares):
        assert len({len(share[0]) for share in shares}) == 1
        return step(shares)

    return run


@pytest.mark.parametrize(
    ("step", "name"),
    [
        (lambda s: sum(total(p) for p in s) / count(s), None),
        (lambda s: sum(mean(p) for p in s), "mean per replica, then sum"),
        (lambda s: np.mean([total(p) / count(s) for p in s], axis=0),
         "divided by the global batch, then averaged"),
        (lambda s: mean(s[0]), "the replicas are not reduced"),
    ],
)  # fmt: skip
def test_even_splits_name_the_mistakes_that_they_show(step, name) -> None:
    found = diagnose(equal_shares(step), (X, Y), equal_shards=True)
    assert (found.cause and found.cause.name) == name, str(found)


def test_what_even_splits_cannot_tell_apart_is_noted() -> None:
    found = diagnose(
        equal_shares(lambda s: np.mean([mean(p) for p in s], axis=0)), (X, Y), equal_shards=True
    )
    assert found.correct
    (note,) = [note for note in found.notes if "cannot tell" in note]
    assert "mean of the replicas' means" in note and " more)" in note and len(note) < 250
    uneven = diagnose(lambda s: sum(total(p) for p in s) / count(s), (X, Y))
    assert not any("cannot tell" in note for note in uneven.notes)


def test_examples_that_no_even_split_fits_are_named() -> None:
    with pytest.raises(StepError, match="multiple of 40 .*got 12"):
        diagnose(lambda s: mean(s[0]), (X, Y), equal_shards=True, replicas=(8, 5))


def in_halves(shares):
    """The mean of the micro-batches' means, where there are any."""
    means = [np.mean([mean(m) for m in s], axis=0) if isinstance(s, list) else mean(s)
             for s in shares]  # fmt: skip
    return np.mean(means, axis=0)


UNLESS = "not the update of one device, unless all shards are equal"


@pytest.mark.parametrize(
    ("step", "options", "only_uneven"),
    [
        (lambda s: np.mean([mean(p) for p in s], axis=0), {}, True),
        (in_halves, {"replicas": (1, 2), "micro_batches": (1, 2)}, True),
        (lambda s: sum(mean(p) for p in s), {}, False),
        (lambda s: np.mean([total(p) / count(s) for p in s], axis=0), {}, False),
        (lambda s: np.mean([np.clip(mean(p), -0.1, 0.1) for p in s], axis=0), {}, False),
    ],
)  # fmt: skip
def test_what_is_right_for_the_equal_shares_of_a_sampler_is_said_to_be(
    step, options, only_uneven
) -> None:
    found = diagnose(step, (X, Y), **options)
    assert not found.correct
    assert found.summary.startswith(UNLESS) == only_uneven, found.summary


def test_a_step_that_refuses_equal_shares_is_judged_by_the_others() -> None:
    def step(shares):
        if len(shares) > 1 and len({len(share[0]) for share in shares}) == 1:
            raise ValueError("equal shares")
        return np.mean([mean(share) for share in shares], axis=0)

    found = diagnose(step, (X, Y))
    assert found.cause.name == "mean of the replicas' means"
    assert not found.summary.startswith(UNLESS)
