"""Products of vectors, matrices and tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from keras.src.backend.common.dtypes import result_type

import samegrad as tf
from samegrad._keras.conversion import convert_to_tensor
from samegrad._keras.numpy.common import axis_in, flat, is_float, matched_tensors
from samegrad._keras.numpy.shapes import moveaxis
from samegrad._tensor.tensor import Tensor

# The engine has no products of unsigned numbers and bools: they are computed as these.
_COMPUTED = {
    "bool": "int32", "uint8": "int32", "uint16": "int64", "uint32": "int64", "uint64": "int64",
}  # fmt: skip


def _product(function: Callable[..., Tensor], xs: list[Tensor]) -> Tensor:
    """The product in the operands' dtype, through one that the engine multiplies in."""
    dtype = xs[0]._dtype
    computed = _COMPUTED.get(dtype)
    if computed is None:
        return function(*xs)
    return tf.cast(function(*(tf.cast(x, computed) for x in xs)), dtype)


def _are_int8(*xs: Tensor) -> bool:
    return all(x._dtype == "int8" for x in xs)


def _matmul(a: Tensor, b: Tensor) -> Tensor:
    row, column = a._rank == 1, b._rank == 1
    a = tf.expand_dims(a, 0) if row else a
    b = tf.expand_dims(b, 1) if column else b
    y = tf.matmul(a, b)
    y = tf.squeeze(y, [-1]) if column else y
    return tf.squeeze(y, [-1 if column else -2]) if row else y


def matmul(x1: Any, x2: Any) -> Tensor:
    """The product of matrices, whose leading axes broadcast; vectors are rows or columns.

    Products of int8 matrices are int32.
    """
    x1, x2 = convert_to_tensor(x1), convert_to_tensor(x2)
    if x1._dtype == x2._dtype and is_float(x1):  # nothing is to be converted
        return _matmul(x1, x2)
    if _are_int8(x1, x2) and x1._rank != 1 and x2._rank != 1:
        x1, x2 = tf.cast(x1, "int32"), tf.cast(x2, "int32")
    return _product(_matmul, matched_tensors(x1, x2))


def einsum(subscripts: str, *operands: Any, **kwargs: Any) -> Tensor:
    """The sum of products that an equation with a letter for each axis describes."""
    tensors = [convert_to_tensor(x) for x in operands]
    if _are_int8(*tensors):
        tensors = [tf.cast(x, "int32") for x in tensors]
    return _product(lambda *xs: tf.einsum(subscripts, *xs), matched_tensors(*tensors))


def tensordot(x1: Any, x2: Any, axes: Any = 2) -> Tensor:
    """The products, summed over axes of both: so many, or a list for each."""
    tensors = matched_tensors(x1, x2)
    if isinstance(axes, list | tuple):
        axes = [[a] if isinstance(a, int) else list(a) for a in axes]
    return _product(lambda a, b: tf.tensordot(a, b, axes), tensors)


def dot(x1: Any, x2: Any) -> Tensor:
    """The products, summed over the last axis of x1 and the last but one of x2."""
    x1, x2 = matched_tensors(x1, x2)
    if x1._rank == 0 or x2._rank == 0:
        return _product(tf.multiply, [x1, x2])
    axes = [[-1], [-1 if x2._rank == 1 else -2]]
    return _product(lambda a, b: tf.tensordot(a, b, axes), [x1, x2])


def vdot(x1: Any, x2: Any) -> Tensor:
    """The sum of the products of all elements."""
    x1, x2 = matched_tensors(x1, x2)
    return dot(flat(x1), flat(x2))


def inner(x1: Any, x2: Any) -> Tensor:
    """The products, summed over the last axis of both."""
    x1, x2 = matched_tensors(x1, x2)
    if x1._rank == 0 or x2._rank == 0:
        return _product(tf.multiply, [x1, x2])
    return _product(lambda a, b: tf.tensordot(a, b, [[-1], [-1]]), [x1, x2])


def outer(x1: Any, x2: Any) -> Tensor:
    """The product of each element of x1 with each of x2."""
    x1, x2 = matched_tensors(x1, x2)
    return _product(tf.multiply, [tf.reshape(x1, [-1, 1]), flat(x2)])


def kron(x1: Any, x2: Any) -> Tensor:
    """Kronecker's product: each element of x1 times all of x2, in a block."""
    x1, x2 = matched_tensors(x1, x2)
    rank = max(x1._rank, x2._rank)
    sizes = [[1] * (rank - x._rank) + list(x.shape) for x in (x1, x2)]
    rows = tf.reshape(x1, [n for size in sizes[0] for n in (size, 1)])
    columns = tf.reshape(x2, [n for size in sizes[1] for n in (1, size)])
    both = [a * b for a, b in zip(*sizes, strict=True)]
    return tf.reshape(_product(tf.multiply, [rows, columns]), both)


def cross(
    x1: Any, x2: Any, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None
) -> Tensor:
    """The cross products of vectors of two or three numbers.

    Args:
        x1: Vectors.
        x2: Vectors.
        axisa: The axis of x1 of the vectors.
        axisb: That of x2.
        axisc: That of the result; two vectors of two numbers have a number without it.
        axis: Stands for all three.

    Raises:
        ValueError: The vectors have other sizes.
    """
    x1, x2 = matched_tensors(x1, x2)
    if axis is not None:
        axisa = axisb = axisc = axis
    x1, x2 = moveaxis(x1, axisa, -1), moveaxis(x2, axisb, -1)
    sizes = [x.shape[-1] for x in (x1, x2)]
    if any(size not in (2, 3) for size in sizes):
        raise ValueError(
            "[keras.ops.cross] vectors have two or three numbers: got shapes "
            f"{tuple(x1.shape)} and {tuple(x2.shape)}."
        )
    (a, b, c), (d, e, f) = (_components(x) for x in (x1, x2))
    if sizes == [2, 2]:
        return a * e - b * d
    parts = [b * f - c * e, c * d - a * f, a * e - b * d]
    found = tf.stack(parts, -1)
    return moveaxis(found, -1, axis_in(axisc, found._rank))


def _components(x: Tensor) -> list[Tensor]:
    parts = [x[..., i] for i in range(x.shape[-1])]
    return parts if len(parts) == 3 else [*parts, tf.zeros_like(parts[0])]


def correlate(x1: Any, x2: Any, mode: str = "valid") -> Tensor:
    """The sums of the products of a vector with the other one moved along it.

    Args:
        x1: A vector.
        x2: The vector that is moved.
        mode: "full": wherever they overlap; "valid": where all of the shorter one does; "same": as
            many as the longer one has elements.

    Raises:
        ValueError: Another mode.
    """
    if mode not in ("full", "same", "valid"):
        raise ValueError(f"Invalid mode: '{mode}'. Mode must be one of: 'full', 'same', 'valid'.")
    x1, x2 = matched_tensors(x1, x2)
    if "float" not in x1._dtype:
        wide = "float64" if x1._dtype == "int64" else "float32"
        x1, x2 = tf.cast(x1, wide), tf.cast(x2, wide)
    n, m = x1.shape[0], x2.shape[0]
    padded = tf.pad(x1, [[m - 1, m - 1]])
    places = np.arange(n + m - 1)[:, None] + np.arange(m)[None, :]
    every = tf.squeeze(tf.matmul(tf.gather(padded, places), tf.expand_dims(x2, 1)), [1])
    if mode == "full":
        return every
    shorter, longer = min(n, m), max(n, m)
    if mode == "valid":
        return every[shorter - 1 : longer]
    begin = (shorter - 1) // 2 if n >= m else shorter // 2
    return every[begin : begin + longer]


def slogdet(x: Any) -> tuple[Tensor, Tensor]:
    """The sign of the determinants of matrices, and the logarithms of their absolute values."""
    x = convert_to_tensor(x)
    x = tf.cast(x, result_type(x._dtype, float))
    sign, logarithm = tf.linalg.slogdet(x)
    return sign, logarithm
