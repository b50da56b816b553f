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
    assert "pip install 'samegrad[mpi]'" in text


def test_ranks_with_another_version(mpi):
    text = failed(mpi, "version", ranks=3)
    assert "build: version: " in text and "0.0.1 on rank 1" in text
    for rank in range(3):
        assert f"rank {rank} of 3 failed after call" in text


def test_an_unequal_number_of_steps(mpi, tmp_path):
    text = failed(mpi, "fewer steps", tmp_path)
    assert "rank 1 has ended its program after call" in text
    assert "give them the same data" in text


def test_a_disk_that_is_full(mpi, tmp_path):
    text = failed(mpi, "full disk", tmp_path)
    assert "rank 0 of 2 failed after call" in text and "rank 1 of 2 failed after call" in text
    assert "is written by rank 0, which could not: " in text
    assert not list(tmp_path.glob("*.safetensors")), "no half of a checkpoint is left"
