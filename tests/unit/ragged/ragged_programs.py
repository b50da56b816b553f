"""Programs with ragged tensors, for TensorFlow to record and for samegrad to run."""

from __future__ import annotations

from typing import Any

import numpy as np

NONE = np.zeros(0)
VALUES = [3, 1, 4, 1, 5, 9, 2]
PROGRAMS: dict[str, Any] = {
    "constant": lambda tf: tf.ragged.constant([[3, 1, 4, 1], [], [5, 9, 2]]),
    "constant floats": lambda tf: tf.ragged.constant([[1.5], [2.0, 3.0]]),
    "constant dtype": lambda tf: tf.ragged.constant([[1], [2, 3]], dtype=tf.float64),
    "constant empty": lambda tf: tf.ragged.constant([[], []]),
    "constant text": lambda tf: tf.ragged.constant([["So", "long"], ["thanks"]]),
    "constant pairs": lambda tf: tf.ragged.constant([[[1, 2]], [[3, 4], [5, 6]]], ragged_rank=1),
    "row_splits": lambda tf: tf.RaggedTensor.from_row_splits(VALUES, [0, 4, 4, 6, 7]),
    "row_lengths": lambda tf: tf.RaggedTensor.from_row_lengths(VALUES, [4, 0, 2, 1]),
    "row_starts": lambda tf: tf.RaggedTensor.from_row_starts(VALUES, [0, 4, 4, 6]),
    "row_limits": lambda tf: tf.RaggedTensor.from_row_limits(VALUES, [4, 4, 6, 7]),
    "rowids": lambda tf: tf.RaggedTensor.from_value_rowids(VALUES, [0, 0, 0, 0, 2, 2, 3]),
    "rowids nrows": lambda tf: tf.RaggedTensor.from_value_rowids([1], [1], nrows=4),
    "uniform": lambda tf: tf.RaggedTensor.from_uniform_row_length([3, 1, 4, 1], 2),
    "uniform text": lambda tf: tf.RaggedTensor.from_uniform_row_length(["a", "b"], 1),
    "uniform empty": lambda tf: tf.RaggedTensor.from_uniform_row_length(NONE, 0, nrows=3),
    "uniform none": lambda tf: tf.RaggedTensor.from_uniform_row_length(NONE, 0),
    "error uniform": lambda tf: tf.RaggedTensor.from_uniform_row_length([1, 2, 3], 2),
    "error uniform rows": lambda tf: tf.RaggedTensor.from_uniform_row_length([1, 2], 2, 5),
    "error uniform negative": lambda tf: tf.RaggedTensor.from_uniform_row_length([1, 2], -1),
    "nested splits": lambda tf: tf.RaggedTensor.from_nested_row_splits(VALUES, [[0, 4, 7]]),
    "nested lengths": lambda tf: tf.RaggedTensor.from_nested_row_lengths(VALUES, [[4, 0, 3]]),
    "nested rowids": lambda tf: tf.RaggedTensor.from_nested_value_rowids([1, 2], [[0, 2]], [4]),
    "error nested rowids": lambda tf: tf.RaggedTensor.from_nested_value_rowids(
        [1, 2], [[0, 2]], [4, 5]
    ),
    "no rows": lambda tf: tf.RaggedTensor.from_row_splits(np.zeros(0, np.int32), [0]),
    "from matrix": lambda tf: tf.RaggedTensor.from_tensor([[1, 2], [3, 4]]).row_splits,
    "from padded": lambda tf: tf.RaggedTensor.from_tensor(
        [[1, -1, 3, -1], [-1, -1, -1, -1]], padding=-1
    ),
    "from lengths": lambda tf: tf.RaggedTensor.from_tensor([[1, 2, 3], [4, 5, 6]], lengths=[2, 0]),
    "from padded text": lambda tf: tf.RaggedTensor.from_tensor([["a", ""], ["", ""]], padding=""),
    "stack": lambda tf: tf.ragged.stack([[1, 2], [3]]),
    "range": lambda tf: tf.ragged.range([3, 5, 2]),
    "range of all": lambda tf: tf.ragged.range([0, 5], [3, 1], [1, -2]),
    "range floats": lambda tf: tf.ragged.range([0.0, 1.0], 2.0, 0.5),
    "flat": lambda tf: tf.ragged.map_flat_values(lambda x: x * 2 + 1, _digits(tf)),
    "add": lambda tf: _digits(tf) + 3,
    "add from the left": lambda tf: 10 - _digits(tf),
    "add rows": lambda tf: _digits(tf) + tf.ragged.constant([[1, 2, 3, 4], [], [5, 6, 7]]),
    "add a column": lambda tf: _digits(tf) * tf.constant([[1], [2], [3]]),
    "compare": lambda tf: _digits(tf) > 2,
    "equal": lambda tf: _digits(tf) == tf.constant(1),
    "divide": lambda tf: _digits(tf) / 2,
    "rows": lambda tf: _digits(tf)[1:],
    "row": lambda tf: _digits(tf)[2],
    "element": lambda tf: _digits(tf)[0, 2],
    "columns": lambda tf: _digits(tf)[:, 1:3],
    "last column": lambda tf: _digits(tf)[:, -1:],
    "text columns": lambda tf: tf.ragged.constant([["a", "b"], ["c"]])[:, :1],
    "to_tensor": lambda tf: _digits(tf).to_tensor(),
    "to_tensor filled": lambda tf: _digits(tf).to_tensor(-1, shape=[None, 3]),
    "to_tensor of no rows": lambda tf: tf.RaggedTensor.from_row_splits(NONE, [0]).to_tensor(),
    "splits": lambda tf: _digits(tf).row_splits,
    "lengths": lambda tf: _digits(tf).row_lengths(),
    "starts": lambda tf: _digits(tf).row_starts(),
    "limits": lambda tf: _digits(tf).row_limits(),
    "value_rowids": lambda tf: _digits(tf).value_rowids(),
    "values": lambda tf: _digits(tf).values,
    "flat values of": lambda tf: _digits(tf).with_flat_values([0, 1, 2, 3, 4, 5, 6]),
    "bounding": lambda tf: _digits(tf).bounding_shape(),
    "sparse": lambda tf: tf.sparse.to_dense(_digits(tf).to_sparse()),
    "from sparse": lambda tf: tf.RaggedTensor.from_sparse(
        tf.sparse.SparseTensor([[0, 0], [0, 1], [2, 0]], [1, 2, 3], [4, 3])
    ),
    "from sparse and back": lambda tf: tf.RaggedTensor.from_sparse(_digits(tf).to_sparse()),
    "error sparse": lambda tf: tf.RaggedTensor.from_sparse(
        tf.sparse.SparseTensor([[0, 0], [0, 2]], [1, 1], [1, 3])
    ),
    "error sparse row": lambda tf: tf.RaggedTensor.from_sparse(
        tf.sparse.SparseTensor([[0]], [1], [3])
    ),
    "error not sparse": lambda tf: tf.RaggedTensor.from_sparse([1]),
    "mapped": lambda tf: _rows(tf.data.Dataset.range(4).map(lambda n: tf.ragged.range([n, 2]))),
    "slices": lambda tf: _rows(tf.data.Dataset.from_tensor_slices(_digits(tf))),
    "slices of two": lambda tf: _rows(
        tf.data.Dataset.from_tensor_slices((_digits(tf), [1, 2, 3])).map(lambda x, y: x * y)
    ),
    "batched": lambda tf: _rows(tf.data.Dataset.from_tensor_slices(_digits(tf)).ragged_batch(2)),
    "all": lambda tf: _digits(tf)[...],
    "one index": lambda tf: _digits(tf)[2,],
    "tensor as index": lambda tf: _digits(tf)[tf.constant(2)],
    "every second": lambda tf: _digits(tf)[::-1, ::2],
    "of pairs": lambda tf: _pairs(tf)[:, :, 1],
    "of pairs in a row": lambda tf: _pairs(tf)[0, :, 1],
    "number of a pair": lambda tf: _pairs(tf)[2, 1, 0],
    "last of pairs": lambda tf: _pairs(tf)[..., 0],
    "pairs cut": lambda tf: _pairs(tf)[1:, :2, :1],
    "minus": lambda tf: -_digits(tf),
    "absolute": lambda tf: abs(_digits(tf) - 3),
    "not": lambda tf: ~(_digits(tf) > 2),
    "is nothing": lambda tf: _digits(tf) == None,  # noqa: E711
    "is something": lambda tf: _digits(tf) != None,  # noqa: E711
    "is text": lambda tf: _digits(tf) == "a",
    "add an array": lambda tf: _digits(tf) + np.array([[1], [2], [3]]),
    "add one in a list": lambda tf: _digits(tf) + tf.constant([[5]]),
    "add a pair": lambda tf: _pairs(tf) + np.array([10, 20]),
    "add columns of pairs": lambda tf: _pairs(tf) + np.arange(3).reshape(3, 1, 1),
    "bounding of pairs": lambda tf: _pairs(tf).bounding_shape(),
    "bounding of an axis": lambda tf: _pairs(tf).bounding_shape(axis=1, out_type=tf.int32),
    "other values": lambda tf: _digits(tf).with_values(np.ones([7, 2])),
    "to_tensor of pairs": lambda tf: _pairs(tf).to_tensor(shape=[2, 4, 2]),
    "to_tensor of fewer": lambda tf: _pairs(tf).to_tensor(shape=[None, 1, None]),
    "to_tensor of more rows": lambda tf: _digits(tf).to_tensor(shape=[5, 3]),
    "to_tensor as tensor": lambda tf: _digits(tf).to_tensor(shape=tf.constant([-1, 2])),
    "to_tensor of none": lambda tf: _digits(tf).to_tensor(shape=[0, 0]),
    "to_tensor with a pair": lambda tf: _pairs(tf).to_tensor(default_value=[7, 8]),
    "to_tensor of text": lambda tf: tf.strings.split(["a b", "c"]).to_tensor("x", shape=[3, None]),
    "range of floats": lambda tf: tf.ragged.range([0.0, 5.0], [2.0, 0.0], [0.3, -0.7]),
    "range of tenths": lambda tf: tf.ragged.range(0.0, 1.0, 0.1),
    "range of both": lambda tf: tf.ragged.range([0, 1], [2.5, 3.5]),
    "error column": lambda tf: _digits(tf)[:, 0],
    "error some of a column": lambda tf: _digits(tf)[0:2, 1],
    "error column of text": lambda tf: tf.strings.split(["a b", "c"])[:, 0],
    "error float": lambda tf: _digits(tf)[1.0],
    "error list of rows": lambda tf: _digits(tf)[np.array([0])],
    "error truth": lambda tf: bool(_digits(tf) == _digits(tf)),
    "error hash": lambda tf: hash(_digits(tf)),
    "error other values": lambda tf: _digits(tf).with_values([1, 2]),
    "error one value": lambda tf: _digits(tf).with_values(tf.constant(1)),
    "error default": lambda tf: _digits(tf).to_tensor(0.5),
    "error default of text": lambda tf: tf.strings.split(["a"]).to_tensor(0),
    "error sizes": lambda tf: _digits(tf).to_tensor(shape=[3, 3, 1]),
    "error sizes of pairs": lambda tf: _pairs(tf).to_tensor(shape=[3, 4, 3]),
    "error columns of pairs": lambda tf: _pairs(tf) + np.ones([3, 2], int),
    "error range kinds": lambda tf: tf.ragged.range(0.0, 5.0, dtype=tf.int64),
    "error splits": lambda tf: tf.RaggedTensor.from_row_splits(VALUES, [0, 5, 3, 7]),
    "error ends": lambda tf: tf.RaggedTensor.from_row_splits(VALUES, [0, 3]),
    "error lengths": lambda tf: tf.RaggedTensor.from_row_lengths(VALUES, [3, 3]),
    "error rowids": lambda tf: tf.RaggedTensor.from_value_rowids([1, 2], [1, 0]),
    "error rows": lambda tf: _digits(tf) + tf.ragged.constant([[1], [2], [3]]),
    "error kinds": lambda tf: tf.ragged.constant([["one"], [3]]),
    "error depths": lambda tf: tf.ragged.constant(["A", ["B"]]),
    "error delta": lambda tf: tf.ragged.range([3], deltas=0),
}  # fmt: skip

# Functions of a variable, whose derivatives are recorded.
SLOPES: dict[str, Any] = {
    "to_tensor": lambda tf, v: _weighed(tf, v).to_tensor(v, shape=[4, 3]) ** 2,
    "some rows": lambda tf, v: _weighed(tf, v)[::2, :2].flat_values ** 2,
    "from_tensor": lambda tf, v: (
        tf.RaggedTensor.from_tensor([[v, 2.0], [v * v, 1.0]], lengths=[2, 1]).flat_values
    ),
    "column": lambda tf, v: (
        (tf.ragged.constant([[1.0, 2.0], [3.0]]) * tf.stack([[v], [v * v]])).flat_values
    ),
    "stack": lambda tf, v: tf.ragged.stack([tf.stack([v, 1.0]), tf.stack([v * v])]).flat_values,
    "row": lambda tf, v: _weighed(tf, v)[0] ** 2,
    "sparse": lambda tf, v: _weighed(tf, v).to_sparse().values ** 2,
}
_VOCABULARY = {"String": ["a", "b", "d"], "Integer": [1, 2]}
# Layers that take rows: what of the layers, how they encode.
LAYERS = [
    (layer, mode)
    for layer in ("StringLookup", "IntegerLookup", "TextVectorization", "CategoryEncoding")
    for mode in ("int", "one_hot", "multi_hot", "count")
    if mode in ("multi_hot", "count")
    or layer.endswith("Lookup")
    or (layer, mode) == ("TextVectorization", "int")
] + [
    (layer, mode)
    for layer in ("Hashing", "Discretization")
    for mode in ("int", "one_hot", "multi_hot", "count")
]


def slope(tf: Any, name: str, traced: bool = False) -> float:
    """The derivative by the variable."""
    weight = tf.Variable(3.0)

    def run() -> Any:
        with tf.GradientTape() as tape:
            made = SLOPES[name](tf, weight)
        return tape.gradient(made, weight)

    return float((tf.function(run) if traced else run)())


def encoded(tf: Any, name: str, mode: str) -> Any:
    """What a layer of Keras makes of rows."""
    layers, texts = tf.keras.layers, ["a b c", "d", "e a a"]
    if name == "CategoryEncoding":
        made = layers.CategoryEncoding(4, output_mode=mode)
    elif name == "Hashing":
        made = layers.Hashing(5, mask_value="a", output_mode=mode)
    elif name == "Discretization":
        made = layers.Discretization(bin_boundaries=[1.5, 2.5], output_mode=mode)
    else:
        known = _VOCABULARY["Integer" if name == "IntegerLookup" else "String"]
        made = getattr(layers, name)(vocabulary=known, output_mode=mode)
    numbers = tf.ragged.constant([[1, 2, 3], [], [2]])
    words = tf.strings.split(texts)
    given = {"TextVectorization": tf.constant(texts), "StringLookup": words, "Hashing": words}
    found = made(given.get(name, numbers))
    return found.to_list() if hasattr(found, "to_list") else np.asarray(found).tolist()


def _weighed(tf: Any, v: Any) -> Any:
    return tf.RaggedTensor.from_row_lengths([1.0 * v, 2.0 * v, 3.0, v * v], [2, 0, 2])


def _pairs(tf: Any) -> Any:
    return tf.RaggedTensor.from_row_lengths(np.arange(10).reshape(5, 2), [3, 0, 2])


def _digits(tf: Any) -> Any:
    return tf.ragged.constant([[3, 1, 4, 1], [], [5, 9, 2]])


def _rows(data: Any) -> list[Any]:
    return list(data)


def plain(value: Any) -> Any:
    """What JSON holds of a result: dtype, shape and numbers."""
    if isinstance(value, list):
        return [plain(part) for part in value]
    if isinstance(value, bool):
        return value
    numbers = value.to_list() if hasattr(value, "to_list") else np.asarray(value.numpy()).tolist()
    return [value.dtype.name, list(value.shape), _letters(numbers)]


def _letters(value: Any) -> Any:
    if isinstance(value, list):
        return [_letters(part) for part in value]
    return value.decode("latin-1") if isinstance(value, bytes) else value


def answer(tf: Any, name: str) -> Any:
    """The result, or the class of the error."""
    try:
        return plain(PROGRAMS[name](tf))
    except (ValueError, TypeError, tf.errors.InvalidArgumentError) as error:
        if isinstance(error, tf.errors.InvalidArgumentError):
            return "InvalidArgumentError"
        return type(error).__name__
