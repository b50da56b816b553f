"""Random programs on random divisions of a batch over the replicas of several processes."""

import pytest
from launch import every_mpi, run

GATHERS = 471  # seed of a program whose gradient flows back through all_gather


@pytest.mark.parametrize("mpi", every_mpi())
@pytest.mark.parametrize(("ranks", "seeds", "shared"), [(2, range(6), 1), (3, range(6, 12), 0)])
def test_any_division_over_processes_is_identical_to_one_replica(mpi, ranks, seeds, shared):
    ended = run(mpi, ranks, "divided.py", *seeds, GATHERS, SAMEGRAD_MPI_SHARED=shared)
    assert ended.code == 0, ended.text
    lines = sorted(line for line in ended.out.splitlines() if line.startswith("rank "))
    draws = lines[0].split()[2]
    assert lines == [f"rank {rank}: {draws} draws" for rank in range(ranks)], ended.text
    assert int(draws) > 6 * len(seeds)


@pytest.mark.parametrize("mpi", every_mpi())
@pytest.mark.parametrize("ranks", [2, 3])
def test_steps_of_a_few_lines_are_identical_to_one_replica(mpi, ranks):
    ended = run(mpi, ranks, "divided_steps.py")
    assert ended.code == 0, ended.text
    lines = sorted(line for line in ended.out.splitlines() if line.startswith("rank "))
    assert lines == [f"rank {rank}: done" for rank in range(ranks)], ended.text
