"""The usual JPEG and PNG files, decoded by Pillow without its look at all that a file may be."""

from __future__ import annotations

import zlib
from typing import Any

# By bits of a sample and the kind of colours in a PNG file: Pillow's mode.
_PNG_MODES = {(8, 0): "L", (8, 2): "RGB", (8, 6): "RGBA"}
_JPEG_MODES = {1: "L", 3: "RGB"}  # by the number of components
_FRAMES = frozenset((0xC0, 0xC1, 0xC2))  # baseline, extended, progressive
_PNG_START = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"


def plain_image(pillow: Any, data: bytes) -> Any:
    """Pillow's image of a file's bytes, or None where Pillow has to open the file itself.

    None for all but JPEG files of 8 bits, grey or in colours, and PNG files of 8 bits, not
    interlaced, without palette and transparent colour; and for what cannot be decoded. A file of
    few pixels is decoded in two thirds of the time.
    """
    try:
        if data.startswith(b"\xff\xd8\xff"):
            return _jpeg(pillow, data)
        return _png(pillow, data) if data.startswith(_PNG_START) else None
    except (IndexError, OSError, ValueError, SyntaxError, MemoryError):
        return None  # opened once more, for what is said of it


def _jpeg(pillow: Any, data: bytes) -> Any:
    at = 2
    while data[at] == 0xFF:  # a segment: its marker, and its length with the two bytes of it
        if data[at + 1] in _FRAMES:
            mode = _JPEG_MODES.get(data[at + 9])
            if mode is None or data[at + 4] != 8:
                return None
            rows = data[at + 5] << 8 | data[at + 6]
            columns = data[at + 7] << 8 | data[at + 8]
            return _decoded(pillow, mode, (columns, rows), data, "jpeg", mode, "")
        if not 0xC4 <= data[at + 1] <= 0xFE or 0xD0 <= data[at + 1] <= 0xD9:
            return None
        at += 2 + (data[at + 2] << 8 | data[at + 3])
    return None


def _png(pillow: Any, data: bytes) -> Any:
    mode = _PNG_MODES.get((data[24], data[25]))
    if mode is None or data[26] or data[27] or data[28]:
        return None
    size = int.from_bytes(data[16:20], "big"), int.from_bytes(data[20:24], "big")
    at, name, parts = 8, b"", []
    while name != b"IEND":
        end = at + 8 + int.from_bytes(data[at : at + 4], "big")
        name = data[at + 4 : at + 8]
        if (
            name == b"tRNS"
            or zlib.crc32(data[at + 4 : end]).to_bytes(4, "big") != data[end : end + 4]
        ):
            return None
        if name == b"IDAT":
            parts.append(data[at + 8 : end])
        at = end + 4
    pixels = parts[0] if len(parts) == 1 else b"".join(parts)
    return _decoded(pillow, mode, size, pixels, "zip", mode, 0)


def _decoded(pillow: Any, mode: str, size: tuple[int, int], data: bytes, *decoder: Any) -> Any:
    if not 0 < size[0] * size[1] <= (pillow.Image.MAX_IMAGE_PIXELS or 0):
        return None  # so many that Pillow warns or refuses
    return pillow.Image.frombytes(mode, size, data, *decoder)
