"""Lists with tensors in them at any depth, for TensorFlow to record and for samegrad to run."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

PROGRAMS: dict[str, Any] = {
    "rotation": lambda tf, v: tf.convert_to_tensor(
        [[tf.cos(v), -tf.sin(v)], [tf.sin(v), tf.cos(v)]]
    ),
    "product": lambda tf, v: tf.constant([1.0, 2.0]) * [[v], [v]],
    "multiply": lambda tf, v: tf.multiply([[v], [v]], 2.0),
    "first": lambda tf, v: tf.convert_to_tensor([[v, 2], [3, 4]]),
    "last": lambda tf, v: tf.convert_to_tensor([[3, 4.5], [v, 2]]),
    "float64": lambda tf, v: tf.convert_to_tensor([[3, 4.1], [tf.cast(v, tf.float64), 2]]),
    "reshape": lambda tf, v: tf.reshape([[v, v], [v, 1.0]], [4]),
    "sum": lambda tf, v: tf.reduce_sum([[v, v], [v, 1.0]]),
    "concat": lambda tf, v: tf.concat([[[v]], [[v]]], 0),
    "stack": lambda tf, v: tf.stack([[v], [v]], 0),
    "matmul": lambda tf, v: tf.matmul([[v, v], [v, 1.0]], [[v], [1.0]]),
    "four axes": lambda tf, v: tf.convert_to_tensor([[[[v * v]]]]),
    "number of NumPy": lambda tf, v: tf.convert_to_tensor([[v * v], [np.float64(2)]]),
    "array of NumPy": lambda tf, v: tf.convert_to_tensor([[v], np.ones(1)]),
    "tuples": lambda tf, v: tf.convert_to_tensor(((v, 1), [2, v])),
    "cast": lambda tf, v: tf.convert_to_tensor([[v], [1]], dtype=tf.float64),
    "cast of one": lambda tf, v: tf.convert_to_tensor([v, 1], dtype=tf.float64),
    "where": lambda tf, v: tf.where([[True], [False]], [[v], [v]], 0.0),
    "power": lambda tf, v: 2.0 ** tf.convert_to_tensor([[v]]),
    "operator": lambda tf, v: operator.add([[v]], tf.ones([1, 1])),
    "gather": lambda tf, v: tf.gather([[v, 1.0]], [0]),
    "determinant": lambda tf, v: tf.linalg.det([[v, 1.0], [0.0, v]]),
    "row beside tensor": lambda tf, v: tf.convert_to_tensor([tf.stack([v, v]), [v, 2.0]]),
    "error dtypes": lambda tf, v: tf.convert_to_tensor([[v], [tf.constant(1)]]),
    "error fraction": lambda tf, v: tf.convert_to_tensor([[tf.constant(1)], [1.5]]),
    "error shapes": lambda tf, v: tf.convert_to_tensor([[v, 1], [v]]),
    "error depths": lambda tf, v: tf.convert_to_tensor([[v], 1.0]),
}


def answer(tf: Any, name: str, traced: bool = False) -> Any:
    """Dtype and numbers of the result and its derivative; "error" for errors."""
    weight = tf.Variable(3.0)

    def run() -> Any:
        with tf.GradientTape() as tape:
            made = PROGRAMS[name](tf, weight)
        return made, tape.gradient(made, weight)

    try:
        made, slope = (tf.function(run) if traced else run)()
    except (ValueError, TypeError, tf.errors.InvalidArgumentError):
        return "error"
    return [made.dtype.name, np.asarray(made).tolist(), float(slope)]
