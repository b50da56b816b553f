"""Which strategy and which context the program is in."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING

from samegrad import _core

if TYPE_CHECKING:
    from samegrad._count_traces import Agreement
    from samegrad._data_use import CompiledRuns
    from samegrad._requirements import Requirement
    from samegrad.distribute._replica_context import ReplicaContext
    from samegrad.distribute._strategy import Strategy


class _State(threading.local):
    def __init__(self) -> None:
        self.strategies: list[Strategy] = []
        self.replica_contexts: list[ReplicaContext | None] = []
        # Of the program that is being traced, by line and message.
        self.requirements: dict[tuple[str, str], Requirement] = {}
        # The arguments of that program that count examples.
        self.batches: list[_core.Tensor] = []
        # Of the traces of a program whose replicas have different numbers of examples.
        self.agreement: Agreement | None = None
        # Whether Python's control flow is rewritten in functions that are called now.
        self.converting = False
        # How many functions are being traced, one in the other.
        self.tracing_functions = 0
        # Whether text is made that is shown later: what has no value yet is named by its type.
        self.describing = False
        # Inside a function that reads data: the compiled forms of what it runs.
        self.compiled_runs: CompiledRuns | None = None


class _Settings:
    """Those of the process."""

    functions_run_eagerly = False


state = _State()
settings = _Settings()


def has_strategy() -> bool:
    """Whether the program is inside a strategy's scope or run.

    Example:
        >>> has_strategy()
        False
    """
    return bool(state.strategies)


def get_strategy() -> Strategy:
    """The strategy of the innermost scope, or the default one (one replica)."""
    if state.strategies:
        return state.strategies[-1]
    from samegrad.distribute._strategy import default_strategy

    return default_strategy()


def get_replica_context() -> ReplicaContext | None:
    """The replica context; None in cross-replica context.

    Outside any strategy it is the default context of one replica.
    """
    if state.replica_contexts:
        return state.replica_contexts[-1]
    if state.strategies:
        return None
    from samegrad.distribute._replica_context import default_replica_context

    return default_replica_context()


def in_cross_replica_context() -> bool:
    """Whether the program is in a strategy's scope but not inside its `run`."""
    return get_replica_context() is None


@contextlib.contextmanager
def entered(strategy: Strategy, context: ReplicaContext | None) -> Iterator[None]:
    """Inside, `strategy` is current, in this replica context (None: cross-replica)."""
    state.strategies.append(strategy)
    state.replica_contexts.append(context)
    try:
        yield
    finally:
        state.strategies.pop()
        state.replica_contexts.pop()


@contextlib.contextmanager
def converting(wanted: bool) -> Iterator[None]:
    """Inside, Python's control flow is rewritten in functions that are traced, or is not."""
    before, state.converting = state.converting, wanted
    try:
        yield
    finally:
        state.converting = before


@contextlib.contextmanager
def init_scope() -> Iterator[None]:
    """Inside, operations run at once, whatever is being traced: for creating variables.

    Example:
        >>> with init_scope():
        ...     pass
    """
    _core.push_no_trace()
    try:
        yield
    finally:
        _core.pop_trace()


@contextlib.contextmanager
def tracing_function() -> Iterator[None]:
    """Inside, a function is being traced."""
    state.tracing_functions += 1
    try:
        yield
    finally:
        state.tracing_functions -= 1


@contextlib.contextmanager
def running_with(compiled: CompiledRuns) -> Iterator[None]:
    """Inside, Python runs a function that reads data."""
    outer = state.compiled_runs
    state.compiled_runs = compiled
    try:
        yield
    finally:
        state.compiled_runs = outer


def printing_needs_values() -> bool:
    """Whether a tensor that is printed now must have a value: inside `run`."""
    contexts = state.replica_contexts
    return bool(contexts) and contexts[-1] is not None and not state.describing


@contextlib.contextmanager
def describing() -> Iterator[None]:
    """Inside, tensors without a value may be printed: messages of steps that did not run yet."""
    before, state.describing = state.describing, True
    try:
        yield
    finally:
        state.describing = before
