"""Helpers of matrix functions: floats, values for NumPy, triangles."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np
from keras.src.backend.common.dtypes import result_type
from keras.src.backend.config import floatx
from numpy.typing import NDArray

import samegrad as tf
from samegrad._context.python_runs import need_python
from samegrad._keras.conversion import convert_to_tensor
from samegrad._tensor.tensor import Tensor


def floats(x: Any) -> Tensor:
    """The value as a tensor of floats.

    Example:
        >>> floats([1, 2]).dtype
        samegrad.float32
    """
    tensor = convert_to_tensor(x)
    kind = floatx() if tensor._dtype == "int64" else result_type(tensor._dtype, float)
    return tf.cast(tensor, kind)


def array_of(who: str, x: Tensor) -> NDArray[Any]:
    """The value as an array of 32 or 64 bits, for NumPy to compute with.

    Raises:
        ValueError: It is traced.

    Example:
        >>> array_of("det", tf.constant([[1.0]]))
        array([[1.]], dtype=float32)
    """
    if x._symbolic:
        need_python(
            f"[keras.ops.{who}] is computed from values: got a traced tensor; call it outside of "
            "the traced function (samegrad.function, strategy.run, or a compiled fit).",
            ValueError,
        )
    values: NDArray[Any] = x.numpy()
    return values if values.dtype in (np.float32, np.float64) else values.astype(np.float32)


def tensor_like(x: Tensor, values: Any) -> Tensor:
    """An array as a tensor in the dtype of another one.

    Example:
        >>> tensor_like(tf.constant(1.0), np.ones(2)).dtype
        samegrad.float32
    """
    return tf.cast(tf.convert_to_tensor(np.asarray(values)), x._dtype)


def turned(x: Tensor) -> Tensor:
    """Matrices with rows for columns.

    Example:
        >>> turned(tf.ones((2, 3, 4))).shape
        (2, 4, 3)
    """
    rank = x._rank
    return tf.transpose(x, [*range(rank - 2), rank - 1, rank - 2])


def no_gradient(who: str, remedy: str) -> NoReturn:
    """Says that there is no derivative.

    Raises:
        NotImplementedError: Always.
    """
    raise NotImplementedError(f"[keras.ops.{who}] has no gradient here: {remedy}.")
