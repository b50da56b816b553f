"""Records what TensorFlow reads of image and sound files: `python … > FILE.json`.

Run it where TensorFlow is installed; test_tensorflow_files.py compares with the recorded file.
"""

from __future__ import annotations

import base64
import itertools
import json
import struct
from typing import Any

import numpy as np


def bmp(bits: int, top_down: bool, header: int = 40, compression: int = 0) -> bytes:
    """Return a BMP file of 3 rows and 5 columns."""
    draw = np.random.default_rng(bits)
    row = draw.integers(0, 256, (3, 5 * bits // 8), dtype=np.uint8)
    padded = np.pad(row, ((0, 0), (0, -row.shape[1] % 4)))
    masks = struct.pack("<III", 0xFF0000, 0xFF00, 0xFF) if compression == 3 else b""
    more = bytes(header - 40)
    offset = 14 + header + len(masks)
    info = struct.pack(
        "<IiiHHIIiiII",
        header,
        5,
        -3 if top_down else 3,
        1,
        bits,
        compression,
        padded.size,
        0,
        0,
        0,
        0,
    )
    start = b"BM" + struct.pack("<IHHI", offset + padded.size, 0, 0, offset)
    return start + info + more + masks + padded.tobytes()


def wav(riff: int | None, data: int | None, channels: int = 1, more: bytes = b"") -> bytes:
    """Return a WAV file whose header gives these sizes; None: the right ones."""
    samples = np.arange(-6, 6, dtype="<i2").tobytes()
    form = struct.pack("<HHIIHH", 1, channels, 8000, 16000 * channels, 2 * channels, 16)
    body = b"WAVEfmt " + struct.pack("<I", len(form)) + form + more
    body += b"data" + struct.pack("<I", len(samples) if data is None else data) + samples
    return b"RIFF" + struct.pack("<I", len(body) if riff is None else riff) + body


def files() -> dict[str, bytes]:
    """Return the files by their names, but for those that TensorFlow writes."""
    listed = b"LIST" + struct.pack("<I", 4) + b"abcd"
    found = {
        f"bmp {bits} {'down' if down else 'up'}": bmp(bits, down)
        for bits, down in itertools.product((24, 32), (False, True))
    }
    found["bmp 32 masks"] = bmp(32, False, compression=3)
    for riff, data in itertools.product((None, 0, 0xFFFFFFFF), (None, 0, 8, 0xFFFFFFFF, 100)):
        found[f"wav {riff} {data}"] = wav(riff, data)
    found["wav list"] = wav(0, None, 2, listed)
    found["wav after"] = wav(0xFFFFFFFF, None) + listed
    found["wav odd"] = wav(0, None, 1, b"LIST" + struct.pack("<I", 3) + b"abc\0")
    found["wav short"] = wav(0, None)[:-3]
    return found


def read(tf: Any, name: str, file: bytes) -> dict[str, Any]:
    """Return what the functions for such a file give; None: an error."""
    calls: dict[str, Any] = {}
    if name.startswith("wav"):
        calls["decode_wav"] = lambda: tf.audio.decode_wav(file)[0]
    elif name.startswith("bmp"):
        for channels in (0, 3, 4):
            calls[f"decode_bmp {channels}"] = lambda c=channels: tf.io.decode_bmp(file, c)
            calls[f"decode_image {channels}"] = lambda c=channels: tf.io.decode_image(file, c)
    else:
        for channels in (0, 1, 3):
            calls[f"decode_jpeg {channels}"] = lambda c=channels: tf.io.decode_jpeg(
                file, c, dct_method="INTEGER_ACCURATE"
            )
        calls["fast 1"] = lambda: tf.io.decode_jpeg(file, 1)
        calls["decode_image 1"] = lambda: tf.io.decode_image(file, 1)
        calls["ratio 2"] = lambda: tf.io.decode_jpeg(
            file, 1, ratio=2, dct_method="INTEGER_ACCURATE"
        )
    found: dict[str, Any] = {}
    for call, function in calls.items():
        try:
            array = function().numpy()
            found[call] = [list(array.shape), array.ravel().tolist()]
        except Exception:
            found[call] = None
    return found


def main() -> None:
    """Print them, one file a line."""
    import tensorflow as tf

    made = files()
    draw = np.random.default_rng(0)
    colours = draw.integers(0, 256, (16, 16, 3), dtype=np.uint8)
    flat = np.repeat(np.repeat(draw.integers(0, 256, (2, 2, 3), dtype=np.uint8), 9, 0), 9, 1)
    for kind, image in {"noise": colours, "flat": flat}.items():
        for fine in (False, True):
            name = f"jpeg {kind} {'444' if fine else '420'}"
            made[name] = tf.io.encode_jpeg(image, chroma_downsampling=not fine).numpy()
        made[f"jpeg {kind} progressive"] = tf.io.encode_jpeg(image, progressive=True).numpy()
    made["jpeg grey"] = tf.io.encode_jpeg(colours[..., :1], format="grayscale").numpy()
    lines = [
        f"{json.dumps(name)}: "
        + json.dumps({"file": base64.b64encode(file).decode(), **read(tf, name, file)})
        for name, file in made.items()
    ]
    print("{\n" + ",\n".join(lines) + "\n}")


if __name__ == "__main__":
    main()
