"""How text moves through TensorFlow's functions of arrays."""

from __future__ import annotations

import gzip
import zlib
from typing import Any

import numpy as np
from manner_programs import manner, refused


def words(x: Any) -> Any:
    """Bytes as strings, in lists."""
    if isinstance(x, list | tuple):
        return [words(part) for part in x]
    found = np.asarray(x.numpy())
    return np.vectorize(lambda b: b.decode(), otypes=[object])(found).tolist()


@manner
def text_changes_its_shape(tf: Any) -> Any:
    t = tf.constant([["a", "b", "c"], ["d", "e", "f"]])
    return [
        words(tf.reshape(t, [3, -1])),
        words(tf.transpose(t)),
        words(tf.expand_dims(t, -1)),
        words(tf.squeeze(tf.constant([["a"]]))),
        words(tf.squeeze(tf.constant([["a"]]), axis=[0])),
        tf.shape(t),
        tf.size(t),
        tf.rank(t),
        t.shape.as_list(),
        len(t),
        refused(lambda: tf.reshape(t, [4]), tf.errors.InvalidArgumentError),
    ]


@manner
def text_is_joined_and_parted(tf: Any) -> Any:
    t, u = tf.constant(["a", "b"]), tf.constant(["c", "d"])
    return [
        words(tf.concat([t, u], 0)),
        words(tf.concat([[["a"]], [["b"]]], axis=1)),
        words(tf.stack([t, u], axis=1)),
        words(tf.stack(["x", "y"])),
        words(tf.unstack(t)),
        words(tf.split(tf.constant(["a", "b", "c"]), [1, 2])),
        words(tf.split(tf.constant(["a", "b"]), 2)),
        words(tf.tile(t, [2])),
        words(tf.repeat(t, [2, 1])),
        words(tf.reverse(t, [0])),
        words(tf.pad(t, [[1, 1]])),
        words(tf.broadcast_to(tf.constant("z"), [2])),
        words(tf.fill([2], "q")),
        words(tf.identity(t)),
    ]


@manner
def text_is_picked(tf: Any) -> Any:
    t = tf.constant([["a", "b"], ["c", "d"], ["e", "f"]])
    return [
        words(tf.gather(t, [2, 0])),
        words(tf.gather(t, [1], axis=1)),
        words(tf.gather(t, [[0], [1]])),
        words(tf.gather_nd(t, [[0, 1], [2, 0]])),
        words(tf.boolean_mask(t, [True, False, True])),
        words(tf.boolean_mask(t, [True, False], axis=1)),
        words(t[1:, 0]),
        words(t[..., tf.newaxis]),
        refused(lambda: tf.gather(t, [5]), tf.errors.InvalidArgumentError),
        words(tf.unique(["b", "a", "b"])[0]),
        tf.unique(["b", "a", "b"])[1],
    ]


@manner
def text_of_nothing_in_a_shape(tf: Any) -> Any:
    t = tf.zeros([0, 1], tf.string)
    return [
        words(tf.zeros([2], dtype="string")),
        t.shape.as_list(),
        words(tf.concat([t, [["a"]]], 0)),
        words(tf.zeros_like(tf.constant([["a", "b"]]))),
        words(tf.zeros_like([1, 2], dtype=tf.string)),
        tf.zeros_like([1, 2]),
        tf.zeros([2], tf.int32),
    ]


@manner
def text_is_one_hot(tf: Any) -> Any:
    def made(*args: Any, **options: Any) -> Any:
        return words(tf.one_hot(*args, on_value="on", off_value="off", **options))

    return [
        made([0, 1], 2),
        made([[0, -1], [5, 1]], 2, dtype=tf.string),
        made([0, 1, 0], 2, axis=0),
        made(1, 2),
        refused(lambda: tf.one_hot([0], 2, on_value="on"), TypeError),
        refused(lambda: tf.one_hot([0], 2, on_value="on", off_value=0), TypeError),
        refused(lambda: made([0], 2, dtype=tf.float32), TypeError),
    ]


@manner
def text_is_compared(tf: Any) -> Any:
    t = tf.constant(["a", "b"])
    return [
        t == "a",
        t != "a",
        t == tf.constant([["a"], ["b"]]),
        tf.equal(t, ["a", "c"]),
        tf.not_equal(["a", "b"], "b"),
        words(tf.where(t == "a", "yes", "no")),
        words(tf.where([True, False], t, tf.constant(["c", "d"]))),
        tf.reduce_sum(tf.cast(t == "b", tf.int32)),
        tf.reduce_any(t == "b"),
    ]


@manner
def no_text_at_all(tf: Any) -> Any:
    t = tf.constant([], tf.string)
    return [
        t.shape.as_list(),
        tf.concat([t, tf.constant(["a"])], 0).shape.as_list(),
        tf.reshape(t, [0, 2]).shape.as_list(),
        tf.gather(tf.constant(["a"]), tf.constant([], tf.int32)).shape.as_list(),
        tf.boolean_mask(tf.constant(["a"]), [False]).shape.as_list(),
    ]


@manner
def text_of_numbers_in_a_function(tf: Any) -> Any:
    @tf.function
    def clock(m: Any) -> Any:
        if tf.strings.length(tf.strings.format("{}", m)) == 1:
            return tf.strings.format("0{}", m)
        return tf.strings.format("{}", m)

    @tf.function
    def both(a: Any, b: Any) -> Any:
        return tf.strings.join([clock(a), clock(b)], separator=":")

    joined = [both(tf.constant(a), tf.constant(b)) for a, b in ((7, 12), (10, 5), (7, 12))]
    return [*words(joined), words(tf.function(tf.strings.as_string)(tf.constant([1, 2])))]


@manner
def python_in_a_function(tf: Any) -> Any:
    seen = []

    @tf.function
    def f(x: Any) -> Any:
        y = tf.py_function(lambda v: seen.append(float(v)) or v * 2.0, [x], tf.float32)
        return y + 1.0

    return [f(tf.constant(1.0)), f(tf.constant(2.0)), seen]


@manner
def gradients_through_a_function_of_python(tf: Any) -> Any:
    x = tf.constant(3.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.py_function(lambda v: v * v, [x], tf.float32) * 2.0
    return tape.gradient(y, x)


@manner
def letters_by_other_names_of_encodings(tf: Any) -> Any:
    pairs = ("café", "UTF8"), (b"\xe9", "latin-1")
    found = [tf.strings.unicode_decode(text, encoding) for text, encoding in pairs]
    return [value.numpy().tolist() for value in found]


@manner
def strings_are_partitioned_joined_and_replaced(tf: Any) -> Any:
    words = tf.constant([["a", "b"], ["c", "d"], ["e", "f"]])

    def texts(value: Any) -> Any:
        return np.vectorize(bytes.decode, otypes=[object])(value.numpy()).tolist()

    return [
        [texts(part) for part in tf.dynamic_partition(words, [1, 0, 1], 2)],
        texts(tf.tensor_scatter_nd_update(words, [[2]], [["x", "y"]])),
        texts(tf.tensor_scatter_nd_update(words, [[0, 1], [1, 0]], ["x", "y"])),
        texts(tf.strings.unsorted_segment_join(words, [1, 0, 1], 2, "-")),
        texts(tf.strings.unsorted_segment_join(words, [[0, 1], [1, 1], [0, 0]], 2)),
        [
            refused(
                lambda ids=ids: tf.strings.unsorted_segment_join(words, ids, 2),
                tf.errors.InvalidArgumentError, ValueError,
            )
            for ids in ([0, 1, 5], [0, -1, 0], [0])
        ],
    ]  # fmt: skip


@manner
def strings_in_base_64_and_compressed(tf: Any) -> Any:
    def texts(value: Any) -> Any:
        return np.vectorize(bytes.decode, otypes=[object])(value.numpy()).tolist()

    io = tf.io
    encoded = io.encode_base64(["a?>b", "a", ""])
    packed = [gzip.compress(b"text"), gzip.compress(b"")]
    error = tf.errors.InvalidArgumentError
    return [
        texts(encoded),
        texts(io.encode_base64([["a?>b", "a"]], pad=True)),
        texts(io.decode_base64(encoded)),
        texts(io.decode_base64(["YQ", "YQ=="])),
        texts(io.decode_compressed(packed, "GZIP")),
        texts(io.decode_compressed([zlib.compress(b"text")], compression_type="ZLIB")),
        texts(io.decode_compressed(["text"])),
        refused(lambda: io.decode_base64("?"), error),
        refused(lambda: io.decode_compressed("text", "ZLIB"), tf.errors.DataLossError),
        refused(lambda: io.decode_compressed("text", "zip"), error, ValueError),
    ]
