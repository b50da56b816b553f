"""A rank that goes wrong ends the job on all ranks, which say why."""

import re
import time

import pytest
from launch import every_mpi, run

pytestmark = pytest.mark.parametrize("mpi", every_mpi())
IN_TIME = 60  # far more than a job takes, far less than one that hangs


def failed(mpi, *args, ranks=3, **variables):
    begin = time.monotonic()
    ended = run(mpi, ranks, "faults.py", *args, limit=IN_TIME, **variables)
    assert ended.code != 0, ended.text
    assert time.monotonic() - begin < IN_TIME
    return ended


@pytest.mark.parametrize("ranks", [3, 5])
def test_a_job_without_faults_ends_well(mpi, ranks):
    ended = run(mpi, ranks, "faults.py", "none", 0, 0, limit=IN_TIME)
    assert ended.code == 0, ended.text
    assert len({line for line in ended.out.splitlines() if line.startswith("sum")}) == 1


def test_a_rank_that_raises_shows_its_traceback(mpi):
    ended = failed(mpi, "raise", 1, 5)
    assert "rank 1 of 3 failed after call" in ended.text
    assert "ArithmeticError: the rank's own trouble" in ended.text
    assert "faults.py" in ended.text
    assert ended.out.count("stepped") == 3  # before it all went well


def test_traceback_of_a_rank_shows_user_frames_alone(mpi):
    ended = run(mpi, 2, "wrong_step.py", limit=IN_TIME)
    assert ended.code != 0
    first = ended.err.partition("Traceback (most recent call last):\n")[2]
    lines = first[: first.index("got '8'")].splitlines()
    assert len(lines) <= 12, ended.err
    assert "in train_step" in first and "in replica_step" in first
    assert "/samegrad/" not in first.partition("got '8'")[0] and "direct cause" not in first


def test_the_other_ranks_name_the_line_of_an_operation_that_fails(mpi):
    ended = failed(mpi, "index", 1, 0)
    assert "in user code: File" in ended.text  # of rank 1
    # Another rank may have the example as well, to complete its last leaf.
    told = r"rank \d failed in call \d+: \[gather\] indices .*, on replica 1.* \(faults\.py:\d+\)"
    assert re.search(told, ended.text), ended.text


@pytest.mark.parametrize("shared", [0, 1])
def test_a_step_that_an_interrupt_has_ended_is_not_gone_on_with(mpi, shared):
    ended = failed(mpi, "caught", 1, 5, SAMEGRAD_MPI_SHARED=shared)
    assert "caught" in ended.out  # by one of the two at least: the first to go on ends the job
    assert "failed in call" in ended.text and "sum" not in ended.out


def test_a_rank_that_is_killed_ends_the_job(mpi):
    failed(mpi, "kill", 2, 5)


def test_a_rank_that_is_terminated_ends_the_job(mpi):
    failed(mpi, "terminate", 0, 5)


def test_a_stalled_rank_is_named_and_says_where_it_is(mpi):
    ended = failed(mpi, "stall", 1, 5, SAMEGRAD_MPI_TIMEOUT=2)
    assert "rank 1 has not come on after call" in ended.text
    assert "rank 1 is waited for, after call" in ended.text
    assert "in <module>" in ended.text and "faults.py" in ended.text  # its stack


def test_a_stopped_rank_does_not_answer(mpi):
    ended = failed(mpi, "stop", 1, 5, SAMEGRAD_MPI_TIMEOUT=2)
    assert "rank 1 does not answer" in ended.text


def test_a_rank_that_ends_early_is_named(mpi):
    ended = failed(mpi, "end", 2, 5)
    assert "rank 2 has ended its program after call" in ended.text
    assert "the same number of steps" in ended.text


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("seed", "seed: 1 on ranks 0, 2, 2 on rank 1"),
        ("program", "program: "),
        ("weights", "variable table: "),
        (
            "data",
            "dataset: transformation 1: from_tensor_slices(tensors=float32[6, 1000] with hash ",
        ),
        ("generator", "examples per replica: "),
        ("machine", "caches (SAMEGRAD_MACHINE): "),
        ("cut", "caches (SAMEGRAD_MACHINE): "),
    ],
)
def test_ranks_that_differ_say_in_what_on_all_ranks(mpi, fault, said):
    ended = failed(mpi, fault, 1, 0)
    assert said in ended.text
    for rank in range(3):
        assert f"rank {rank} of 3 failed after call" in ended.text
    assert ended.text.count("ValueError: [MultiWorkerMirroredStrategy] all ranks must") >= 3
