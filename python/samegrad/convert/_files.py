"""Files of weights in the safetensors format, as PyTorch and Hugging Face write them."""

from __future__ import annotations

import contextlib
import io
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from samegrad._base.dtypes import numpy_dtype
from samegrad._base.file_errors import explained_errors
from samegrad._base.shown import shown
from samegrad.train import _files, _storage
from samegrad.train._safetensors import DTYPE_NAMES, fill, header_of, little_endian

Array = npt.NDArray[Any]

_DTYPES = {theirs: ours for ours, theirs in DTYPE_NAMES.items()}
_MAX_AXES = 32  # of NumPy's arrays
_INDEX = ".safetensors.index.json"
# transformers reads no file without it.
_METADATA = {"format": "pt"}
_SAVE_AS = (
    "in PyTorch, safetensors.torch.save_file({name: tensor.contiguous() for name, tensor in "
    "torch.load(path, weights_only=True).items()}, 'model.safetensors')"
)


def load(path: str | os.PathLike[str]) -> dict[str, Array]:
    """Read the arrays of a safetensors file.

    No code of the file runs. Files that PyTorch pickles (`.bin`, `.pt`, `.pth`) are therefore not
    read.

    Args:
        path: A file `*.safetensors`, the index `*.safetensors.index.json` of several, or a folder
            that holds `model.safetensors` or its index.

    Returns:
        NumPy arrays by name, in the dtypes of the file.

    Raises:
        FileNotFoundError: The path, or a file of the index, does not exist.
        ValueError: The file is damaged, or has another format.
        OSError: The file cannot be read.

    Example:
        >>> import numpy as np
        >>> import samegrad as tf
        >>> tf.convert.save({"fc.bias": np.ones(2, np.float32)}, "load.safetensors")
        >>> tf.convert.load("load.safetensors")
        {'fc.bias': array([1., 1.], dtype=float32)}
    """
    target = Path(os.path.realpath(path))  # the cache of Hugging Face is made of links
    if target.is_dir():
        target = _main_file(target)
    return _read_shards(target) if target.name.endswith(_INDEX) else _read_file(target)


def save(weights: Mapping[str, Any], path: str | os.PathLike[str]) -> None:
    """Write arrays into a safetensors file, which replaces an older one at once.

    Args:
        weights: Arrays or tensors by name: floating point, integers or bool.
        path: The file. Its folder must exist.

    Raises:
        TypeError: A dtype cannot be stored.
        OSError: The folder does not exist, the disk is full, or the like. Nothing has changed.

    Example:
        >>> import samegrad as tf
        >>> model = tf.keras.Sequential([tf.keras.Input((2,)), tf.keras.layers.Dense(1)])
        >>> tf.convert.save(tf.convert.to_torch(model), "save.safetensors")
        >>> sorted(tf.convert.load("save.safetensors"))
        ['dense.bias', 'dense.weight']
    """
    if not isinstance(weights, Mapping):
        raise TypeError(
            f"[save] weights must be a dict of arrays by name: got {shown(weights)}; pass what "
            "to_torch returns."
        )
    target = Path(os.path.realpath(path))
    arrays = {name: _stored(name, as_array(value)) for name, value in weights.items()}
    entries = {name: {"dtype": a.dtype.name, "shape": a.shape} for name, a in arrays.items()}
    header, sizes = header_of(entries, _METADATA)
    remedy = "Nothing was changed: make room, or choose another folder"
    with explained_errors("save", "write", target, remedy):
        with _files.temporary_folder(target.parent) as temporary:
            new = temporary / target.name
            _files.write_new_file(new, header, *(_bytes_of(arrays[name]) for name in sizes))
            os.replace(new, target)
        _files.sync_folder(target.parent)


def as_array(value: Any) -> Array:
    """Return an array, or a tensor of samegrad or PyTorch, as a NumPy array."""
    if hasattr(value, "detach"):  # PyTorch's, which may be on another device
        value = value.detach().cpu()
        if str(value.dtype) == "torch.bfloat16":  # NumPy lacks it; float32 holds its values
            return np.asarray(value.float()).astype(numpy_dtype("bfloat16"))
    return np.asarray(value)


def _stored(name: str, array: Array) -> Array:
    """Return the array in C order and little-endian, as the file holds it."""
    if array.dtype.name not in DTYPE_NAMES:
        raise TypeError(
            f"[save] arrays must be floating point, integer or bool: got {array.dtype} for "
            f"{shown(name)}; cast it."
        )
    return array.astype(little_endian(array.dtype), order="C", copy=False)


def _bytes_of(array: Array) -> memoryview:
    return array.reshape(-1).view(np.uint8).data


def _main_file(folder: Path) -> Path:
    """Return the weights in a folder of Hugging Face."""
    for name in ("model.safetensors", f"model{_INDEX}"):
        if (folder / name).is_file():
            return Path(os.path.realpath(folder / name))
    found = sorted(path.name for path in folder.iterdir())
    raise FileNotFoundError(
        f"[load] a folder must hold model.safetensors or model{_INDEX}: {folder} holds "
        f"{shown(found)}; give the path of the file."
    )


def _read_shards(index: Path) -> dict[str, Array]:
    """Read the files that an index names, which are in its folder."""
    try:
        with _explained(index):
            content = _storage.parse(_files.read_file(index, _storage.MOST_BYTES))
        places = dict(content["weight_map"])
    except (ValueError, KeyError, TypeError) as error:
        raise _damaged(index, "be an index with weight_map", f"{error!s:.80}") from error
    for name in places.values():
        if not _files.is_plain(name):
            raise _damaged(index, "name files of its folder", shown(name))
    arrays: dict[str, Array] = {}
    for name in dict.fromkeys(places.values()):
        arrays |= _read_file(Path(os.path.realpath(index.parent / name)))
    if missing := places.keys() - arrays.keys():
        raise _damaged(index, "name arrays of its files", shown(sorted(missing)))
    return {name: arrays[name] for name in places}


def _explained(path: Path) -> contextlib.AbstractContextManager[None]:
    return explained_errors("load", "read", path, "Check the path, and that you may read it")


def _read_file(path: Path) -> dict[str, Array]:
    with contextlib.ExitStack() as opened:
        opened.enter_context(_explained(path))
        try:
            file = opened.enter_context(_files.open_file(path))
        except _files.UnusableFileError as error:
            raise _damaged(path, "be a file", str(error)) from error
        size = os.fstat(file.fileno()).st_size
        start = file.read(8)
        length = int.from_bytes(start, "little")
        if len(start) < 8 or length > min(_storage.MOST_BYTES, size - 8):
            raise _other_format(path, start)
        try:
            entries = _checked(_storage.parse(file.read(length)), size - 8 - length)
        except (ValueError, KeyError, TypeError) as error:
            if start[:2] == b"PK" or start[:1] == b"\x80":
                raise _other_format(path, start) from error
            raise _damaged(path, "have the header of its arrays", f"{error!s:.120}") from error
        return {name: _read_array(path, file, name, *entry) for name, entry in entries.items()}


def _checked(header: Any, size: int) -> dict[str, tuple[np.dtype[Any], tuple[int, ...]]]:
    """Return dtype and shape of each array in the order of the bytes, which they must fill.

    Raises:
        ValueError: The header breaks a rule of the format.
    """
    if not isinstance(header, dict):
        raise ValueError("it is not a dict")
    header.pop("__metadata__", None)
    found = []
    for name, entry in header.items():
        if entry["dtype"] not in _DTYPES:
            raise ValueError(f"{name!r:.60} has the dtype {entry['dtype']!r:.20}; cast it to float")
        dtype = little_endian(numpy_dtype(_DTYPES[entry["dtype"]]))
        shape = tuple(entry["shape"])
        if len(shape) > _MAX_AXES or not all(type(n) is int and 0 <= n < 2**62 for n in shape):
            raise ValueError(f"{name!r:.60} has the shape {shape!r:.60}")
        begin, end = entry["data_offsets"]
        bytes_ = dtype.itemsize
        for n in shape:
            bytes_ *= n
        if type(begin) is not int or type(end) is not int or end - begin != bytes_:
            raise ValueError(f"{name!r:.60} has {bytes_} bytes from {begin!r:.20} to {end!r:.20}")
        found.append((begin, end, name, dtype, shape))
    position = 0
    for begin, end, name, _, _ in sorted(found, key=lambda one: one[:3]):
        if begin != position:
            raise ValueError(f"{name!r:.60} begins at byte {begin}, where {position} is expected")
        position = end
    if position != size:
        raise ValueError(f"it describes {position} bytes of arrays, and the file has {size}")
    ordered = sorted(found, key=lambda one: one[:3])
    return {name: (dtype, shape) for _, _, name, dtype, shape in ordered}


def _read_array(
    path: Path, file: io.FileIO, name: str, dtype: np.dtype[Any], shape: tuple[int, ...]
) -> Array:
    try:
        array = np.empty(shape, np.uint8 if dtype.kind == "b" else dtype)
    except ValueError as error:  # beyond what NumPy can count
        raise _damaged(path, f"hold the array {name!r:.80}", f"the shape {shape}") from error
    if fill(file, _bytes_of(array)) < array.nbytes:
        raise _damaged(path, f"hold the array {name!r:.80}", "the end of the file")
    return array != 0 if dtype.kind == "b" else array


def _other_format(path: Path, start: bytes) -> ValueError:
    """Return the error for a file that does not begin like one of safetensors."""
    pickled = path.suffix in (".bin", ".pt", ".pth", ".ckpt") or start[:2] in (b"PK", b"\x80\x02")
    if pickled:
        return ValueError(
            f"[load] weights must be in the safetensors format: got {path}, a pickle of PyTorch, "
            f"which runs code when it is read; save them again: {_SAVE_AS}."
        )
    return ValueError(
        f"[load] weights must be in the safetensors format: got {path}, which does not begin with "
        "the length of a header; save them with safetensors, or download the file again."
    )


def _damaged(path: Path, rule: str, found: str) -> ValueError:
    return ValueError(
        f"[load] {path} must {rule}: got {found}. The file is damaged: download or save it again."
    )


__all__ = ["as_array", "load", "save"]
