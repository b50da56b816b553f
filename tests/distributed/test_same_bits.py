"""Replicas over processes give the bits of one process, whichever has which."""

import pytest
from launch import every_mpi, run, run_alone


@pytest.fixture(scope="module")
def weights():
    """What one process gives, with some replicas and a split."""
    known = {}

    def of(*args):
        if args not in known:
            known[args] = lines(run_alone("cnn.py", "--one-process", *args))
        return known[args]

    return of


def lines(ended):
    return [line for line in ended.out.splitlines() if line.startswith("weights")]


@pytest.mark.parametrize("mpi", every_mpi())
@pytest.mark.parametrize("ranks", [2, 4, 8])
def test_the_tutorials_network_has_the_bits_of_one_process(mpi, ranks, weights):
    (one,) = weights("--replicas", 8)
    ended = run(mpi, ranks, "cnn.py", "--replicas", 8 // ranks)
    assert ended.code == 0, ended.text
    assert lines(ended) == [one] * ranks


@pytest.mark.parametrize("mpi", every_mpi())
def test_three_processes_have_the_bits_of_one_replica_with_balanced_shares(mpi, weights):
    (one,) = weights("--replicas", 1)
    ended = run(mpi, 3, "cnn.py", "--split", "balanced")
    assert ended.code == 0, ended.text
    assert [line.split()[:2] for line in lines(ended)] == [one.split()[:2]] * 3


@pytest.mark.parametrize("mpi", every_mpi())
def test_uneven_and_empty_shares(mpi, weights):
    args = ("--batch", 5, "--examples", 13)  # of 5 on 4 replicas 2, 2, 1 and 0, of 3 1, 1, 1 and 0
    (one,) = weights("--replicas", 4, *args)
    ended = run(mpi, 2, "cnn.py", "--replicas", 2, *args)
    assert ended.code == 0, ended.text
    assert lines(ended) == [one] * 2


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
def test_sums_that_are_sent_have_the_bits_of_those_in_shared_memory(mpi, ranks, weights):
    (one,) = weights("--replicas", 6)
    for shared in (0, 1):
        ended = run(mpi, ranks, "cnn.py", "--replicas", 6 // ranks, SAMEGRAD_MPI_SHARED=shared)
        assert ended.code == 0, ended.text
        assert lines(ended) == [one] * ranks
