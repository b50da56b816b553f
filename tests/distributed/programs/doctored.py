"""Steps for `samegrad doctor` under mpirun."""

import os
import sys

import numpy as np

import samegrad as tf
from samegrad.distribute import mpi
from samegrad.testing.adapters import samegrad_step

batch = (np.random.default_rng(0).normal(size=(12, 20)),)


def _rank():
    return mpi.rank()


def _step(scaled, also=lambda: None):
    def build():
        w = tf.Variable(np.zeros((20, 1)))
        optimizer = tf.keras.optimizers.SGD(0.1)

        def step(x):
            with tf.GradientTape() as tape:
                losses = tf.reduce_sum(tf.square(tf.matmul(x, w) - 1.0), axis=1)
                loss = scaled(losses)
            optimizer.apply_gradients([(tape.gradient(loss, w), w)])
            return loss

        also()
        return step, [w]

    return samegrad_step(build)


def _right(losses):
    return tf.nn.compute_average_loss(losses)


right = _step(_right)
mean = _step(tf.reduce_mean)


def _one_rank_calls():
    if _rank() == 1:
        mpi.allreduce(1.0)


lonely = _step(_right, _one_rank_calls)


def _one_rank_raises():
    if _rank() == 1:
        raise ArithmeticError("the rank's own trouble")


raises = _step(_right, _one_rank_raises)


def own(shares):
    """Each process forgets what the others have."""
    count = mpi.size()
    mine = shares[_rank() :: count] if len(shares) >= count else shares
    total = sum(len(share[0]) for share in shares)
    return sum(share[0].sum(axis=0) for share in mine) / total


def other_batch():
    return (np.random.default_rng(_rank()).normal(size=(12, 20)),)


if os.environ.get("BROKEN_ON") == os.environ.get("PMI_RANK", os.environ.get("PMIX_RANK")):
    sys.stderr.write("broken here\n")
    raise ImportError("a file is missing")
