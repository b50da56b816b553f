"""Reductions, means and divisions of integers, for record_tensorflow_integer_reductions.py."""

from __future__ import annotations

from typing import Any

import numpy as np

DTYPES = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
X = [[1, 2, 7], [6, 6, 3], [4, 4, 100]]
# Of other signs, and more rows than a small dtype can count.
INPUTS: dict[str, Any] = {
    "": X,
    "negative ": [[-1, -2, 7], [-6, 5, -3], [4, -4, -100]],
    "many ": [[100, 90, 80]] * 300,
}
_IDS = [0, 0, 2]

CASES: dict[str, Any] = {
    **{
        f"reduce_{name}": lambda tf, x, name=name: getattr(tf.math, f"reduce_{name}")(x, 0)
        for name in (
            "mean",
            "sum",
            "prod",
            "max",
            "min",
            "variance",
            "std",
            "euclidean_norm",
            "logsumexp",
        )
    },
    **{
        f"segment_{name}": lambda tf, x, name=name: getattr(tf.math, f"segment_{name}")(x, _IDS)
        for name in ("mean", "sum", "prod", "max", "min")
    },
    **{
        f"unsorted_segment_{name}": lambda tf, x, name=name: getattr(
            tf.math, f"unsorted_segment_{name}"
        )(x, _IDS, 3)
        for name in ("mean", "sqrt_n", "sum", "prod", "max", "min")
    },
    **{
        f"sparse.segment_{name}": lambda tf, x, name=name: getattr(tf.sparse, f"segment_{name}")(
            x, [0, 1, 2], _IDS
        )
        for name in ("mean", "sqrt_n", "sum")
    },
    "moments": lambda tf, x: tf.stack(tf.nn.moments(x, [0])),
    "divide": lambda tf, x: tf.divide(x, x[::-1]),
    "truediv": lambda tf, x: tf.truediv(x, x[::-1]),
    "/": lambda tf, x: x / x[::-1],
    "//": lambda tf, x: x // x[::-1],
    "%": lambda tf, x: x % x[::-1],
    "floordiv": lambda tf, x: tf.math.floordiv(x, x[::-1]),
    "div_no_nan": lambda tf, x: tf.math.divide_no_nan(x, x[::-1]),
    "truncatediv": lambda tf, x: tf.truncatediv(x, x[::-1]),
    "truncatemod": lambda tf, x: tf.truncatemod(x, x[::-1]),
    "bincount": lambda tf, x: tf.math.bincount(x[0]),
    "cumsum": lambda tf, x: tf.cumsum(x),
    "cumprod": lambda tf, x: tf.math.cumprod(x),
    "l2_loss": lambda tf, x: tf.nn.l2_loss(x),
    "norm": lambda tf, x: tf.norm(x),
    "avg_pool": lambda tf, x: tf.nn.avg_pool1d(x[None], 3, 1, "VALID"),
    "ragged mean": lambda tf, x: tf.reduce_mean(tf.RaggedTensor.from_row_lengths(x[0], [2, 1]), 1),
    "ragged sum": lambda tf, x: tf.reduce_sum(tf.RaggedTensor.from_row_lengths(x[0], [2, 1]), 1),
    "Mean": lambda tf, x: tf.keras.metrics.Mean()(x),
    "mse": lambda tf, x: tf.keras.losses.mse(x, x[::-1]),
}


# Of every input; the others need three rows.
OF_ROWS = [name for name in CASES if name.startswith("reduce_")]
MEMBERS = [(name, given) for given in INPUTS for name in (OF_ROWS if given == "many " else CASES)]


def answer(tf: Any, name: str, dtype: str, given: str = "") -> list[Any] | None:
    """Return dtype and values of the case, None for an error."""
    if given == "negative " and dtype.startswith("u"):
        return None
    try:
        made = CASES[name](tf, tf.constant(INPUTS[given], dtype))
    except Exception:
        return None
    array = np.asarray(made)
    return [array.dtype.name, array.ravel().astype("float64").round(4).tolist()]
