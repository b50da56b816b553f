"""Programs with rows of different lengths, for TensorFlow to record and for samegrad to run."""

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
    "mapped": lambda tf: _rows(tf.data.Dataset.range(4).map(lambda n: tf.ragged.range([n, 2]))),
    "slices": lambda tf: _rows(tf.data.Dataset.from_tensor_slices(_digits(tf))),
    "slices of two": lambda tf: _rows(
        tf.data.Dataset.from_tensor_slices((_digits(tf), [1, 2, 3])).map(lambda x, y: x * y)
    ),
    "batched": lambda tf: _rows(tf.data.Dataset.from_tensor_slices(_digits(tf)).ragged_batch(2)),
    "error splits": lambda tf: tf.RaggedTensor.from_row_splits(VALUES, [0, 5, 3, 7]),
    "error ends": lambda tf: tf.RaggedTensor.from_row_splits(VALUES, [0, 3]),
    "error lengths": lambda tf: tf.RaggedTensor.from_row_lengths(VALUES, [3, 3]),
    "error rowids": lambda tf: tf.RaggedTensor.from_value_rowids([1, 2], [1, 0]),
    "error rows": lambda tf: _digits(tf) + tf.ragged.constant([[1], [2], [3]]),
    "error kinds": lambda tf: tf.ragged.constant([["one"], [3]]),
    "error depths": lambda tf: tf.ragged.constant(["A", ["B"]]),
    "error delta": lambda tf: tf.ragged.range([3], deltas=0),
}  # fmt: skip


def _digits(tf: Any) -> Any:
    return tf.ragged.constant([[3, 1, 4, 1], [], [5, 9, 2]])


def _rows(data: Any) -> list[Any]:
    return list(data)


def plain(value: Any) -> Any:
    """What JSON holds of a result: dtype, shape and numbers."""
    if isinstance(value, list):
        return [plain(part) for part in value]
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
