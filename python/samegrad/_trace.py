"""Tracing: a Python function becomes a compiled step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from samegrad import _context, _core
from samegrad._counts import questions
from samegrad._nest import flatten, map_structure
from samegrad._requirements import Requirement, check_all
from samegrad._scaling_check import check_trace
from samegrad._tensor import Tensor, convert_to_tensor
from samegrad._values import (
    PerReplica,
    TracedLocalResults,
    TracedPerReplica,
    TracedValue,
    check_parts,
)

OPTIONS = _core.PlanOptions()


def _as_argument(value: Any) -> Any:
    """NumPy's arrays and numbers enter a program as tensors."""
    is_array = isinstance(value, np.ndarray | np.generic)
    return convert_to_tensor(value) if is_array else value


class TracedProgram:
    """A compiled step with the structure of its results.

    Args:
        fn: Called once.
        args: Its arguments.
        kwargs: Its named arguments.
        replicas: How many run it.
        look: Whether fn may look at values. What Python does with them makes the program right for
            these arguments only: it must not be kept.
        numbers_change: Whether programs that differ in Python's numbers alone share what is
            compiled, as those of a function that is traced in each call.
    """

    def __init__(
        self,
        fn: Callable[..., Any],
        args: Any,
        kwargs: dict[str, Any],
        replicas: int,
        look: bool = False,
        numbers_change: bool = False,
    ) -> None:
        trace = _core.Trace(replicas)
        requirements: dict[tuple[str, str], Requirement] = {}
        batches: list[Tensor] = []

        def enter(value: Any) -> Any:
            entered = argument(value)
            tensor = getattr(entered, "tensor", entered)
            if isinstance(tensor, Tensor) and None in tensor._shape:
                batches.append(tensor)
            return entered

        def argument(value: Any) -> Any:
            value = _as_argument(value)
            if isinstance(value, PerReplica):
                check_parts(value.values)
                return TracedPerReplica(trace.argument(value.values))
            if isinstance(value, Tensor) and not value._symbolic:
                return trace.argument([value])
            return value

        questions.open.clear()
        with _core.tracing_into(trace, {"requirements": requirements, "batches": batches}):
            traced_args, traced_kwargs = map_structure(enter, (args, kwargs))
            if look:
                trace.let_look(_core.Arguments(args, kwargs))
            self._result = fn(*traced_args, **traced_kwargs)
            self._result = map_structure(_as_output, self._result)
            leaves = [leaf for leaf in flatten(self._result) if _is_output(leaf)]
            outputs = [_tensor_of(leaf) for leaf in leaves]
            totals = _add_totals(leaves)
        self._requirements = list(requirements.values())
        for leaf, share in zip(leaves, check_trace(trace, outputs), strict=True):
            if isinstance(leaf, TracedValue):
                leaf.share = share
        self._constants = trace.constants()
        self._step = trace.finish(outputs + totals, OPTIONS, numbers_change)
        # A program looked at a number of examples: it is right for the traced numbers only.
        self.fixed = bool(self._step.fixed)

    def explain(self) -> str:
        """Its phases, loops and memory."""
        return str(self._step.explain())

    def run(self, arguments: _core.Arguments) -> Any:
        """One step with these arguments."""
        outputs = self._step.run(arguments, self._constants)
        if self._requirements:
            check_all(self._requirements)
        if isinstance(self._result, Tensor):
            return _leave(self._result, outputs[0], outputs)
        values = iter(outputs)
        # map_structure visits dicts by sorted keys, as flatten does.
        return map_structure(
            lambda leaf: _leave(leaf, next(values), outputs) if _is_output(leaf) else leaf,
            self._result,
        )


def _add_totals(leaves: list[Any]) -> list[Tensor]:
    """What `Strategy.reduce` will want of results that a sum of their parts does not give."""
    totals: list[Tensor] = []
    for leaf in leaves:
        if isinstance(leaf, TracedPerReplica) and leaf.tensor._function_of_sums:
            leaf.total_at = len(leaves) + len(totals)
            totals.append(_core.ops.all_reduce(leaf.tensor, op="sum"))
    return totals


def _leave(leaf: Any, value: Any, outputs: Any) -> Any:
    if not isinstance(leaf, TracedValue):
        return PerReplica(tuple(value)) if isinstance(value, list) else value
    # What is equal on all replicas is a value of run all the same: one part per replica.
    parts = value if isinstance(value, list) else [value] * max(leaf.tensor_replicas, 1)
    if isinstance(leaf, TracedLocalResults):
        return tuple(parts)
    total = None if leaf.total_at is None else outputs[leaf.total_at]
    return PerReplica(tuple(parts), leaf.share, total)


def _as_output(value: Any) -> Any:
    if isinstance(value, TracedValue):
        value.tensor_replicas = _core.current_trace().replicas
        return value
    return value._as_tensor() if hasattr(value, "_as_tensor") else value


def _is_output(value: Any) -> bool:
    return isinstance(value, Tensor | TracedValue)


def _tensor_of(value: Any) -> Tensor:
    tensor: Tensor = value.tensor if isinstance(value, TracedValue) else value
    return tensor


def trace_and_run(fn: Callable[..., Any], args: Any, kwargs: dict[str, Any], replicas: int) -> Any:
    """Traces, compiles (or finds the equal program) and runs once."""
    look = _context.settings.functions_run_eagerly
    program = TracedProgram(fn, args, kwargs, replicas, look, numbers_change=True)
    return program.run(_core.Arguments(args, kwargs))
