"""`export.to_onnx`: a function as an ONNX model."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from samegrad._base.shown import shown
from samegrad.distribute._job import on_first_rank

if TYPE_CHECKING:
    from onnx import ModelProto

DEFAULT_OPSET = 18
_LEAST_OPSET = 18


def to_onnx(
    function: Any,
    input_signature: Sequence[Any] | None = None,
    path: str | os.PathLike[str] | None = None,
    *,
    opset: int | None = None,
) -> ModelProto:
    """Convert a function of tensors to an ONNX model, with its variables as weights.

    The inputs are named by the specs or the parameters, the outputs by the keys of a dict or
    `output_0`, `output_1`, … A size that the signature leaves open stays open. The model has no
    gradients and assigns no variables. Install the package `onnx` with `samegrad[onnx]`.

    Args:
        function: A `tf.function`, a Keras model, or another function of tensors.
        input_signature: A `TensorSpec`, or a structure of them, for each parameter. None: the
            function is a `tf.function` with an `input_signature` or one trace.
        path: The file to write, all at once. Weights beyond 2 GiB go to a second file
            `<name>-<hash>.data` next to it. None: nothing is written.
        opset: The version of ONNX's operator set, from 18 to that of the package `onnx`.

    Returns:
        The model, an `onnx.ModelProto`.

    Raises:
        ModuleNotFoundError: The package `onnx` is missing.
        NotImplementedError: ONNX lacks an operation of the function, or it assigns a variable.
        ValueError: The signature, the result or the opset cannot be exported.
        OSError: The file cannot be written. Nothing half-written is left.

    Example:
        >>> import samegrad as tf
        >>> w = tf.Variable([[1.0], [2.0]])
        >>> spec = tf.TensorSpec([None, 2], tf.float32, name="x")
        >>> model = tf.export.to_onnx(lambda x: tf.nn.relu(x @ w), [spec])
        >>> [node.op_type for node in model.graph.node], model.graph.input[0].name
        (['MatMul', 'Relu', 'Identity'], 'x')
    """
    version = _checked_opset(opset)
    from samegrad.export._onnx_model import model_of
    from samegrad.export._program import program_of
    from samegrad.export._table import ROWS, Target
    from samegrad.export._write import with_weights, write

    target = Target("ONNX", "export.to_onnx", ROWS, version)
    program = program_of(function, input_signature, target)
    model: ModelProto = model_of(program, version)
    if path is None:
        with_weights(model, program.arrays)
        return model
    os.fspath(path)
    on_first_rank("an ONNX model", lambda: write(path, model, program.arrays))
    return model


def _checked_opset(opset: int | None) -> int:
    try:
        import onnx
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "[export.to_onnx] an export needs the package 'onnx': got an installation without it; "
            "run `pip install 'samegrad[onnx]'`.",
            name="onnx",
        ) from error
    most = onnx.defs.onnx_opset_version()
    version = DEFAULT_OPSET if opset is None else opset
    if isinstance(version, bool) or not isinstance(version, int):
        raise TypeError(f"[export.to_onnx] opset must be an integer: got {shown(opset)}; pass 18.")
    if not _LEAST_OPSET <= version <= most:
        raise ValueError(
            f"[export.to_onnx] opset must be from {_LEAST_OPSET} to {most}, that of the installed "
            f"package 'onnx': got {version}; pass one of them, or update the package."
        )
    return version
