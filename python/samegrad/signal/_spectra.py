"""Transforms of the frames of signals, and the mel scale."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from samegrad import _core
from samegrad._base.dtypes import DTypeLike, as_dtype
from samegrad._base.shown import shown
from samegrad._ops.arrays import cast, reverse, split
from samegrad._tensor.conversion import number
from samegrad._tensor.tensor import Tensor, TensorLike, convert_to_tensor
from samegrad.signal._cosine import dct
from samegrad.signal._fourier import of_length
from samegrad.signal._frames import at_least, frame, overlap_and_add
from samegrad.signal._transforms import complex_numbers, irfft, real_numbers, rfft
from samegrad.signal._windows import hann_window, vorbis_window

_ops = _core.ops
_BREAK_HERTZ, _MELS = 700.0, 1127.0  # mel = 1127 ln(1 + hertz / 700)

Window = Callable[..., Any]


def _fft_length(given: Any, frame_length: int, who: str) -> int:
    if given is None:
        return 1 << (frame_length - 1).bit_length()
    return at_least(given, 1, who, "fft_length")


def _window(function: Window | None, length: int, dtype: str, who: str) -> Tensor | None:
    """What a frame is multiplied by."""
    if function is None:
        return None
    window = convert_to_tensor(function(length, dtype=as_dtype(dtype)))
    if tuple(window._shape) != (length,) or window._dtype != dtype:
        raise ValueError(
            f"[{who}] window_fn(frame_length, dtype) must give {length} numbers of {dtype}: got "
            f"{window._dtype} of shape {window._shape}."
        )
    return window


def stft(
    signals: TensorLike, frame_length: Any, frame_step: Any, fft_length: Any = None,
    window_fn: Window | None = hann_window, pad_end: bool = False, name: str | None = None,
) -> Any:  # fmt: skip
    """The short-time Fourier transform: `rfft` of the frames of signals, times a window.

    Args:
        signals: float32 or float64, of shape [..., samples].
        frame_length: Samples in a frame.
        frame_step: From the beginning of a frame to that of the next one.
        fft_length: What frames are filled up to with zeros; None: the next power of two.
        window_fn: Called with frame_length and dtype; None: no window.
        pad_end: Whether frames that begin in the signal are filled up; else they are whole.
        name: Ignored.

    Returns:
        complex64 or complex128, of shape [..., frames, fft_length // 2 + 1].

    Raises:
        ValueError: The numbers are of another type, or a length is below 1.

    Example:
        >>> import samegrad as tf
        >>> waves = tf.sin(tf.range(16000.0) * 0.1)
        >>> tf.abs(tf.signal.stft(waves, frame_length=255, frame_step=128)).shape
        (124, 129)
    """
    x = real_numbers(signals, "stft")
    length = at_least(frame_length, 1, "stft", "frame_length")
    size = _fft_length(fft_length, length, "stft")
    frames = frame(x, length, at_least(frame_step, 1, "stft", "frame_step"), pad_end)
    window = _window(window_fn, length, x._dtype, "stft")
    return rfft(frames if window is None else frames * window, [size])


def inverse_stft(
    stfts: TensorLike, frame_length: Any, frame_step: Any, fft_length: Any = None,
    window_fn: Window | None = hann_window, name: str | None = None,
) -> Tensor:  # fmt: skip
    """The signals of a short-time Fourier transform: frames times a window, added up.

    Args:
        stfts: complex64 or complex128, of shape [..., frames, fft_length // 2 + 1].
        frame_length: As `stft` had it.
        frame_step: As `stft` had it.
        fft_length: As `stft` had it.
        window_fn: See `inverse_stft_window_fn`, which undoes the window of `stft`.
        name: Ignored.

    Returns:
        float32 or float64, of shape [..., (frames - 1) * frame_step + frame_length].

    Example:
        >>> import samegrad as tf
        >>> x = tf.ones([12])
        >>> back = tf.signal.inverse_stft(
        ...     tf.signal.stft(x, 4, 2), 4, 2, window_fn=tf.signal.inverse_stft_window_fn(2))
        >>> back.numpy()[2:-2].round(5).tolist()
        [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]
    """
    z = complex_numbers(stfts, "inverse_stft", 2)
    length = at_least(frame_length, 1, "inverse_stft", "frame_length")
    size = _fft_length(fft_length, length, "inverse_stft")
    frames = of_length(irfft(z, [size]), length)
    window = _window(window_fn, length, frames._dtype, "inverse_stft")
    return overlap_and_add(frames if window is None else frames * window, frame_step)


def inverse_stft_window_fn(
    frame_step: Any, forward_window_fn: Window = hann_window, name: str | None = None
) -> Callable[..., Tensor]:
    """A window for `inverse_stft` that undoes that of `stft`: by the squares that overlap.

    Args:
        frame_step: As `stft` had it.
        forward_window_fn: As `stft` had it.
        name: Ignored.

    Returns:
        A function of frame_length and dtype.

    Example:
        >>> import samegrad as tf
        >>> tf.signal.inverse_stft_window_fn(2)(4, dtype=tf.float32).numpy()
        array([0., 1., 1., 1.], dtype=float32)
    """
    step = at_least(frame_step, 1, "inverse_stft_window_fn", "frame_step")

    def inverse_window(frame_length: Any, dtype: DTypeLike) -> Tensor:
        length = at_least(frame_length, 1, "inverse_stft_window_fn", "frame_length")
        kind = as_dtype(dtype).name
        window = _window(forward_window_fn, length, kind, "inverse_stft_window_fn")
        assert window is not None
        return by_squares(window, step)

    return inverse_window


def by_squares(window: Tensor, step: int) -> Tensor:
    """A window by the sum of the squares of all windows that lie at a place; zero where it is zero.

    Example:
        >>> by_squares(convert_to_tensor([0.0, 2.0, 2.0]), 2).numpy()
        array([0. , 0.5, 0.5], dtype=float32)
    """
    length = int(window.shape[0])
    count = -(-length // step)
    squares = of_length(window * window, count * step)
    sums = _ops.reduce_sum(_ops.reshape(squares, shape=[count, step]), axes=[0], keepdims=False)
    sums = _ops.tile(sums, multiples=[count])[:length]
    zero, one = number(0.0, window._dtype), number(1.0, window._dtype)
    nothing = _ops.equal(sums, zero)
    divided = _ops.div(window, _ops.select(nothing, one, sums))
    made: Tensor = _ops.select(nothing, zero, divided)
    return made


def mdct(
    signals: TensorLike, frame_length: Any, window_fn: Window | None = vorbis_window,
    pad_end: bool = False, norm: str | None = None, name: str | None = None,
) -> Tensor:  # fmt: skip
    """The modified discrete cosine transform of frames that overlap by half.

    Args:
        signals: float32 or float64, of shape [..., samples].
        frame_length: A multiple of 4.
        window_fn: Called with frame_length and dtype; None: 1 / sqrt(2).
        pad_end: As `frame` has it.
        norm: "ortho" or None, as `dct` has it.
        name: Ignored.

    Returns:
        [..., frames, frame_length // 2].

    Raises:
        ValueError: frame_length is no multiple of 4.

    Example:
        >>> import samegrad as tf
        >>> tf.signal.mdct(tf.ones([16]), 8).shape
        (3, 4)
    """
    x = real_numbers(signals, "mdct")
    length = at_least(frame_length, 4, "mdct", "frame_length")
    if length % 4:
        raise ValueError(f"[mdct] frame_length must be a multiple of 4: got {length}.")
    frames = frame(x, length, length // 2, pad_end)
    frames = frames * _or_root(_window(window_fn, length, x._dtype, "mdct"), x)
    last = frames._rank - 1
    a, b, c, d = split(frames, 4, axis=last)
    first, second = -reverse(c, [last]) - d, a - reverse(b, [last])
    return dct(_ops.concat(first, second, axis=last), type=4, norm=norm)


def _or_root(window: Tensor | None, like: Tensor) -> Tensor:
    return number(math.sqrt(0.5), like._dtype) if window is None else window


def inverse_mdct(
    mdcts: TensorLike, window_fn: Window | None = vorbis_window, norm: str | None = None,
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """The signals of `mdct` with the same window and norm, but for their first and last half frame.

    Args:
        mdcts: float32 or float64, of shape [..., frames, size], frames being 2 * size long.
        window_fn: As `mdct` had it.
        norm: As `mdct` had it.
        name: Ignored.

    Returns:
        [..., (frames + 1) * size].

    Raises:
        ValueError: The size is odd or 0, or norm is neither of the two.

    Example:
        >>> import samegrad as tf
        >>> back = tf.signal.inverse_mdct(tf.signal.mdct(tf.ones([16]), 8))
        >>> back.numpy()[4:12].round(5).tolist()
        [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]
    """
    x = real_numbers(mdcts, "inverse_mdct", 2)
    size = int(x.shape[-1])
    if size % 2 or not size or norm not in (None, "ortho"):
        raise ValueError(
            "[inverse_mdct] the last axis must have an even size, and norm must be None or "
            f"'ortho': got {size} and {shown(norm)}."
        )
    cosines = dct(x, type=4, norm=norm)
    if norm is None:
        cosines = cosines * number(0.5 / size, x._dtype)
    last = cosines._rank - 1
    a, b = split(cosines, 2, axis=last)
    frames = _ops.concat(b, -reverse(b, [last]), -reverse(a, [last]), -a, axis=last)
    frames = frames * _or_root(_window(window_fn, 2 * size, x._dtype, "inverse_mdct"), x)
    return overlap_and_add(frames, size)


def _mel(hertz: Any) -> NDArray[Any]:
    made: NDArray[Any] = _MELS * np.log(1 + np.asarray(hertz, np.float64) / _BREAK_HERTZ)
    return made


def linear_to_mel_weight_matrix(
    num_mel_bins: Any = 20, num_spectrogram_bins: Any = 129, sample_rate: Any = 8000,
    lower_edge_hertz: Any = 125.0, upper_edge_hertz: Any = 3800.0, dtype: DTypeLike = "float32",
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """Weights that make a mel spectrogram of a linear one: tf.matmul(spectrogram, weights).

    Bands are triangles of equal width on the mel scale, 1127 ln(1 + f / 700), whose peaks are 1.
    The bin at 0 Hz has no weight.

    Args:
        num_mel_bins: How many bands.
        num_spectrogram_bins: How many bins, from 0 to half the sample rate: fft_length // 2 + 1.
        sample_rate: Samples per second.
        lower_edge_hertz: Where the lowest band begins.
        upper_edge_hertz: Where the highest band ends.
        dtype: Of the weights.
        name: Ignored.

    Returns:
        Shape [num_spectrogram_bins, num_mel_bins].

    Raises:
        ValueError: There is no band, edges are not in order, or reach beyond half the sample rate.

    Example:
        >>> import samegrad as tf
        >>> tf.signal.linear_to_mel_weight_matrix(40, 129, 16000, 80.0, 7600.0).shape
        (129, 40)
    """
    who = "linear_to_mel_weight_matrix"
    bands = at_least(num_mel_bins, 1, who, "num_mel_bins")
    bins = at_least(num_spectrogram_bins, 1, who, "num_spectrogram_bins")
    rate, lower, upper = map(float, (sample_rate, lower_edge_hertz, upper_edge_hertz))
    kind = as_dtype(dtype)
    if not (0 <= lower < upper <= rate / 2) or not kind.is_floating:
        raise ValueError(
            f"[{who}] 0 <= lower_edge_hertz < upper_edge_hertz <= sample_rate / 2 must hold, and "
            f"dtype be one of floats: got {lower}, {upper}, {rate} and {kind.name}."
        )
    places = _mel(np.linspace(0.0, rate / 2, bins)[1:])[:, None]
    edges = np.linspace(_mel(lower), _mel(upper), bands + 2)
    begin, peak, end = edges[:-2], edges[1:-1], edges[2:]
    slopes = np.minimum((places - begin) / (peak - begin), (end - places) / (end - peak))
    weights = np.concatenate([np.zeros((1, bands)), np.maximum(slopes, 0.0)])
    return cast(convert_to_tensor(weights), kind)
