"""Weights under the paths that older programs give: HDF5 files and checkpoints.

TensorFlow 2.4 to 2.15 wrote a checkpoint for `model.save_weights("path")`. Here it is one of
`tf.train.Checkpoint`, which `tf.train.latest_checkpoint` finds.
"""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import Any

from keras.src.utils.io_utils import ask_to_proceed_with_overwrite

from samegrad._keras.saving import whole_hdf5
from samegrad.train import Checkpoint, _state_file
from samegrad.train._foreign import tensorflow_prefix

# What names of checkpoints end with, beside nothing.
_ENDINGS = ("", ".ckpt", ".tf")


def check_model_folder(path: Any) -> None:
    """Says what to do where a folder holds what only TensorFlow reads.

    Args:
        path: Of what is to be loaded as a model.

    Raises:
        ValueError: It is a SavedModel.
    """
    if Path(str(path), "saved_model.pb").exists():
        raise ValueError(
            f"[load_model] models are files of Keras: got {path}, a SavedModel, whose graph only "
            "TensorFlow runs; make the model in Python and call model.load_weights with this path, "
            "or load it in TensorFlow and save it with model.save('model.keras')."
        )


def saves_weights(
    model: Any, path: Any, overwrite: bool, save_format: Any, max_shard_size: Any
) -> bool:
    """Save weights as older programs do, unless the path is one of Keras's today.

    Args:
        model: Whose weights, and whose optimizer's state where it is a checkpoint.
        path: `name.h5` for an HDF5 file of the weights alone; no ending, `.ckpt` or `.tf` for a
            checkpoint, which becomes its folder's latest.
        overwrite: Whether nobody is asked where there is something already.
        save_format: "h5" or "tf", where the path does not say it.
        max_shard_size: Of today's files.

    Returns:
        Whether nothing is left to do.

    Raises:
        ValueError: The model has no weights yet, or `save_format` is another.
    """
    name = str(path)
    if save_format not in (None, "h5", "tf"):
        raise ValueError(
            f"[save_weights] save_format is 'h5' or 'tf': got {save_format!r}; leave it out."
        )
    if max_shard_size is not None or name.endswith((".weights.h5", ".keras")) or "://" in name:
        return False
    hdf5 = name.endswith((".h5", ".hdf5")) or save_format == "h5"
    if not hdf5 and Path(name).suffix not in _ENDINGS and save_format is None:
        return False
    if not model.built:
        raise ValueError(
            "[save_weights] a model has weights once it is built: got one that is not; call it on "
            "data, or model.build(input_shape)."
        )
    if not overwrite and os.path.exists(path) and not ask_to_proceed_with_overwrite(name):
        return True
    (_write_hdf5 if hdf5 else _write_checkpoint)(model, path)
    return True


@whole_hdf5
def _write_hdf5(model: Any, path: Any) -> None:
    from keras.src.legacy.saving.legacy_h5_format import save_weights_to_hdf5_group
    from keras.src.utils.module_utils import h5py

    with h5py.File(path, "w") as file:
        save_weights_to_hdf5_group(file, model)


def _write_checkpoint(model: Any, path: Any) -> None:
    name = os.fspath(path)
    Checkpoint(model=model)._write(name, partial(_state_file.record_save, name))


def loads_weights(model: Any, path: Any, by_name: Any) -> Any:
    """Load weights from a checkpoint, where the path is one.

    Args:
        model: Whose weights; those that are not made yet get their values when they are.
        path: What `save_weights` or `tf.train.latest_checkpoint` was given or gave, here or in
            TensorFlow.
        by_name: Of HDF5 files.

    Returns:
        A status with `assert_consumed` and `expect_partial`, or None: the path is not a checkpoint.

    Raises:
        ValueError: There is no path.
        AssertionError: No name in a checkpoint of TensorFlow is one of the model.
    """
    if path is None:
        raise ValueError(
            "[load_weights] a path is needed: got None, as tf.train.latest_checkpoint gives for a "
            "folder without checkpoints; look at the folder."
        )
    name = os.fspath(path)
    tensorflows = tensorflow_prefix(Path(name)) is not None
    if not tensorflows and not Path(name, "manifest.json").exists():
        return None
    if by_name:
        raise ValueError(
            "[load_weights] by_name is for HDF5 files: got a checkpoint; leave it out, and call "
            "expect_partial() on what load_weights returns."
        )
    if not tensorflows:
        return Checkpoint(model=model).read(name)
    status = Checkpoint(model).read(name)  # whose root is the model itself
    return status.assert_nontrivial_match() if model.built else status
