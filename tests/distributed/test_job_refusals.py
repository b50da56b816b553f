"""What is wrong on one rank is an error on all of them, with the rank and the remedy."""

import pytest
from launch import every_mpi, run

pytestmark = pytest.mark.parametrize("mpi", every_mpi())


def failed(mpi, *args, ranks=2):
    ended = run(mpi, ranks, "bad.py", *args, limit=90)
    assert ended.code != 0, ended.text
    assert "came to the end" not in ended.out
    return ended.text


def test_a_launcher_without_mpi4py(mpi):
    text = failed(mpi, "no mpi4py")
    assert "has started 2 processes, which need mpi4py and an MPI" in text
    assert text.count("pip install 'samegrad[mpi]'") == 2


def test_a_rank_that_raises_before_its_first_strategy(mpi):
    text = failed(mpi, "raises early", ranks=3)
    assert "rank 1 of 3 failed before it had joined the job" in text
    assert text.count("rank 1 failed in call 0: FileNotFoundError: ") >= 2


def test_a_rank_that_ends_before_its_first_strategy(mpi):
    text = failed(mpi, "ends early")
    if not mpi.is_open:  # which ends the job by itself, as the status is not 0
        assert "rank 0 of 2 has waited for 4 s for the others to join the job" in text


def test_ranks_with_another_version(mpi):
    text = failed(mpi, "version", ranks=3)
    assert "build: version: " in text and "0.0.1 on rank 1" in text
    assert text.count("install one build of samegrad for all of them") >= 3
    for rank in range(3):
        assert f"rank {rank} of 3 failed after call" in text


def test_ranks_with_other_numerics(mpi):
    text = failed(mpi, "function version")
    assert "build: function version: " in text and "9 on rank 1" in text


def test_an_unequal_number_of_steps(mpi, tmp_path):
    text = failed(mpi, "fewer steps", tmp_path)
    assert "rank 1 has ended its program after call" in text
    assert "rank 1 has ended its program after call 4, and rank 0 failed in call 5" in text
    assert text.count("give them the same data") >= 2


def test_a_disk_that_is_full(mpi, tmp_path):
    text = failed(mpi, "full disk", tmp_path)
    assert "rank 0 of 2 failed after call" in text and "rank 1 of 2 failed after call" in text
    assert "is written by rank 0, which could not: " in text
    assert not list(tmp_path.glob("*.safetensors")), "no half of a checkpoint is left"
