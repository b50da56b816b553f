"""keras.backend.math: Fourier transforms of pairs (real, imaginary)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

import samegrad as tf
from samegrad._base.dtypes import as_dtype
from samegrad._keras.conversion import convert_to_tensor
from samegrad._ops.elementary import on_circle
from samegrad._tensor.tensor import Tensor
from samegrad.signal._fourier import (
    inverse_real_transform,
    of_length,
    real_transform,
    swapped,
    transform,
)
from samegrad.signal._frames import added_up, framed
from samegrad.signal._spectra import by_squares


def _get_complex_tensor_from_tuple(x: Any) -> tuple[Tensor, Tensor]:
    """The real and the imaginary part, checked to be floats of one shape."""
    if not isinstance(x, tuple | list) or len(x) != 2:
        raise ValueError(
            f"Input `x` should be a tuple of two tensors - real and imaginary.Received: x={x}"
        )
    real, imag = convert_to_tensor(x[0]), convert_to_tensor(x[1])
    if tuple(real.shape) != tuple(imag.shape):
        raise ValueError(
            "Input `x` should be a tuple of two tensors - real and imaginary."
            "Both the real and imaginary parts should have the same shape. "
            f"Received: x[0].shape = {real.shape}, x[1].shape = {imag.shape}"
        )
    if not all(as_dtype(part._dtype).is_floating for part in (real, imag)):
        raise ValueError(f"At least one tensor in input `x` is not of type float.Received: x={x}.")
    return _wide(real), _wide(imag)


def _wide(x: Tensor) -> Tensor:
    """Floats of 32 bits at least."""
    return x if x._dtype in ("float32", "float64") else tf.cast(x, "float32")


def fft(x: Any) -> tuple[Tensor, Tensor]:
    """The discrete Fourier transform along the last axis of (real, imaginary).

    Raises:
        ValueError: x is not a pair of floats of one shape.
    """
    return transform(*_get_complex_tensor_from_tuple(x), -1)


def fft2(x: Any) -> tuple[Tensor, Tensor]:
    """The discrete Fourier transform along the last two axes of (real, imaginary)."""
    return _twice(x, -1)


def _twice(x: Any, sign: int) -> tuple[Tensor, Tensor]:
    real, imag = transform(*_get_complex_tensor_from_tuple(x), sign)
    real, imag = transform(swapped(real), swapped(imag), sign)
    return swapped(real), swapped(imag)


def ifft2(x: Any) -> tuple[Tensor, Tensor]:
    """The inverse of `fft2`."""
    real, imag = _twice(x, 1)
    count = float(int(real.shape[-2]) * int(real.shape[-1]))
    return real / count, imag / count


def rfft(x: Any, fft_length: int | None = None) -> tuple[Tensor, Tensor]:
    """The first half of the transform of real numbers, whose other half mirrors it.

    Args:
        x: Floats.
        fft_length: What the last axis is cut or filled up to first.

    Returns:
        Real and imaginary parts [..., fft_length // 2 + 1].
    """
    given = convert_to_tensor(x)
    real = _wide(given)
    size = int(real.shape[-1]) if fft_length is None else int(fft_length)
    return real_transform(of_length(real, size))


def irfft(x: Any, fft_length: int | None = None) -> Tensor:
    """The real numbers whose `rfft` is (real, imaginary).

    Args:
        x: The pair.
        fft_length: How many numbers; default 2 * (size - 1).
    """
    real, imag = _get_complex_tensor_from_tuple(x)
    size = 2 * (int(real.shape[-1]) - 1) if fft_length is None else int(fft_length)
    half = size // 2 + 1
    real, imag = of_length(real, half), of_length(imag, half)
    return inverse_real_transform(real, imag, size) / float(size)


def _window(window: Any, length: int, fft_length: int) -> NDArray[Any] | Tensor | None:
    """The window's numbers in the middle of `fft_length`."""
    if window is None:
        return None
    before = (fft_length - length) // 2
    around = (before, fft_length - length - before)
    if isinstance(window, str):
        if window not in {"hann", "hamming"}:
            raise ValueError(
                "If a string is passed to `window`, it must be one of "
                f'`"hann"`, `"hamming"`. Received: window={window}'
            )
        mean = 0.5 if window == "hann" else 0.54
        waves = on_circle(np.arange(length), length).real
        made: NDArray[Any] = np.pad(mean - (1 - mean) * waves, around)
        return made
    given = convert_to_tensor(window)
    if given._rank != 1 or given.shape[0] != length:
        raise ValueError(
            "The shape of `window` must be equal to [sequence_length]."
            f"Received: window shape={given.shape}"
        )
    return tf.pad(given, [around])


def stft(
    x: Any,
    sequence_length: int,
    sequence_stride: int,
    fft_length: int,
    window: Any = "hann",
    center: bool = True,
) -> tuple[Tensor, Tensor]:
    """The transforms of windows of the last axis: [..., windows, fft_length // 2 + 1].

    Args:
        x: Floats of 32 or 64 bits.
        sequence_length: That of a window.
        sequence_stride: From window to window.
        fft_length: What windows are filled up to with zeros, on both sides.
        window: "hann", "hamming", None, or the window's weights.
        center: Whether x is mirrored at its ends, so that windows are centred on their positions.

    Raises:
        TypeError: Other numbers.
        ValueError: The arguments do not fit.
    """
    signal = convert_to_tensor(x)
    if signal._dtype not in {"float32", "float64"}:
        raise TypeError(
            "Invalid input type. Expected `float32` or `float64`. "
            f"Received: input type={signal._dtype}"
        )
    if fft_length < sequence_length:
        raise ValueError(
            "`fft_length` must equal or larger than `sequence_length`. "
            f"Received: sequence_length={sequence_length}, fft_length={fft_length}"
        )
    weights = _window(window, sequence_length, fft_length)
    if center:
        places = np.pad(np.arange(int(signal.shape[-1])), fft_length // 2, mode="reflect")
        signal = tf.gather(signal, places, axis=-1)
    frames = framed(signal, fft_length, sequence_stride)
    if weights is not None:
        frames = frames * convert_to_tensor(weights, signal._dtype)
    return rfft(frames)


def istft(
    x: Any,
    sequence_length: int,
    sequence_stride: int,
    fft_length: int,
    length: int | None = None,
    window: Any = "hann",
    center: bool = True,
) -> Tensor:
    """The numbers whose `stft` is (real, imaginary).

    Args:
        x: The pair.
        sequence_length: As `stft` was given it.
        sequence_stride: As `stft` was given it.
        fft_length: As `stft` was given it.
        length: How many numbers; default as many as there are.
        window: As `stft` was given it.
        center: As `stft` was given it.
    """
    frames = irfft(x, fft_length)
    weights = _window(window, sequence_length, fft_length)
    if weights is not None:
        given = convert_to_tensor(weights, frames._dtype)
        frames = frames * by_squares(given, sequence_stride)
    signal = added_up(frames, sequence_stride)
    start = fft_length // 2 if center else 0
    end = int(signal.shape[-1]) - start if length is None else start + int(length)
    return signal[..., start:end]
