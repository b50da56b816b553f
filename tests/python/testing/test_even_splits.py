"""Steps that take even shares alone are judged on these, and the verdict says what stays open."""

from __future__ import annotations

import numpy as np
import pytest
from steps import X, Y, count, mean, total

from samegrad.testing import StepError, diagnose


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
         "share of the global batch, then mean"),
        (lambda s: mean(s[0]), "the replicas are not reduced"),
    ],
)  # fmt: skip
def test_even_splits_name_the_mistakes_that_they_show(step, name) -> None:
    found = diagnose(equal_shares(step), (X, Y), even=True)
    assert (found.cause and found.cause.name) == name, str(found)


def test_what_even_splits_cannot_tell_apart_is_noted() -> None:
    found = diagnose(
        equal_shares(lambda s: np.mean([mean(p) for p in s], axis=0)), (X, Y), even=True
    )
    assert found.correct
    (note,) = [note for note in found.notes if "cannot tell" in note]
    assert "mean of the replicas' means" in note and " more)" in note and len(note) < 250
    uneven = diagnose(lambda s: sum(total(p) for p in s) / count(s), (X, Y))
    assert not any("cannot tell" in note for note in uneven.notes)


def test_examples_that_no_even_split_fits_are_named() -> None:
    with pytest.raises(StepError, match="multiple of 40 .*got 12"):
        diagnose(lambda s: mean(s[0]), (X, Y), even=True, replicas=(8, 5))
