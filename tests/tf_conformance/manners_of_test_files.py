"""How functions answer that TensorFlow's own test files ask for."""

from __future__ import annotations

from typing import Any

import numpy as np
from manner_programs import manner, refused


@manner
def several_diagonals_at_once(tf: Any) -> Any:
    x = tf.reshape(tf.range(12.0), [3, 4])
    found = []
    for align in ("RIGHT_LEFT", "LEFT_RIGHT", "LEFT_LEFT", "RIGHT_RIGHT"):
        with tf.GradientTape() as tape:
            tape.watch(x)
            packed = tf.linalg.diag_part(x, k=(-1, 2), padding_value=9.0, align=align)
            total = tf.reduce_sum(packed * packed)
        found += [
            packed,
            tape.gradient(total, x),
            tf.linalg.diag(packed, k=(-1, 2), num_rows=3, padding_value=7.0, align=align),
            tf.linalg.set_diag(tf.zeros([2, 3, 4]), tf.stack([packed, packed]), k=(-1, 2),
                               align=align),
        ]  # fmt: skip
    errors = (ValueError, tf.errors.InvalidArgumentError)
    return [
        *found,
        tf.function(lambda v: tf.linalg.diag_part(v, k=[0, 1]))(x),
        tf.linalg.diag([[1, 2], [3, 4]], k=(0, 1)),
        refused(lambda: tf.linalg.diag_part(x, k=(1, 0)), *errors),
        refused(lambda: tf.linalg.diag_part(x, k=(0, 4)), *errors),
        refused(lambda: tf.linalg.set_diag(x, x, k=(0, 1)), *errors),
    ]


@manner
def special_functions(tf: Any) -> Any:
    special, x = tf.math.special, tf.constant([0.25, 1.0, 3.0, 7.5, 20.0, 70.0], tf.float64)
    found = []
    for name in (
        "bessel_j0", "bessel_j1", "bessel_k0", "bessel_k0e", "bessel_k1", "bessel_k1e",
        "bessel_y0", "bessel_y1", "dawsn", "expint", "fresnel_cos", "fresnel_sin", "spence",
    ):  # fmt: skip
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = getattr(special, name)(x)
        scale = tf.exp(-x) if name == "expint" else 1.0
        found += [y * scale, tape.gradient(y, x) * scale]
    return [*found, tf.function(special.bessel_k0)([0.5]).dtype.name]


@manner
def row_partitions(tf: Any) -> Any:
    kind = tf.experimental.RowPartition
    found = [
        kind.from_row_splits([0, 4, 4, 7, 8, 8]),
        kind.from_row_lengths(tf.constant([4, 0, 3, 1, 0])),
        kind.from_value_rowids([0, 0, 0, 0, 2, 2, 2, 3], nrows=5),
        kind.from_row_starts([0, 4, 4, 7, 8], nvals=8),
        kind.from_row_limits([4, 4, 7, 8, 8]),
        kind.from_uniform_row_length(3, nvals=12),
    ]
    parts = [
        [
            p.row_splits(), p.row_lengths(), p.value_rowids(), p.offsets_in_rows(), p.nrows(),
            p.nvals(), p.is_uniform(), p.static_nrows, p.dtype.name, str(p),
        ]
        for p in found
    ]  # fmt: skip
    bad = (ValueError, tf.errors.InvalidArgumentError)
    return [
        *parts,
        found[0].with_dtype(tf.int32).row_splits(),
        refused(lambda: kind.from_row_splits([2, 3]), *bad),
        refused(lambda: kind.from_row_splits([0, 3, 2]), *bad),
        refused(lambda: kind.from_row_splits([]), *bad),
        refused(lambda: kind.from_uniform_row_length(3, nvals=5), *bad),
        refused(lambda: kind.from_value_rowids([0, 4], nrows=4), *bad),
    ]


@manner
def ragged_values_of_version_1(tf: Any) -> Any:
    ragged = tf.compat.v1.ragged
    deep = ragged.constant_value([[[1], []], [[2, 3]]])
    inner = ragged.constant_value([[[1, 2], [3, 4]], [[5, 6]]], inner_shape=(2,))
    return [
        deep.to_list(), [x.tolist() for x in deep.nested_row_splits], deep.ragged_rank,
        inner.values.tolist(), list(inner.shape), inner.row_splits.dtype.name,
        ragged.constant_value([[1, 2], [3, 4]], ragged_rank=0),
        ragged.constant_value([[1.0], []], row_splits_dtype="int32").row_splits.dtype.name,
        ragged.constant_value([[], []]).to_list(),
        refused(lambda: ragged.constant_value([[1], 2]), ValueError),
        refused(lambda: ragged.constant_value([[1]], ragged_rank=2), ValueError),
        refused(lambda: ragged.RaggedTensorValue([1], [0, 1]), TypeError),
    ]  # fmt: skip


@manner
def dense_hash_tables(tf: Any) -> Any:
    def table(kind: Any, empty: Any, deleted: Any) -> Any:
        return tf.lookup.experimental.DenseHashTable(
            kind, tf.int64, default_value=-1, empty_key=empty, deleted_key=deleted
        )

    words = table(tf.string, "", "$")
    words.insert(tf.constant(["a", "b"]), tf.constant([1, 2], tf.int64))
    words.remove(tf.constant(["a", "c"]))
    numbers = table(tf.int64, 0, -1)
    bad = tf.errors.InvalidArgumentError
    return [
        words.lookup(tf.constant(["a", "b"])), words.size(),
        refused(lambda: numbers.lookup(tf.constant([0], tf.int64)), bad),
        refused(lambda: numbers.insert(*[tf.constant([-1], tf.int64)] * 2), bad),
        refused(lambda: table(tf.int64, 3, 3), bad),
    ]  # fmt: skip


@manner
def shuffled_indices(tf: Any) -> Any:
    shuffle = tf.random.experimental.index_shuffle
    bad = tf.errors.InvalidArgumentError
    return [
        shuffle(tf.range(20), [5, 9], 19),
        shuffle(tf.constant([0, 70000, 99999], tf.int64), tf.constant([2**40, -3], tf.int64),
                tf.constant(99999, tf.int64)),
        shuffle(tf.constant(2**40, tf.int64), [1, 2], tf.constant(2**50, tf.int64)),
        refused(lambda: shuffle(-1, [1, 2], 10), bad),
        refused(lambda: shuffle(5, [1, 2], 4), bad),
    ]  # fmt: skip


@manner
def characters_and_their_bytes(tf: Any) -> Any:
    rows = tf.constant([b"a\xc3\xa4b", b"x\xffy", b""])
    found: list[Any] = []
    for errors in ("replace", "ignore"):
        points, starts = tf.strings.unicode_decode_with_offsets(rows, "UTF-8", errors=errors)
        parts, places = tf.strings.unicode_split_with_offsets(rows, "UTF-8", errors=errors)
        found += [points.to_list(), starts.to_list(), places.to_list()]
        found.append([[part.hex() for part in row] for row in parts.to_list()])
    scalar = tf.strings.unicode_decode_with_offsets("\u00e9a", "UTF-8")
    return [*found, *scalar]


@manner
def three_diagonals(tf: Any) -> Any:
    main = tf.constant([[1.0, 2.0, 9.0], [4.0, 5.0, 6.0], [9.0, 1.0, 3.0]])
    full = tf.constant([[4.0, 1.0, 8.0], [1.0, 5.0, 2.0], [8.0, 3.0, 6.0]])
    rhs, linalg = tf.constant([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]), tf.linalg
    return [
        linalg.tridiagonal_solve(main, rhs),
        linalg.tridiagonal_solve(main, rhs[:, 0]),
        linalg.tridiagonal_solve(full, rhs, "matrix"),
        linalg.tridiagonal_solve(main, tf.transpose(rhs), transpose_rhs=True),
        linalg.tridiagonal_matmul(main, rhs),
        linalg.tridiagonal_matmul(full, rhs, "matrix"),
        refused(lambda: linalg.tridiagonal_solve(main, rhs[1:]), ValueError),
    ]


@manner
def constructed_errors(tf: Any) -> Any:
    kinds = (
        "AbortedError", "AlreadyExistsError", "CancelledError", "DataLossError",
        "FailedPreconditionError", "InternalError", "InvalidArgumentError", "NotFoundError",
        "OutOfRangeError", "UnauthenticatedError", "UnavailableError", "UnknownError",
    )  # fmt: skip
    made = [getattr(tf.errors, k)(node_def=None, op=None, message="words") for k in kinds]
    return [
        [[str(e), e.message, e.error_code, e.op, e.experimental_payloads] for e in made],
        [tf.errors.OK, tf.errors.ABORTED, tf.errors.UNAUTHENTICATED, tf.errors.DATA_LOSS],
    ]


@manner
def older_loops_and_normalization(tf: Any) -> Any:
    v1, x = tf.compat.v1, tf.reshape(tf.range(16.0), [2, 2, 2, 2])
    below = lambda i: i < 3  # noqa: E731
    counted = [
        v1.while_loop(below, lambda i: i + 1, [tf.constant(0)]),
        v1.while_loop(below, lambda i: [i + 1], [tf.constant(0)]),
        tf.function(lambda: v1.while_loop(below, lambda i: [i + 1], [tf.constant(0)]))(),
    ]
    norm = v1.nn.fused_batch_norm
    y, mean, variance = norm(x, [1.0, 2.0], [0.5, 0.0])
    return [
        *counted, v1.placeholder_with_default([1, 2], [None]), y, mean, variance,
        *norm(x, [1.0, 2.0], [0.5, 0.0], mean, variance, is_training=False)[:1],
        *norm(x, [1.0, 2.0], [0.5, 0.0], mean, variance, exponential_avg_factor=0.25)[1:],
        refused(lambda: norm(x, [1.0, 1.0], [0.0, 0.0], is_training=False), ValueError),
        refused(lambda: tf.sparse.eye(-1), ValueError, tf.errors.InvalidArgumentError),
    ]  # fmt: skip


@manner
def evaluated_values(tf: Any) -> Any:
    case = tf.test.TestCase()
    ragged = case.evaluate(tf.ragged.constant([[1, 2], []]))
    sparse = case.evaluate(tf.sparse.from_dense([[0, 3]]))
    case.assertNDArrayNear(np.ones(3), np.ones(3) + 0.1, 0.2)
    case.assertArrayNear([1.0], [1.05], 0.1)
    return [
        type(ragged).__name__, ragged.to_list(), type(sparse).__name__, sparse.indices,
        sparse.values, case.evaluate({"a": tf.complex(1.0, 2.0)})["a"] == 1 + 2j,
        refused(lambda: case.assertNDArrayNear(np.ones(3), np.ones(3) + 0.1, 0.1), AssertionError),
    ]  # fmt: skip


@manner
def the_setting_of_tensor_float_32(tf: Any) -> Any:
    config, answers = tf.config.experimental, []
    for enabled in (False, True):
        config.enable_tensor_float_32_execution(enabled)
        answers.append(config.tensor_float_32_execution_enabled())
    return [*answers, refused(lambda: config.enable_tensor_float_32_execution("no"), TypeError)]


@manner
def shapes_of_ragged_tensors(tf: Any) -> Any:
    kind, partition = tf.experimental.DynamicRaggedShape, tf.experimental.RowPartition
    rows = tf.ragged.constant([[1, 2], [], [3, 4, 5]])
    shape, vectors = tf.shape(rows), kind.from_lengths([3, (2, 0, 3), 4])
    pairs = kind.from_lengths([2, 3, 4], num_row_partitions=1)
    both = kind([partition.from_row_lengths([2, 1]), partition.from_row_lengths([2, 0, 3])], [5])
    shown = [
        shape, vectors, pairs, both, kind.from_lengths([]), kind.from_lengths([2, (3, 2), 7]),
        kind.from_lengths([2, (2, 1), (2, 0, 3)]), kind.from_tensor([[1, 2]]), shape[:1],
        vectors[:2], vectors[:3], vectors[:-1], both[:2], pairs[1:], pairs[:0], pairs[1:2],
        vectors.with_dtype(tf.int32), kind.from_row_partitions(shape.row_partitions),
    ]  # fmt: skip
    return [
        [repr(each) for each in shown], [each.num_row_partitions for each in shown],
        [shape[0], vectors[2], vectors[-1], pairs[1]], shape.inner_shape, vectors.inner_shape,
        [vectors.rank, vectors.inner_rank, vectors.is_uniform(1), pairs.is_uniform(1)],
        vectors.static_lengths(ragged_lengths=False), vectors.static_lengths(),
        [each.dtype.name for each in (shape, vectors, tf.shape(rows, out_type=tf.int64))],
        [refused(f, IndexError) for f in (
            lambda: shape[2], lambda: shape[::2], lambda: shape.is_uniform(-1))],
        [refused(f, ValueError) for f in (
            lambda: shape[1], lambda: vectors[1:], lambda: vectors[2:], lambda: kind([], [[1]]),
            lambda: kind.from_lengths((2, 3)), lambda: kind.from_lengths([2, (1, 2, 3)]),
            lambda: kind.from_lengths([2], num_row_partitions=1),
            lambda: vectors.with_dtype(tf.float32), lambda: kind.from_row_partitions([]))],
        [refused(f, TypeError) for f in (lambda: shape["a"], lambda: kind(3, [1]),
                                         lambda: kind([3], [1]), lambda: hash(shape))],
    ]  # fmt: skip


@manner
def tensors_in_ragged_shapes(tf: Any) -> Any:
    kind = tf.experimental.DynamicRaggedShape
    rows = tf.ragged.constant([[1, 2], [], [3, 4, 5]])
    shape, deep = tf.shape(rows, tf.int64), kind.from_lengths([3, (2, 0, 3), 2])
    broadcast = tf.broadcast_dynamic_shape
    x = tf.constant([[1.0], [2.0], [3.0]])
    with tf.GradientTape() as tape:
        tape.watch(x)
        loss = tf.reduce_sum(tf.broadcast_to(x, shape).flat_values ** 2)
    found = [
        tf.reshape(tf.range(5), shape), tf.reshape([["a", "b"]] * 5, deep),
        tf.reshape(rows, kind.from_lengths([2, (1, 4)])), tf.fill(shape, 7), tf.zeros(shape),
        tf.ones(shape, tf.int32), tf.zeros(deep), tf.broadcast_to(1, shape),
        tf.broadcast_to("b", shape), tf.broadcast_to([[1], [2], [3]], shape),
        tf.broadcast_to([[1, 2]], deep),
        tf.broadcast_to(tf.constant([[[5]], [[6]], [[7]]]), deep),
        tf.reshape(tf.range(6), kind.from_lengths([2, 3], num_row_partitions=1)),
    ]  # fmt: skip
    shapes = [
        broadcast(shape, kind([], [1, 1])),
        broadcast(shape, kind.from_lengths([3, 1])),
        broadcast(deep, kind([], [2])),
        broadcast(kind.from_lengths([3, (2, 0, 3), 1]), deep),
        broadcast(shape, kind.from_lengths([4, 3, 1])),
    ]
    bad = (ValueError, tf.errors.InvalidArgumentError)
    return [
        [str(each.to_list()) for each in found], tape.gradient(loss, x), [repr(s) for s in shapes],
        tf.reshape(rows, kind.from_lengths([5])),
        refused(lambda: tf.broadcast_to([[1, 2], [3, 4], [5, 6]], shape), *bad),
        refused(lambda: broadcast(shape, kind.from_lengths([3, (2, 1, 3)])), *bad),
        refused(lambda: tf.reshape(tf.range(4), shape), *bad),
    ]  # fmt: skip


def _out_of_a_queue(queue: Any, count: int) -> list[Any]:
    return [queue.dequeue() for _ in range(count)]


@manner
def queues_of_tensors(tf: Any) -> Any:
    made, kind = tf.queue, tf.errors
    pairs = made.FIFOQueue(9, [tf.int32, tf.float32], [[], [2]])
    pairs.enqueue([1, [0.5, 1.5]])
    pairs.enqueue_many([[2, 3], [[2.0, 2.5], [3.0, 3.5]]])
    named = made.FIFOQueue(9, [tf.int32, tf.int64], [[], []], names=["a", "b"])
    named.enqueue_many({"a": [1, 2, 3], "b": [4, 5, 6]})
    padded = made.PaddingFIFOQueue(9, [tf.int32], [[None]])
    for row in ([1], [2, 3], []):
        padded.enqueue([row])
    ordered = made.PriorityQueue(9, tf.int32, [[]])
    ordered.enqueue_many([[3, 1, 2, 1], [30, 10, 20, 11]])
    shuffled = made.RandomShuffleQueue(9, 2, tf.int32, [[]], seed=3)
    shuffled.enqueue_many([[1, 2, 3, 4, 5]])
    free = made.FIFOQueue(-1, tf.float32)
    free.enqueue(1.0)
    free.enqueue(([2.0, 3.0],))
    alone = sorted(int(n) for n in _out_of_a_queue(shuffled, 3))
    shuffled.close()
    alone += sorted(int(n) for n in shuffled.dequeue_up_to(9))
    other = tf.compat.v1.FIFOQueue(2, [tf.int32, tf.float32])
    chosen = made.QueueBase.from_list(1, [pairs, other])
    answers = [
        pairs.size(), pairs.is_closed(), pairs.dequeue(), pairs.dequeue_many(2), pairs.size(),
        named.dequeue(), named.dequeue_up_to(2), named.names, padded.dequeue_many(3),
        _out_of_a_queue(ordered, 2), ordered.dequeue_many(2), sorted(alone), chosen.size(),
        _out_of_a_queue(free, 2), [d.name for d in ordered.dtypes], pairs.dequeue_many(0),
        [s.as_list() for s in pairs.shapes], [s.rank for s in free.shapes],
    ]  # fmt: skip
    named.enqueue({"a": 7, "b": 8})
    named.close()
    return [
        *answers, named.is_closed(), named.dequeue_up_to(5),
        [refused(f, kind.OutOfRangeError) for f in (
            named.dequeue, lambda: named.dequeue_many(1), lambda: named.dequeue_up_to(2),
            lambda: shuffled.dequeue())],
        refused(lambda: named.enqueue({"a": 1, "b": 2}), kind.CancelledError),
        refused(lambda: free.dequeue_many(1), kind.InvalidArgumentError),
        [refused(f, ValueError) for f in (
            lambda: pairs.enqueue({"a": 1}), lambda: named.enqueue([1, 2]),
            lambda: named.enqueue({"a": 1}), lambda: pairs.enqueue([1, [0.5]]),
            lambda: pairs.enqueue_many([[1], [[1.0, 2.0]] * 2]),
            lambda: made.PaddingFIFOQueue(3, [tf.int32], None),
            lambda: made.FIFOQueue(3, [tf.int32], [[None]]),
            lambda: made.FIFOQueue(3, [tf.int32], names=["a", "b"]))],
        refused(lambda: made.QueueBase.from_list(0, [pairs, free]), TypeError),
    ]  # fmt: skip
