"""Tests that `mpirun -n 2 python -m pytest` runs: some fail, on all ranks or on one."""

import os
import signal

import doctored
import pytest

import samegrad as tf
from samegrad.distribute import mpi
from samegrad.testing import assert_replica_equivalent

FIRST = mpi.rank() == 0
if os.environ.get("UNCOLLECTED") and not FIRST:
    raise ImportError("rank 1 lacks a file")


def test_right():
    if os.environ.get("KILLED") and not FIRST:
        os.kill(os.getpid(), signal.SIGKILL)
    assert_replica_equivalent(doctored.right, doctored.batch)


def test_mean_then_sum():
    assert_replica_equivalent(doctored.mean, doctored.batch)


def test_fails_on_one():
    assert FIRST, "rank 1 is not well"


def test_fails_before_a_collective():
    assert FIRST, "rank 1 does not come"
    mpi.allreduce(1.0)


def test_skipped_on_one():
    if not FIRST:
        pytest.skip("rank 1 has no time")


def test_works_afterwards():
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    total = strategy.reduce("SUM", strategy.run(lambda: tf.constant(1.0)), axis=None)
    assert float(total) == mpi.size()


@pytest.fixture
def broken_on_one():
    assert FIRST, "the fixture of rank 1"


def test_fixture(broken_on_one):
    mpi.allreduce(1.0)
