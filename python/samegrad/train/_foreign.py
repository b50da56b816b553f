"""Files of other libraries that users give in place of a checkpoint, and what to do with them."""

from __future__ import annotations

import re
from pathlib import Path

from samegrad._base.file_errors import explained_errors

_CONVERT = "load it with samegrad.convert.from_torch"
_PICKLE = f"save it with safetensors.torch.save_file, and {_CONVERT}"
_WEIGHTS = "load it there, and save it with model.save_weights('model.weights.h5')"
_PARTS = re.compile(r"\.(index|data-\d{5}-of-\d{5})")
_BY_SUFFIX = {
    ".keras": ("a model of Keras", "load it with keras.models.load_model"),
    ".h5": ("a file of Keras", "load it with model.load_weights or keras.models.load_model"),
    ".hdf5": ("a file of Keras", "load it with model.load_weights or keras.models.load_model"),
    ".pt": ("a file of PyTorch", _PICKLE),
    ".pth": ("a file of PyTorch", _PICKLE),
    ".safetensors": ("a file of safetensors", _CONVERT),
    ".npz": ("arrays of NumPy", "read it with numpy.load, and assign them to the variables"),
}


def foreign(path: Path) -> str:
    """Return what a path holds of another library, and what to do with it, or "".

    Example:
        >>> foreign(Path("nothing"))
        ''
    """
    if (path / "saved_model.pb").is_file():
        return f"a SavedModel of TensorFlow; {_WEIGHTS}"
    return "; ".join(_BY_SUFFIX.get(path.suffix, ())) if path.is_file() else ""


def tensorflow_prefix(path: Path) -> Path | None:
    """Return the path of a checkpoint of TensorFlow without the endings of its files, or None.

    Args:
        path: This path, one of the files, a folder with the files of one, or a SavedModel.

    Example:
        >>> tensorflow_prefix(Path("nothing"))
    """
    with explained_errors("checkpoint", "read", path, "Look at its folder and the disk"):
        if (path / "saved_model.pb").is_file():
            path = path / "variables"
        if path.is_dir():
            found = [one.with_suffix("") for one in path.glob("*.index")]
            return found[0] if len(found) == 1 and any(path.glob("*.data-*-of-*")) else None
        if _PARTS.fullmatch(path.suffix) and path.is_file():
            return path.with_suffix("")
        return path if path.with_name(f"{path.name}.index").is_file() else None


__all__ = ["foreign", "tensorflow_prefix"]
