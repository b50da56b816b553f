"""The current strategy, replica context and trace."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from samegrad import _core

if TYPE_CHECKING:
    from samegrad._autodiff.tape import GradientTape
    from samegrad._autodiff.trace_agreement import Agreement
    from samegrad._control.requirements import Requirement
    from samegrad._function.reads_data import CompiledRuns
    from samegrad._function.traced_arguments import TracedArguments
    from samegrad.distribute._replica_context import ReplicaContext
    from samegrad.distribute._strategy import Strategy


_T = TypeVar("_T")


class OneReplica:
    """Notes of what more replicas would compute in another way than an exported program does.

    Attributes:
        trace: The trace of the program.
        values: Names and lines with the values that are concerned.
        always: Names and lines of what any value may depend on.
    """

    def __init__(self) -> None:
        self.trace: _core.Trace | None = None
        self.values: list[tuple[str, _core.Tensor]] = []
        self.always: list[str] = []

    def note(self, what: str, value: Any) -> None:
        """Note the name of a computation, and the value that it makes or None."""
        text = f"{what} ({_core.user_line()})"
        if value is None or _core.current_trace() is not self.trace:
            self.always.append(text)
        else:
            self.values.append((text, value))


class Context(NamedTuple):
    """Execution context of a thread; it is replaced as a whole and never changed.

    The engine keeps the present one, and gives a `with` block another one (`changed`), which ends
    with the block on every path. No counter and no stack needs to be unwound.
    """

    # Of the program that is being traced, by line and message.
    requirements: dict[tuple[str, str], Requirement]
    # The arguments of that program that count examples.
    batches: list[_core.Tensor]
    # What it gives optimizers and variables, times the number of replicas, each with its trace.
    scaled_uses: list[tuple[_core.Trace, str, _core.Tensor]]
    # Of the traces of that program, where replicas have different numbers of examples.
    agreement: Agreement | None = None
    # Of that program, or of the branch or loop in it, from its first operation on.
    program_tape: GradientTape | None = None
    # Of the innermost scope or run; None outside.
    strategy: Strategy | None = None
    # None in cross-replica context, and outside.
    replica_context: ReplicaContext | None = None
    # Whether Python's control flow is rewritten in functions that are called now.
    converting: bool = False
    # Whether a function is being traced.
    tracing_function: bool = False
    # Whether it was traced before: then it makes no further variables.
    traced_before: bool = False
    # Of the program that is being traced; None in traces of data functions.
    arguments: TracedArguments | None = None
    # Whether these have values: get_concrete_function passes stand-ins.
    arguments_given: bool = True
    # Inside a function that reads data: the compiled forms of what it runs.
    compiled_runs: CompiledRuns | None = None
    # Whether Keras's objects track what is assigned to their attributes.
    keras_tracks: bool = True
    # Whether what is added to variables of Keras is that of all replicas already.
    values_are_global: bool = False
    # Whether an optimizer of Keras is given the sums of the replicas' gradients.
    gradients_are_sums: bool = False
    # What the micro-batch counts whose gradients are applied; None where no loss shows it.
    weight_of_step: _core.Tensor | None = None
    # Whether layers of Keras train that are not told; None where nobody says it.
    learning_phase: bool | None = None
    # How many gradient functions are being traced inside one another.
    open_gradients: int = 0
    # What names of new variables begin with.
    name_scope: str = ""
    # What the program that is traced for export computes as on one replica; None: no export.
    one_replica: OneReplica | None = None
    # Modes of checks of traced programs, by the names of their settings, instead of the process's.
    check_modes: Mapping[str, str] = MappingProxyType({})


class _Settings:
    """Those of the process."""

    functions_run_eagerly = False


class _Default:
    """State outside of any strategy; `samegrad.distribute`, a higher layer, sets it."""

    strategy: Strategy
    replica_context: ReplicaContext
    tape: Callable[[], GradientTape]


settings = _Settings()
_default = _Default()
_core.set_default_context(Context(requirements={}, batches=[], scaled_uses=[]))


# The context of this thread.
current: Callable[[], Context] = _core.current_context


def changed(**changes: Any) -> _core.Guard:
    """Inside, the context has other values of these fields."""
    return _core.changed_context(changes)


def has_strategy() -> bool:
    """Return True inside a strategy's scope or `run`.

    Example:
        >>> has_strategy()
        False
    """
    note_one_replica("has_strategy")
    return current().strategy is not None


def set_default(strategy: Strategy, replica_context: ReplicaContext) -> None:
    """Set the strategy and replica context outside of any strategy: one replica."""
    _default.strategy, _default.replica_context = strategy, replica_context


def set_tape(make: Callable[[], GradientTape]) -> None:
    """Set the constructor of tapes; `samegrad._autodiff`, a higher layer, calls it."""
    _default.tape = make


def recorded(fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call a traced function, or a branch or loop of it, under a recording tape.

    Inside, `current().program_tape` has recorded all that it computes.
    """
    tape = _default.tape()
    with _core.recording(tape), changed(program_tape=tape):
        return fn(*args, **kwargs)


def get_strategy() -> Strategy:
    """Return the strategy of the innermost scope, or the default one (one replica)."""
    strategy = current().strategy
    return _default.strategy if strategy is None else strategy


def replica_count() -> int:
    """Return the number of replicas of the innermost scope or run; 1 outside of any.

    Example:
        >>> replica_count()
        1
    """
    strategy = current().strategy
    return 1 if strategy is None else strategy.num_replicas_in_sync


def get_replica_context() -> ReplicaContext | None:
    """Return the replica context, or None in cross-replica context.

    Outside any strategy it is the default context of one replica.
    """
    now = current()
    return _default.replica_context if now.strategy is None else now.replica_context


def in_cross_replica_context() -> bool:
    """Return True inside a strategy's scope but outside of its `run`."""
    now = current()
    return now.strategy is not None and now.replica_context is None


def exporting() -> bool:
    """Tell if a program is traced on one replica which any number of them may run later.

    Example:
        >>> exporting()
        False
    """
    return current().one_replica is not None and _core.tracing()


def begin_export(trace: _core.Trace) -> None:
    """Let a trace that is to be exported keep its collectives; others stay as they are."""
    notes = current().one_replica
    if notes is not None:
        notes.trace = trace
        trace.keep_collectives()


def note_one_replica(what: str, value: _T = None) -> _T:  # type: ignore[assignment]
    """Return the value, which more replicas would compute in another way than an export does.

    Args:
        what: Its name for messages.
        value: A tensor; None where it is not known what depends on it.

    Example:
        >>> note_one_replica("all_gather", 2.0)
        2.0
    """
    notes = current().one_replica
    if notes is None or not _core.tracing():
        return value
    if value is None:
        notes.note(what, None)
        return value
    tensor: Any = value
    needed: Any = _core.ops.identity(tensor)  # other uses of the tensor do not count
    notes.note(what, needed)
    return needed  # type: ignore[no-any-return]


def reducing_context() -> ReplicaContext | None:
    """Return the context whose collectives count: that of several replicas, or of an export.

    Example:
        >>> reducing_context() is None
        True
    """
    now = current()
    if now.one_replica is not None and _core.tracing():
        return _default.replica_context
    context = now.replica_context
    return context if context is not None and context.num_replicas_in_sync > 1 else None


def inside_run() -> bool:
    """Tell whether the caller is inside a strategy's `run`."""
    return current().replica_context is not None


def entered(strategy: Strategy, context: ReplicaContext | None) -> _core.Guard:
    """Inside, `strategy` is current, in this replica context (None: cross-replica)."""
    return _core.changed_context({"strategy": strategy, "replica_context": context}, strategy)


def init_scope() -> _core.Guard:
    """Return a scope in which ops run eagerly while a function is traced, to create variables.

    Example:
        >>> with init_scope():
        ...     pass
    """
    return _core.no_trace()
