"""Random programs on random divisions of a batch over the replicas of several processes."""

import pytest
from launch import every_mpi, run


@pytest.mark.parametrize("mpi", every_mpi())
@pytest.mark.parametrize(("ranks", "first", "seeds", "shared"), [(2, 0, 16, 1), (3, 16, 16, 0)])
def test_any_division_over_processes_is_identical_to_one_replica(mpi, ranks, first, seeds, shared):
    ended = run(mpi, ranks, "divided.py", first, seeds, SAMEGRAD_MPI_SHARED=shared)
    assert ended.code == 0, ended.text
    lines = sorted(ended.out.splitlines())
    draws = lines[0].split()[2]
    assert lines == [f"rank {rank}: {draws} draws" for rank in range(ranks)], ended.text
    assert int(draws) > 6 * seeds
