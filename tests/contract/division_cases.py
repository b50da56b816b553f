"""Steps whose results must be those of one replica for any division of the global batch."""

from __future__ import annotations

from typing import Any

import numpy as np
from divided import Built, Results, case, chosen, integers, normal, positive, wide

import samegrad as tf

keras = tf.keras


def weight(*shape: int, dtype: str = "float32") -> Any:
    values = np.random.default_rng([11, *shape]).normal(size=shape)
    return tf.Variable(values.astype(dtype))


def all_reduced(value: Any, op: str = "SUM") -> Any:
    return tf.distribute.get_replica_context().all_reduce(op, value)


# ---- sums: signs of zeros, NaN, sizes ----


def sums_of_rows() -> Built:
    """Sums along the examples, of several kinds."""
    w, mean = weight(3), keras.metrics.Mean()

    def step(x: Any) -> Results:
        with tf.GradientTape() as tape:
            parts = x * w
            loss = tf.reduce_sum(parts)
        mean.update_state(x)
        ids = tf.zeros_like(x[:, 0], tf.int32)
        sums = [
            tf.reduce_sum(x, axis=0), loss, tape.gradient(loss, w), tf.matmul(x, x, True),
            tf.math.unsorted_segment_sum(x, ids, 2), tf.einsum("ni,nj->ij", x, x),
            tf.add_n([tf.reduce_sum(x, axis=0), tf.reduce_sum(-x, axis=0)]),
        ]  # fmt: skip
        return Results(rows=[parts], sums=sums, same=[all_reduced(tf.reduce_sum(x, axis=0))])

    return step, [mean]


SMALL = (0, 1, 2, 3, 4, 5, 8, 13, 37)


@case(chosen([-0.0], 3), batches=SMALL, steps=1)
def rows_of_minus_zero() -> Built:
    return sums_of_rows()


@case(chosen([-0.0, 0.0], 3), batches=SMALL, steps=1)
def rows_of_both_zeros() -> Built:
    return sums_of_rows()


@case(chosen([1.0, -1.0, -0.0], 3), batches=SMALL, steps=1)
def rows_that_cancel() -> Built:
    return sums_of_rows()


@case(chosen([1.0, np.nan, -2.0, 3.0, 0.5], 3), batches=SMALL, steps=1)
def rows_with_nan() -> Built:
    return sums_of_rows()


@case(chosen([1.0, np.inf, -2.0, 3.0, 0.5], 3), batches=SMALL, steps=1)
def rows_with_inf() -> Built:
    return sums_of_rows()


@case(chosen([1.0, np.inf, -np.inf, 3e38, -3e38], 3), batches=SMALL, steps=1)
def rows_that_overflow() -> Built:
    return sums_of_rows()


@case(chosen([1e-45, -1e-45, 1e-40, 3e-39], 3), batches=SMALL, steps=1)
def rows_of_denormals() -> Built:
    return sums_of_rows()


@case(wide(3), batches=(*SMALL, 64, 100, 257))
def rows_of_many_sizes() -> Built:
    return sums_of_rows()


@case(normal(3, dtype="float64"), normal(dtype="float64"), batches=(0, 5, 37))
def least_squares_in_float64() -> Built:
    w, optimizer = weight(3, 1, dtype="float64"), keras.optimizers.Adam(0.1)

    def step(x: Any, y: Any) -> Results:
        with tf.GradientTape() as tape:
            loss = tf.nn.compute_average_loss(tf.square(tf.matmul(x, w)[:, 0] - y))
        optimizer.apply_gradients([(tape.gradient(loss, w), w)])
        return Results(sums=[loss])

    return step, [w]


@case(normal(3, 2), batches=(5, 37))
def rows_on_another_axis() -> Built:
    """Operands whose examples are not on axis 0: time-major, transposed."""
    w = weight(2, 3)

    def step(x: Any) -> Results:
        major, last = tf.transpose(x, [1, 0, 2]), tf.transpose(x, [1, 2, 0])
        with tf.GradientTape() as tape:
            y = tf.tanh(tf.matmul(major, w))
            loss = tf.nn.compute_average_loss(tf.reduce_sum(y, axis=[0, 2]))
        flat = tf.reshape(last, [6, -1])
        sums = [
            loss, tape.gradient(loss, w), tf.reduce_sum(major, axis=1), tf.reduce_sum(last, -1),
            tf.matmul(flat, flat, transpose_b=True), tf.einsum("tnd,tne->tde", major, y),
        ]  # fmt: skip
        return Results(sums=sums)

    return step, []


@case(normal(3))
def partials_that_are_returned_too() -> Built:
    w = weight(3)

    def step(x: Any) -> Results:
        with tf.GradientTape() as tape:
            loss = tf.nn.compute_average_loss(tf.reduce_sum(tf.square(x * w), axis=1))
        gradient, total = tape.gradient(loss, w), tf.reduce_sum(x, axis=0)
        w.assign_sub(0.1 * all_reduced(gradient))
        same = [all_reduced(total), all_reduced(gradient), all_reduced(2.0 * total)]
        return Results(sums=[loss, total], same=same, own=[loss, gradient, total, 2.0 * total])

    return step, [w]


@case(wide(3))
def collectives_inside_the_step() -> Built:
    def step(x: Any) -> Results:
        larger = all_reduced(tf.reduce_sum(tf.cast(x > 0, tf.int32), axis=0))
        total, count = all_reduced([tf.reduce_sum(x, axis=0), tf.reduce_sum(tf.ones_like(x[:, 0]))])
        rows = tf.distribute.get_replica_context().all_gather(x, axis=0)
        moments = tf.nn.moments(rows, [0])
        return Results(
            rows=[x - moments[0]],
            same=[larger, total / count, *moments, tf.reduce_logsumexp(rows, axis=0)],
        )

    return step, []


# ---- weights of examples, metrics ----


@case(normal(4), integers(3), positive(), batches=(0, 5, 37))
def weighted_losses() -> Built:
    w, optimizer = weight(4, 3), keras.optimizers.SGD(0.1)
    of_examples = keras.losses.SparseCategoricalCrossentropy(True, reduction="none")
    mean_of_keras = keras.losses.SparseCategoricalCrossentropy(True)

    def step(x: Any, labels: Any, weights: Any) -> Results:
        with tf.GradientTape() as tape:
            logits = tf.matmul(x, w)
            losses = of_examples(labels, logits)
            parts = [
                tf.nn.compute_average_loss(losses, sample_weight=weights),
                tf.nn.compute_weighted_mean_loss(losses, weights),
                mean_of_keras(labels, logits, sample_weight=weights),
            ]
            loss = tf.add_n(parts)
        optimizer.apply_gradients([(tape.gradient(loss, w), w)])
        return Results(sums=[*parts, loss])

    return step, [w]


@case(normal(4), integers(4), positive(), batches=(0, 1, 5, 37))
def metrics() -> Built:
    m = keras.metrics
    of_labels = [m.SparseCategoricalAccuracy(), m.SparseTopKCategoricalAccuracy(2),
                 m.SparseCategoricalCrossentropy(from_logits=True)]  # fmt: skip
    of_values = [m.Mean(), m.Sum()]
    of_pairs = [m.MeanSquaredError(), m.RootMeanSquaredError(), m.CosineSimilarity(), m.R2Score(),
                m.MeanAbsoluteError()]  # fmt: skip
    of_truths = [m.AUC(), m.Precision(), m.Recall(), m.BinaryAccuracy()]

    def step(x: Any, labels: Any, weights: Any) -> Results:
        for metric in of_labels:
            metric.update_state(labels, x, sample_weight=weights)
        for metric in of_values:
            metric.update_state(x[:, 0], sample_weight=weights)
        for metric in of_pairs:
            metric.update_state(tf.sin(x), x)
        for metric in of_truths:
            truth = tf.cast(labels > 1, tf.float32)
            metric.update_state(truth, tf.sigmoid(x[:, 0]), sample_weight=weights)
        return Results()

    return step, [*of_labels, *of_values, *of_pairs, *of_truths]


@case(normal(4))
def variables_that_sum_what_replicas_write() -> Built:
    total = tf.Variable(tf.zeros(4), aggregation=tf.VariableAggregation.SUM)

    def step(x: Any) -> Results:
        total.assign_add(tf.reduce_sum(x * 0.3, axis=0))
        return Results()

    return step, [total]


# ---- tables ----


@case(integers(6, 3), normal(3, 4), batches=(0, 5, 37))
def embedding() -> Built:
    table, optimizer = weight(6, 4), keras.optimizers.Adam(0.1)

    def step(ids: Any, aims: Any) -> Results:
        with tf.GradientTape() as tape:
            errors = tf.square(tf.gather(table, ids) - aims)
            loss = tf.nn.compute_average_loss(tf.reduce_sum(errors, axis=[1, 2]))
        optimizer.apply_gradients([(tape.gradient(loss, table), table)])
        return Results(sums=[loss])

    return step, [table, *optimizer.variables]


@case(integers(3000, 3), normal(3, 4), batches=(0, 5, 37, 150))
def embedding_with_sparse_rows() -> Built:
    table, optimizer = weight(3000, 4), keras.optimizers.SGD(0.5)

    def step(ids: Any, aims: Any) -> Results:
        with tf.GradientTape() as tape:
            errors = tf.square(tf.gather(table, ids % 11 + ids // 300) - aims)
            loss = tf.nn.compute_average_loss(tf.reduce_sum(errors, axis=[1, 2]))
        optimizer.apply_gradients([(tape.gradient(loss, table), table)])
        return Results(sums=[loss])

    return step, [table]


@case(normal(3), integers(5), batches=(0, 5, 37))
def segments() -> Built:
    w = weight(3)

    def step(x: Any, ids: Any) -> Results:
        with tf.GradientTape() as tape:
            totals = tf.math.unsorted_segment_sum(x * w, ids, 5)
            loss = tf.reduce_sum(totals * [[1.0], [2.0], [3.0], [4.0], [5.0]])
        counts = tf.math.bincount(ids, minlength=5, maxlength=5)
        hot = tf.matmul(tf.one_hot(ids, 5), x, transpose_a=True)
        return Results(sums=[totals, loss, tape.gradient(loss, w), counts, hot])

    return step, []


@case(normal(4))
def random_rows() -> Built:
    w = weight(4)

    def step(x: Any) -> Results:
        with tf.GradientTape() as tape:
            drawn = [tf.random.normal(tf.shape(x)), tf.random.uniform(tf.shape(x))]
            y = x * w + drawn[0] * w * w + tf.nn.dropout(x, 0.5) * w
            loss = tf.nn.compute_average_loss(tf.reduce_sum(y, axis=1))
        return Results(rows=[*drawn, y], sums=[loss, tape.gradient(loss, w)])

    return step, []


@case(normal(4))
def sums_in_16_bits() -> Built:
    def step(x: Any) -> Results:
        sums = [tf.reduce_sum(tf.cast(x, t), axis=0) for t in (tf.bfloat16, tf.float16)]
        return Results(sums=[*sums, tf.reduce_sum(tf.cast(10.0 * x, tf.int64), axis=0)])

    return step, []


@case(normal(4), batches=(0, 5, 37))
def gradients_clipped_by_hand() -> Built:
    w, b = weight(4, 3), weight(3)

    def step(x: Any) -> Results:
        with tf.GradientTape() as tape:
            errors = tf.square(tf.matmul(x, w) + b - 1.0)
            loss = tf.nn.compute_average_loss(tf.reduce_sum(errors, axis=1))
        gradients = all_reduced(tape.gradient(loss, [w, b]))
        clipped, norm = tf.clip_by_global_norm(gradients, 0.5)
        for variable, gradient in zip([w, b], clipped, strict=True):
            variable.assign_sub(0.1 * gradient)
        return Results(sums=[loss], same=[norm, *clipped])

    return step, [w, b]


@case(normal(4))
def gradient_penalty() -> Built:
    w, v = weight(4, 5), weight(5, 1)

    def step(x: Any) -> Results:
        with tf.GradientTape() as outer:
            with tf.GradientTape() as inner:
                inner.watch(x)
                scores = tf.matmul(tf.tanh(tf.matmul(x, w)), v)
            slopes = tf.norm(inner.gradient(scores, x), axis=1)
            loss = tf.nn.compute_average_loss(tf.square(slopes - 1.0) + scores[:, 0])
        gradients = outer.gradient(loss, [w, v])
        for variable, gradient in zip([w, v], gradients, strict=True):
            variable.assign_sub(0.1 * all_reduced(gradient))
        return Results(rows=[slopes], sums=[loss, *gradients])

    return step, [w, v]


@case(normal(4), others=(normal(3),))
def two_batches_in_one_step() -> Built:
    """A GAN's step with more real examples than generated ones."""
    w, v = weight(4, 1), weight(3, 1)

    def step(x: Any, z: Any) -> Results:
        with tf.GradientTape() as tape:
            real = tf.nn.compute_average_loss(tf.nn.softplus(tf.matmul(x, w))[:, 0])
            made = tf.nn.compute_average_loss(tf.nn.softplus(-tf.matmul(z, v))[:, 0])
            both = tf.nn.compute_average_loss(tf.matmul(tf.concat([z, z[:, :1]], 1), w)[:, 0])
            loss = real + made + both
        gradients = tape.gradient(loss, [w, v])
        for variable, gradient in zip([w, v], gradients, strict=True):
            variable.assign_sub(0.1 * all_reduced(gradient))
        sums = [real, made, loss, tf.reduce_sum(x, axis=0), tf.reduce_sum(z, axis=0)]
        return Results(sums=[*sums, *gradients])

    return step, [w, v]


# ---- control flow ----


@case(normal(3))
def sums_in_loops() -> Built:
    """Rounds that each reduce over all replicas."""
    w = weight(3)

    def step(x: Any) -> Results:
        def moved(i: Any, v: Any) -> Any:
            errors = tf.reduce_sum(x * v, axis=1, keepdims=True) - 1.0
            return i + 1, v - 0.01 * all_reduced(tf.reduce_sum(errors * x, axis=0))

        _, v = tf.while_loop(lambda i, v: i < 4, moved, (tf.constant(0), w))
        scanned = tf.scan(
            lambda v, a: v - a * all_reduced(tf.reduce_sum(x * v, axis=0)),
            tf.constant([0.1, 0.01, 0.02]), v,
        )  # fmt: skip
        w.assign(v)
        return Results(same=[v, scanned])

    return step, [w]


@case(normal(4, 3))
def gradients_of_a_scan() -> Built:
    w = weight(3, 3)

    def step(x: Any) -> Results:
        with tf.GradientTape() as tape:
            major = tf.transpose(x, [1, 0, 2])
            states = tf.scan(
                lambda h, a: tf.tanh(a + tf.matmul(h, w)), major, tf.zeros_like(x[:, 0])
            )
            loss = tf.nn.compute_average_loss(tf.reduce_sum(states[-1], axis=1))
        gradient = all_reduced(tape.gradient(loss, w))
        w.assign_sub(0.1 * gradient)
        return Results(rows=[states[-1]], sums=[loss], same=[gradient])

    return step, [w]


@case(normal(3), batches=(5, 37))
def branches_that_all_replicas_take() -> Built:
    w = weight(3)

    def step(x: Any) -> Results:
        total = all_reduced(tf.reduce_sum(x * w, axis=0))
        same = tf.cond(
            total[0] > 0.0,
            lambda: all_reduced(tf.reduce_sum(tf.square(x), axis=0)),
            lambda: all_reduced(tf.reduce_sum(x * 0.5, axis=0)),
        )
        w.assign_add(0.01 * same)
        return Results(same=[total, same])

    return step, [w]


@case(normal(3, 4), batches=(5, 37))
def second_derivatives_of_branches() -> Built:
    w, v, switch = weight(4, 4), weight(4), tf.Variable(1.0)

    def step(x: Any) -> Results:
        with tf.GradientTape() as outer:
            with tf.GradientTape() as tape:
                y = tf.cond(switch < 0.0, lambda: x, lambda: tf.matmul(x, w) * v)
                loss = tf.nn.compute_average_loss(tf.reduce_mean(y, axis=[1, 2]))
            first = tape.gradient(loss, [w, v])
            slope = tf.add_n([tf.reduce_sum(gradient * 0.3) for gradient in first])
        return Results(sums=[loss, *first, *outer.gradient(slope, [w, v])])

    return step, []


@case(normal(4), batches=(5, 37))
def contrast_with_the_examples_of_all_replicas() -> Built:
    w = weight(4, 3)

    def step(x: Any) -> Results:
        with tf.GradientTape() as tape:
            y = tf.math.l2_normalize(tf.matmul(x, w), axis=1)
            everyone = tf.distribute.get_replica_context().all_gather(y, axis=0)
            scores = tf.reduce_logsumexp(tf.matmul(y, everyone, transpose_b=True), axis=1)
            loss = tf.nn.compute_average_loss(scores)
        gradient = all_reduced(tape.gradient(loss, w))
        w.assign_sub(0.1 * gradient)
        return Results(rows=[scores], sums=[loss], same=[gradient])

    return step, [w]
