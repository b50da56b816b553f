"""Random calls of every public name: none ends the process, and every refusal is ours."""

import judge
import pytest
import random_calls
import surface

CALLS = 2000


@pytest.fixture(scope="module")
def run():
    made = random_calls.Run(seed=5)
    made.batch(0, CALLS)
    return made


def test_no_call_ends_the_process_or_hangs(run):
    assert run.counts["signal"] == run.counts["hang"] == 0


def test_every_refusal_says_who_which_rule_and_the_values(run):
    assert run.counts["refused"] > CALLS / 5
    assert not run.faulty, random_calls.report(run, 10)


def test_every_public_name_is_called():
    paths = {target.path for target in surface.targets()}
    assert len(paths) > 600
    assert {"reshape", "nn.relu", "data.Dataset.batch", "Tensor.__add__"} <= paths


def test_a_call_is_that_of_its_seed():
    first, second = random_calls.Run(7), random_calls.Run(7)
    for made in (first, second):
        made.batch(100, 160)
    assert first.counts == second.counts


@pytest.mark.parametrize(
    ("error", "fault"),
    [
        (ValueError("[reshape] sizes must fit: got (2,); use -1."), None),
        (TypeError("reshape() missing 1 required positional argument: 'shape'"), None),
        (TypeError("_make.<locals>.method() takes 2 positional arguments"), "shows"),
        (TypeError("_make() missing 1 required positional argument: 'x'"), "names an inner"),
        (RuntimeError("[run] Unable to cast Python instance: got 1"), "shows"),
        (MemoryError(""), "does not say who"),
        (ZeroDivisionError("division by zero"), "does not say who"),
        (ValueError("[reshape] the sizes do not fit."), "does not show the values"),
        (ValueError("[reshape] got " + "9" * 5000), "too long"),
    ],
)
def test_the_judge_knows_a_refusal_that_is_not_ours(error, fault):
    found = judge.fault_of(error)
    assert found is None if fault is None else found.startswith(fault)
