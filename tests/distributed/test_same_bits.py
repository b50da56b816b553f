"""Replicas over processes give the bits of one process, whichever has which."""

import pytest
from launch import every_mpi, run, run_alone


def lines(ended):
    """Return the hash that each process printed."""
    return [line.split()[1] for line in ended.out.splitlines() if line.startswith("weights")]


def weights_of_one_replica(*args):
    (found,) = lines(run_alone("cnn.py", "--one-process", "--replicas", 1, *args))
    return found


@pytest.mark.parametrize("mpi", every_mpi())
@pytest.mark.parametrize(("ranks", "replicas"), [(2, 1), (3, 1), (5, 1), (2, 4), (4, 2), (8, 1)])
def test_the_tutorials_network_has_the_bits_of_one_replica(mpi, ranks, replicas):
    one = weights_of_one_replica()  # batches of 32, 32 and 11
    ended = run(mpi, ranks, "cnn.py", "--replicas", replicas)
    assert ended.code == 0, ended.text
    assert lines(ended) == [one] * ranks


@pytest.mark.parametrize("mpi", every_mpi())
@pytest.mark.parametrize(("ranks", "replicas"), [(2, 2), (3, 1)])
def test_unequal_and_empty_batches(mpi, ranks, replicas):
    args = ("--batch", 5, "--examples", 13)  # of 5 on 4 replicas 2, 2, 1 and 0, of 3 1, 1, 1 and 0
    one = weights_of_one_replica(*args)
    ended = run(mpi, ranks, "cnn.py", "--replicas", replicas, *args)
    assert ended.code == 0, ended.text
    assert lines(ended) == [one] * ranks


@pytest.mark.parametrize("mpi", every_mpi())
@pytest.mark.parametrize("shared", [0, 1])
def test_each_process_has_as_many_threads_as_it_likes(mpi, shared):
    variables = {"SAMEGRAD_MPI_SHARED": shared}
    one = run(mpi, 3, "faults.py", "eight rows", 0, 0, **variables)
    each = run(mpi, 3, "faults.py", "threads", 0, 0, **variables)
    assert one.code == each.code == 0, one.text + each.text
    sums = [sorted(x for x in e.out.splitlines() if x.startswith("sum")) for e in (one, each)]
    assert sums[0] == sums[1] and len(set(sums[0])) == 1


@pytest.mark.parametrize("mpi", every_mpi())
@pytest.mark.parametrize("ranks", [2, 3])
def test_sums_that_are_sent_have_the_bits_of_those_in_shared_memory(mpi, ranks):
    one = weights_of_one_replica()
    for shared in (0, 1):
        ended = run(mpi, ranks, "cnn.py", "--replicas", 6 // ranks, SAMEGRAD_MPI_SHARED=shared)
        assert ended.code == 0, ended.text
        assert lines(ended) == [one] * ranks
