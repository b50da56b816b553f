"""Traces of functions for other processes: one replica, outside of any strategy."""

from __future__ import annotations

from typing import Any, NamedTuple

from samegrad import _core
from samegrad._autodiff.trace_agreement import Agreement
from samegrad._base.tree import flatten, map_structure
from samegrad._context import state as _context
from samegrad._control.requirements import Requirement
from samegrad._function.function import Function
from samegrad._function.reads_data import NeedsPython
from samegrad._function.signature import open_axes, stand_in
from samegrad._function.trace import _Trace, check_not_ragged
from samegrad._tensor.per_replica import PerReplica
from samegrad._tensor.spec import TensorSpec


class ExportedProgram(NamedTuple):
    """Traced function as data.

    Attributes:
        graph: The graph, as JSON knows it.
        constants: The arrays that it names.
        cells: The engine's variables, by its slots.
        requirements: Those among them that a step must meet.
        result: The structure of the results; each tensor is a value without elements.
        text: The trace as it prints, with the user's lines.
        one_replica: Name and line of what is right on one replica only; None: there is nothing.
    """

    graph: dict[str, Any]
    constants: list[_core.Tensor]
    cells: list[_core.StateVariable]
    requirements: list[Requirement]
    result: Any
    text: str
    one_replica: str | None


def export_program(
    function: Function, args: Any, kwargs: dict[str, Any], op_name: str = "export"
) -> ExportedProgram:
    """Trace a function for arguments of these specs.

    Args:
        function: The function.
        args: A `TensorSpec` for each tensor, and values of Python.
        kwargs: The same by name.
        op_name: The public function that exports it, for messages.

    Raises:
        ValueError: A spec has no rank, or the program uses values of a strategy's replicas.
        NotImplementedError: Python takes part in each call, or an operation cannot be saved.

    Example:
        >>> double = Function(lambda x: x * 2)
        >>> program = export_program(double, (TensorSpec([None], "float32"),), {})
        >>> [node["operation"] for node in program.graph["nodes"]]
        ['mul']
    """
    name = function._traces.name
    leaves = [leaf for leaf in flatten((args, kwargs)) if isinstance(leaf, TensorSpec)]
    if None in [leaf.shape.rank for leaf in leaves]:
        raise ValueError(
            f"[{op_name}] a function is exported for tensors of known rank: got {leaves} for "
            f"{name!r}; give shapes, with None for the sizes that vary."
        )
    lengths = [open_axes(leaf) for leaf in leaves]
    args, kwargs = map_structure(
        lambda leaf: stand_in(leaf) if isinstance(leaf, TensorSpec) else leaf, (args, kwargs)
    )
    check_not_ragged((args, kwargs), "arguments")
    requirements: dict[tuple[str, str], Requirement] = {}
    captured: list[PerReplica] = []
    notes = _context.OneReplica()
    outside = {
        "strategy": None, "replica_context": None, "arguments_given": False, "one_replica": notes,
    }  # fmt: skip
    known = function.experimental_get_tracing_count() > 0
    try:
        with _context.changed(**outside, tracing_function=True, traced_before=known):
            one = _Trace(
                function._traced, args, kwargs, 1, False, [], lengths, requirements, Agreement(),
                captured,
            )  # fmt: skip
    except NeedsPython as reason:
        raise NotImplementedError(
            f"[{op_name}] Python takes part in each call of {name!r}: got a function without "
            f"a program ({reason.why.rstrip('.')}); export functions of tensors of known sizes."
        ) from None
    if captured:
        raise ValueError(
            f"[{op_name}] {name!r} uses values of a strategy's replicas: got {captured[0]!r:.80}"
            "; pass them to strategy.run, outside of the function that is exported."
        )
    text = str(one.trace)
    noted = [value for _, value in notes.values]
    programs = _core.TracedPrograms([one.trace], [[*one.outputs, *noted]])
    graph, constants, cells = _core.export_program(programs, op_name)
    one_replica = _one_replica(notes, graph)
    if any(symbol.get("fixed") for symbol in graph["symbols"]):
        raise ValueError(
            f"[{op_name}] {name!r} asks for the number of examples in Python, or takes a part of "
            "them that depends on it: got a program that is right for one number only; use "
            "tf.shape(x)[0], or give an input_signature with that number."
        )
    met = list(requirements.values())
    return ExportedProgram(graph, constants, cells, met, one.result, text, one_replica)


def _one_replica(notes: _context.OneReplica, graph: dict[str, Any]) -> str | None:
    """Return the first note that concerns a result, and take the noted values from the results."""
    numbers = [graph["outputs"].pop() for _ in notes.values][::-1]
    needed = _needed(graph) if numbers else set()
    live = [what for (what, _), n in zip(notes.values, numbers, strict=True) if n in needed]
    return next(iter(notes.always + live), None)


def _needed(graph: dict[str, Any]) -> set[int]:
    """Return the numbers of the values that results, variables and messages are made of."""
    needed = {*graph["outputs"], *(value for _, value in graph["writes"])}
    end = len(graph["sources"]) + sum(node["results"] for node in graph["nodes"])
    for node in reversed(graph["nodes"]):
        begin = end - node["results"]
        if begin == end or needed.intersection(range(begin, end)):
            needed.update(node["inputs"])
        end = begin
    return needed
