"""The replica dependence check in a job: one rank warns, and errors are those of all ranks."""

import pytest
from launch import PROGRAMS, every_mpi, run

pytestmark = pytest.mark.parametrize("mpi", every_mpi(), scope="module")
MAXIMUM = "[replica dependence] reduce_max of one replica's examples reaches a variable"
MEAN = "[replica dependence] a mean over one replica's examples reaches a variable"
WRONG = {"a maximum": ("tf.reduce_max", MAXIMUM), "a mean": ("tf.reduce_mean", MEAN)}
HARMLESS = "a mean of equal batches"


def said_of(name):
    """How the report on a program begins: its line, and the statistic."""
    function, begins = WRONG.get(name, WRONG["a mean"])
    lines = (PROGRAMS / "replica_dependence.py").read_text().splitlines()
    (number,) = [i for i, line in enumerate(lines, 1) if function in line]
    return f"replica_dependence.py:{number}: {begins}"


@pytest.fixture(scope="module")
def told(mpi):
    """What each rank says of a mode, a program and a way to run it."""
    ended = run(mpi, 2, "replica_dependence.py")
    assert ended.code == 0, ended.text
    found = {}
    for line in ended.out.splitlines():
        case, _, text = line.partition(": ")
        *case, rank = case.split("; ")
        found.setdefault(tuple(case), {})[rank] = text
    assert len(found) == 24 and all(set(ranks) == {"0", "1"} for ranks in found.values())
    return found


@pytest.mark.parametrize("way", ["bare", "traced"])
@pytest.mark.parametrize("name", [*WRONG, HARMLESS])
def test_first_rank_warns_once_for_the_job(told, name, way):
    ranks = told["warn", name, way]
    assert ranks["0"].startswith(f"1 warnings of {said_of(name)}")
    assert ranks["1"] == "0 warnings"


@pytest.mark.parametrize("way", ["bare", "traced"])
@pytest.mark.parametrize("name", WRONG)
def test_error_mode_raises_on_all_ranks_before_anything_runs(told, name, way):
    ranks = told["error", name, way]
    assert ranks["0"] == ranks["1"]
    assert ranks["0"].startswith(f"error after 0 steps: {said_of(name)}")


@pytest.mark.parametrize("way", ["bare", "traced"])
@pytest.mark.parametrize("mode", ["warn", "error", "off"])
def test_right_program_is_silent_on_all_ranks(told, mode, way):
    assert told[mode, "a right program", way] == {"0": "0 warnings", "1": "0 warnings"}


@pytest.mark.parametrize("way", ["bare", "traced"])
@pytest.mark.parametrize("name", [*WRONG, HARMLESS])
def test_switched_off_check_is_silent_on_all_ranks(told, name, way):
    assert told["off", name, way] == {"0": "0 warnings", "1": "0 warnings"}
