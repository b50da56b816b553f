"""Files of ONNX models: weights inside, or in a second file where one would be too large."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from samegrad._base.file_errors import explained_errors
from samegrad.export._onnx_model import ELEMENT_TYPES
from samegrad.train import _files

# A protocol buffer holds 2 GiB at most; the graph takes a part of them.
MOST_INSIDE = (2 << 30) - (64 << 20)
_ALIGNMENT = 4096
_CANNOT_WRITE = "nothing was changed; choose a folder that this user may write to, with room for it"


def with_weights(model: Any, arrays: Mapping[str, Any]) -> None:
    """Put weights into a model, and check it.

    Args:
        model: An `onnx.ModelProto`.
        arrays: Elements and dtype of each weight, by its name.
    """
    for name, (array, dtype) in arrays.items():
        content = np.ascontiguousarray(array).tobytes()
        model.graph.initializer.append(
            onnx.helper.make_tensor(name, ELEMENT_TYPES[dtype], array.shape, content, raw=True)
        )
    onnx.checker.check_model(model)


def size_of(arrays: Mapping[str, Any]) -> int:
    """Return the bytes of all weights."""
    return sum(int(array.nbytes) for array, _ in arrays.values())


def write(path: str | os.PathLike[str], model: Any, arrays: Mapping[str, Any]) -> None:
    """Write a model; a kill at any moment leaves the previous one, or the new one.

    Raises:
        OSError: The file cannot be written. Nothing half-written is left.
    """
    target = Path(os.path.abspath(path))
    with explained_errors("export.to_onnx", "write", target, _CANNOT_WRITE):
        _files.make_folder(target.parent)
        if size_of(arrays) <= MOST_INSIDE:
            with_weights(model, arrays)
            _files.replace_file(target, model.SerializeToString())
        else:
            _write_two(target, model, arrays)


def _write_two(target: Path, model: Any, arrays: Mapping[str, Any]) -> None:
    """Write weights to a file of their own, whose name has their hash."""
    with _files.temporary_folder(target.parent) as temporary:
        places, digest = _write_arrays(temporary / "data", arrays)
        data = f"{target.name}-{digest[:16]}.data"
        os.rename(temporary / "data", temporary / data)
        for name, (array, dtype) in arrays.items():
            model.graph.initializer.append(_outside(name, array, dtype, data, places[name]))
        _files.write_new_file(temporary / target.name, model.SerializeToString())
        onnx.checker.check_model(str(temporary / target.name))
        # The model goes last: until then it is the old one, whose weights have another name.
        os.replace(temporary / data, target.parent / data)
        _files.sync_folder(target.parent)
        os.replace(temporary / target.name, target)
        _files.sync_folder(target.parent)
    older = re.compile(re.escape(target.name) + r"-[0-9a-f]{16}\.data")
    with contextlib.suppress(OSError):  # the next export tries again
        for path in target.parent.iterdir():
            if older.fullmatch(path.name) and path.name != data:
                os.unlink(path)


def _write_arrays(path: Path, arrays: Mapping[str, Any]) -> tuple[dict[str, int], str]:
    """Write arrays one after the other, and return where each begins and a hash of all."""
    places, digest = {}, hashlib.blake2b()
    with open(path, "xb") as file:
        for name, (array, _) in arrays.items():
            file.write(bytes(-file.tell() % _ALIGNMENT))
            places[name] = file.tell()
            content = np.ascontiguousarray(array).reshape(-1).view(np.uint8).data
            digest.update(content)
            file.write(content)
        file.flush()
        os.fsync(file.fileno())
    return places, digest.hexdigest()


def _outside(name: str, array: Any, dtype: str, data: str, offset: int) -> Any:
    tensor = onnx.TensorProto(
        name=name, data_type=ELEMENT_TYPES[dtype], dims=array.shape,
        data_location=onnx.TensorProto.EXTERNAL,
    )  # fmt: skip
    for key, value in (("location", data), ("offset", offset), ("length", int(array.nbytes))):
        tensor.external_data.add(key=key, value=str(value))
    return tensor
