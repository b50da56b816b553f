"""Write the first inputs of libFuzzer: small valid files of each parser, a folder for each target.

Usage: `python tests/fuzz/libfuzzer/seeds.py FOLDER`.
"""

from __future__ import annotations

import io
import itertools
import pathlib
import sys
from collections.abc import Iterator

import numpy as np
import PIL.Image

MODES = {"L": 1, "LA": 2, "RGB": 3, "RGBA": 4}
SETTINGS = ("l1=48k,l2=1m,l3=32m,threads=4", "l2=1g", "7", "inner_loop_bytes=1,tile_bytes=4096")


def files(kind: str, mode: str) -> Iterator[bytes]:
    """Yield encoded images of a few sizes, with the options that change the layout of a file."""
    options: dict[str, tuple[dict[str, object], ...]] = {
        "JPEG": ({}, {"progressive": True}, {"subsampling": 0}, {"restart_marker_rows": 1}),
        "PNG": ({}, {"compress_level": 0}),
    }
    for (rows, columns), more in itertools.product(((1, 1), (9, 17)), options[kind]):
        pixels = np.arange(rows * columns * MODES[mode], dtype=np.uint8)
        shape = (rows, columns) if mode == "L" else (rows, columns, MODES[mode])
        file = io.BytesIO()
        PIL.Image.fromarray(pixels.reshape(shape), mode).save(file, kind, **more)
        yield file.getvalue()


def inputs() -> dict[str, list[bytes]]:
    """Return the inputs of each target; the first byte of an image's selects the limits."""
    return {
        "decode_jpeg": [b"\0" + f for mode in ("L", "RGB") for f in files("JPEG", mode)],
        "decode_png": [b"\0" + f for mode in MODES for f in files("PNG", mode)],
        "settings": [text.encode() for text in SETTINGS],
    }


def main() -> None:
    for target, contents in inputs().items():
        folder = pathlib.Path(sys.argv[1]) / target
        folder.mkdir(parents=True, exist_ok=True)
        for number, content in enumerate(contents):
            (folder / str(number)).write_bytes(content)


if __name__ == "__main__":
    main()
