"""Tracing: a Python function becomes a compiled step."""

from __future__ import annotations

import copy
import itertools
import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from samegrad import _core
from samegrad._autodiff import tape as _tape  # noqa: F401  says what records programs
from samegrad._autodiff.loss_normalization_check import check_trace
from samegrad._autodiff.replica_dependence_check import check_replica_dependence
from samegrad._autodiff.trace_agreement import Agreement
from samegrad._base.heap import give_back
from samegrad._base.shown import shown
from samegrad._base.tree import flatten, map_structure
from samegrad._context import state as _context
from samegrad._context.counted_numbers import questions
from samegrad._context.python_runs import NeedsPython
from samegrad._control.requirements import Requirement, check_all
from samegrad._function.explanation import Explanation, explain_plan
from samegrad._function.traced_arguments import TracedArguments, with_captured
from samegrad._tensor.per_replica import (
    PerReplica,
    TracedPart,
    TracedPerReplica,
    TracedValue,
    check_parts,
    per_replica,
)
from samegrad._tensor.ragged import RaggedTensor
from samegrad._tensor.tensor import Tensor, convert_to_tensor
from samegrad._tensor.text import UnreadText

OPTIONS = _core.PlanOptions()


def _argument(
    trace: _core.Trace, value: Any, open_axes: Iterator[int], strings: Iterator[int]
) -> Any:
    """Return what stands for an argument in a trace; strings are numbered and stay unread."""
    if isinstance(value, PerReplica):
        if value._has_strings:
            return UnreadText(next(strings))
        check_parts(value._all_parts)
        return TracedPerReplica(trace.argument(value._all_parts, next(open_axes)))
    if isinstance(value, Tensor) and not value._symbolic:
        return trace.argument([value], next(open_axes))
    return value


def _as_argument(value: Any) -> Any:
    """NumPy's arrays and numbers enter a program as tensors."""
    is_array = isinstance(value, np.ndarray | np.generic)
    return convert_to_tensor(value) if is_array else value


def _runs(measure: Any) -> int:
    """Return the number of runs that explain() measures."""
    rule = "[explain] 'measure' must be a number of runs from 0 to a million: got"
    try:
        runs = operator.index(measure)
    except TypeError:
        raise TypeError(f"{rule} {shown(measure)}.") from None
    if not 0 <= runs <= 1_000_000:
        raise ValueError(f"{rule} {runs}.")
    return runs


def _watched(fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    """Call a traced function whose tape watches the arguments, for `samegrad.gradients`."""
    tape = _context.current().program_tape
    for leaf in flatten((args, kwargs)):
        tensor = getattr(leaf, "tensor", leaf)
        if isinstance(tensor, Tensor) and tape is not None and "float" in tensor._dtype:
            tape._watch(tensor)
    return fn(*args, **kwargs)


class _Trace:
    """A function traced once, for the replicas whose numbers of examples decide alike.

    Args:
        fn: Called once.
        args: Its arguments.
        kwargs: Its named arguments.
        replicas: How many run it.
        look: Whether fn may look at values.
        members: The replicas that it is traced for; all of them if empty.
        lengths: Per array among the arguments, bits of the axes whose sizes are lengths.
        requirements: Those of the program, which the trace adds to.
        agreement: Of all traces of the program.
        captured: The values per replica that the program found outside; the trace adds to them.
    """

    def __init__(
        self,
        fn: Callable[..., Any],
        args: Any,
        kwargs: dict[str, Any],
        replicas: int,
        look: bool,
        members: list[int],
        lengths: Sequence[int],
        requirements: dict[tuple[str, str], Requirement],
        agreement: Agreement,
        captured: list[PerReplica],
    ) -> None:
        trace = self.trace = _core.Trace(replicas, members)
        _context.begin_export(trace)
        batches: list[Tensor] = []
        shares: list[tuple[int, ...]] = []  # of those, the examples of each replica
        open_axes = itertools.chain(lengths, itertools.repeat(0))
        strings = itertools.count()

        def note(tensor: Any, value: Any) -> None:
            place = tensor._example_axis if isinstance(tensor, Tensor) else None
            if place is None:
                return
            batches.append(tensor)
            if isinstance(value, PerReplica):
                shares.append(tuple(part._shape[place[0]] for part in value._all_parts))

        def enter(value: Any) -> Any:
            entered = _argument(trace, _as_argument(value), open_axes, strings)
            note(getattr(entered, "tensor", entered), value)
            return entered

        questions.begin()
        entered_with = {"requirements": requirements, "batches": batches, "scaled_uses": []}
        with _core.tracing_into(trace, entered_with):
            traced_args, traced_kwargs = map_structure(enter, (args, kwargs))
            if trace.uneven:
                agreement.begin_trace()
            self.arguments = TracedArguments(trace, args, kwargs, captured, note, look)
            agreed = agreement if trace.uneven else None
            with _context.changed(agreement=agreed, arguments=self.arguments):
                found = _context.recorded(_watched, fn, *traced_args, **traced_kwargs)
                check_not_ragged(found, "results")
                self.result = map_structure(_as_output, found)
            leaves = [leaf for leaf in flatten(self.result) if _is_output(leaf)]
            self.outputs = [_tensor_of(leaf) for leaf in leaves]
            # What replicas compute each in their own way has no other sum than that of the parts.
            totals = [] if trace.members else _add_totals(leaves)
            of_mean, reported = check_trace(trace, self.outputs, shares)
            check_replica_dependence(trace, shares, reported)
        for leaf, share in zip(leaves, of_mean, strict=True):
            if isinstance(leaf, TracedValue):
                leaf._of_mean = share
        self.outputs += totals


class TracedProgram:
    """A compiled step with the structure of its results.

    Args:
        fn: Called once; where Python needs numbers of examples that differ between the replicas,
            once for each.
        args: Its arguments.
        kwargs: Its named arguments.
        replicas: How many run it.
        look: Whether fn may look at values. What Python does with them makes the program right for
            these arguments only: it must not be kept.
        numbers_change: Whether programs that differ in Python's numbers alone share what is
            compiled, as those of a function that is traced in each call.
        lengths: Per array among the arguments, bits of the axes whose sizes are lengths: the trace
            serves others, too, and a program is made of it for each (`with_lengths`).
    """

    def __init__(
        self,
        fn: Callable[..., Any],
        args: Any,
        kwargs: dict[str, Any],
        replicas: int,
        look: bool = False,
        numbers_change: bool = False,
        lengths: Sequence[int] = (),
    ) -> None:
        requirements: dict[tuple[str, str], Requirement] = {}
        self._captured: list[PerReplica] = []

        def trace_all() -> list[_Trace]:
            requirements.clear()
            agreement, members = Agreement(), list[int]()
            traces: list[_Trace] = []
            while not traces or members:
                one = _Trace(
                    fn, args, kwargs, replicas, look, members, lengths, requirements, agreement,
                    self._captured,
                )  # fmt: skip
                traces.append(one)
                members = _without_trace(traces)
            return traces

        traces = trace_all()
        self._made = [made for one in traces for made in one.arguments.made]
        if len(traces) > 1 and self._made:
            traces = trace_all()  # one trace computed what the others found made
        for one in traces:
            one.arguments.enter_captured()
        self._requirements = list(requirements.values())
        self._result = _joined_results(traces)
        self._programs = _core.TracedPrograms(
            [one.trace for one in traces], [one.outputs for one in traces]
        )
        self._numbers_change = numbers_change
        # Parts of known sizes whose places follow from values: Python makes those that end early.
        takes_parts = any(one.arguments.takes_parts for one in traces)
        self.may_leave_axis = takes_parts and traces[0].trace.replicas == 1
        self.has_lengths = bool(self._programs.has_lengths)
        arguments = _core.Arguments(args, kwargs) if self.has_lengths else None
        self._compile(arguments)
        give_back()

    def check_variables(self) -> None:
        """Check that the variables which the function made are there for its next call.

        Raises:
            ValueError: One is not: each call would make another one.
        """
        for name, variable in self._made:
            if variable() is None:
                raise ValueError(
                    f"[{name}] a function makes variables in its first call only: got one that "
                    "nothing keeps, which each call would make again; create it once, "
                    "`if self.w is None: self.w = tf.Variable(...)`, or outside."
                )

    def _compile(self, arguments: _core.Arguments | None) -> bool:
        if arguments is not None:
            arguments = with_captured(arguments, self._captured)
        made = compiled(self._programs, arguments, self._numbers_change)
        if made is not None:
            self._step, self._constants = made
            # A program looked at a number of examples: it is right for the traced numbers only.
            self.fixed = bool(self._step.fixed)
        return made is not None

    def with_lengths(self, arguments: _core.Arguments) -> TracedProgram | None:
        """Return the program of the same trace for the lengths of other arguments.

        None: the function was traced with something about lengths that is not true of these.
        """
        program = copy.copy(self)
        return program if program._compile(arguments) else None

    @property
    def granted(self) -> list[str]:
        """The assumptions of the trace about lengths, and the user's lines of them."""
        return list(self._programs.granted) if self.has_lengths else []

    @property
    def result(self) -> Any:
        """The result of the function when it was traced: tensors without values."""
        return self._result

    def explain(self, arguments: _core.Arguments | None = None, measure: int = 0) -> Explanation:
        """Explain the step for these arguments; `measure` runs of it are timed."""
        if arguments is not None:
            arguments = with_captured(arguments, self._captured)
        plan = self._step.explain(arguments, _runs(measure))
        return explain_plan(plan, tuple(self.granted) if self.has_lengths else None)

    def run(self, arguments: _core.Arguments) -> Any:
        """Return one step with these arguments."""
        _core.count_reads()  # GradientTape.watched_variables asks for them
        if self._captured:
            arguments = with_captured(arguments, self._captured)
        outputs = self._step.run(arguments, self._constants)
        if self._requirements:
            check_all(self._requirements)
        if isinstance(self._result, Tensor):
            return _leave(self._result, outputs[0], outputs)
        values = iter(outputs)

        def leave(leaf: Any) -> Any:
            if type(leaf) is UnreadText:
                return _strings_of(leaf, arguments)
            return _leave(leaf, next(values), outputs) if _is_output(leaf) else leaf

        # map_structure visits dicts by sorted keys, as flatten does.
        return map_structure(leave, self._result)


def compiled(
    programs: _core.TracedPrograms, arguments: _core.Arguments | None, numbers_change: bool
) -> tuple[_core.Step, list[Tensor]] | None:
    """Return the step of the arguments, and the arrays that the program found outside."""
    made: tuple[_core.Step, list[Tensor]] | None
    # None: there are no lengths.
    made = programs.compile(arguments, OPTIONS, numbers_change)  # type: ignore[arg-type]
    return made


def _without_trace(traces: list[_Trace]) -> list[int]:
    """Return the replicas that none of the traces is for."""
    traced = {replica for one in traces for replica in one.trace.members}
    return [r for r in range(traces[0].trace.replicas) if r not in traced] if traced else []


def _joined_results(traces: list[_Trace]) -> Any:
    """Return the structure of the results of all traces; their outputs become those of its leaves.

    Raises:
        ValueError: The structures differ.
    """
    first = traces[0]
    if len(traces) == 1:
        return first.result
    shapes = [map_structure(lambda _: None, one.result) for one in traces]
    for one, shape in zip(traces, shapes, strict=True):
        if shape != shapes[0]:
            raise ValueError(
                "[Strategy.run] the results of all replicas must have one structure: got "
                f"{first.result!r} for replicas {first.trace.members} and {one.result!r} for "
                f"replicas {one.trace.members}, which have other numbers of examples; stack what "
                "is one result per example to one tensor."
            )
    outputs: list[list[Any]] = [[] for _ in traces]

    def join(*leaves: Any) -> Any:
        joined = _joined_leaf(traces, list(leaves))
        if _is_output(joined):
            for own, leaf in zip(outputs, leaves, strict=True):
                own.append(_tensor_of(leaf) if _is_output(leaf) else _like(leaf, joined))
        return joined

    result = map_structure(join, *(one.result for one in traces))
    for one, own in zip(traces, outputs, strict=True):
        one.outputs = own
    return result


def _joined_leaf(traces: list[_Trace], leaves: list[Any]) -> Any:
    """Return one leaf for the results of all traces: a tensor if there is one, else a value."""
    tensors = [leaf for leaf in leaves if _is_output(leaf)]
    for leaf in tensors:
        if isinstance(leaf, TracedValue):
            leaf._of_mean = all(getattr(other, "_of_mean", False) for other in leaves)
            leaf.own_sizes = True
    if tensors:
        return tensors[0]
    if all(leaf is leaves[0] or _equal(leaf, leaves[0]) for leaf in leaves):
        return leaves[0]
    parts: dict[int, Any] = {}
    for one, leaf in zip(traces, leaves, strict=True):
        own = convert_to_tensor(leaf) if isinstance(leaf, bool | int | float) else leaf
        parts |= dict.fromkeys(one.trace.members, own)
    return PerReplica(tuple(parts[replica] for replica in sorted(parts)))


def _equal(a: Any, b: Any) -> bool:
    if type(a) is type(b) is UnreadText:
        return a.source is b.source
    return type(a) is type(b) and isinstance(a, bool | int | float | str) and a == b


def _like(value: Any, output: Any) -> Tensor:
    """Convert a Python number where other traces have a tensor."""
    return convert_to_tensor(value, _tensor_of(output)._dtype)


def _add_totals(leaves: list[Any]) -> list[Tensor]:
    """Return the totals that `Strategy.reduce` needs where sums of parts do not give them."""
    totals: list[Tensor] = []
    for leaf in leaves:
        if isinstance(leaf, TracedPerReplica) and leaf.tensor._partial:
            leaf.total_at = len(leaves) + len(totals)
            totals.append(_core.ops.all_reduce(leaf.tensor, op="sum"))
    return totals


def _leave(leaf: Any, value: Any, outputs: Any) -> Any:
    if not isinstance(leaf, TracedValue):
        return PerReplica(tuple(value)) if isinstance(value, list) else value
    # What is equal on all replicas is a value of run all the same: one part per replica.
    parts = value if isinstance(value, list) else _for_all(leaf, value)
    if isinstance(leaf, TracedPart):
        return parts[leaf.replica]
    if leaf.own_sizes and len({tuple(part._shape) for part in parts}) > 1:
        # A tape outside knows the parts as they are.
        return PerReplica(parts) if parts[0]._recorded else per_replica(parts)
    total = None if leaf.total_at is None else outputs[leaf.total_at]
    return PerReplica(tuple(parts), leaf._of_mean, total)


def _strings_of(leaf: UnreadText, arguments: _core.Arguments) -> Any:
    """Return the strings per replica of a call, or those that its function found outside."""
    return arguments.strings[leaf.source] if isinstance(leaf.source, int) else leaf.source


def _for_all(leaf: TracedValue, value: Tensor) -> Any:
    """Return a value per replica of one that is equal on all."""
    replicas = max(leaf.tensor_replicas, 1)
    if not leaf.processes:
        return [value] * replicas
    first, last = _core.own_replicas(leaf.processes)
    return _core.spread_parts([value] * (last - first), first, [list(value._shape)] * replicas)


def _as_output(value: Any) -> Any:
    if isinstance(value, TracedValue):
        trace = _core.current_trace()
        value.tensor_replicas, value.processes = trace.replicas, trace.processes
        return value
    return value._as_tensor() if hasattr(value, "_as_tensor") else value


def check_not_ragged(values: Any, what: str) -> None:
    """A program is for rows of any length: those of ragged tensors would be fixed in it.

    Raises:
        TypeError: There are ragged tensors among the values.
    """
    for leaf in flatten(values):
        if isinstance(leaf, RaggedTensor):
            raise TypeError(
                f"[function] ragged tensors are no {what} of a traced function: got {leaf!r:.80}; "
                "pass to_tensor() and row_lengths(), or leave tf.function out in Dataset.map."
            )


def _is_output(value: Any) -> bool:
    return isinstance(value, Tensor | TracedValue)


def _tensor_of(value: Any) -> Tensor:
    tensor: Tensor = value.tensor if isinstance(value, TracedValue) else value
    return tensor


def trace_and_run(fn: Callable[..., Any], args: Any, kwargs: dict[str, Any], replicas: int) -> Any:
    """Trace, compile (or find the equal program) and run once; Python runs what needs it."""
    look = _context.settings.functions_run_eagerly
    program: TracedProgram | None = None
    try:
        program = TracedProgram(fn, args, kwargs, replicas, look, numbers_change=True)
        return program.run(_core.Arguments(args, kwargs))
    except NeedsPython:
        pass
    except _core.InvalidArgumentError:
        if program is None or not program.may_leave_axis:
            raise
    return fn(*args, **kwargs)
