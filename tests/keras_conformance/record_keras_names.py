"""Records the public names of tf.keras: `python record_keras_names.py FILE.txt.xz WHEEL...`

Run it where TensorFlow 2.21 is installed, with the wheels of Keras 2.6 and 2.15 (`pip download
--no-deps keras==2.15.0`), whose `keras/api/_v2` lists what tf.keras was then. A line is a name
after `tf.keras.`, and before it "now" or "older".
"""

from __future__ import annotations

import lzma
import re
import sys
import types
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_PLACE = re.compile(r"keras/api/_v2/keras/(?:(.*)/)?__init__\.py")
_IMPORT = re.compile(r"from \S+ import (\w+)(?: as (\w+))?")


def names_of(module: Any, before: str = "", depth: int = 0) -> Iterator[str]:
    """The names below a module of Keras."""
    for name in dir(module):
        value = getattr(module, name)
        if name.startswith("_") and name != "__version__":
            continue
        below = isinstance(value, types.ModuleType)
        if below and not value.__name__.startswith("keras"):
            continue
        yield before + name
        if below and depth < 6:
            yield from names_of(value, f"{before}{name}.", depth + 1)


def names_in(wheel: str) -> Iterator[str]:
    """The names that a wheel of Keras 2 says are those of tf.keras."""
    with zipfile.ZipFile(wheel) as archive:
        for file in archive.namelist():
            place = _PLACE.fullmatch(file)
            if place is None:
                continue
            before = f"{place[1].replace('/', '.')}." if place[1] else ""
            for found in _IMPORT.finditer(archive.read(file).decode()):
                name = found[2] or found[1]
                if not name.startswith("_") and name != "sys":
                    yield before + name


def main(target: Path, wheels: list[str]) -> None:
    """Writes the names."""
    import tensorflow as tf

    now = set(names_of(tf.keras))
    older = {name for wheel in wheels for name in names_in(wheel)} - now
    lines = [f"now {name}\n" for name in sorted(now)] + [
        f"older {name}\n" for name in sorted(older)
    ]
    target.write_bytes(lzma.compress("".join(lines).encode(), preset=9 | lzma.PRESET_EXTREME))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
