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
from samegrad._ops.elementary import log
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
    """Return the window that multiplies a frame, or None."""
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
    """Compute the short-time Fourier transform: `rfft` of windowed frames.

    Args:
        signals: A float32 or float64 tensor of shape [..., samples].
        frame_length: The number of samples of a frame.
        frame_step: The distance between the starts of two frames, in samples.
        fft_length: The length to which frames are zero-padded; None: the next power of two.
        window_fn: A function of frame_length and dtype that returns the window; None: no window.
        pad_end: Pad the end, so that there is a frame at every start within the signal.
        name: Ignored.

    Returns:
        A complex64 or complex128 tensor [..., frames, fft_length // 2 + 1].

    Raises:
        ValueError: The signals are not float32 or float64, or a length is below 1.

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
    """Compute the inverse short-time Fourier transform: windowed frames are overlapped and summed.

    Args:
        stfts: A complex64 or complex128 tensor of shape [..., frames, fft_length // 2 + 1].
        frame_length: The frame length of `stft`.
        frame_step: The frame step of `stft`.
        fft_length: The FFT length of `stft`.
        window_fn: The synthesis window; `inverse_stft_window_fn` undoes the window of `stft`.
        name: Ignored.

    Returns:
        A float32 or float64 tensor [..., (frames - 1) * frame_step + frame_length].

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
    """Create a window for `inverse_stft` that undoes the window of `stft`.

    It is the forward window divided by the sum of the overlapping squares.

    Args:
        frame_step: The frame step of `stft`.
        forward_window_fn: The window function of `stft`.
        name: Ignored.

    Returns:
        A function of frame_length and dtype that returns a vector [frame_length].

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
    """Divide a window by the sum of the squares of all overlapping windows; 0 where it is 0.

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
    """Compute the modified discrete cosine transform of frames that overlap by half.

    Args:
        signals: A float32 or float64 tensor of shape [..., samples].
        frame_length: The number of samples of a frame, a multiple of 4.
        window_fn: A function of frame_length and dtype that returns the window; None: 1 / sqrt(2).
        pad_end: Pad the end, as `frame` does.
        norm: "ortho" or None, as in `dct`.
        name: Ignored.

    Returns:
        A tensor [..., frames, frame_length // 2], in the dtype of `signals`.

    Raises:
        ValueError: `frame_length` is not a multiple of 4.

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
    """Compute the inverse of `mdct` with the same window and norm.

    The first and the last half frame are not reconstructed.

    Args:
        mdcts: A float32 or float64 tensor of shape [..., frames, size]; frames have 2 * size
            samples.
        window_fn: The window function of `mdct`.
        norm: The norm of `mdct`.
        name: Ignored.

    Returns:
        A tensor [..., (frames + 1) * size], in the dtype of `mdcts`.

    Raises:
        ValueError: The size is odd or 0, or the norm is neither "ortho" nor None.

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
    made: NDArray[Any] = _MELS * log(1 + np.asarray(hertz, np.float64) / _BREAK_HERTZ)
    return made


def linear_to_mel_weight_matrix(
    num_mel_bins: Any = 20, num_spectrogram_bins: Any = 129, sample_rate: Any = 8000,
    lower_edge_hertz: Any = 125.0, upper_edge_hertz: Any = 3800.0, dtype: DTypeLike = "float32",
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """Compute the weights of a mel spectrogram: tf.matmul(spectrogram, weights).

    Bands are triangles of equal width on the mel scale, 1127 ln(1 + f / 700), whose peaks are 1.
    The bin at 0 Hz has no weight.

    Args:
        num_mel_bins: The number of mel bands.
        num_spectrogram_bins: The number of bins from 0 to half the sample rate: fft_length // 2 +
            1.
        sample_rate: Samples per second.
        lower_edge_hertz: The lower edge of the lowest band.
        upper_edge_hertz: The upper edge of the highest band.
        dtype: The dtype of the weights.
        name: Ignored.

    Returns:
        A tensor [num_spectrogram_bins, num_mel_bins].

    Raises:
        ValueError: There is no band, or the edges are not in order, or above half the sample rate.

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
