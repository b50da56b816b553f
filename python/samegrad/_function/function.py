"""`samegrad.function`: traced once per signature, then run by the engine."""

from __future__ import annotations

import functools
import inspect
import threading
import types
from collections.abc import Callable, Sequence
from typing import Any, overload

import numpy as np

import samegrad.autograph  # noqa: F401  # says what rewrites control flow
from samegrad import _core
from samegrad._autodiff.clock import tick
from samegrad._base.tracebacks import keep_user_frames, user_frames_only
from samegrad._base.tree import Walk, flatten, is_nested
from samegrad._context import state as _context
from samegrad._context.python_runs import forgets_programs
from samegrad._context.user_code import call_converted
from samegrad._function.concrete import ConcreteFunction
from samegrad._function.explanation import Explanation, explain_python
from samegrad._function.lengths import LengthTraces, RelaxedShapes
from samegrad._function.reads_data import CompiledRuns, NeedsPython
from samegrad._function.signature import InputSignature
from samegrad._function.trace import TracedProgram, check_not_ragged
from samegrad._function.traces import Traces, objects_of, python_values
from samegrad._tensor.complex_tensor import to_complex, without_complex_arrays
from samegrad._tensor.given import convert_to_tensor
from samegrad._tensor.shape import TensorShape
from samegrad.errors import InvalidArgumentError, OutOfRangeError


def run_functions_eagerly(run_eagerly: bool) -> None:
    """Run every `samegrad.function` of the process as plain Python, for debuggers.

    The function given to `Strategy.run` is still called once for all replicas, and at each call of
    `run`. Inside it, values of tensors can be read: the ops that compute the value then run on all
    replicas. A value that is equal on all of them becomes a Python number (`float(x)`, `x.numpy()`,
    `if x:`). print and repr show the values of all. A value inside a branch or loop that is part of
    the step (`cond`, `while_loop`, rewritten control flow) has to leave it first. The results are
    bitwise the same.

    Args:
        run_eagerly: True runs functions as plain Python from now on; False compiles them again.

    Example:
        >>> import samegrad as tf
        >>> tf.config.run_functions_eagerly(True)
        >>> tf.config.functions_run_eagerly()
        True
        >>> strategy = tf.distribute.MirroredStrategy(replicas=2)
        >>> def replica_fn():
        ...     total = tf.distribute.get_replica_context().all_reduce("sum", tf.constant(1.5))
        ...     print(float(total))
        >>> strategy.run(replica_fn)
        3.0
        >>> tf.config.run_functions_eagerly(False)
    """
    _context.settings.functions_run_eagerly = bool(run_eagerly)


def functions_run_eagerly() -> bool:
    """Return True if `samegrad.function` runs as plain Python."""
    return _context.settings.functions_run_eagerly


class BoundFunction:
    """A function of a class with the object that it is called of.

    Args:
        function: The function.
        owner: The object.
    """

    def __init__(self, function: Function, owner: Any) -> None:
        self._function, self._owner = function, owner

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        try:
            return self._function(self._owner, *args, **kwargs)
        except Exception as error:
            keep_user_frames(error)
            raise

    @property
    def python_function(self) -> Callable[..., Any]:
        """The method of Python that is traced."""
        method: Callable[..., Any] = types.MethodType(self._function.python_function, self._owner)
        return method

    @user_frames_only
    def get_concrete_function(self, *args: Any, **kwargs: Any) -> ConcreteFunction:
        """Return the method for arguments of one signature; see `Function`."""
        if not (args or kwargs) and self._function.input_signature is not None:
            args = self._function.input_signature
        return ConcreteFunction(self._function, (self._owner, *args), kwargs)

    @user_frames_only
    def explain(self, *args: Any, measure: int = 0, **kwargs: Any) -> Explanation:
        """Phases, loops, memory and times of the step for these arguments; see `Function`."""
        return self._function.explain(self._owner, *args, measure=measure, **kwargs)

    @property
    def __signature__(self) -> inspect.Signature:
        return inspect.signature(self.python_function)

    def __getattr__(self, name: str) -> Any:
        if name == "_function":  # of one that was not initialized
            raise AttributeError(name)
        return getattr(self._function, name)

    def __repr__(self) -> str:
        return f"<samegrad.function {getattr(self._function, '__name__', 'method')}, bound>"


def _as_result(leaf: Any) -> Any:
    if not isinstance(leaf, _CONVERTED):
        return leaf
    return to_complex(leaf, "function") if np.iscomplexobj(leaf) else convert_to_tensor(leaf)


_CONVERTED = (bool, int, float, complex, str, bytes, np.ndarray, np.generic, TensorShape)
_RESULTS = Walk(lambda value: is_nested(value) and not isinstance(value, TensorShape))
# Of a function whose arguments are numbers that change, each with a trace of its own.
_KEPT = 64
# Of one that is bound to numbers of examples, or has other shapes, each with a trace of its own.
_KEPT_BOUND = 256
# Traces that ended in Python, for other shapes, before the function is traced no more.
_TRIED = 2


class Function:
    """A Python function that runs as a compiled step."""

    def __init__(
        self,
        python_function: Callable[..., Any],
        autograph: bool = True,
        numbers_change: bool = False,
        input_signature: Any = None,
        reduce_retracing: bool = False,
    ) -> None:
        self._python = python_function
        self._autograph = autograph
        self._numbers_change = numbers_change
        name = getattr(python_function, "__name__", type(python_function).__name__)
        self._signature = (
            None if input_signature is None
            else InputSignature(input_signature, python_function, name)
        )  # fmt: skip
        self._relaxed = RelaxedShapes() if reduce_retracing else None
        self._lengths = LengthTraces()
        self._traces = Traces(name)
        self._programs: dict[Any, TracedProgram | NeedsPython] = {}
        self._bound: dict[Any, TracedProgram | NeedsPython] = {}
        self._reasons: list[tuple[Any, NeedsPython]] = []
        self._runs = CompiledRuns()
        self._tracing = threading.RLock()
        forgets_programs(self)
        # Attributes of a callable object (a layer) are none of a function's.
        plain = inspect.isroutine(python_function)
        functools.update_wrapper(
            self, python_function, updated=functools.WRAPPER_UPDATES if plain else ()
        )

    def _forget_programs(self) -> None:
        """Forget all programs, as a variable that they use has another shape."""
        with _core.holding(self._tracing):
            self._lengths, self._runs = LengthTraces(), CompiledRuns()
            self._programs, self._bound, self._reasons = {}, {}, []

    def __get__(self, owner: Any, kind: Any = None) -> Any:
        return self if owner is None else BoundFunction(self, owner)

    @property
    def python_function(self) -> Callable[..., Any]:
        """The function of Python that is traced."""
        return self._python

    @property
    def input_signature(self) -> Any:
        """The signature given, or None."""
        return None if self._signature is None else self._signature.specs

    def experimental_get_tracing_count(self) -> int:
        """Return the number of traces.

        Example:
            >>> f = Function(lambda x: x)
            >>> int(f(1)), int(f(1)), int(f(2)), f.experimental_get_tracing_count()
            (1, 1, 2, 2)
        """
        return self._traces.count

    @user_frames_only
    def get_concrete_function(self, *args: Any, **kwargs: Any) -> ConcreteFunction:
        """Return the function for arguments of one signature, traced at once.

        Args:
            *args: Tensors, or a `TensorSpec` for each; values of Python. None for all of them:
                those of `input_signature`.
            **kwargs: The same by name.

        Raises:
            TypeError: They are not what the function takes.
        """
        if not (args or kwargs) and self._signature is not None:
            args = self._signature.specs
        return ConcreteFunction(self, args, kwargs)

    def _result_of(self, args: Any, kwargs: dict[str, Any], lengths: list[int]) -> Any:
        """Return the result of a trace for these arguments: tensors without values."""
        if _core.tracing() or _context.settings.functions_run_eagerly:
            return None
        with _context.changed(arguments_given=False):
            program = self._program(_core.Arguments(args, kwargs, lengths), args, kwargs, lengths)
        return program.result if isinstance(program, TracedProgram) else None

    def _open_axes(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[int]:
        if self._signature is not None:
            return self._signature.lengths
        return [] if self._relaxed is None else self._relaxed.lengths(args, kwargs)

    def __repr__(self) -> str:
        return f"<samegrad.function {self._traces.name}>"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        try:
            if self._signature is not None:
                args, kwargs = self._signature.bind(args, kwargs), {}
            return self._called(args, kwargs, self._open_axes(args, kwargs))
        except Exception as error:
            keep_user_frames(error)
            raise

    def _called(self, args: tuple[Any, ...], kwargs: dict[str, Any], lengths: list[int]) -> Any:
        """A call. `lengths`: per array, bits of the axes whose sizes the trace leaves open."""
        if _core.tracing():
            self._traces.calls.add(args, kwargs, lengths, inner=True)
            return self._traced(*args, **kwargs)
        if _context.settings.functions_run_eagerly:
            with _context.changed(converting=self._autograph), _core.one_call():
                return self._python(*args, **kwargs)
        try:
            arguments = _core.Arguments(args, kwargs, lengths)
        except TypeError:
            found = without_complex_arrays((args, kwargs), self.__name__)  # type: ignore[attr-defined]
            if found is None:
                raise
            args, kwargs = found
            return self._called(args, kwargs, lengths)
        program = self._program(arguments, args, kwargs, lengths)
        if not isinstance(program, TracedProgram):
            return self._run_python(args, kwargs)
        tick()
        try:
            return program.run(arguments)
        except InvalidArgumentError:
            if not program.may_leave_axis:
                raise
        return self._run_python(args, kwargs)  # the step has changed nothing

    def _run_python(self, args: Any, kwargs: dict[str, Any]) -> Any:
        """Run the function as Python; what it gives to `Strategy.run` is compiled."""
        with _context.changed(compiled_runs=self._runs, converting=self._autograph):
            try:
                return self._results(self._python(*args, **kwargs))
            except StopIteration:
                raise OutOfRangeError(
                    f"[{self.__name__}] the iterator has no more elements; begin again with "  # type: ignore[attr-defined]
                    "iter(dataset), or call .repeat() on the dataset."
                ) from None

    def _traced(self, *args: Any, **kwargs: Any) -> Any:
        with _core.one_call():
            if self._autograph:
                return self._results(call_converted(self._python, args, kwargs))
            with _context.changed(converting=False):
                return self._results(self._python(*args, **kwargs))

    def _results(self, found: Any) -> Any:
        """Return the results with tensors for values of Python.

        What Python runs as it is, and what `Strategy.run` is given, returns them as they are.
        """
        plain = self._numbers_change or _context.settings.functions_run_eagerly
        return found if plain else _RESULTS.map_structure(_as_result, found)

    def _program(
        self, arguments: Any, args: Any, kwargs: dict[str, Any], lengths: list[int]
    ) -> TracedProgram | NeedsPython:
        """Return the program for these arguments, or why Python runs the function."""
        strategy = _context.current().strategy
        replicas = 1 if strategy is None else strategy.num_replicas_in_sync
        if _context.settings.functions_run_eagerly:  # to explain it; it may depend on values
            most = max(replicas, arguments.replicas)
            return self._trace(args, kwargs, most, look=True)
        processes = () if strategy is None else strategy.processes
        key = (arguments.key, replicas, processes, arguments.lengths)
        known = self._known(key, arguments)
        if known is None:
            # Threads that come to it at the same time trace it once.
            with _core.holding(self._tracing):
                known = self._known(key, arguments)
                if known is None:
                    known = self._lengths.program(key[:-1], arguments)
                    if known is None:
                        known = self._trace_counted(args, kwargs, key, arguments, lengths)
                    self._programs.setdefault(key, known)
                    if known.fixed:
                        self._bound[key, arguments.sizes] = known
                        if len(self._bound) > _KEPT_BOUND:
                            self._bound.pop(next(iter(self._bound)))
                    if len(self._programs) > (_KEPT if self._numbers_change else _KEPT_BOUND):
                        self._programs.pop(next(iter(self._programs)))
        return known

    def _trace_counted(
        self, args: Any, kwargs: dict[str, Any], key: Any, arguments: Any, lengths: list[int]
    ) -> TracedProgram | NeedsPython:
        most = max(key[1], arguments.replicas)
        traced = self._trace(args, kwargs, most, lengths=lengths)
        if isinstance(traced, TracedProgram) and traced.has_lengths:
            self._lengths.add(key[:-1], traced)
        if isinstance(traced, NeedsPython):
            self._traces.calls.add(args, kwargs, lengths)
        elif not self._numbers_change:
            self._traces.add(args, kwargs, traced.granted, lengths)
        return traced

    def _known(self, key: Any, arguments: Any) -> TracedProgram | NeedsPython | None:
        program = self._programs.get(key)
        return self._bound.get((key, arguments.sizes)) if program and program.fixed else program

    def _trace(
        self,
        args: Any,
        kwargs: dict[str, Any],
        replicas: int,
        look: bool = False,
        lengths: Sequence[int] = (),
    ) -> TracedProgram | NeedsPython:
        if any(hasattr(leaf, "element_spec") for leaf in flatten((args, kwargs))):
            # A dataset or its iterator: a trace would use up what else the function iterates over.
            return NeedsPython("its arguments hold a dataset or an iterator")
        check_not_ragged((args, kwargs), "arguments")
        given = python_values(args, kwargs)
        known = [reason for values, reason in self._reasons if values == given]
        if len(known) >= _TRIED:
            return known[0]
        try:
            before = self._traced_before(args, kwargs)
            with _context.changed(tracing_function=True, traced_before=before):
                program = TracedProgram(
                    self._traced, args, kwargs, replicas, look, self._numbers_change, lengths
                )
            program.check_variables()
            return program
        except NeedsPython as reason:
            self._reasons = [*self._reasons[1 - _KEPT :], (given, reason)]
            return reason.without_frames()

    def _traced_before(self, args: Any, kwargs: dict[str, Any]) -> bool:
        """Return whether these objects have a program: a method has calls of each object."""
        objects = objects_of(_core.Arguments(args, kwargs).key)
        return any(
            isinstance(known, TracedProgram) and objects_of(key[0]) == objects
            for key, known in self._programs.items()
        )

    @user_frames_only
    def explain(self, *args: Any, measure: int = 0, **kwargs: Any) -> Explanation:
        """Explain phases, loops, memory and times of the step for these arguments.

        Args:
            *args: The arguments of the function.
            measure: The number of measured runs. They change neither variables nor later samples,
                and print nothing. 0: the step is not run, and times are predictions only.
            **kwargs: The named arguments of the function; its own parameter `measure` goes by
                position.

        Returns:
            The `Explanation`: `str` is the printed plan, and its fields are `bitwise`, `reasons`,
            `steps`, `memory`, `predicted`, `measured`, ...

        Raises:
            TypeError: `measure` is not an integer.
            ValueError: `measure` is negative, or above a million.

        Example:
            >>> import samegrad as tf
            >>> double = tf.function(lambda x: x * 2)
            >>> plan = double.explain(tf.ones([3]), measure=2)
            >>> plan.bitwise, plan.runs
            (True, 2)
        """
        if self._signature is not None:
            args, kwargs = self._signature.bind(args, kwargs), {}
        lengths = self._open_axes(args, kwargs)
        arguments = _core.Arguments(args, kwargs, lengths)
        program = self._program(arguments, args, kwargs, lengths)
        if isinstance(program, NeedsPython):
            return explain_python(program.why, program.line)
        return program.explain(arguments, measure)


@overload
def function(
    func: Callable[..., Any],
    input_signature: Any = None,
    autograph: bool = True,
    jit_compile: bool | None = None,
    reduce_retracing: bool = False,
    **options: Any,
) -> Function: ...
@overload
def function(
    func: None = None,
    input_signature: Any = None,
    autograph: bool = True,
    jit_compile: bool | None = None,
    reduce_retracing: bool = False,
    **options: Any,
) -> Callable[[Callable[..., Any]], Function]: ...
def function(
    func: Callable[..., Any] | None = None,
    input_signature: Any = None,
    autograph: bool = True,
    jit_compile: bool | None = None,
    reduce_retracing: bool = False,
    **options: Any,
) -> Any:
    """Compile a function: trace it once per signature, and let the engine run the trace.

    Python's control flow becomes part of the step where it depends on tensors (see
    `samegrad.autograph`). To a tape outside, a call is one node: its gradient is a compiled program
    as well, to any order. A function that reads data (a loop over a dataset, `next(iterator)`)
    falls back to Python, and what it gives to `Strategy.run` is compiled once per signature. So
    does one that needs a size from a value (`boolean_mask`, `range(n)`); `explain` names the line.
    Variables are created in the first call, and kept: `if self.w is None: self.w =
    tf.Variable(...)`.

    Args:
        func: The function to trace; without it, the result is a decorator.
        input_signature: A `TensorSpec` for each positional argument, or a structure of them: the
            arguments of a call are converted or rejected. Where a size is None, one trace serves
            all sizes. If it is the first size, that axis is the batch axis. Other sizes are
            lengths: a program is made of the trace for each (the last 256 are kept), bitwise
            identical to a trace for that length alone. Where Python asks for a length
            (`int(x.shape[1])`, `range`, an `if`), lengths with another answer are traced again, and
            `explain` names the line.
        autograph: False leaves the function's control flow to Python.
        jit_compile: Ignored: everything is compiled.
        reduce_retracing: Make sizes that change from one call to the next lengths from then on, as
            those that `input_signature` leaves open.
        options: TensorFlow's experimental options, ignored.

    Returns:
        A `Function` with the arguments of `func`, or a decorator.

    Raises:
        TypeError: TensorFlow has no such option, or `input_signature` is not a list of specs.
        UserWarning: It is traced again and again, which takes long; the argument that changes is
            named.

    Example:
        >>> import samegrad as tf
        >>> @tf.function
        ... def root(x):
        ...     y = x
        ...     while tf.abs(y * y - x) > 1e-3:
        ...         y = (y + x / y) / 2.0
        ...     return y
        >>> round(float(root(tf.constant(9.0))), 2)
        3.0

        Sentences of any length, traced once:

        >>> @tf.function(input_signature=[tf.TensorSpec([None, None], tf.int64)])
        ... def words(ids):
        ...     return tf.reduce_sum(tf.cast(ids != 0, tf.int32)) + tf.shape(ids)[1]
        >>> [int(words(tf.ones([2, n], tf.int64))) for n in (3, 5, 700)]
        [9, 15, 2100]
        >>> words.experimental_get_tracing_count()
        1
    """
    unknown = [option for option in options if option not in _OPTIONS]
    if unknown:
        raise TypeError(
            f"[function] its options are input_signature, autograph, jit_compile and "
            f"reduce_retracing: got {', '.join(unknown)}; leave it out."
        )
    made = functools.partial(
        Function,
        autograph=autograph,
        input_signature=input_signature,
        reduce_retracing=reduce_retracing,
    )
    return made if func is None else made(func)


_OPTIONS = frozenset({
    "experimental_implements", "experimental_autograph_options", "experimental_attributes",
    "experimental_relax_shapes", "experimental_compile", "experimental_follow_type_hints",
})  # fmt: skip
