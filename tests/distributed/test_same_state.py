"""Ranks run a step on the same variables, of the same values, or on all of them it is refused."""

import pytest
from launch import every_mpi, run

pytestmark = pytest.mark.parametrize("mpi", every_mpi())


def said(mpi, what):
    """What each of the calls came to, on both ranks."""
    ended = run(mpi, 2, "same_state.py", what)
    assert ended.code == 0, ended.text
    return sorted(ended.out.splitlines())


def test_values_that_differ_are_refused_until_they_do_not(mpi):
    told = said(mpi, "values")
    assert all(line.startswith("refused: variable first: ") for line in told[:4])
    assert told[4:] == ["stepped: [0.96, 0.96, 1.92, 1.92] in 1"] * 2


@pytest.mark.parametrize("what", ["order", "order of names"])
def test_another_order_of_variables_that_have_been_compared_is_refused(mpi, what):
    """A later step that goes through a set of variables, for instance, which each rank sorts."""
    told = said(mpi, what)
    assert all(line.startswith("refused: which variables, in which order: ") for line in told[:2])
    assert told[2:] == [
        "stepped: [0.92, 0.92, 1.84, 1.84] in 2",
        "stepped: [0.92, 0.92, 1.84, 1.84] in 2",
        "stepped: [0.96, 0.96, 1.92, 1.92] in 1",
        "stepped: [0.96, 0.96, 1.92, 1.92] in 1",
    ]


def test_steps_that_are_refused_change_nothing_on_any_rank(mpi):
    """Nor what one of them writes before it needs the other rank."""
    told = said(mpi, "programs")
    assert all(line.startswith("refused: ") for line in told[:4])
    assert told[4:] == [
        "stepped: [0.92, 0.92, 1.84, 1.84] in 2",
        "stepped: [0.92, 0.92, 1.84, 1.84] in 2",
        "stepped: [0.96, 0.96, 1.92, 1.92] in 1",
        "stepped: [0.96, 0.96, 1.92, 1.92] in 1",
    ]
