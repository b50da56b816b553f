"""How losses of sequences, their decoders and weighted moments answer."""

from __future__ import annotations

from typing import Any

import numpy as np
from manner_programs import manner, refused

LOGITS = np.random.default_rng(0).normal(size=(5, 3, 4)).astype("float32")
LABELS = np.array([[1, 2, 0], [3, 3, 1], [1, 0, 0]], "int32")
COUNTS, STEPS = [2, 3, 1], [5, 5, 3]


def few_labels(tf: Any) -> Any:
    places = [[0, 0], [0, 1], [1, 0], [1, 1], [1, 2], [2, 0]]
    return tf.SparseTensor(places, [1, 2, 3, 3, 1, 1], [3, 3])


def with_slope(tf: Any, logits: Any, **options: Any) -> Any:
    """The losses and the derivative of their weighted sum."""
    x = tf.constant(logits)
    with tf.GradientTape() as tape:
        tape.watch(x)
        losses = tf.nn.ctc_loss(logits=x, logit_length=STEPS, **options)
        total = tf.reduce_sum(losses * [1.0, 2.0, 3.0])
    return [np.round(part.numpy(), 4) for part in (losses, tape.gradient(total, x))]


@manner
def losses_of_sequences(tf: Any) -> Any:
    by_rows, last = LOGITS.transpose(1, 0, 2), (LABELS + 3) % 4
    dense = {"labels": LABELS, "label_length": COUNTS}
    return [
        with_slope(tf, LOGITS, **dense),
        with_slope(tf, LOGITS, labels=few_labels(tf), label_length=None, blank_index=0),
        with_slope(tf, by_rows, logits_time_major=False, **dense),
        with_slope(tf, LOGITS, labels=last, label_length=COUNTS, blank_index=-1),
        with_slope(tf, LOGITS, labels=LABELS, label_length=[0, 0, 0]),
    ]


@manner
def losses_of_sequences_in_a_function(tf: Any) -> Any:
    f = tf.function(lambda x: tf.nn.ctc_loss(LABELS, x, COUNTS, STEPS))
    return np.round(f(LOGITS).numpy(), 4)


@manner
def what_losses_of_sequences_refuse(tf: Any) -> Any:
    loss, few = tf.nn.ctc_loss, few_labels(tf)
    return refused(lambda: loss(few, tf.constant(LOGITS), None, STEPS), ValueError)


@manner
def labels_of_the_best_classes(tf: Any) -> Any:
    found = []
    for options in ({}, {"merge_repeated": False, "blank_index": 0}):
        (few,), score = tf.nn.ctc_greedy_decoder(LOGITS, STEPS, **options)
        found += [few.indices, few.values, few.dense_shape, np.round(score.numpy(), 4)]
    return found


@manner
def the_likeliest_labels(tf: Any) -> Any:
    paths, scores = tf.nn.ctc_beam_search_decoder(LOGITS, STEPS, beam_width=20, top_paths=2)
    return [
        *[[few.indices, few.values, few.dense_shape] for few in paths],
        np.round(scores.numpy(), 4),
        refused(
            lambda: tf.nn.ctc_beam_search_decoder(LOGITS, STEPS, beam_width=2, top_paths=3),
            tf.errors.InvalidArgumentError,
        ),
    ]


@manner
def moments_by_weights(tf: Any) -> Any:
    x, moments = tf.constant([[1.0, 2.0], [3.0, 5.0]]), tf.nn.weighted_moments
    return [
        moments(x, [0], [[1.0], [3.0]]),
        moments(x, [0, 1], [[1.0, 2.0], [3.0, 0.0]], keepdims=True),
        moments(x, [1], 2.0),
        moments(x, 1, [1, 2]),
        moments(x, [1], [0.0, 0.0]),
        moments(tf.cast(x, tf.float16), [1], [1.0, 2.0]),
        moments(tf.cast(x, tf.float64), [-1], tf.constant([1.0, 2.0])),
        moments(tf.ones([2]), [0], tf.ones([3, 1])),
    ]
