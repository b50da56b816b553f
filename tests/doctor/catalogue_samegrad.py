"""Mistakes of the catalogue in steps of samegrad's MirroredStrategy, which adds replicas up."""

from __future__ import annotations

import numpy as np
from catalogue_jax import START

import samegrad as tf


def losses(w, part):
    own = tf.reduce_sum(tf.square(tf.matmul(tf.tanh(tf.matmul(part[0], w[0])), w[1]) - part[1]), 1)
    return own * part[2] if len(part) > 2 else own


def penalty(w):
    return 0.1 * sum(tf.reduce_sum(tf.square(leaf)) for leaf in w)


def replicas():
    return float(tf.distribute.get_replica_context().num_replicas_in_sync)


def average(own):
    return tf.nn.compute_average_loss(own)


def all_examples(parts):
    """Of all micro-batches and replicas."""
    ones = sum(tf.reduce_sum(tf.ones_like(part[0][:, 0])) for part in parts)
    return tf.distribute.get_replica_context().all_reduce("SUM", ones)


def each(scale, factor=lambda r, k: 1.0):
    """scale(losses) of every micro-batch, summed."""
    return lambda w, parts: (
        factor(replicas(), len(parts)) * sum(scale(losses(w, part)) for part in parts)
    )


def window(parts_used=lambda parts: parts, factor=lambda r, k: 1.0, times=None):
    """The sum by the count of all, and a regularisation loss that is added so many times."""

    def loss(w, parts):
        value = sum(tf.reduce_sum(losses(w, part)) for part in parts_used(parts))
        value = value / all_examples(parts) * factor(replicas(), len(parts))
        return value if times is None else value + times(replicas(), len(parts)) * penalty(w)

    return loss


def of_replica(chosen, scale):
    """The losses of some replicas alone reach the gradient: chosen(number, replicas)."""

    def loss(w, parts):
        context = tf.distribute.get_replica_context()
        number = tf.cast(context.replica_id_in_sync_group, tf.float64)
        return scale(losses(w, parts[0])) * tf.cast(chosen(number, replicas()), tf.float64)

    return loss


def first(number, _):
    return tf.equal(number, 0.0)


def all_but_last(number, count):
    return tf.less(number, max(1.0, count - 1.0))


PLAIN = {
    "mean per replica, then sum": each(tf.reduce_mean),
    "divided by the global batch, then averaged": each(average, lambda r, k: 1 / r),
    "mean of the replicas' means": each(tf.reduce_mean, lambda r, k: 1 / r),
    "mean per replica, then divided by the replicas twice": each(
        tf.reduce_mean, lambda r, k: 1 / r**2
    ),
    "the last replica is left out": of_replica(all_but_last, average),
    "the replicas are not reduced": of_replica(first, tf.reduce_mean),
    "the replicas are not reduced, though divided by all": of_replica(first, average),
    "regularisation counts once on every replica": window(times=lambda r, k: 1.0),
    "regularisation counts divided by the replicas": window(times=lambda r, k: 1 / r**2),
}
MICRO = {
    "micro-batches are not divided": each(tf.reduce_mean, lambda r, k: 1 / r),
    "micro-batches are divided twice": window(factor=lambda r, k: 1 / k),
    "mean of the micro-batches' means": each(tf.reduce_mean, lambda r, k: 1 / (r * k)),
    "means of micro-batches are added over replicas": each(tf.reduce_mean, lambda r, k: 1 / k),
    "means of micro-batches are summed everywhere": each(tf.reduce_mean),
    "only the last micro-batch is kept": lambda w, parts: (
        tf.reduce_mean(losses(w, parts[-1])) / replicas()
    ),
    "the other micro-batches are lost": window(lambda parts: parts[-1:]),
    "regularisation counts once in every micro-batch": window(times=lambda r, k: k / r),
    "regularisation counts once in every micro-batch of every replica": window(
        times=lambda r, k: float(k)
    ),
}
WEIGHTED = {
    "divided by examples instead of weights": each(average),
    "divided by the local number of examples instead of weights": each(
        tf.reduce_mean, lambda r, k: 1 / r
    ),
}
RIGHT = window()


def build_of(program):
    """For samegrad_step."""

    def build():
        variables = [tf.Variable(leaf) for leaf in START]
        optimizer = tf.keras.optimizers.SGD(np.float64(0.01))

        def step(*parts):
            windows = parts[0] if isinstance(parts[0], list) else [parts]
            with tf.GradientTape() as tape:
                loss = program(variables, windows)
            gradients = tape.gradient(loss, variables)
            optimizer.apply_gradients(zip(gradients, variables, strict=True))

        return step, variables

    return build
