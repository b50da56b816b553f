"""Images of 16 bits, and of 8 bits as 16, as TensorFlow gives them."""

from __future__ import annotations

import io
import struct
import zlib

import numpy as np
import pytest
from PIL import Image

import samegrad as tf

RNG = np.random.default_rng(4)
KINDS = {1: 0, 2: 4, 3: 2, 4: 6}  # PNG's numbers of them, by channels
by_engine = pytest.mark.skipif(
    tf.sysconfig()["png"] == "Pillow", reason="Pillow knows 8 bits of colours"
)


def png_of(pixels: np.ndarray) -> bytes:
    rows, columns, channels = pixels.shape

    def chunk(name: bytes, data: bytes) -> bytes:
        check = zlib.crc32(name + data)
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", check)

    about = struct.pack(">IIBBBBB", columns, rows, 16, KINDS[channels], 0, 0, 0)
    data = b"".join(b"\0" + row.astype(">u2").tobytes() for row in pixels)
    parts = (b"IHDR", about), (b"IDAT", zlib.compress(data)), (b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunk(*part) for part in parts)


def pixels_of(channels: int) -> np.ndarray:
    return RNG.integers(0, 1 << 16, (5, 7, channels)).astype(np.uint16)


@by_engine
@pytest.mark.parametrize("channels", KINDS)
def test_all_bits_of_all_channels_stay(channels):
    pixels = pixels_of(channels)
    file = png_of(pixels)
    np.testing.assert_array_equal(tf.io.decode_png(file, dtype=tf.uint16), pixels)
    np.testing.assert_array_equal(tf.io.decode_image(file), pixels >> 8)
    np.testing.assert_allclose(
        tf.io.decode_image(file, dtype=tf.float32), pixels / np.float32(65535), rtol=1e-6
    )


@by_engine
def test_colours_become_grey_and_grey_becomes_colours():
    pixels = pixels_of(4)
    file = png_of(pixels)
    np.testing.assert_array_equal(
        tf.io.decode_png(file, channels=3, dtype=tf.uint16), pixels[..., :3]
    )
    grey = tf.io.decode_png(file, channels=1, dtype=tf.uint16).numpy()[..., 0]
    np.testing.assert_allclose(grey, pixels[..., :3] @ [0.299, 0.587, 0.114], atol=0.51)
    both = pixels_of(2)
    np.testing.assert_array_equal(
        tf.io.decode_png(png_of(both), channels=4, dtype=tf.uint16), both[..., [0, 0, 0, 1]]
    )


@pytest.mark.parametrize("interlaced", [False, True])  # those that Pillow reads, too
@pytest.mark.parametrize("channels", [2, 4])
def test_grey_images_are_opaque(channels, interlaced, monkeypatch):
    pixels = pixels_of(1)
    if interlaced:
        monkeypatch.setattr("samegrad._core.pixels_of_file", lambda *args: None)
    made = tf.io.decode_png(png_of(pixels), channels=channels, dtype=tf.uint16).numpy()
    assert (made[..., -1] == 0xFFFF).all()
    assert (made[..., :-1] == pixels).all()


@pytest.mark.parametrize(("kind", "factor"), [("PNG", 257), ("BMP", 256), ("GIF", 256)])
def test_8_bits_as_16_by_kind_of_file(kind, factor):
    buffer = io.BytesIO()
    image = Image.fromarray(RNG.integers(0, 256, (6, 5), dtype=np.uint8))
    image.save(buffer, kind)
    eight = tf.io.decode_image(buffer.getvalue()).numpy().astype(np.int64)
    made = tf.io.decode_image(buffer.getvalue(), dtype=tf.uint16)
    np.testing.assert_array_equal(made, eight * factor)
