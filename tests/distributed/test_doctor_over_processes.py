"""`samegrad doctor` and pytest under mpirun: one verdict, one report, one exit code."""

import json

import pytest
from launch import PROGRAMS, every_mpi, run

pytestmark = pytest.mark.parametrize("mpi", every_mpi())
LIMIT = 120  # a diagnosis takes seconds; one that hangs fails


def doctor(mpi, step, *options, ranks=2, **variables):
    path = f"{PROGRAMS / 'doctored.py'}::{step}"
    return run(mpi, ranks, "-m", "samegrad", "doctor", path, *options, limit=LIMIT, **variables)


def test_a_right_step_is_right(mpi):
    ended = doctor(mpi, "right")
    assert ended.code == 0, ended.text
    assert ended.out.count("correct;") == 1
    assert "2 and 3 replicas were spread over 2 processes" in ended.out
    assert "none was run" not in ended.out


@pytest.mark.parametrize("ranks", [2, 3])
def test_mean_per_replica_and_sum_is_named(mpi, ranks):
    ended = doctor(mpi, "mean", "--json", ranks=ranks)
    assert ended.code == 1, ended.text
    found = json.loads(ended.out)  # of one rank
    assert found["cause"] == "mean per replica, then sum" and not found["correct"]
    factors = [row["factor"] * row["examples"] for row in found["per_replica"]]
    assert max(factors) - min(factors) < 1e-3 * max(factors)  # of all examples, by its own


def test_layouts_that_cannot_be_spread_are_said(mpi):
    ended = doctor(mpi, "right", "--replicas", "2", "4", ranks=3)
    assert ended.code == 0, ended.text
    assert "4 replicas were spread over 3 processes" in ended.out
    assert "fewer replicas than processes, 2, none was run" in ended.out
    ended = doctor(mpi, "mean", ranks=4)
    assert ended.code == 1, ended.text
    assert "4 and 5 replicas were spread over 4 processes" in ended.out


def test_a_collective_that_one_rank_calls(mpi):
    ended = doctor(mpi, "lonely")
    assert ended.code == 2, ended.text
    assert ended.text.count("samegrad: error: [step] all processes must make the same calls") == 1
    assert "allreduce on rank 1, the end of the step (run 1 of the doctor) on rank 0" in ended.err
    assert "Traceback" not in ended.err


def test_a_step_that_raises_on_one_rank(mpi):
    ended = doctor(mpi, "raises")
    assert ended.code == 2, ended.text
    assert "got rank 1 raised ArithmeticError: the rank's own trouble; rank 0 did not" in ended.err


def test_processes_that_forget_each_other(mpi):
    ended = doctor(mpi, "own")
    assert ended.code == 1, ended.text
    assert "the replicas' parameters differ" in ended.out


def test_what_cannot_be_judged(mpi):
    ended = doctor(mpi, "right", "--batch", "other_batch")
    assert ended.code == 2 and "all processes must have the same batch: got hashes" in ended.err
    ended = doctor(mpi, "absent")
    assert ended.code == 2 and ended.err.count("has no 'absent'") == 1
    ended = doctor(mpi, "right", BROKEN_ON=1)
    assert ended.code == 2, ended.text
    assert "rank 1 raised StepError: [doctor]" in ended.err and "a file is missing" in ended.err


def pytested(mpi, *options, program="steps_under_pytest.py", ranks=2, **variables):
    words = ["pytest", "-q", "--color=no", "-p", "no:cacheprovider", "--import-mode=prepend"]
    # By its module, and not once more by its entry point where samegrad is installed.
    words += ["-p", "no:samegrad", "-p", "samegrad._pytest_plugin", *options]
    return run(mpi, ranks, "-m", *words, PROGRAMS / program, limit=LIMIT, **variables)


def test_pytest_reports_once(mpi, tmp_path):
    report = tmp_path / "report.xml"
    ended = pytested(mpi, f"--junitxml={report}", "-rs")
    assert ended.code == 1, ended.text
    out = ended.out
    assert out.count("3 failed, 2 passed, 1 skipped, 1 error") == 1
    assert out.count("cause: mean per replica, then sum") == 1
    assert "failed on rank 1:" in out and "rank 1 is not well" in out
    assert "allreduce on rank 0, call of" in out and "rank 1 does not come" in out
    assert "the fixture of rank 1" in out
    assert "rank 1: Skipped: rank 1 has no time" in out
    assert report.read_text().count("<testcase ") == 7


def test_pytest_passes_and_stops_together(mpi):
    ended = pytested(mpi, "-k", "right or afterwards")
    assert ended.code == 0 and ended.out.count("2 passed, 5 deselected") == 1, ended.text
    ended = pytested(mpi, "-x")
    assert ended.code == 1 and ended.out.count("1 failed, 1 passed") == 1, ended.text


def test_pytest_says_what_one_rank_could_not_collect(mpi):
    ended = pytested(mpi, UNCOLLECTED=1)
    assert ended.code not in (0, 1), ended.text
    assert ended.text.count("all processes must collect the same tests") == 1
    assert "rank 1 lacks a file" in ended.text


def test_a_rank_that_dies_ends_the_tests(mpi):
    ended = pytested(mpi, KILLED=1)
    assert ended.code != 0, ended.text
    assert "passed" not in ended.out


def test_pytest_leaves_other_programs_alone(mpi, tmp_path):
    """Without samegrad each process reports for itself, as if the plug-in were not there."""
    (tmp_path / "test_other.py").write_text("def test_a():\n    assert True\n")
    ended = pytested(mpi, program=tmp_path / "test_other.py")
    assert ended.code == 0 and ended.out.count("1 passed") == 2, ended.text
