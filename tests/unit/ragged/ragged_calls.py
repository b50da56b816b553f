"""Calls with ragged tensors, for TensorFlow to record and for samegrad to run.

Each is an expression, in which `tf` is the module and the tensors are those of `tensors`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

LENGTHS = [3, 0, 2]
CALLS = """
tf.cast(r, tf.float64)
tf.cast(r, "bool")
tf.saturate_cast(r * 100, tf.int8)
tf.sqrt(f)
tf.math.is_nan(f)
tf.abs(-r)
tf.round(f / 2)
tf.nn.relu(-f)
tf.nn.gelu(f)
tf.nn.silu(f)
tf.nn.leaky_relu(-f, 0.1)
tf.logical_not(r > 2)
tf.bitwise.invert(r)
tf.clip_by_value(r, 2, 4)
tf.debugging.check_numerics(f, "x")
tf.identity(r)
tf.stop_gradient(f)
tf.ones_like(r)
tf.ones_like(r, tf.float32)
tf.zeros_like(p, dtype=tf.float32)
tf.zeros_like(w)
tf.image.adjust_brightness(f, 0.5)
tf.size(p)
tf.size(p, tf.int64)
tf.size(w)
tf.rank(r)
tf.rank(p)
tf.add(r, 3)
tf.add(3, r)
tf.add(r, r)
tf.add(r, [10])
tf.add(r, [[10]])
tf.add(r, m)
tf.add(m, r)
tf.add(q, [[10, 20], [30, 40]])
tf.add(p, [10, 20])
tf.add(p, [[10, 20]])
tf.add(p, [[[10, 20]]])
tf.add(p, [[[10]], [[20]]])
tf.add(p, [[[10, 11]], [[20, 21]]])
tf.add(u, r)
tf.add(u, u)
tf.add(none, none)
tf.add(empty, 1.0)
tf.add(empty, [[1.0], [2.0]])
tf.subtract(1.5, f)
tf.minimum(r, 3)
tf.maximum(r, m)
tf.pow(r, 2)
tf.truediv(r, 2)
tf.math.floormod(r, 2)
tf.math.floordiv(r, 2)
tf.math.divide_no_nan(f, 0.0)
tf.math.scalar_mul(2, r)
tf.math.squared_difference(f, 1.0)
tf.logical_and(r > 2, s > 1)
tf.math.logical_xor(r > 2, r > 3)
tf.bitwise.bitwise_and(r, 1)
tf.equal(r, s)
tf.equal(w, "a")
tf.greater(r, m)
q == r
q != r
tf.nn.sigmoid_cross_entropy_with_logits(labels=f, logits=f)
tf.debugging.assert_equal(r, r)
tf.add_n([r, r, s])
tf.nn.dropout(f, 0.0)
tf.where(r > 2)
tf.where(p > 2)
tf.where(r > 2, r, s)
tf.where(r > 2, r, 0)
tf.where(r > 2, 1.0, 0.0)
tf.where(r > 2, r, m)
tf.where([[True], [False], [True]], r, -r)
tf.where(True, r, -r)
tf.where(w != "a", w, "z")
tf.concat([r, s], axis=1)
tf.concat([r, s], axis=0)
tf.concat([r, q], 0)
tf.concat([r, m], 0)
tf.concat([m, r], axis=1)
tf.concat([r, m], axis=-1)
tf.concat([m, r, m], 1)
tf.concat([[[101]] * 3, r, [[102]] * 3], 1)
tf.concat([r], 1)
tf.concat(r, 0)
tf.concat([r, r, r, r], -1)
tf.concat([p, p], 0)
tf.concat([p, p], 1)
tf.concat([p, p], 2)
tf.concat([p, p], -1)
tf.concat([u, u], 1)
tf.concat([none, none], 1)
tf.concat([empty, [[1.0], [2.0]]], 1)
tf.concat([[["s"]] * 2, w, [["e"]] * 2], 1)
tf.concat([w, [["e"]]], 0)
tf.stack([r, -r], axis=2)
tf.stack([r, r], -1)
tf.stack([q, [[1, 2], [3, 4]]], axis=2)
tf.stack([w, w], axis=2)
tf.ragged.stack([r, r], axis=2)
tf.tile(r, [1, 2])
tf.tile(r, [2, 1])
tf.tile(r, [2, 2])
tf.tile(r, [0, 1])
tf.tile(r, [1, 0])
tf.tile(p, [2, 2, 2])
tf.tile(none, [2, 2])
tf.tile(w, [1, 2])
tf.expand_dims(r, 2)
tf.expand_dims(r, -1)
tf.expand_dims(p, 2)
tf.expand_dims(w, -1)
tf.squeeze(tf.expand_dims(r, -1), [2])
tf.squeeze(tf.expand_dims(r, -1), -1)
tf.squeeze(tf.ragged.constant([[1, 2, 3]]), 0)
tf.squeeze(tf.ragged.constant([[1], [2]]), 1)
tf.squeeze(tf.ragged.constant([[7]]), [0, 1])
tf.squeeze(r, [])
tf.reverse(r, [0])
tf.reverse(r, [1])
tf.reverse(r, [0, 1])
tf.reverse(p, [-1])
tf.reverse(p, [0, 2])
tf.reverse(w, [1])
tf.split(r, 3)
tf.split(r, [1, 2])
tf.split(r, 1, axis=1)
tf.split(p, 2, axis=2)
tf.split(p, [1, 1], axis=-1)
tf.split(w, 2)
tf.reshape(r, [-1])
tf.reshape(q, [4])
tf.reshape(q, [2, 2])
tf.dynamic_partition(r, [0, 1, 0], 2)
tf.dynamic_partition(r, r % 2, 2)
tf.gather(r, [2, 0])
tf.gather(r, 2)
tf.gather(r, np.zeros(0, np.int32))
tf.gather(p, [1, 1])
tf.gather(p, [0], axis=2)
tf.gather(q, [0], axis=1)
tf.gather(q, 0, axis=1)
tf.gather(w, [1, 0, 1])
tf.gather([[1, 2], [3, 4], [5, 6]], tf.ragged.constant([[0], [], [1, 2]]))
tf.gather(["x", "y", "z"], tf.ragged.constant([[0], [2, 1]]))
tf.gather(q, [[0, 1], [1, 1]], batch_dims=1)
tf.gather(r, tf.ragged.constant([[0, 1], [], [1]]), batch_dims=1)
tf.gather([[1, 2], [3, 4], [5, 6]], tf.ragged.constant([[0, 1], [], [1]]), batch_dims=1)
tf.gather_nd(r, [[0, 1], [2, 0]])
tf.gather_nd(r, [[0], [2]])
tf.gather_nd(r, [0, 1])
tf.gather_nd(r, [[[0, 1]], [[2, 0]]])
tf.gather_nd(p, [[0, 0, 1], [1, 1, 0]])
tf.gather_nd(w, [[0, 1], [1, 0]])
tf.gather_nd([[1, 2], [3, 4]], tf.ragged.constant([[[0, 1]], []], ragged_rank=1))
tf.one_hot(r, 3)
tf.one_hot(r, 3, axis=2)
tf.one_hot(r, 10, 5, 6, dtype=tf.int32)
tf.nn.embedding_lookup(tf.eye(10), r)
tf.ragged.boolean_mask(r, r > 2)
tf.ragged.boolean_mask(w, w != "a")
tf.ragged.boolean_mask(r, [True, False, True])
tf.ragged.boolean_mask([[1, 2, 3], [4, 5, 6]], [[True, False, True], [False] * 3])
tf.ragged.boolean_mask([1, 2, 3], [True, False, True])
tf.ragged.boolean_mask(q, [[True, False], [True, True]])
tf.ragged.boolean_mask([[1, 2], [3, 4]], q > 1)
tf.ragged.boolean_mask(p, tf.ragged.constant([[True], [False, True]]))
tf.ragged.boolean_mask([[[1, 2], [3, 4]]], [[True, False]])
tf.map_fn(lambda x: x * 2, r)
tf.map_fn(tf.reduce_sum, r, fn_output_signature=tf.int32)
tf.map_fn(lambda x: tf.size(x), r, fn_output_signature=tf.int32)
tf.map_fn(lambda x: tf.reduce_sum(x), f, dtype=tf.float32)
tf.map_fn(lambda x: x[0] * x[1], (m, r), fn_output_signature=spec)
tf.map_fn(lambda x: x[::-1], r, fn_output_signature=tf.RaggedTensorSpec([None], tf.int32, 0))
tf.map_fn(tf.range, tf.constant([1, 0, 3]), fn_output_signature=spec)
tf.map_fn(lambda x: (x, tf.size(x)), r, fn_output_signature=(spec, tf.int32))
tf.map_fn(lambda x: x, none)
tf.reduce_sum(r)
tf.reduce_sum(r, axis=1)
tf.reduce_sum(r, axis=0)
tf.reduce_sum(r, -1)
tf.reduce_sum(r, 1, True)
tf.reduce_sum(r, 0, True)
tf.reduce_sum(r, None, True)
tf.reduce_sum(p, 2)
tf.reduce_sum(p, -1, True)
tf.reduce_sum(p, 1)
tf.reduce_sum(p, [0, 1])
tf.reduce_sum(p, [1, 2])
tf.reduce_sum(p, [0, 2])
tf.reduce_sum(p, [])
tf.reduce_sum(p, [1])
tf.reduce_sum(none, 1)
tf.reduce_sum(none, 0)
tf.reduce_sum(empty, 1)
tf.reduce_sum(empty, 0)
tf.reduce_max(r, 1)
tf.reduce_max(f, 1)
tf.reduce_max(r, 0)
tf.reduce_max(empty)
tf.reduce_min(r, 1)
tf.reduce_min(f, 1)
tf.reduce_min(r)
tf.reduce_prod(r, 1)
tf.reduce_prod(f, 0)
tf.reduce_prod(empty, 1)
tf.reduce_mean(f, 1)
tf.reduce_mean(f, 0)
tf.reduce_mean(f)
tf.reduce_mean(r)
tf.reduce_mean(r, 1)
tf.reduce_mean(p, [1, 2])
tf.reduce_mean(f, 1, keepdims=True)
tf.reduce_mean(empty)
tf.math.reduce_std(f, 1)
tf.math.reduce_variance(f, 1)
tf.math.reduce_variance(f, 0)
tf.math.reduce_variance(f)
tf.math.reduce_variance(r, 1)
tf.math.reduce_variance(p, 2)
tf.reduce_logsumexp(f, 1)
tf.reduce_any(r > 2, axis=1)
tf.reduce_any(r > 2, 0)
tf.reduce_any(r > 2)
tf.reduce_any(r, 1)
tf.reduce_any(p > 2, [1, 2])
tf.reduce_all(r > 2, 1)
tf.reduce_all(r > 2)
tf.cumsum(r)
tf.cumsum(r, 1)
tf.cumsum(r, 1, exclusive=True)
tf.cumsum(r, 1, reverse=True)
tf.cumsum(r, 1, True, True)
tf.cumsum(r, 0, reverse=True)
tf.cumsum(p, 2)
tf.nn.softmax(f)
tf.nn.softmax(f, 1)
tf.nn.softmax(tf.cast(p, tf.float32))
tf.math.bincount(r)
tf.math.bincount(r, axis=-1)
tf.math.bincount(r, weights=f, axis=-1)
tf.math.bincount(r, axis=-1, minlength=3, maxlength=5)
tf.math.bincount(r, axis=-1, binary_output=True)
tf.matmul(tf.cast(p, tf.float32), tf.ones([2, 2, 1]))
tf.is_tensor(r)
tf.strings.regex_full_match(w, "a|c")
tf.strings.substr(w, 0, 1)
tf.strings.as_string(r)
tf.strings.join([w, w], "-")
tf.strings.join([w, "x"])
tf.strings.to_hash_bucket_fast(w, 10)
tf.strings.to_hash_bucket_strong(w, 10, [1, 2])
tf.strings.to_hash_bucket(w, 10)
tf.strings.unicode_transcode(w, "UTF-8", "UTF-16-BE")
tf.strings.reduce_join(w)
tf.strings.reduce_join(w, axis=-1)
tf.strings.reduce_join(w, axis=0)
tf.strings.reduce_join(w, axis=1, separator=" ", keepdims=True)
tf.strings.reduce_join(w, axis=0, separator=" ", keepdims=True)
tf.add(q, [10, 20])
tf.add(r, [10, 20, 30])
tf.add(r, [[10], [20]])
tf.add(p, [[10], [20]])
tf.add(p, [[1, 1], [2, 2], [3, 3]])
tf.add(r, q)
tf.add(q, p)
tf.add(r, f)
tf.add(r, 1.5)
tf.add(tf.ragged.constant([[1], [2], [3]]), r)
tf.equal(q, r)
tf.add_n([r, q])
tf.where(r > 2, r, q)
tf.where(r > 2, r)
tf.where([True, False, True], r, -r)
tf.concat([r, q], 1)
tf.concat([r, [1, 2]], 0)
tf.concat([r, r], 2)
tf.concat([r, f], 1)
tf.concat([w, q], 1)
tf.concat([p, tf.ones([2, 1, 3], tf.int32)], 1)
tf.concat([p, tf.ones([2, 2, 1], tf.int32)], 2)
tf.stack([r, q], 2)
tf.tile(r, [-1, 1])
tf.gather(r, [3])
tf.gather(r, [-1])
tf.gather([[1, 2]], tf.ragged.constant([[0], [7]]))
tf.expand_dims(r, 3)
tf.squeeze(r)
tf.squeeze(r, 0)
tf.squeeze(r, 1)
tf.squeeze(p, 2)
tf.reverse(r, 1)
tf.reverse(r, [5])
tf.split(r, 2)
tf.split(r, [1, 1])
tf.split(r, [1, -1])
tf.split(r, 3, axis=1)
tf.one_hot(r, 3, axis=1)
tf.reduce_sum(r, 2)
tf.reduce_sum(w, 1)
tf.nn.softmax(r)
tf.matmul(f, tf.ones([2, 1]))
tf.debugging.assert_equal(r, 1)
tf.ragged.boolean_mask(r, True)
tf.ragged.boolean_mask(r, r)
tf.ragged.boolean_mask(r, [True, False])
tf.ragged.boolean_mask(r, [[True, False], [True, True], [True, False]])
tf.boolean_mask(r, r > 2)
tf.transpose(r)
tf.sort(r)
tf.pad(r, [[0, 0], [1, 1]])
tf.math.cumprod(r, 1)
tf.convert_to_tensor(r)
""".strip().splitlines()  # fmt: skip

# Functions of rows x whose values are the weights, and of the weights v.
SLOPES = """
tf.cast(x, tf.float64)
tf.sqrt(x)
tf.multiply(x, x)
tf.multiply(x, [[1.0], [2.0], [3.0]])
tf.multiply(tf.ragged.constant([[1.0, 2.0, 3.0], [], [4.0, 5.0]]), tf.reshape(v[:3], [3, 1]))
tf.concat([x, [[1.0], [2.0], [3.0]], x * 2.0], 1) ** 2
tf.concat([x, x * x], 0) ** 2
tf.concat([tf.reshape(v[:3], [3, 1]), x], 1) ** 2
tf.stack([x, x * 3.0], 2) ** 2
tf.tile(x, [2, 3]) ** 2
tf.expand_dims(x, -1) ** 2
tf.squeeze(x[2:], 0) ** 2
tf.reverse(x, [1]) * tf.ragged.constant([[1.0, 2.0, 3.0], [], [4.0, 5.0]])
tf.split(x, [1, 2])[1] ** 2
tf.gather(x, [2, 0, 2]) ** 2
tf.gather(v, tf.ragged.constant([[0, 0], [], [4]])) ** 2
tf.gather(x, tf.ragged.constant([[2, 0], [], [1]]), batch_dims=1) ** 2
tf.gather_nd(x, [[0, 1], [2, 0]]) ** 2
tf.nn.embedding_lookup(tf.reshape(v, [5, 1]), tf.ragged.constant([[0, 0], [], [4]])) ** 2
tf.ragged.boolean_mask(x, x > 1.0) ** 2
tf.where(x > 2.0, x * x, x)
tf.map_fn(lambda row: tf.reduce_sum(row) ** 2, x, fn_output_signature=tf.float32)
tf.reduce_sum(x, 1) ** 2
tf.reduce_sum(x, 0) ** 2
tf.reduce_sum(x * x)
tf.reduce_mean(x, 0) ** 2
tf.reduce_mean(x[::2], 1) ** 2
tf.reduce_max(x, 1)[::2] ** 2
tf.reduce_min(x, 0) ** 2
tf.reduce_prod(x, 1)[::2]
tf.math.reduce_variance(x[::2], 1)
tf.math.reduce_std(x[::2], 1)
tf.reduce_logsumexp(x[::2], 1)
tf.nn.softmax(x) ** 2
tf.cumsum(x, 1) ** 2
tf.cumsum(x, 0, reverse=True) ** 2
tf.add_n([x, x * x])
tf.matmul(tf.expand_dims(x, -1), tf.ones([3, 1, 2])) ** 2
tf.clip_by_value(x, 2.0, 4.0) ** 2
""".strip().splitlines()

# Of nested ragged tensors, which TensorFlow gives.
REFUSED = """
tf.expand_dims(r, 0)
tf.expand_dims(r, 1)
tf.expand_dims(w, -2)
tf.stack([r, s])
tf.stack([r, s], axis=1)
tf.stack(r)
tf.ragged.stack([r, q])
tf.gather(r, [[0], [2]])
tf.gather(r, tf.ragged.constant([[0], [1, 2]]))
tf.gather(m, tf.ragged.constant([[0], [0, 0]]), axis=1)
tf.reshape(r, [1, -1])
tf.ragged.boolean_mask(p, p > 2)
tf.ragged.boolean_mask([[[1, 2], [3, 4]]], [[[True, False], [True, True]]])
tf.map_fn(lambda x: tf.ragged.range([1, 2]), r)
tf.strings.split(w)
tf.strings.bytes_split(w)
tf.strings.unicode_split(w, "UTF-8")
tf.strings.unicode_decode(w, "UTF-8")
""".strip().splitlines()


def tensors(tf: Any) -> dict[str, Any]:
    """What expressions name."""
    values = tf.constant([[1, 2], [3, 4], [5, 6]])
    return {
        "tf": tf,
        "np": np,
        "r": tf.ragged.constant([[3, 1, 4], [], [5, 9]]),
        "s": tf.ragged.constant([[1, 2, 3], [], [4, 5]]),
        "f": tf.ragged.constant([[3.0, 1.0, 4.0], [], [5.0, 9.0]]),
        "q": tf.ragged.constant([[1, 2], [3, 4]]),
        "p": tf.RaggedTensor.from_row_lengths(values, [1, 2]),
        "w": tf.ragged.constant([["a", "b"], ["c"]]),
        "u": tf.RaggedTensor.from_uniform_row_length(tf.constant([10, 20, 30]), 1),
        "m": tf.constant([[10], [20], [30]]),
        "spec": tf.RaggedTensorSpec([None], tf.int32),
        "none": tf.RaggedTensor.from_row_splits(np.zeros(0, np.float32), [0]),
        "empty": tf.RaggedTensor.from_row_splits(np.zeros(0, np.float32), [0, 0, 0]),
    }


def plain(value: Any) -> Any:
    """What JSON holds of a result: dtype, shape and numbers."""
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    if value is None or isinstance(value, bool):
        return value
    numbers = value.to_list() if hasattr(value, "to_list") else np.asarray(value.numpy()).tolist()
    return [value.dtype.name, list(value.shape), letters(numbers)]


def letters(value: Any) -> Any:
    """Bytes as text, in lists."""
    if isinstance(value, list):
        return [letters(part) for part in value]
    return value.decode("latin-1") if isinstance(value, bytes) else value


def answer(tf: Any, call: str) -> Any:
    """The result of an expression, or that it is an error."""
    try:
        return plain(eval(call, tensors(tf)))
    except (ValueError, TypeError, IndexError, tf.errors.InvalidArgumentError):
        return "error"


def slope(tf: Any, call: str, traced: bool = False) -> list[float]:
    """The derivative of the sum of all results by the weights."""
    weights = tf.Variable([0.5, 2.0, 4.0, 3.0, 1.5])

    def run() -> Any:
        with tf.GradientTape() as tape:
            rows = tf.RaggedTensor.from_row_lengths(weights * 1.0, LENGTHS)
            made = eval(call, {"tf": tf, "x": rows, "v": weights})
            total = tf.reduce_sum(getattr(made, "flat_values", made))
        return tape.gradient(total, weights)

    found = tf.convert_to_tensor((tf.function(run) if traced else run)())
    return [float(number) for number in np.asarray(found.numpy())]
