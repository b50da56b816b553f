"""The usual JPEG and PNG files, decoded by Pillow without its look at all that a file may be."""

from __future__ import annotations

import zlib
from typing import Any

from samegrad import _core
from samegrad._tensor.tensor import Tensor

_MODES = {1: "L", 3: "RGB", 4: "RGBA"}  # by the number of channels


class PlainPng:
    """A decoded PNG file, with what is asked of Pillow's images.

    Args:
        pillow: The library.
        pixels: uint8, [rows, columns, channels].
    """

    format = None

    def __init__(self, pillow: Any, pixels: Tensor) -> None:
        self._pillow, self.pixels = pillow, pixels
        rows, columns, channels = pixels._shape
        self.mode, self.size, self.info = _MODES[channels], (columns, rows), dict[str, Any]()

    def tobytes(self) -> bytes:
        """The pixels, row by row."""
        return self.pixels._view().tobytes()

    def convert(self, mode: str) -> Any:
        """Pillow's image of another mode."""
        return self._pillow.Image.frombytes(self.mode, self.size, self.tobytes()).convert(mode)


def plain_image(pillow: Any, data: bytes) -> Any:
    """Pillow's image of a file's bytes, or None where Pillow has to open the file itself.

    None for all but JPEG files of 8 bits, grey or in colours, and PNG files of 8 bits, not
    interlaced, without palette and transparent colour; and for what cannot be decoded. A JPEG file
    of few pixels is decoded in two thirds of the time, a PNG file in a third.
    """
    found = _decoded(pillow, data)
    return PlainPng(pillow, found) if isinstance(found, Tensor) else found


def plain_pixels(pillow: Any, data: bytes, channels: int) -> Tensor | None:
    """uint8 [rows, columns, channels] of a file's bytes, or None where `plain_image` has to look.

    Args:
        pillow: The library.
        data: Of the file.
        channels: How many there must be in the file; 0: any number.
    """
    found = _decoded(pillow, data, channels)
    if found is None or isinstance(found, Tensor):
        return found
    columns, rows = found.size
    pixels: Tensor = _core.pixels_of(found.tobytes(), rows, columns, len(found.mode))
    return pixels


def _decoded(pillow: Any, data: bytes, channels: int = 0) -> Any:
    """Pillow's image of a JPEG file, the pixels of a PNG file, or None."""
    header = _core.plain_header(data)
    if header is None or (channels and header[3] != channels):
        return None
    is_jpeg, rows, columns, count, compressed = header
    if not 0 < rows * columns <= (pillow.Image.MAX_IMAGE_PIXELS or 0):
        return None  # so many that Pillow warns or refuses
    try:
        if is_jpeg:
            mode = _MODES[count]
            return pillow.Image.frombytes(mode, (columns, rows), data, "jpeg", mode, "")
        return _png_pixels(compressed, rows, columns, count)
    except (OSError, ValueError, SyntaxError, MemoryError, zlib.error):
        return None  # opened once more, for what is said of it


def _png_pixels(compressed: bytes, rows: int, columns: int, channels: int) -> Tensor | None:
    size = rows * (columns * channels + 1)  # each row begins with the way it is filtered
    stream = zlib.decompressobj()
    raw = stream.decompress(compressed, size)
    if len(raw) != size or not (stream.eof or stream.decompress(stream.unconsumed_tail, 1) == b""):
        return None
    pixels: Tensor | None = _core.unfiltered_pixels(raw, rows, columns, channels)
    return pixels
