"""Programs of functions, as the nodes of a format."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from samegrad import _core
from samegrad._autodiff.variable import variable_of
from samegrad._base.shown import shown
from samegrad._base.tree import flatten, map_structure
from samegrad._function.concrete import ConcreteFunction
from samegrad._function.export import ExportedProgram
from samegrad._function.function import BoundFunction, Function
from samegrad._tensor.tensor import is_tensor
from samegrad.export._convert import Converter, OpenSizeError, Program, line_finder
from samegrad.export._lengths import program_of_any_length
from samegrad.export._table import Target
from samegrad.saved_model._functions import Saveable, saveables


def program_of(function: Any, input_signature: Sequence[Any] | None, target: Target) -> Program:
    """Trace a function and convert it.

    Args:
        function: A `tf.function`, a model of Keras, or another function of tensors.
        input_signature: Specs of its parameters; None: those of a `tf.function`.
        target: The format.

    Raises:
        NotImplementedError: The format lacks an operation, or the function assigns a variable.
        ValueError: The signature or the result cannot be exported.
    """
    if _core.tracing():
        raise RuntimeError(
            f"[{target.function}] models are exported outside of functions: got a call while a "
            "function is traced; export after the step."
        )
    one = _one_call(function, input_signature, target)
    traced = one.program(one.args, one.kwargs)
    try:
        return _converted(one, traced, target)
    except OpenSizeError as error:
        same = program_of_any_length(one)
        if same is None:
            raise ValueError(str(error)) from None
        return _converted(one, same, target)


def _converted(one: Saveable, traced: ExportedProgram, target: Target) -> Program:
    inputs = one.input_names()
    outputs = _outputs(traced.result, one.function._traces.name, inputs, target)
    arrays = [np.asarray(array.numpy()) for array in traced.constants]
    return Converter(
        traced.graph, arrays, _variables(traced), inputs, outputs, line_finder(traced.text), target
    ).program()


def _one_call(function: Any, input_signature: Sequence[Any] | None, target: Target) -> Saveable:
    if not callable(function):
        raise TypeError(
            f"[{target.function}] a function of tensors is exported: got {shown(function)}; pass a "
            "function, or a model of Keras."
        )
    if input_signature is not None:
        if not isinstance(input_signature, list | tuple):
            raise TypeError(
                f"[{target.function}] input_signature must be a list with an entry for each "
                f"parameter: got {shown(input_signature)}; pass [spec]."
            )
        plain, owner = function, []
        if isinstance(function, BoundFunction):
            plain, owner = function._function, [function._owner]
        elif not isinstance(function, Function):
            plain = Function(function)
        return Saveable(plain, owner, tuple(input_signature), {}, target.function)
    if not isinstance(function, Function | BoundFunction | ConcreteFunction):
        raise ValueError(
            f"[{target.function}] a function is exported for specs of its tensors: got "
            f"{shown(function)} without input_signature; pass input_signature=[tf.TensorSpec(...)]."
        )
    found = saveables(function, target.function)
    if len(found) != 1:
        raise ValueError(
            f"[{target.function}] a model is one function of tensors: got {shown(function)}, which "
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


def _outputs(result: Any, name: str, inputs: Sequence[str], target: Target) -> dict[str, int]:
    """Return the numbers of the results by their names, none of which an input has."""
    numbers = iter(range(len(flatten(result))))
    marked = map_structure(lambda leaf: next(numbers) if is_tensor(leaf) else None, result)
    named = marked if isinstance(marked, dict) else {"output": marked}
    found: dict[str, int] = {}
    for key, part in named.items():
        leaves = flatten(part)
        if None in leaves:
            raise ValueError(
                f"[{target.function}] an exported function returns tensors: got {shown(result)} "
                f"from {name!r}; change what it returns."
            )
        single = isinstance(marked, dict) and len(leaves) == 1
        for at, leaf in enumerate(leaves):
            own = str(key) if single else f"{key}_{at}"
            while own in inputs or own in found:
                own += "_"
            found[own] = leaf
    if not found:
        raise ValueError(
            f"[{target.function}] an exported function returns tensors: got {shown(result)} from "
            f"{name!r}; return what it computes."
        )
    return found
