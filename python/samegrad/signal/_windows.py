"""Windows that frames of signals are multiplied by, computed in float64 and rounded once."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from samegrad._base.dtypes import DTypeLike, as_dtype
from samegrad._ops.arrays import cast
from samegrad._ops.elementary import bessel_i0e, exp, on_circle, sin
from samegrad._tensor.tensor import Tensor, convert_to_tensor
from samegrad.signal._frames import at_least


def _made(values: Any, dtype: DTypeLike, who: str) -> Tensor:
    kind = as_dtype(dtype)
    if not kind.is_floating:
        raise ValueError(f"[{who}] dtype must be a type of floats: got {kind.name}.")
    return cast(convert_to_tensor(values), kind)


def _raised_cosine(length: Any, periodic: Any, mean: float, who: str) -> NDArray[Any]:
    size = at_least(length, 0, who, "window_length")
    if size == 1:
        return np.ones(1)
    period = size if bool(periodic) and size % 2 == 0 else size - 1
    made: NDArray[Any] = mean - (1 - mean) * on_circle(np.arange(size), period).real
    return made


def hann_window(
    window_length: Any, periodic: bool = True, dtype: DTypeLike = "float32", name: str | None = None
) -> Tensor:
    """Compute the Hann window 0.5 - 0.5 cos(2πn / period).

    Args:
        window_length: The number of samples.
        periodic: True: the period of an even length is the length, for spectra. False: it is the
            length - 1, for filters. The period of an odd length is always the length - 1, as in
            TensorFlow.
        dtype: A dtype of floats, that of the window.
        name: Ignored.

    Returns:
        A vector [window_length], in the dtype `dtype`.

    Raises:
        ValueError: The length is negative, or the dtype is not of floats.

    Example:
        >>> import samegrad as tf
        >>> tf.signal.hann_window(4).numpy()
        array([0. , 0.5, 1. , 0.5], dtype=float32)
    """
    return _made(_raised_cosine(window_length, periodic, 0.5, "hann_window"), dtype, "hann_window")


def hamming_window(
    window_length: Any, periodic: bool = True, dtype: DTypeLike = "float32", name: str | None = None
) -> Tensor:
    """Compute the Hamming window 0.54 - 0.46 cos(2πn / period).

    Args:
        window_length: The number of samples.
        periodic: True: the period of an even length is the length, for spectra. False: it is the
            length - 1, for filters. The period of an odd length is always the length - 1, as in
            TensorFlow.
        dtype: A dtype of floats, that of the window.
        name: Ignored.

    Returns:
        A vector [window_length], in the dtype `dtype`.

    Raises:
        ValueError: The length is negative, or the dtype is not of floats.

    Example:
        >>> import samegrad as tf
        >>> tf.signal.hamming_window(4).numpy().round(2)
        array([0.08, 0.54, 1.  , 0.54], dtype=float32)
    """
    made = _raised_cosine(window_length, periodic, 0.54, "hamming_window")
    return _made(made, dtype, "hamming_window")


def _kaiser(size: int, beta: Any) -> NDArray[Any]:
    if size == 1:
        return np.ones(1)
    half = (size - 1) / 2
    beta = float(beta)
    inside = np.maximum(1 - ((np.arange(size) - half) / half) ** 2, 0)
    argument = beta * np.sqrt(inside)
    made: NDArray[Any] = exp(argument - beta) * bessel_i0e(argument) / bessel_i0e(beta)
    return made


def kaiser_window(
    window_length: Any, beta: Any = 12.0, dtype: DTypeLike = "float32", name: str | None = None
) -> Tensor:
    """Compute the Kaiser window I₀(β sqrt(1 - (2n / (length - 1) - 1)²)) / I₀(β).

    Args:
        window_length: The number of samples.
        beta: The shape: larger values lower the side lobes and widen the main lobe.
        dtype: A dtype of floats, that of the window.
        name: Ignored.

    Returns:
        A vector [window_length], in the dtype `dtype`.

    Example:
        >>> import samegrad as tf
        >>> tf.signal.kaiser_window(3, beta=2.0).numpy().round(3)
        array([0.439, 1.   , 0.439], dtype=float32)
    """
    size = at_least(window_length, 0, "kaiser_window", "window_length")
    return _made(_kaiser(size, beta), dtype, "kaiser_window")


def kaiser_bessel_derived_window(
    window_length: Any, beta: Any = 12.0, dtype: DTypeLike = "float32", name: str | None = None
) -> Tensor:
    """Compute the Kaiser-Bessel-derived window, of cumulative sums of `kaiser_window`.

    Its squares, half its length apart, sum to 1.

    Args:
        window_length: The number of samples; an odd length gives one less.
        beta: The shape of the Kaiser window.
        dtype: A dtype of floats, that of the window.
        name: Ignored.

    Returns:
        A vector [window_length], in the dtype `dtype`.

    Example:
        >>> import samegrad as tf
        >>> window = tf.signal.kaiser_bessel_derived_window(4).numpy()
        >>> bool(abs(window[0] ** 2 + window[2] ** 2 - 1) < 1e-6)
        True
    """
    who = "kaiser_bessel_derived_window"
    sums = np.cumsum(_kaiser(at_least(window_length, 0, who, "window_length") // 2 + 1, beta))
    half = np.sqrt(sums[:-1] / sums[-1])
    return _made(np.concatenate([half, half[::-1]]), dtype, who)


def vorbis_window(
    window_length: Any, dtype: DTypeLike = "float32", name: str | None = None
) -> Tensor:
    """Compute the Vorbis window sin(π/2 sin²(π (n + 0.5) / length)).

    Args:
        window_length: The number of samples.
        dtype: A dtype of floats, that of the window.
        name: Ignored.

    Returns:
        A vector [window_length], in the dtype `dtype`.

    Raises:
        ValueError: The length is negative, or the dtype is not of floats.

    Example:
        >>> import samegrad as tf
        >>> tf.signal.vorbis_window(4).numpy().round(3)
        array([0.228, 0.974, 0.974, 0.228], dtype=float32)
    """
    size = at_least(window_length, 0, "vorbis_window", "window_length")
    inner = on_circle(2 * np.arange(size) + 1, 4 * max(size, 1)).imag
    return _made(sin(np.pi / 2 * inner**2), dtype, "vorbis_window")
