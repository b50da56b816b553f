"""`export.to_onnx`: a function as an ONNX model."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from samegrad import _core
from samegrad._autodiff.variable import variable_of
from samegrad._base.shown import shown
from samegrad._base.tree import flatten, map_structure
from samegrad._function.concrete import ConcreteFunction
from samegrad._function.export import ExportedProgram
from samegrad._function.function import BoundFunction, Function
from samegrad._tensor.tensor import is_tensor
from samegrad.distribute._job import on_first_rank
from samegrad.export._lengths import program_of_any_length
from samegrad.saved_model._functions import Saveable, saveables

if TYPE_CHECKING:
    from onnx import ModelProto

DEFAULT_OPSET = 18
_LEAST_OPSET = 18
_NAME = "export.to_onnx"


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
    if _core.tracing():
        raise RuntimeError(
            "[export.to_onnx] models are exported outside of functions: got a call while a "
            "function is traced; export after the step."
        )
    one = _one_call(function, input_signature)
    traced = one.program(one.args, one.kwargs)
    from samegrad.export._convert import OpenSizeError
    from samegrad.export._write import with_weights, write

    model: ModelProto
    try:
        model, arrays = _converted(one, traced, version)
    except OpenSizeError as error:
        same = program_of_any_length(one)
        if same is None:
            raise ValueError(str(error)) from None
        model, arrays = _converted(one, same, version)
    if path is None:
        with_weights(model, arrays)
        return model
    os.fspath(path)
    on_first_rank("an ONNX model", lambda: write(path, model, arrays))
    return model


def _converted(one: Saveable, traced: ExportedProgram, opset: int) -> tuple[ModelProto, Any]:
    """Return the model without its weights, and these."""
    from samegrad.export._convert import Converter, line_finder

    converter = Converter(
        traced.graph, [np.asarray(array.numpy()) for array in traced.constants],
        _variables(traced), one.input_names(), line_finder(traced.text), opset,
    )  # fmt: skip
    outputs = _outputs(traced.result, one.function._traces.name, one.input_names())
    return converter.model(outputs)


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


def _one_call(function: Any, input_signature: Sequence[Any] | None) -> Saveable:
    if not callable(function):
        raise TypeError(
            f"[export.to_onnx] a function of tensors is exported: got {shown(function)}; pass a "
            "function, or a model of Keras."
        )
    if input_signature is not None:
        if not isinstance(input_signature, list | tuple):
            raise TypeError(
                "[export.to_onnx] input_signature must be a list with an entry for each "
                f"parameter: got {shown(input_signature)}; pass [spec]."
            )
        plain, owner = function, []
        if isinstance(function, BoundFunction):
            plain, owner = function._function, [function._owner]
        elif not isinstance(function, Function):
            plain = Function(function)
        return Saveable(plain, owner, tuple(input_signature), {}, _NAME)
    if not isinstance(function, Function | BoundFunction | ConcreteFunction):
        raise ValueError(
            "[export.to_onnx] a function is exported for specs of its tensors: got "
            f"{shown(function)} without input_signature; pass input_signature=[tf.TensorSpec(...)]."
        )
    found = saveables(function, _NAME)
    if len(found) != 1:
        raise ValueError(
            f"[export.to_onnx] a model is one function of tensors: got {shown(function)}, which "
            f"was traced for {len(found)} kinds of arguments; pass input_signature."
        )
    return found[0]


def _variables(traced: ExportedProgram) -> list[Any]:
    """Return the elements of each variable; None for a requirement."""
    checks = {id(requirement._met) for requirement in traced.requirements}
    found: list[Any] = []
    for cell in traced.cells:
        variable = None if id(cell) in checks else variable_of(cell)
        found.append(None if variable is None else np.asarray(variable.numpy()))
    return found


def _outputs(result: Any, name: str, inputs: Sequence[str]) -> dict[str, int]:
    """Return the numbers of the results by their names, none of which an input has."""
    numbers = iter(range(len(flatten(result))))
    marked = map_structure(lambda leaf: next(numbers) if is_tensor(leaf) else None, result)
    named = marked if isinstance(marked, dict) else {"output": marked}
    found: dict[str, int] = {}
    for key, part in named.items():
        leaves = flatten(part)
        if None in leaves:
            raise ValueError(
                f"[export.to_onnx] an exported function returns tensors: got {shown(result)} from "
                f"{name!r}; change what it returns."
            )
        single = isinstance(marked, dict) and len(leaves) == 1
        for at, leaf in enumerate(leaves):
            own = str(key) if single else f"{key}_{at}"
            while own in inputs or own in found:
                own += "_"
            found[own] = leaf
    if not found:
        raise ValueError(
            f"[export.to_onnx] an exported function returns tensors: got {shown(result)} from "
            f"{name!r}; return what it computes."
        )
    return found
