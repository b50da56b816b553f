"""How windows, blocks, sparse embeddings and other functions of `tf.nn` answer."""

from __future__ import annotations

from typing import Any

import numpy as np
from manner_programs import manner, refused


def images(tf: Any, *shape: int) -> Any:
    """Images whose pixels differ, in no order."""
    count = int(np.prod(shape))
    return tf.constant((np.arange(count) * 37 % count - count / 2).reshape(shape), tf.float32)


def with_gradient(tf: Any, function: Any, *values: Any) -> Any:
    """The result of a function, and the gradients of the sum of its squares."""
    with tf.GradientTape() as tape:
        tape.watch(values)
        result = function(*values)
        loss = tf.reduce_sum(result * result)
    return [result, *tape.gradient(loss, values)]


@manner
def maxima_of_windows_know_their_positions(tf: Any) -> Any:
    x = images(tf, 2, 4, 5, 2)
    return [
        tuple(tf.nn.max_pool_with_argmax(x, [2, 3], [2, 1], padding, include_batch_in_index=whole))
        for padding in ("VALID", "SAME")
        for whole in (False, True)
    ]


@manner
def maxima_of_windows_have_gradients(tf: Any) -> Any:
    x = images(tf, 1, 4, 4, 1)
    return with_gradient(tf, lambda x: tf.nn.max_pool_with_argmax(x, 2, 2, "VALID").output, x)


@manner
def dilations_and_erosions(tf: Any) -> Any:
    x, offsets = images(tf, 1, 5, 4, 2), images(tf, 2, 3, 2)
    found = []
    for function in (tf.nn.dilation2d, tf.nn.erosion2d):
        for padding, rates in (("VALID", (1, 1)), ("SAME", (2, 1))):

            def call(x: Any, offsets: Any, f: Any = function, p: str = padding,
                     r: tuple[int, int] = rates) -> Any:  # fmt: skip
                return f(x, offsets, (1, 2, 1, 1), p, "NHWC", (1, *r, 1))

            found += with_gradient(tf, call, x, offsets)
    return found


@manner
def blocks_of_space_become_batches(tf: Any) -> Any:
    x = images(tf, 2, 3, 4, 2)
    blocks = tf.space_to_batch(x, [2, 2], [[1, 0], [0, 0]])
    volumes = tf.space_to_batch_nd(images(tf, 1, 4, 2), [2], [[0, 0]])
    return [
        blocks,
        tf.batch_to_space(blocks, [2, 2], [[1, 0], [0, 0]]),
        tf.batch_to_space(blocks, [2, 2], [[0, 1], [1, 1]]),
        volumes,
        tf.nn.space_to_batch(x, [1, 2], [[0, 0], [1, 1]]),
        [*map(tuple, [tf.required_space_to_batch_paddings([5, 4], [2, 3])])],
    ]


@manner
def blocks_that_do_not_fit_are_refused(tf: Any) -> Any:
    x = images(tf, 2, 3, 4, 2)
    wrong = (tf.errors.InvalidArgumentError, ValueError)
    return [
        refused(lambda: tf.space_to_batch(x, [2, 2], [[0, 0], [0, 0]]), *wrong),
        refused(lambda: tf.batch_to_space(x, [2, 2], [[0, 0], [0, 0]]), *wrong),
        refused(lambda: tf.space_to_batch(x, [2, 2], [[0, -1], [0, 0]]), *wrong),
    ]


@manner
def concatenated_rectifiers(tf: Any) -> Any:
    x = tf.constant([[-1.0, 2.0], [3.0, -4.0]])
    return [with_gradient(tf, tf.nn.crelu, x), tf.nn.crelu(x, 0)]


@manner
def weighted_and_poisson_losses(tf: Any) -> Any:
    x, z = tf.constant([[-30.0, -0.5], [0.25, 90.0]]), tf.constant([[1.0, 0.0], [0.3, 1.0]])
    weight = tf.constant([0.5, 3.0])
    counts = tf.constant([0.0, 1.0, 2.0, 7.0])
    rates = tf.constant([-1.0, 0.5, 0.0, 2.0])
    return [
        with_gradient(tf, tf.nn.weighted_cross_entropy_with_logits, z, x, weight),
        tf.nn.weighted_cross_entropy_with_logits(labels=z, logits=x, pos_weight=2),
        with_gradient(tf, tf.nn.log_poisson_loss, counts, rates),
        tf.nn.log_poisson_loss(counts, rates, True),
        refused(lambda: tf.nn.weighted_cross_entropy_with_logits(z, x[0], 2.0), ValueError),
    ]


def lists_of_ids(tf: Any) -> Any:
    """Three lists of ids, the second one empty."""
    places = [[0, 0], [0, 1], [2, 0], [2, 3]]
    return tf.SparseTensor(places, tf.constant([1, 0, 2, 2], tf.int64), [4, 4])


@manner
def embeddings_of_lists_are_combined(tf: Any) -> Any:
    table = tf.constant([[1.0, 2.0], [3.0, -4.0], [5.0, 6.0]])
    ids = lists_of_ids(tf)
    weights = tf.SparseTensor(ids.indices, tf.constant([0.5, 2.0, 1.0, 3.0]), ids.dense_shape)
    rows = tf.RaggedTensor.from_row_lengths(tf.constant([0, 1, 2], tf.int64), [2, 0, 1])
    combined = [
        tf.nn.embedding_lookup_sparse(table, ids, given, combiner=combiner, max_norm=most)
        for combiner in ("mean", "sqrtn", "sum")
        for given, most in ((None, None), (weights, None), (weights, 4.0))
    ]
    return [*combined, tf.nn.embedding_lookup_sparse(table, rows, None)]


@manner
def embeddings_of_lists_have_gradients(tf: Any) -> Any:
    table = tf.Variable([[1.0, 2.0], [3.0, -4.0], [5.0, 6.0]])
    with tf.GradientTape() as tape:
        found = tf.nn.embedding_lookup_sparse(table, lists_of_ids(tf), None, "sqrtn")
        loss = tf.reduce_sum(found * found)
    return tf.convert_to_tensor(tape.gradient(loss, table))


@manner
def embeddings_of_empty_lists(tf: Any) -> Any:
    table = tf.constant([[1.0, 2.0], [3.0, -4.0], [5.0, 6.0]])
    places = [[0, 0], [0, 1], [2, 0], [2, 3]]
    ids = tf.SparseTensor(places, tf.constant([1, -1, 2, 0], tf.int64), [4, 4])
    weights = tf.SparseTensor(places, tf.constant([0.5, 2.0, 0.0, 3.0]), [4, 4])
    return [
        tf.nn.safe_embedding_lookup_sparse(table, ids, given, combiner, default)
        for combiner in ("mean", "sum")
        for given in (None, weights)
        for default in (None, 1)
    ]


@manner
def monotonic_sequences_nearest_to_others(tf: Any) -> Any:
    x = tf.constant([[3.0, 1.0, 2.0, 2.0, 5.0, 1.0, 1.0], [1.0, 2.0, 3.0, 0.0, 7.0, 7.0, 6.0]])
    return [
        *tf.nn.isotonic_regression(x),
        *tf.nn.isotonic_regression(x, decreasing=False),
        *tf.nn.isotonic_regression(x, axis=0),
        *tf.nn.isotonic_regression(tf.constant([1, 2, 1])),
        with_gradient(tf, lambda x: tf.nn.isotonic_regression(x)[0], x),
    ]


@manner
def fractional_pooling_with_equal_windows(tf: Any) -> Any:
    x = images(tf, 2, 6, 9, 2)
    found = []
    for function in (tf.nn.fractional_max_pool, tf.nn.fractional_avg_pool):
        for pseudo_random, overlapping in ((False, False), (True, False), (False, True)):

            def call(x: Any, f: Any = function, p: bool = pseudo_random,
                     o: bool = overlapping) -> Any:  # fmt: skip
                return f(x, [1.0, 2.0, 3.0, 1.0], p, o, seed=1)

            found += [*call(x)[1:], *with_gradient(tf, lambda x, c=call: c(x).output, x)]
    return found


@manner
def fractional_pooling_refuses_ratios(tf: Any) -> Any:
    x, pool = tf.ones([1, 4, 4, 1]), tf.nn.fractional_max_pool
    ratios = ([2.0, 1.0, 1.0, 1.0], [1.0, 0.5, 1.0, 1.0], [1.0, 2.0, 1.0], [1.0, 5.0, 1.0, 1.0])
    errors = (ValueError, tf.errors.InvalidArgumentError)
    return [refused(lambda r=r: pool(x, r), *errors) for r in ratios]


@manner
def dropout_with_a_sampler(tf: Any) -> Any:
    x = tf.constant([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    shapes = []

    def sampler(shape: Any, dtype: Any) -> Any:
        shapes.append([int(size) for size in shape])
        count = int(np.prod(shapes[-1]))
        return tf.reshape(tf.cast(tf.range(count), dtype) / count, shapes[-1])

    general = tf.nn.experimental.general_dropout
    return [
        general(x, 0.5, sampler),
        general(x, tf.constant(0.3), sampler, noise_shape=[None, 1]),
        general(x, 0.0, sampler),
        shapes,
        refused(lambda: general(x, 1.0, sampler), ValueError),
        refused(lambda: general(tf.constant([1]), 0.5, sampler), ValueError),
    ]


@manner
def dropout_with_a_seed_is_repeated(tf: Any) -> Any:
    x = tf.ones([100])
    stateless = tf.nn.experimental.stateless_dropout
    first, again = stateless(x, 0.4, [1, 2]), stateless(x, 0.4, seed=[1, 2])
    other = stateless(x, 0.4, [3, 4], "philox")
    return [
        bool(tf.reduce_all(first == again)),
        bool(tf.reduce_all(first == other)),
        tf.unique(first)[0].shape.as_list(),
        tf.sort(tf.unique(first)[0]),
    ]


@manner
def the_largest_of_an_axis_approximately(tf: Any) -> Any:
    return [tuple(tf.math.approx_max_k(tf.constant([1.0, 5.0, 3.0, 4.0]), 2))]


@manner
def bits_as_another_dtype(tf: Any) -> Any:
    two = tf.constant([[1, 2]], tf.int32)
    wrong = (tf.errors.InvalidArgumentError, TypeError, ValueError)
    return [
        tf.bitcast([1.0, -2.0], tf.int32),
        tf.bitcast([1.0, -2.0], tf.uint8),
        tf.bitcast(two, tf.int64),
        tf.bitcast(tf.bitcast(two, tf.float64), tf.int32),
        refused(lambda: tf.bitcast(tf.constant([1, 2, 3]), tf.int64), *wrong),
        refused(lambda: tf.bitcast([True], tf.uint8), *wrong),
    ]


@manner
def distances_between_sequences(tf: Any) -> Any:
    words = tf.SparseTensor([[0, 0], [0, 1], [1, 0]], ["a", "b", "c"], [3, 2])
    others = tf.SparseTensor([[0, 0], [0, 1], [0, 2], [2, 0]], ["b", "b", "d", "e"], [3, 3])
    numbers = tf.SparseTensor([[0, 1, 0], [0, 1, 1]], [4, 5], [1, 2, 2])
    return [
        tf.edit_distance(words, others),
        tf.edit_distance(words, others, normalize=False),
        tf.edit_distance(others, words),
        tf.edit_distance(numbers, numbers),
    ]


@manner
def moments_from_sums(tf: Any) -> Any:
    x = tf.constant([[1.0, 2.0], [3.0, 7.0]])
    plain = tf.nn.sufficient_statistics(x, [0])
    shifted = tf.nn.sufficient_statistics(x, [0, -1], shift=2.0, keepdims=True)
    given = [tf.constant(v) for v in ([1.0, 2.0], [4.0, 1.0], [0.5, 0.0], [2.0, 3.0])]
    normalized = tf.nn.batch_norm_with_global_normalization
    return [
        list(plain),
        list(shifted),
        list(tf.nn.normalize_moments(*plain)),
        list(tf.nn.normalize_moments(*shifted)),
        normalized(x[None, None], *given, 0.1, True),
        normalized(x[None, None], *given, 0.1, False),
    ]
