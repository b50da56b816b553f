"""Layout of a safetensors file: the length of its header, the header, and the arrays' bytes."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from samegrad._base.dtypes import numpy_dtype

_PIECE = 1 << 20  # bytes

# The names that the safetensors format gives to NumPy's types.
DTYPE_NAMES = {
    "float64": "F64",
    "float32": "F32",
    "bfloat16": "BF16",
    "float16": "F16",
    "int64": "I64",
    "int32": "I32",
    "int16": "I16",
    "int8": "I8",
    "uint64": "U64",
    "uint32": "U32",
    "uint16": "U16",
    "uint8": "U8",
    "bool": "BOOL",
}


def little_endian(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the dtype in the byte order of the format."""
    # bfloat16 has the order of the machine alone, which is that of all that samegrad runs on.
    return dtype if dtype.name == "bfloat16" else dtype.newbyteorder("<")


def header_of(
    entries: Mapping[str, Mapping[str, Any]], metadata: Mapping[str, str] | None = None
) -> tuple[bytes, dict[str, int]]:
    """Return the beginning of a file, and the size in bytes of each array in the file's order.

    Args:
        entries: dtype and shape by name.
        metadata: Strings by name, which are stored under `__metadata__`.
    """
    kinds = {name: numpy_dtype(entry["dtype"]) for name, entry in entries.items()}
    # Large items first: every array is aligned to its item size, as readers expect.
    order = sorted(entries, key=lambda name: (-kinds[name].itemsize, name))
    header: dict[str, Any] = {"__metadata__": dict(metadata)} if metadata else {}
    sizes: dict[str, int] = {}
    offset = 0
    for name in order:
        shape = list(entries[name]["shape"])
        sizes[name] = math.prod(shape) * kinds[name].itemsize
        header[name] = {
            "dtype": DTYPE_NAMES[kinds[name].name],
            "shape": shape,
            "data_offsets": [offset, offset + sizes[name]],
        }
        offset += sizes[name]
    content = json.dumps(header, separators=(",", ":")).encode()
    content += b" " * (-len(content) % 8)
    return len(content).to_bytes(8, "little") + content, sizes


def fill(file: io.FileIO, view: memoryview) -> int:
    """Read into all of a buffer, if the file has as many bytes, and return their number."""
    done = 0
    while done < len(view) and (count := file.readinto(view[done : done + _PIECE])):
        done += count
    return done


__all__ = ["DTYPE_NAMES", "fill", "header_of", "little_endian"]
