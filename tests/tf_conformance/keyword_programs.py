"""Calls by TensorFlow's names and positions, whose values show what each argument means."""

from __future__ import annotations

from typing import Any

import numpy as np
from manner_programs import Program

M = np.float32([[1.0, 2.0], [3.0, 4.0]])
PICKS = np.array([0, 0, 1, 1, 1], np.int64)


def _chosen(tf: Any, **options: Any) -> list[int]:
    parts = [tf.data.Dataset.range(1), tf.data.Dataset.range(10, 13)]
    picks = tf.data.Dataset.from_tensor_slices(PICKS)
    make = tf.data.experimental.choose_from_datasets
    return [int(x) for x in make(parts, picks, **options)]


def _ragged(tf: Any) -> Any:
    return tf.RaggedTensor.from_row_lengths([3, 1, 4], [2, 1])


PROGRAMS: dict[str, Program] = {
    "atan2 by name": lambda tf: tf.atan2(y=1.0, x=2.0),
    "atan2 by position": lambda tf: tf.math.atan2([1.0, -1.0, 0.0], [2.0, 2.0, -1.0]),
    "argmax of the first axis": lambda tf: tf.argmax(M, None),
    "argmin of the first axis": lambda tf: tf.math.argmin(-M),
    "choose goes on": _chosen,
    "choose stops": lambda tf: _chosen(tf, stop_on_empty_dataset=True),
    "eye of a batch": lambda tf: tf.eye(2, 3, [2], tf.int32),
    "eye of a batch by name": lambda tf: tf.linalg.eye(2, batch_shape=[1, 2]),
    "zeros of a numbered dtype": lambda tf: tf.zeros(1, 1),
    "cast to a numbered dtype": lambda tf: tf.cast([1.5], 3),
    "ones of a numbered dtype": lambda tf: [
        tf.ones([1], n).dtype.name for n in (1, 2, 3, 4, 5, 6, 8, 9, 10, 14, 17, 18, 19, 22, 23)
    ],
    "linspace": lambda tf: tf.linspace(0.0, 1.0, 5),
    "linspace of ints": lambda tf: tf.linspace(0, 1, 5),
    "linspace of doubles": lambda tf: tf.linspace(np.float64(0), 1, 3),
    "linspace of vectors": lambda tf: tf.linspace([0.0, 1.0], [2.0, 3.0], 3),
    "linspace along the last axis": lambda tf: tf.linspace([0.0, 1.0], [2.0, 3.0], 3, axis=-1),
    "linspace to a vector": lambda tf: tf.linspace(0.0, [2.0, 3.0], 3, "name", -1),
    "linspace without numbers": lambda tf: tf.linspace(1.0, 2.0, 1),
    "linspace in a function": lambda tf: tf.function(lambda x: tf.linspace(x, 3.0, 4))(
        tf.constant(1.0)
    ),
    "softmax by position": lambda tf: tf.nn.softmax(M, None, "name"),
    "log_softmax": lambda tf: tf.math.log_softmax(M, axis=None),
    "elu by position": lambda tf: tf.nn.elu([-1.0], "name"),
    "shape of the default type": lambda tf: tf.shape(M, None),
    "size of the default type": lambda tf: tf.size(M, None),
    "norm without keepdims": lambda tf: tf.norm(M, 2, None, None),
    "count_nonzero without keepdims": lambda tf: tf.math.count_nonzero(M, 1, None),
    "l2_normalize by the older name": lambda tf: tf.math.l2_normalize(M, dim=1),
    "matmul of bytes": lambda tf: tf.matmul(
        tf.constant([[100]], tf.int8), tf.constant([[100]], tf.int8), output_type=tf.int32
    ),
    "is_tensor by name": lambda tf: tf.is_tensor(x=1.0),
    "is_nested by name": lambda tf: tf.nest.is_nested(seq=[]),
    "spec by name": lambda tf: tf.TensorSpec([None, 2]).is_compatible_with(
        spec_or_tensor=tf.constant(M)
    ),
    "assert_none_equal by position": lambda tf: tf.debugging.assert_none_equal([1], [1], 3, "m"),
    "scatter_nd by position": lambda tf: tf.scatter_nd([[1]], [2.0], [3], "ERROR", "name"),
    "scatter_nd outside": lambda tf: tf.scatter_nd([[7]], [2.0], [3], "ERROR"),
    "scatter_nd add by position": lambda tf: tf.tensor_scatter_nd_add(M, [[0, 0]], [2.0], "", "n"),
    "gather_nd by position": lambda tf: tf.gather_nd(M, [[1, 0]], 0, "name", "ERROR"),
    "diag by position": lambda tf: tf.linalg.diag([1.0], "name", 1, -1, -1, 7.0, "LEFT_LEFT"),
    "diag_part by position": lambda tf: tf.linalg.diag_part(M, "name", 1, 7.0, "LEFT_LEFT"),
    "set_diag by name": lambda tf: tf.linalg.set_diag(M, [8.0, 9.0], align="LEFT_RIGHT"),
    "no labels": lambda tf: tf.nn.sigmoid_cross_entropy_with_logits(logits=[1.0]),
    "depthwise by position": lambda tf: tf.nn.depthwise_conv2d_backprop_input(
        [1, 1, 1, 2], [[[[3.0], [4.0]]]], [[[[1.0, 2.0]]]], [1, 1, 1, 1], "SAME", "NHWC",
        [1, 1, 1, 1],
    ),
    "ragged rows": lambda tf: _ragged(tf).nrows(out_type=tf.int32),
    "ragged lengths of axis 0": lambda tf: _ragged(tf).row_lengths(0),
    "ragged lengths of the last axis": lambda tf: _ragged(tf).row_lengths(axis=-1, name="name"),
    "ragged to tensor by position": lambda tf: _ragged(tf).to_tensor(-1, None, [2, 3]),
    "ragged from tensor by position": lambda tf: tf.RaggedTensor.from_tensor(
        M, [1, 2], None, 1, "name"
    ).flat_values,
    "variable by position": lambda tf: tf.Variable(M, False, True, None, "name").trainable,
    "variable of a dtype by position": lambda tf: tf.Variable(
        [1.0], None, True, None, "name", None, tf.float64
    ).dtype.name,
    "variable without a value": lambda tf: tf.Variable(),
    "map by position": lambda tf: [
        int(x) for x in tf.data.Dataset.range(2).map(lambda x: x + 1, 2, True, None, False, "name")
    ],
    "reduction with options": lambda tf: tf.distribute.get_replica_context().all_reduce(
        "SUM", tf.constant(1.0), options=tf.distribute.experimental.CommunicationOptions()
    ),
    "the latest checkpoint of another file": lambda tf: tf.train.latest_checkpoint(".", "other"),
}  # fmt: skip
