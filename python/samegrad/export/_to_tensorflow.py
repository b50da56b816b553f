"""`export.to_tensorflow`: a function as a frozen SavedModel of TensorFlow."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from samegrad._base.file_errors import explained_errors
from samegrad.distribute._job import on_first_rank
from samegrad.train import _files

_NAME = "export.to_tensorflow"
_MOST = (2 << 30) - 1  # bytes of a protocol buffer
_CANNOT_WRITE = "nothing was changed; choose a folder that this user may write to, with room for it"


def to_tensorflow(
    function: Any, path: str | os.PathLike[str], input_signature: Sequence[Any] | None = None
) -> None:
    """Write a function of tensors as a frozen SavedModel, which TensorFlow loads and calls.

    In TensorFlow, `tf.saved_model.load(path).signatures["serving_default"]` takes tensors by name.
    Names and open sizes are those of `to_onnx`. Variables become constants, so the model is not
    trained further. The folder has one file, `saved_model.pb`. No package is needed to write it.

    Args:
        function: A `tf.function`, a Keras model, or another function of tensors.
        path: The folder.
        input_signature: A `TensorSpec`, or a structure of them, for each parameter. None: the
            function is a `tf.function` with an `input_signature` or one trace, or a built model.

    Raises:
        NotImplementedError: TensorFlow lacks an operation of the function, or it assigns a
            variable.
        ValueError: The signature or the result cannot be exported, or the file has 2 GiB.
        OSError: The file cannot be written. Nothing half-written is left.

    Example:
        >>> import os, samegrad as tf, tempfile
        >>> w = tf.Variable([[1.0], [2.0]])
        >>> spec = tf.TensorSpec([None, 2], tf.float32, name="x")
        >>> folder = tempfile.mkdtemp()
        >>> tf.export.to_tensorflow(lambda x: tf.nn.relu(x @ w), folder, [spec])
        >>> os.listdir(folder)
        ['saved_model.pb']
    """
    from samegrad.export._program import program_of
    from samegrad.export._tensorflow_model import TARGET, saved_model

    folder = Path(os.path.abspath(path))
    if input_signature is None:  # that of a model of Keras
        function = getattr(function, "_default_save_signature", None) or function
    program = program_of(function, input_signature, TARGET)
    content = saved_model(program)
    if len(content) > _MOST:
        raise ValueError(
            f"[{_NAME}] a frozen model holds less than 2 GiB: got {len(content)} bytes; export a "
            "part of it, or use to_onnx."
        )

    def write() -> None:
        with explained_errors(_NAME, "write", folder, _CANNOT_WRITE):
            _files.make_folder(folder)
            _files.replace_file(folder / "saved_model.pb", content)

    on_first_rank("a SavedModel of TensorFlow", write)
