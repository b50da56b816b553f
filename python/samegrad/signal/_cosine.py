"""Cosine transforms, and what is made of them: mel cepstra and overlapping transforms."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from samegrad import _core
from samegrad._base.shown import shown
from samegrad._ops.elementary import on_circle
from samegrad._tensor.conversion import number
from samegrad._tensor.sizes import whole
from samegrad._tensor.tensor import Tensor, TensorLike, convert_to_tensor
from samegrad.signal._fourier import (
    DIRECT,
    inverse_real_transform,
    of_length,
    real_transform,
)
from samegrad.signal._transforms import real_numbers

_ops = _core.ops


def dct(
    input: TensorLike, type: int = 2, n: int | None = None, axis: int = -1, norm: str | None = None,
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """Compute the discrete cosine transform along the last axis, as scipy.fft.dct does.

    Args:
        input: A float32 or float64 tensor of shape [..., size].
        type: The type of the transform: 1, 2, 3 or 4.
        n: The length to which the axis is cropped or zero-padded; None: its size.
        axis: Must be -1.
        norm: "ortho" makes the transform orthogonal; None. Type 1 takes None only.
        name: Ignored.

    Returns:
        A tensor [..., n], in the dtype of `input`.

    Raises:
        ValueError: An argument is invalid, or type 1 has fewer than two elements.
        NotImplementedError: The axis is not -1.

    Example:
        >>> import samegrad as tf
        >>> tf.signal.dct([1.0, 2.0, 3.0]).numpy().round(3)
        array([12.   , -3.464,  0.   ], dtype=float32)
    """
    return _checked("dct", input, type, n, axis, norm, type)


def idct(
    input: TensorLike, type: int = 2, n: int | None = None, axis: int = -1, norm: str | None = None,
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """Compute the inverse discrete cosine transform along the last axis.

    With norm=None the result is `dct`'s input times a factor, 2 n (type 1: n - 1).

    Args:
        input: A float32 or float64 tensor of shape [..., size].
        type: The type of the forward transform: 1, 2, 3 or 4.
        n: The length to which the axis is cropped or zero-padded; None: its size.
        axis: Must be -1.
        norm: The norm of the forward transform: "ortho" or None.
        name: Ignored.

    Returns:
        A tensor [..., n], in the dtype of `input`.

    Raises:
        ValueError: An argument is invalid, or type 1 has fewer than two elements.
        NotImplementedError: The axis is not -1.

    Example:
        >>> import samegrad as tf
        >>> tf.signal.idct(tf.signal.dct([1.0, 2.0], norm="ortho"), norm="ortho").numpy().round(5)
        array([1., 2.], dtype=float32)
    """
    return _checked("idct", input, {2: 3, 3: 2}.get(type, type), n, axis, norm, type)


def _checked(
    who: str, value: TensorLike, kind: int, n: int | None, axis: int, norm: str | None, given: Any
) -> Tensor:
    if axis != -1:
        raise NotImplementedError(f"[{who}] axis must be -1: got {shown(axis)}; use transpose.")
    if given not in (1, 2, 3, 4) or norm not in (None, "ortho") or (kind, norm) == (1, "ortho"):
        raise ValueError(
            f"[{who}] type must be 1, 2, 3 or 4, and norm None or, not of type 1, 'ortho': got "
            f"type {shown(given)} and norm {shown(norm)}."
        )
    x = real_numbers(value, who)
    if n is not None:
        length = whole(n, "n is an integer")
        if length < 1:
            raise ValueError(f"[{who}] n must be 1 or more: got {length}.")
        x = of_length(x, length)
    size = int(x.shape[-1])
    if size < (2 if kind == 1 else 1):
        least = "two numbers" if kind == 1 else "a number"
        raise ValueError(f"[{who}] of type {given} {least} at least are needed: got {size}.")
    return _cosines(x, kind, norm)


def _cosines(x: Tensor, kind: int, norm: str | None) -> Tensor:
    size = int(x.shape[-1])
    if size <= 2 * DIRECT:
        matrix = convert_to_tensor(_matrix(size, kind, norm, x._dtype))
        rows = _ops.expand_dims(x, axes=(0,)) if x._rank == 1 else x
        found: Tensor = _ops.matmul(rows, matrix)
        return _ops.squeeze(found, axes=(0,)) if x._rank == 1 else found
    weights = None if norm is None else convert_to_tensor(_weights(size, kind), x._dtype)
    if kind == 3 and weights is not None:
        x = x * weights
    found = _long(x, kind, size)
    return found * weights if kind != 3 and weights is not None else found


def _weights(size: int, kind: int) -> NDArray[Any]:
    """Return the factors that make types 2 (of the results), 3 (of the inputs) and 4 orthogonal."""
    weights = np.full(size, math.sqrt(0.5 / size))
    if kind == 2:
        weights[0] = 0.5 / math.sqrt(size)
    elif kind == 3:
        weights[0] = 1 / math.sqrt(size)
    return weights


@functools.lru_cache(12)
def _matrix(size: int, kind: int, norm: str | None, dtype: str) -> NDArray[Any]:
    """Return the matrix of the transform; angles are integer multiples, reduced exactly."""
    n, k = np.arange(size)[:, None], np.arange(size)
    products, period = {
        1: (n * k, 2 * max(size - 1, 1)),
        2: ((2 * n + 1) * k, 4 * size),
        3: (n * (2 * k + 1), 4 * size),
        4: ((2 * n + 1) * (2 * k + 1), 8 * size),
    }[kind]
    matrix = 2 * on_circle(products, period).real
    if kind in (1, 3):
        matrix[0] /= 2
    if kind == 1:
        matrix[-1] /= 2
    if norm is not None:
        weights = _weights(size, kind)
        matrix = matrix * (weights[:, None] if kind == 3 else weights)
    return matrix.astype(dtype)


def _long(x: Tensor, kind: int, size: int) -> Tensor:
    """Transform through Fourier transforms of about twice the length."""
    if kind == 1:
        return real_transform(_ops.concat(x, x[..., -2:0:-1], axis=x._rank - 1))[0]
    if kind == 4:
        return _long(of_length(x, 2 * size), 2, 2 * size)[..., 1::2]
    circle = on_circle(np.arange(size), 4 * size)
    cos, sin = (convert_to_tensor(part, x._dtype) for part in (circle.real, circle.imag))
    if kind == 3:
        a, b = (of_length(x * part, size + 1) for part in (cos, sin))
        return inverse_real_transform(a, b, 2 * size)[..., :size]
    a, b = real_transform(of_length(x, 2 * size))
    half = a[..., :size] * cos + b[..., :size] * sin
    return half + half


def mfccs_from_log_mel_spectrograms(
    log_mel_spectrograms: TensorLike, name: str | None = None
) -> Tensor:
    """Compute mel-frequency cepstral coefficients: `dct` of type 2, scaled by 1 / sqrt(2 * bins).

    Args:
        log_mel_spectrograms: A float32 or float64 tensor of shape [..., bins].
        name: Ignored.

    Returns:
        A tensor [..., bins] of all coefficients; programs often keep the first 13.

    Raises:
        ValueError: There are no bins.

    Example:
        >>> import samegrad as tf
        >>> tf.signal.mfccs_from_log_mel_spectrograms([[1.0, 1.0]]).numpy()
        array([[2., 0.]], dtype=float32)
    """
    x = real_numbers(log_mel_spectrograms, "mfccs_from_log_mel_spectrograms")
    bins = int(x.shape[-1])
    if not bins:
        raise ValueError(
            f"[mfccs_from_log_mel_spectrograms] bins must be 1 or more: got shape {x._shape}."
        )
    return dct(x) * number(1 / math.sqrt(2 * bins), x._dtype)
