"""Tensors made of numbers and shapes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from keras.src.backend import config
from keras.src.backend.common.dtypes import result_type
from keras.src.backend.common.variables import standardize_dtype

import samegrad as tf
from samegrad._keras.conversion import convert_to_tensor
from samegrad._keras.numpy.common import float_of, kind_of, made
from samegrad._ops.elementary import on_circle
from samegrad._tensor.dim import Dim
from samegrad._tensor.tensor import Tensor


def _dtype(dtype: Any) -> str:
    name: str = standardize_dtype(dtype or config.floatx())
    return name


def array(x: Any, dtype: Any = None) -> Tensor:
    """The value as a tensor."""
    return convert_to_tensor(x, dtype=dtype)


def zeros(shape: Any, dtype: Any = None) -> Tensor:
    """Zeros."""
    return tf.zeros(shape, _dtype(dtype))


def ones(shape: Any, dtype: Any = None) -> Tensor:
    """Ones."""
    return tf.ones(shape, _dtype(dtype))


def empty(shape: Any, dtype: Any = None) -> Tensor:
    """Zeros."""
    return tf.zeros(shape, _dtype(dtype))


def full(shape: Any, fill_value: Any, dtype: Any = None) -> Tensor:
    """A value repeated in a shape."""
    return tf.broadcast_to(convert_to_tensor(fill_value, _dtype(dtype)), shape)


def _like(x: Any, dtype: Any) -> tuple[Tensor, Any]:
    return convert_to_tensor(x), None if dtype is None else standardize_dtype(dtype)


def zeros_like(x: Any, dtype: Any = None) -> Tensor:
    """Zeros in the shape of a tensor."""
    return tf.zeros_like(*_like(x, dtype))


def ones_like(x: Any, dtype: Any = None) -> Tensor:
    """Ones in the shape of a tensor."""
    return tf.ones_like(*_like(x, dtype))


def empty_like(x: Any, dtype: Any = None) -> Tensor:
    """Zeros in the shape of a tensor."""
    return zeros_like(x, dtype)


def full_like(x: Any, fill_value: Any, dtype: Any = None) -> Tensor:
    """A value repeated in the shape of a tensor."""
    x = convert_to_tensor(x)
    wanted = x._dtype if dtype is None else standardize_dtype(dtype)
    return tf.broadcast_to(convert_to_tensor(fill_value, wanted), x.shape)


def arange(start: Any, stop: Any = None, step: Any = None, dtype: Any = None) -> Tensor:
    """The numbers start, start + step, … below stop; with one number, from 0 to below it."""
    given = [n for n in (start, stop, step) if n is not None]
    wanted = result_type(*map(kind_of, given)) if dtype is None else standardize_dtype(dtype)
    delta = 1 if step is None else step
    if stop is None:
        return tf.range(start, delta=delta, dtype=wanted)
    return tf.range(start, stop, delta, dtype=wanted)


def linspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, retstep: bool = False,
    dtype: Any = None, axis: int = 0,
) -> Any:  # fmt: skip
    """`num` numbers from start to stop, equally far apart.

    Args:
        start: The first number, or a tensor of them.
        stop: The last one.
        num: How many.
        endpoint: Whether `stop` is one of them.
        retstep: Whether how far apart they are is also returned.
        dtype: Of the result.
        axis: Axis of the numbers in the result.

    Raises:
        ValueError: A negative `num`.
    """
    if num < 0:
        raise ValueError(f"`num` must be a non-negative integer. Received: num={num}")
    kinds = (kind_of(start), kind_of(stop), float)
    wanted = result_type(*kinds) if dtype is None else standardize_dtype(dtype)
    first, last = (tf.cast(convert_to_tensor(n, wanted), "float64") for n in (start, stop))
    gaps = num - 1 if endpoint else num
    first, last = first + last * 0.0, last + first * 0.0
    step = (last - first) / float(gaps) if gaps > 0 else tf.fill(first.shape, math.nan)
    parts = made(np.arange(num) / max(gaps, 1), "float64")
    parts = tf.reshape(parts, [num] + [1] * first._rank)
    found = first * (1.0 - parts) + last * parts
    place = axis % found._rank
    found = tf.transpose(found, [*range(1, place + 1), 0, *range(place + 1, found._rank)])
    found = tf.cast(tf.floor(found) if "int" in wanted else found, wanted)
    return (found, tf.cast(step, result_type(wanted, float))) if retstep else found


def logspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, base: Any = 10,
    dtype: Any = None, axis: int = 0,
) -> Tensor:  # fmt: skip
    """`base` to the power of each number of `linspace`."""
    powers = linspace(start, stop, num, endpoint, dtype=dtype, axis=axis)
    return tf.pow(convert_to_tensor(base, powers._dtype), powers)


def geomspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, dtype: Any = None, axis: int = 0
) -> Tensor:
    """`num` numbers from start to stop, each the one before by the same factor."""
    kinds = (kind_of(start), kind_of(stop), float)
    wanted = result_type(*kinds) if dtype is None else standardize_dtype(dtype)
    ends = [tf.cast(convert_to_tensor(n), "float64") for n in (start, stop)]
    first, last = (tf.math.log(tf.abs(n)) for n in ends)
    found = tf.exp(linspace(first, last, num, endpoint, axis=axis)) * tf.sign(ends[0])
    return tf.cast(found, wanted)


def _places(rows: Any, columns: Any) -> tuple[Tensor, Tensor]:
    """The number of each row, as a column, and of each column."""
    return tf.expand_dims(tf.range(rows), 1), tf.range(columns)


def _offset(k: Any) -> Any:
    return int(k) if hasattr(k, "__index__") and not isinstance(k, Tensor | Dim) else k


def eye(N: Any, M: Any = None, k: Any = 0, dtype: Any = None) -> Tensor:  # noqa: N803
    """A matrix with ones on its k-th diagonal."""
    columns = N if M is None else M
    row, column = _places(N, columns)
    return tf.cast(tf.equal(row + _offset(k), column), _dtype(dtype))


def identity(n: Any, dtype: Any = None) -> Tensor:
    """A square matrix with ones on its diagonal."""
    return eye(n, n, dtype=dtype)


def tri(N: Any, M: Any = None, k: Any = 0, dtype: Any = None) -> Tensor:  # noqa: N803
    """A matrix with ones up to its k-th diagonal."""
    row, column = _places(N, N if M is None else M)
    return tf.cast(tf.greater_equal(row + _offset(k), column), _dtype(dtype))


def tril(x: Any, k: Any = 0) -> Tensor:
    """The matrices, with zeros behind the k-th diagonal."""
    x = convert_to_tensor(x)
    row, column = _places(*x.shape[-2:])
    return tf.where(tf.greater_equal(row + _offset(k), column), x, tf.zeros_like(x))


def triu(x: Any, k: Any = 0) -> Tensor:
    """The matrices, with zeros before the k-th diagonal."""
    x = convert_to_tensor(x)
    row, column = _places(*x.shape[-2:])
    return tf.where(tf.less_equal(row + _offset(k), column), x, tf.zeros_like(x))


def meshgrid(*x: Any, indexing: str = "xy") -> list[Tensor]:
    """For each vector what it is at each point of the grid of all."""
    return tf.meshgrid(*map(convert_to_tensor, x), indexing=indexing)


def vander(x: Any, N: Any = None, increasing: bool = False) -> Tensor:  # noqa: N803
    """The powers 0 to N - 1 of each number in a row, the highest first unless `increasing`."""
    x = convert_to_tensor(x)
    powers = tf.range(x.shape[0] if N is None else N)
    powers = powers if increasing else tf.reverse(powers, [0])
    computed = float_of(x)
    found = tf.pow(tf.expand_dims(computed, -1), tf.cast(powers, computed._dtype))
    return tf.cast(found, result_type(x._dtype))


def bartlett(x: Any) -> Tensor:
    """Bartlett's window, a triangle, of x points."""
    return made(np.bartlett(int(x)), config.floatx())


def blackman(x: Any) -> Tensor:
    """Blackman's window of x points."""
    size = max(int(x), 0)
    places = np.arange(size)
    waves = [on_circle(n * places, max(size - 1, 1)).real for n in (1, 2)]
    values = 0.42 - 0.5 * waves[0] + 0.08 * waves[1]
    return made(values if size != 1 else np.ones(1), config.floatx())


def hamming(x: Any) -> Tensor:
    """Hamming's window of x points."""
    return tf.signal.hamming_window(max(int(x), 0), periodic=False, dtype=config.floatx())


def hanning(x: Any) -> Tensor:
    """Hann's window of x points."""
    return tf.signal.hann_window(max(int(x), 0), periodic=False, dtype=config.floatx())


def kaiser(x: Any, beta: Any) -> Tensor:
    """Kaiser's window of x points with the shape `beta`."""
    return tf.signal.kaiser_window(max(int(x), 0), abs(float(beta)), config.floatx())
