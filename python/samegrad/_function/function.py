"""`samegrad.function`: traced once per signature, then run by the engine."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any, overload

import samegrad.autograph  # noqa: F401  # says what rewrites control flow
from samegrad import _core
from samegrad._context import state as _context
from samegrad._context.user_code import call_converted
from samegrad._function.reads_data import CompiledRuns, ReadsData
from samegrad._function.trace import TracedProgram
from samegrad.errors import OutOfRangeError


def run_functions_eagerly(run_eagerly: bool) -> None:
    """Makes every `samegrad.function` of the process run as plain Python: for debuggers.

    What `Strategy.run` is given is still called once for all replicas, and at each call of `run`.
    Inside it, values of tensors can be looked at: whatever makes the value then runs at once on all
    replicas. A value that is equal on all of them becomes a number of Python (`float(x)`,
    `x.numpy()`, `if x:`); print and repr show the values of all. A value inside a branch or loop
    that is part of the step (`cond`, `while_loop`, rewritten control flow) has to leave it first.
    The results have the same bits.

    Args:
        run_eagerly: Whether functions run as plain Python from now on.

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
    """Whether `samegrad.function` runs as plain Python."""
    return _context.settings.functions_run_eagerly


# Of a function whose arguments are numbers that change, each with a trace of its own.
_KEPT = 64
# Of one that is bound to numbers of examples, each with a trace of its own.
_KEPT_BOUND = 256


class Function:
    """A Python function that runs as a compiled step."""

    def __init__(
        self,
        python_function: Callable[..., Any],
        autograph: bool = True,
        numbers_change: bool = False,
    ) -> None:
        self._python = python_function
        self._autograph = autograph
        self._numbers_change = numbers_change
        self._programs: dict[Any, TracedProgram | ReadsData] = {}
        self._bound: dict[Any, TracedProgram | ReadsData] = {}
        self._runs = CompiledRuns()
        self._tracing = threading.RLock()
        functools.update_wrapper(self, python_function)

    def __get__(self, owner: Any, kind: Any = None) -> Any:
        return self if owner is None else functools.partial(self.__call__, owner)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if _core.tracing():
            return self._traced(*args, **kwargs)
        if _context.settings.functions_run_eagerly:
            with _context.changed(converting=self._autograph), _core.one_call():
                return self._python(*args, **kwargs)
        arguments = _core.Arguments(args, kwargs)
        program = self._program(arguments, args, kwargs)
        if program is None:
            return self._read_data(args, kwargs)
        return program.run(arguments)

    def _read_data(self, args: Any, kwargs: dict[str, Any]) -> Any:
        """Runs a function that reads data: its loop is Python's, its steps are compiled."""
        with _context.changed(compiled_runs=self._runs, converting=self._autograph):
            try:
                return self._python(*args, **kwargs)
            except StopIteration:
                raise OutOfRangeError(
                    f"[{self.__name__}] the iterator has no more elements; begin again with "  # type: ignore[attr-defined]
                    "iter(dataset), or call .repeat() on the dataset."
                ) from None

    def _traced(self, *args: Any, **kwargs: Any) -> Any:
        with _core.one_call():
            if self._autograph:
                return call_converted(self._python, args, kwargs)
            with _context.changed(converting=False):
                return self._python(*args, **kwargs)

    def _program(self, arguments: Any, args: Any, kwargs: dict[str, Any]) -> TracedProgram | None:
        """What runs for these arguments; None: Python, as the function reads data."""
        strategy = _context.current().strategy
        replicas = 1 if strategy is None else strategy.num_replicas_in_sync
        if _context.settings.functions_run_eagerly:  # to explain it; it may depend on values
            most = max(replicas, arguments.replicas)
            fresh = self._trace(args, kwargs, most, look=True)
            return fresh if isinstance(fresh, TracedProgram) else None
        key = (arguments.key, replicas)
        known = self._known(key, arguments)
        if known is None:
            # Threads that come to it at the same time trace it once.
            with _core.holding(self._tracing):
                known = self._known(key, arguments)
                if known is None:
                    known = self._trace(args, kwargs, max(replicas, arguments.replicas))
                    self._programs.setdefault(key, known)
                    if known.fixed:
                        self._bound[key, arguments.sizes] = known
                        if len(self._bound) > _KEPT_BOUND:
                            self._bound.pop(next(iter(self._bound)))
                    if self._numbers_change and len(self._programs) > _KEPT:
                        self._programs.pop(next(iter(self._programs)))
        return known if isinstance(known, TracedProgram) else None

    def _known(self, key: Any, arguments: Any) -> TracedProgram | ReadsData | None:
        program = self._programs.get(key)
        return self._bound.get((key, arguments.sizes)) if program and program.fixed else program

    def _trace(
        self, args: Any, kwargs: dict[str, Any], replicas: int, look: bool = False
    ) -> TracedProgram | ReadsData:
        try:
            with _context.changed(tracing_function=True):
                return TracedProgram(
                    self._traced, args, kwargs, replicas, look, self._numbers_change
                )
        except ReadsData as reads:
            return reads.with_traceback(None)

    def explain(self, *args: Any, measure: int = 0, **kwargs: Any) -> str:
        """Phases, loops, memory and times of the step for these arguments.

        Args:
            *args: Of the function.
            measure: How many runs are measured. They change neither variables nor what is drawn
                next, and print nothing; 0: the step is not run, and times are predictions only.
            **kwargs: Of the function, whose own parameter `measure` goes by position.

        Raises:
            TypeError: `measure` is no whole number.
            ValueError: It is negative, or beyond a million.

        Example:
            >>> import samegrad as tf
            >>> double = tf.function(lambda x: x * 2)
            >>> "measured" in double.explain(tf.ones([3]), measure=2)
            True
        """
        arguments = _core.Arguments(args, kwargs)
        program = self._program(arguments, args, kwargs)
        if program is None:
            return (
                "Python runs the function, as it reads data; see Strategy.explain for its steps\n"
            )
        return program.explain(arguments, measure)


@overload
def function(
    func: Callable[..., Any], input_signature: Any = None, autograph: bool = True, **options: Any
) -> Function: ...
@overload
def function(
    func: None = None, input_signature: Any = None, autograph: bool = True, **options: Any
) -> Callable[[Callable[..., Any]], Function]: ...
def function(
    func: Callable[..., Any] | None = None,
    input_signature: Any = None,
    autograph: bool = True,
    **options: Any,
) -> Any:
    """Makes a function that is traced once per signature and then run by the engine.

    Python's control flow becomes part of the step where it depends on tensors (see
    `samegrad.autograph`). To a tape outside, a call is one node: its gradient is a compiled program
    too, to any order. A function that reads data (a loop over a dataset, `next(iterator)`) is
    run by Python, and what it gives to `Strategy.run` is compiled once per signature.

    Args:
        func: What to trace; without it, the result is a decorator.
        input_signature: Ignored: signatures are those of the calls.
        autograph: False leaves the function's control flow to Python.
        options: TensorFlow's other ones, ignored.

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
    """
    if func is None:
        return functools.partial(Function, autograph=autograph)
    return Function(func, autograph)
