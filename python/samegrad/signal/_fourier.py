"""Discrete Fourier transforms of pairs (real, imaginary) along the last axis.

Short transforms are products with a matrix. Longer ones are made of shorter ones (Cooley and Tukey,
1965); those of a large prime length are convolutions of a length that has small factors (Bluestein,
1970). Each row is computed by itself, in an order that its length alone decides.
"""

from __future__ import annotations

from math import isqrt
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from samegrad import _core
from samegrad._base.kept import kept_within
from samegrad._context import state as _context
from samegrad._ops import arrays, padding
from samegrad._ops.elementary import on_circle
from samegrad._tensor.tensor import Tensor, convert_to_tensor

Pair: TypeAlias = tuple[Tensor, Tensor]
_ops = _core.ops

# Up to this length one matrix.
DIRECT = 128
# Up to this length, if it is prime, a matrix costs less than three transforms.
_DIRECT_PRIME = 512
_KEPT_BYTES = 64 << 20  # by each of four functions; a matrix of length 2**22 has as many


@kept_within(_KEPT_BYTES)
def turns(rows: int, columns: int, size: int, sign: int) -> NDArray[Any]:
    """Return exp(sign * 2πi * row * column / size); the integer products are reduced exactly."""
    return on_circle(sign * np.arange(rows)[:, None] * np.arange(columns), size)


def _constant(values: NDArray[Any], like: Tensor) -> Tensor:
    return convert_to_tensor(values, like._dtype)


@kept_within(_KEPT_BYTES)
def _matrix(rows: int, columns: int, size: int, sign: int, both: bool, dtype: str) -> NDArray[Any]:
    """Return the matrix that multiplies [real, imaginary], or the real part alone."""
    matrix = turns(rows, columns, size, sign)
    upper = np.concatenate([matrix.real, matrix.imag], 1)
    if both:
        upper = np.concatenate([upper, np.concatenate([-matrix.imag, matrix.real], 1)])
    return upper.astype(dtype)


def _direct(real: Tensor, imag: Tensor | None, columns: int, size: int, sign: int) -> Pair:
    """Return the first columns of the transform, as one product."""
    rows = int(real.shape[-1])
    both = real if imag is None else _ops.concat(real, imag, axis=real._rank - 1)
    matrix = convert_to_tensor(_matrix(rows, columns, size, sign, imag is not None, real._dtype))
    flat = _ops.expand_dims(both, axes=(0,)) if both._rank == 1 else both
    product = _ops.matmul(flat, matrix)
    product = _ops.squeeze(product, axes=(0,)) if both._rank == 1 else product
    return product[..., :columns], product[..., columns:]


def transform(real: Tensor, imag: Tensor | None, sign: int) -> Pair:
    """Sum over n of x[n] * exp(sign * 2πi * k * n / size), for each k, along the last axis.

    Args:
        real: float32 or float64, whose last axis is not empty.
        imag: Of the same shape; None: zeros.
        sign: -1, or 1 of the inverse (which is not divided by the size).
    """
    size = int(real.shape[-1])
    if size <= DIRECT:
        return _direct(real, imag, size, size, sign)
    outer = next((d for d in range(isqrt(size), 1, -1) if size % d == 0), 1)
    if outer == 1:
        direct = size <= _DIRECT_PRIME
        return _direct(real, imag, size, size, sign) if direct else _chirped(real, imag, sign)
    # n = inner * n1 + n2, k = k1 + outer * k2.
    inner = size // outer
    parts = [None if x is None else swapped(_split(x, outer, inner)) for x in (real, imag)]
    assert parts[0] is not None
    a, b = transform(parts[0], parts[1], sign)
    twist = turns(inner, outer, size, sign)
    cos, sin = _constant(twist.real, a), _constant(twist.imag, a)
    a, b = transform(swapped(a * cos - b * sin), swapped(a * sin + b * cos), sign)
    return _joined(swapped(a)), _joined(swapped(b))


@kept_within(_KEPT_BYTES)
def _chirp(size: int, length: int, sign: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return exp(sign * πi * n² / size), and the transform of its conjugate around zero."""
    chirp = on_circle(sign * np.arange(size, dtype=np.int64) ** 2, 2 * size)
    around = np.zeros(length, complex)
    around[:size] = chirp.conj()
    around[length - size + 1 :] = chirp[1:][::-1].conj()
    with _context.init_scope():  # these are values, also inside a traced function
        parts = transform(convert_to_tensor(around.real), convert_to_tensor(around.imag), -1)
        real, imag = (part.numpy() / length for part in parts)
    return chirp, real + 1j * imag


def _chirped(real: Tensor, imag: Tensor | None, sign: int) -> Pair:
    """Return a transform of any length: n * k = (n² + k² - (k - n)²) / 2 makes it a convolution."""
    size = int(real.shape[-1])
    length = 1 << (2 * size - 2).bit_length()
    chirp, response = _chirp(size, length, sign)
    cos, sin = _constant(chirp.real, real), _constant(chirp.imag, real)
    a, b = (real * cos, real * sin) if imag is None else _times(real, imag, cos, sin)
    a, b = transform(of_length(a, length), of_length(b, length), -1)
    a, b = _times(a, b, _constant(response.real, a), _constant(response.imag, a))
    a, b = transform(a, b, 1)
    return _times(a[..., :size], b[..., :size], cos, sin)


def _times(a: Tensor, b: Tensor, cos: Tensor, sin: Tensor) -> Pair:
    return a * cos - b * sin, a * sin + b * cos


def _split(x: Tensor, outer: int, inner: int) -> Tensor:
    return arrays.reshape(x, (*x.shape[:-1], outer, inner))


def _joined(x: Tensor) -> Tensor:
    return arrays.reshape(x, (*x.shape[:-2], x.shape[-2] * x.shape[-1]))


def swapped(x: Tensor) -> Tensor:
    """Return the last two axes in the other order."""
    rank = x._rank
    return arrays.transpose(x, [*range(rank - 2), rank - 1, rank - 2])


def of_length(x: Tensor, length: int, axis: int = -1) -> Tensor:
    """Return an axis cut to a length, or filled up with zeros at its end."""
    place = axis % x._rank
    size = int(x.shape[place])
    if size == length:
        return x
    if size > length:
        return x[(slice(None),) * place + (slice(length),)]
    around = [[0, 0]] * place + [[0, length - size]] + [[0, 0]] * (x._rank - 1 - place)
    return padding.pad(x, around)


def real_transform(real: Tensor) -> Pair:
    """Return the first half of the transform of real numbers, whose other half mirrors it."""
    size = int(real.shape[-1])
    half = size // 2 + 1
    if size <= 2 * DIRECT:
        return _direct(real, None, half, size, -1)
    a, b = transform(real, None, -1)
    return a[..., :half], b[..., :half]


def inverse_real_transform(real: Tensor, imag: Tensor, size: int) -> Tensor:
    """Return the numbers whose `real_transform` is (real, imaginary), times their count.

    Args:
        real: [..., size // 2 + 1].
        imag: The same. Of the number at zero, and at size / 2 if that is whole, nothing counts.
        size: How many numbers.
    """
    half = size // 2 + 1
    if size <= 2 * DIRECT:
        matrix = _inverse_matrix(size, real._dtype)
        both = _ops.concat(real, imag, axis=real._rank - 1)
        flat = _ops.expand_dims(both, axes=(0,)) if both._rank == 1 else both
        product: Tensor = _ops.matmul(flat, convert_to_tensor(matrix))
        return _ops.squeeze(product, axes=(0,)) if both._rank == 1 else product
    inner = (size - 1) // 2  # those that have a mirror image
    mirrored = [part[..., inner:0:-1] for part in (real, imag)]
    signs = np.ones(half)
    signs[0] = 0.0
    if size % 2 == 0:
        signs[-1] = 0.0
    imag = imag * _constant(signs, imag)
    last = real._rank - 1
    whole = _ops.concat(real, mirrored[0], axis=last)
    return transform(whole, _ops.concat(imag, _ops.neg(mirrored[1]), axis=last), 1)[0]


@kept_within(_KEPT_BYTES)
def _inverse_matrix(size: int, dtype: str) -> NDArray[Any]:
    half = size // 2 + 1
    matrix = turns(half, size, size, 1)
    twice = np.full((half, 1), 2.0)
    twice[0] = 1.0
    if size % 2 == 0:
        twice[-1] = 1.0
    return np.concatenate([matrix.real * twice, -matrix.imag * twice]).astype(dtype)
