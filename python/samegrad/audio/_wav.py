"""Sound as WAV files hold it, by Python's `wave`."""

from __future__ import annotations

import io
import operator
import struct
import wave
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from samegrad._base.shown import shown
from samegrad._core import InvalidArgumentError
from samegrad._tensor.conversion import Tensor, convert_to_tensor
from samegrad._tensor.sizes import whole
from samegrad._tensor.text import Text, of_bytes, text_of

_SCALE = 1 << 15  # 16-bit samples stand for -1 to 1
_PCM = (1, 0xFFFE)  # plain, and with more about the channels


class DecodeWav(NamedTuple):
    """Audio of a WAV file.

    Attributes:
        audio: float32 of shape [samples, channels], from -1 to 1.
        sample_rate: Samples per second: int32 without axes.

    Example:
        >>> import samegrad as tf
        >>> sound = tf.audio.decode_wav(tf.audio.encode_wav([[0.0], [0.5]], 8000))
        >>> int(sound.sample_rate)
        8000
    """

    audio: Tensor
    sample_rate: Tensor


def decode_wav(
    contents: Any, desired_channels: int = -1, desired_samples: int = -1, name: str | None = None
) -> DecodeWav:
    """Decode a 16-bit WAV file.

    Args:
        contents: The bytes of a file (`tf.io.read_file`), a string scalar.
        desired_channels: The number of channels: further ones are left out, the last one is
            repeated. -1: as in the file.
        desired_samples: The number of samples: further ones are left out, zeros are appended. -1:
            as in the file.
        name: Ignored.

    Returns:
        A named tuple: `audio`, float32 [samples, channels], each sample divided by 32,768; and
        `sample_rate`, an int32 scalar in samples per second.

    Raises:
        InvalidArgumentError: The bytes are not such a file, or end early.

    Example:
        >>> import samegrad as tf
        >>> file = tf.audio.encode_wav([[0.0], [0.5], [-1.0]], sample_rate=8000)
        >>> audio, rate = tf.audio.decode_wav(file)
        >>> audio.numpy().ravel(), int(rate)
        (array([ 0. ,  0.5, -1. ], dtype=float32), 8000)
    """
    who = "tf.audio.decode_wav"
    text = text_of(contents, who, "contents must be the bytes of a file")
    if text._rank:
        raise ValueError(f"[{who}] contents must be those of one file: got shape {text._shape}.")
    channels, samples = operator.index(desired_channels), operator.index(desired_samples)
    if channels < -1 or channels == 0 or samples < -1:
        raise ValueError(
            f"[{who}] desired_channels must be 1 or more and desired_samples 0 or more, or -1: got "
            f"{channels} and {samples}."
        )
    found, rate = _read(text, who)
    if channels > 0:
        found = found[:, np.minimum(np.arange(channels), found.shape[1] - 1)]
    if samples >= 0:
        missing = max(0, samples - len(found))
        found = np.pad(found[:samples], ((0, missing), (0, 0)))
    audio = found.astype(np.float32) / np.float32(_SCALE)
    return DecodeWav(Tensor(audio, copy=False), Tensor(np.array(rate, np.int32), copy=False))


def _read(text: Text, who: str) -> tuple[np.ndarray[Any, Any], int]:
    """Return the samples, [samples, channels] of int16, and how many there are in a second."""
    form = frames = None
    for name, start, size in _chunks(text, who):
        body = text.numpy()[start : start + size]
        if name == b"data" and frames is not None:
            raise _corrupt(text, who, "it has two chunks of data")
        if name == b"fmt ":
            form = body
        elif name == b"data":
            frames, wanted = body, size
    if form is None or len(form) < 16 or frames is None:
        raise _corrupt(text, who, "it ends too early")
    kind, channels, rate, _, _, bits = struct.unpack_from("<HHIIHH", form)
    if kind not in _PCM or bits != 16 or channels == 0:
        raise _corrupt(text, who, f"its samples have {bits} bits in format {kind}")
    width = 2 * channels
    if len(frames) != wanted:
        there = len(frames) // width
        raise _corrupt(text, who, f"it ends after {there} of {wanted // width} samples")
    return np.frombuffer(frames[: wanted // width * width], "<i2").reshape(-1, channels), rate


def _chunks(text: Text, who: str) -> Iterator[tuple[bytes, int, int]]:
    """Give the name, start and size of each chunk; the size of the whole may say anything.

    Who writes a file as a stream does not know it.
    """
    data = text.numpy()
    if data[:4] != b"RIFF" or data[8:12] != b"WAVE":
        raise _corrupt(text, who, f"begins with {shown(data[:12])}")
    start = 12
    while start + 8 <= len(data):
        name, size = struct.unpack_from("<4sI", data, start)
        if size >= 1 << 31:
            raise _corrupt(text, who, f"a chunk {shown(name)} of {size} bytes")
        yield name, start + 8, size
        start += 8 + size + size % 2


def _corrupt(text: Text, who: str, what: str) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"[{who}] a WAV file of 16-bit samples is needed: got {len(text.numpy())} bytes of "
        f"{text.origin or 'the contents'} ({what}); remove the file, or write it again."
    )


def encode_wav(audio: Any, sample_rate: Any, name: str | None = None) -> Text:
    r"""Encode audio as a 16-bit WAV file.

    Args:
        audio: Floats of shape [samples, channels], clipped to [-1, 1].
        sample_rate: Samples per second, an integer.
        name: Ignored.

    Returns:
        A string scalar, the bytes of the file.

    Raises:
        ValueError: The audio has other axes or no channel, or the rate is out of range.

    Example:
        >>> import samegrad as tf
        >>> tf.audio.encode_wav([[0.0], [0.5]], 8000).numpy()[-4:]
        b'\x00\x00\x00@'
    """
    who = "tf.audio.encode_wav"
    array = np.asarray(convert_to_tensor(audio))
    if array.ndim != 2 or not 0 < array.shape[1] < 1 << 16 or array.dtype.kind != "f":
        raise ValueError(
            f"[{who}] audio must be floats of shape [samples, channels]: got {array.dtype.name} of "
            f"shape {array.shape}; see tf.expand_dims."
        )
    rate = whole(sample_rate, "encode_wav's sample_rate is an integer")
    if not 0 < rate < 1 << 32:
        raise ValueError(f"[{who}] sample_rate must be from 1 to 2^32 - 1: got {shown(rate)}.")
    scaled = array.astype(np.float32) * np.float32(_SCALE)
    if not np.isfinite(scaled).all():
        raise ValueError(
            f"[{who}] audio must be finite: got {shown(array[~np.isfinite(array)][:1])}; see "
            "tf.clip_by_value."
        )
    # Half-way cases go away from zero, as C's roundf has them.
    rounded = np.copysign(np.floor(np.abs(scaled) + np.float32(0.5)), scaled)
    buffer = io.BytesIO()
    with wave.open(buffer, "wb") as file:
        file.setnchannels(array.shape[1])
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes(rounded.clip(-_SCALE, _SCALE - 1).astype("<i2").tobytes())
    return of_bytes(buffer.getvalue())
