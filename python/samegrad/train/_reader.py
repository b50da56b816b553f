"""Reader of a checkpoint's arrays, without the objects that they belong to."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from samegrad import dtypes
from samegrad._base.shown import did_you_mean, shown
from samegrad.train import _storage
from samegrad.train._foreign import foreign, tensorflow_prefix
from samegrad.train._object_graph import SUFFIX
from samegrad.train._state_file import latest_checkpoint
from samegrad.train._tensor_bundle import TensorBundle

Array = np.ndarray[Any, Any]


class CheckpointReader:
    """The arrays of one checkpoint by their keys, as `load_checkpoint` gives them."""

    def __init__(self, path: str) -> None:
        self._path = path
        prefix = tensorflow_prefix(Path(path))
        self._tensors: _Folder | TensorBundle
        self._tensors = _Folder(path) if prefix is None else TensorBundle(prefix)

    def get_variable_to_shape_map(self) -> dict[str, list[int]]:
        """Return the shape of each array by its key.

        Example:
            >>> import samegrad as tf
            >>> path = tf.train.Checkpoint(w=tf.Variable([1.0, 2.0])).write("shapes")
            >>> tf.train.load_checkpoint(path).get_variable_to_shape_map()
            {'w': [2]}
        """
        return {key: list(entry.shape) for key, entry in self._tensors.entries.items()}

    def get_variable_to_dtype_map(self) -> dict[str, Any]:
        """Return the dtype of each array by its key."""
        entries = self._tensors.entries
        return {key: _dtype_of(entry.dtype) for key, entry in entries.items()}

    def has_tensor(self, tensor_str: str) -> bool:
        """Tell if an array has this key.

        Args:
            tensor_str: Key of an array.

        Returns:
            True if the checkpoint has it.

        Example:
            >>> import samegrad as tf
            >>> path = tf.train.Checkpoint(w=tf.Variable([1.0, 2.0])).write("keys")
            >>> tf.train.load_checkpoint(path).has_tensor("w")
            True
        """
        return self._key(tensor_str) in self._tensors.entries

    def get_tensor(self, tensor_str: str) -> Array:
        """Return a copy of an array.

        Args:
            tensor_str: Key of the array.

        Returns:
            NumPy array.

        Raises:
            ValueError: The key does not exist.

        Example:
            >>> import samegrad as tf
            >>> path = tf.train.Checkpoint(w=tf.Variable([1.0, 2.0])).write("values")
            >>> tf.train.load_checkpoint(path).get_tensor("w")
            array([1., 2.], dtype=float32)
        """
        if not self.has_tensor(tensor_str):
            plain = [key.removesuffix(SUFFIX) for key in self._tensors.entries]
            near = did_you_mean(tensor_str.removesuffix(SUFFIX), plain)
            raise ValueError(
                f"[checkpoint] the key must be one of {self._path}: got {shown(tensor_str)}; "
                + (near or "see train.list_variables.")
            )
        return self._tensors.read(self._key(tensor_str))

    def _key(self, name: str) -> str:
        """Return the key that means this one: TensorFlow's have an ending that ours lack."""
        plain = name.removesuffix(SUFFIX)
        return next((k for k in (name, plain, plain + SUFFIX) if k in self._tensors.entries), name)


class _Folder:
    """Arrays of a checkpoint folder, as a `TensorBundle` gives those of TensorFlow."""

    def __init__(self, path: str) -> None:
        self.entries = _storage.load(path)[0]

    def read(self, key: str) -> Array:
        """Return a copy of an array."""
        copy: Array = self.entries[key].copy()
        return copy


def _dtype_of(dtype: Any) -> Any:
    return dtypes.string if dtype == "string" else dtypes.as_dtype(dtype)


def load_checkpoint(ckpt_dir_or_file: str | os.PathLike[str]) -> CheckpointReader:
    """Open a checkpoint to read its arrays.

    Args:
        ckpt_dir_or_file: Path of a checkpoint of samegrad or TensorFlow, or of a folder of some,
            whose latest is read.

    Returns:
        Reader of the arrays.

    Raises:
        ValueError: The checkpoint does not exist.
        CorruptCheckpointError: A file is missing, truncated or altered.

    Example:
        >>> import samegrad as tf, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = tf.train.Checkpoint(weight=tf.Variable([1.0, 2.0])).save(folder + "/ckpt")
        ...     reader = tf.train.load_checkpoint(folder)
        >>> reader.get_variable_to_shape_map(), reader.get_tensor("weight")
        ({'weight': [2]}, array([1., 2.], dtype=float32))
    """
    return CheckpointReader(checkpoint_at(ckpt_dir_or_file, "load_checkpoint"))


def checkpoint_at(ckpt_dir_or_file: str | os.PathLike[str], op_name: str) -> str:
    """Return the path of the checkpoint, or of the latest in a folder of some.

    Raises:
        ValueError: There is no checkpoint.
    """
    path = os.fspath(ckpt_dir_or_file)
    if not _storage.is_checkpoint(Path(path)):
        if tensorflow_prefix(Path(path)) is not None:
            return path
        latest = latest_checkpoint(path) if os.path.isdir(path) else None
        if latest is None and (other := foreign(Path(path))):
            raise ValueError(
                f"[{op_name}] checkpoints are samegrad's or TensorFlow's: got {shown(path)}, "
                f"{other}."
            )
        if latest is None:
            raise ValueError(
                f"[{op_name}] there must be a checkpoint: got {shown(path)}, which is none "
                "and has none inside; Checkpoint.save returns the path."
            )
        path = latest
    return path


def list_variables(ckpt_dir_or_file: str | os.PathLike[str]) -> list[tuple[str, list[int]]]:
    """List the keys of a checkpoint's arrays and their shapes, sorted by key.

    Args:
        ckpt_dir_or_file: Path of a checkpoint, or of a folder of some, whose latest is read.

    Returns:
        List of (key, shape).

    Example:
        >>> import samegrad as tf, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = tf.train.Checkpoint(b=tf.Variable(1.0), a=tf.Variable([2.0])).write(folder)
        ...     tf.train.list_variables(path)
        [('a', [1]), ('b', [])]
    """
    return sorted(load_checkpoint(ckpt_dir_or_file).get_variable_to_shape_map().items())


def load_variable(ckpt_dir_or_file: str | os.PathLike[str], name: str) -> Array:
    """Return the array of one key of a checkpoint.

    Args:
        ckpt_dir_or_file: Path of a checkpoint, or of a folder of some, whose latest is read.
        name: Key of the array.

    Returns:
        NumPy array.

    Example:
        >>> import samegrad as tf, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = tf.train.Checkpoint(step=tf.Variable(3)).save(folder + "/ckpt")
        ...     tf.train.load_variable(path, "step")
        array(3, dtype=int32)
    """
    return load_checkpoint(ckpt_dir_or_file).get_tensor(name)


__all__ = [
    "CheckpointReader",
    "checkpoint_at",
    "list_variables",
    "load_checkpoint",
    "load_variable",
]
