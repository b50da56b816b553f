"""More steps of users that train on any division of the global batch, for test_divided_steps.py."""

from __future__ import annotations

from typing import Any

import numpy as np
from divided import Built, Results, case, integers, normal, positive
from division_cases import all_reduced, weight

import samegrad as tf

keras = tf.keras


@case(normal(4), integers(3), batches=(0, 5, 37))
def metrics_of_a_per_replica_loss() -> Built:
    w = weight(4, 3)
    metrics = [keras.metrics.Mean(), keras.metrics.Sum()]

    def step(x: Any, labels: Any) -> Results:
        logits = tf.matmul(x, w)
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
        loss = tf.nn.compute_average_loss(losses)
        metrics[0].update_state(loss)
        metrics[1].update_state(loss)
        return Results()

    return step, metrics


@case(normal(4))
def custom_gradients() -> Built:
    w = weight(4, 3)

    @tf.custom_gradient
    def product(x: Any, w: Any) -> Any:
        def gradient(upstream: Any) -> Any:
            return (
                tf.matmul(upstream, w, transpose_b=True),
                2.0 * tf.matmul(x, upstream, transpose_a=True),
            )

        return tf.matmul(x, w), gradient

    def step(x: Any) -> Results:
        with tf.GradientTape() as tape:
            y = tf.tanh(product(x, w.read_value()))
            loss = tf.nn.compute_average_loss(tf.reduce_sum(y, axis=1))
        return Results(rows=[y], sums=[loss, tape.gradient(loss, w)])

    return step, []


@case(normal(4), batches=(5, 37))
def gradients_of_each_row() -> Built:
    w = weight(4, 3)

    def step(x: Any) -> Results:
        with tf.GradientTape(persistent=True) as tape:
            y = tf.tanh(tf.matmul(x, w))
            tape.watch(x)
            z = tf.reduce_sum(tf.sin(x) * x, axis=1)
        slopes = tape.gradient(z, x)
        norm = all_reduced(tf.reduce_sum(tf.square(slopes), axis=0))
        return Results(rows=[y, slopes], same=[norm], sums=[tf.reduce_sum(slopes / norm, axis=0)])

    return step, []


@case(normal(4), integers(3), batches=(5, 37))
def several_tapes_and_optimizers() -> Built:
    """A generator and a discriminator with an optimizer each."""
    w, v = weight(4, 3), weight(3, 1)
    optimizers = [keras.optimizers.Adam(0.01), keras.optimizers.RMSprop(0.01)]

    def step(x: Any, labels: Any) -> Results:
        with tf.GradientTape() as first, tf.GradientTape() as second:
            made = tf.tanh(tf.matmul(x, w))
            score = tf.nn.softplus(tf.matmul(made, v))[:, 0]
            one = tf.nn.compute_average_loss(score)
            two = tf.nn.compute_average_loss(-score * tf.cast(labels, tf.float32))
        optimizers[0].apply_gradients([(first.gradient(one, w), w)])
        optimizers[1].apply_gradients([(second.gradient(two, v), v)])
        return Results(rows=[made, score], sums=[one, two])

    return step, [w, v, *optimizers[0].variables, *optimizers[1].variables]


@case(normal(4), batches=(5, 37))
def collectives_on_lists_and_means() -> Built:
    w = weight(4)

    def step(x: Any) -> Results:
        parts = [tf.reduce_sum(x * w, axis=0), tf.reduce_sum(x, axis=0), tf.reduce_sum(x)]
        sums = all_reduced(parts)
        spread = all_reduced(tf.reduce_sum(tf.square(x - sums[1] / 37.0), axis=0))
        largest = tf.reduce_max(tf.distribute.get_replica_context().all_gather(x, axis=0), axis=0)
        return Results(rows=[(x - largest) / tf.sqrt(spread)], same=[*sums, spread, largest])

    return step, []


@case(normal(4), integers(6, 2), positive(2), batches=(0, 5, 37))
def lookups_with_weights() -> Built:
    table, w = weight(6, 4), weight(4, 6)

    def step(x: Any, ids: Any, weights: Any) -> Results:
        with tf.GradientTape() as tape:
            looked = tf.reduce_sum(tf.nn.embedding_lookup(table, ids) * weights[..., None], axis=1)
            logits = tf.matmul(looked + x, w)
            hot = tf.reduce_sum(tf.one_hot(ids, 6), axis=1)
            losses = tf.nn.sigmoid_cross_entropy_with_logits(hot, logits)
            loss = tf.nn.compute_average_loss(tf.reduce_mean(losses, axis=1))
        gradients = tape.gradient(loss, [table, w])
        return Results(sums=[loss, *map(tf.convert_to_tensor, gradients)])

    return step, []


@case(normal(6), integers(4), batches=(37,), steps=4)
def gradients_that_are_accumulated_by_hand() -> Built:
    w, total, count = weight(6, 4), tf.Variable(tf.zeros((6, 4))), tf.Variable(0)

    def step(x: Any, labels: Any) -> Results:
        with tf.GradientTape() as tape:
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, tf.matmul(x, w))
            loss = tf.nn.compute_average_loss(losses)
        total.assign_add(all_reduced(tape.gradient(loss, w)))
        count.assign_add(1)
        if count % 2 == 0:
            w.assign_sub(0.1 * total)
            total.assign(tf.zeros((6, 4)))
        return Results(sums=[loss])

    return step, [w, total, count]


@case(normal(5), batches=(5, 37), cautious="triangular_solve is computed from one replica's batch")
def matrices_of_sums() -> Built:
    """Factors and inverses of a covariance over all replicas."""

    def step(x: Any) -> Results:
        gram = all_reduced(tf.matmul(x, x, transpose_a=True)) + tf.eye(5)
        root = tf.linalg.cholesky(gram)
        white = tf.linalg.matrix_transpose(
            tf.linalg.triangular_solve(root, tf.linalg.matrix_transpose(x))
        )
        return Results(rows=[white], same=[gram, root, tf.linalg.inv(gram)])

    return step, []


@case(normal(4), batches=(5, 37))
def moving_averages() -> Built:
    mean = tf.Variable(np.zeros(4, np.float32), trainable=False)

    def step(x: Any) -> Results:
        rows = tf.distribute.get_replica_context().all_gather(x, axis=0)
        mean.assign(0.9 * mean + 0.1 * tf.reduce_mean(rows, axis=0))
        return Results(rows=[x - mean])

    return step, [mean]
