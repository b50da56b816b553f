"""`samegrad.function`: traced once per signature, then run by the engine."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from samegrad import _context, _core
from samegrad._nest import flatten, map_structure
from samegrad._tensor import Tensor, convert_to_tensor
from samegrad._trace import TracedProgram
from samegrad.distribute._values import PerReplica


def _key(leaf: Any) -> Any:
    if isinstance(leaf, PerReplica):
        return ("replicas", len(leaf.values), _key(leaf.values[0]))
    if isinstance(leaf, Tensor):
        if leaf._example_axis is None:
            return (leaf._dtype, leaf._shape)
        shape = list(leaf._shape)
        shape[leaf._example_axis[0]] = None
        return (leaf._dtype, tuple(shape), leaf._example_axis)
    try:
        hash(leaf)
    except TypeError:
        return ("object", id(leaf))
    return (type(leaf), leaf)


def _structure(value: Any) -> Any:
    if isinstance(value, dict):
        return tuple((key, _structure(value[key])) for key in sorted(value))
    if isinstance(value, list | tuple):
        return tuple(_structure(part) for part in value)
    return None


def _sizes(leaves: list[Any]) -> Any:
    def size(leaf: Any) -> Any:
        if isinstance(leaf, PerReplica):
            return tuple(size(value) for value in leaf.values)
        return leaf._shape if isinstance(leaf, Tensor) else None

    return tuple(size(leaf) for leaf in leaves)


class Function:
    """A Python function that runs as a compiled step."""

    def __init__(self, python_function: Callable[..., Any]) -> None:
        self._python = python_function
        self._programs: dict[Any, TracedProgram] = {}
        functools.update_wrapper(self, python_function)

    def __get__(self, owner: Any, kind: Any = None) -> Any:
        return self if owner is None else functools.partial(self.__call__, owner)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if _core.tracing() or _context.state.eager_functions:
            return self._python(*args, **kwargs)
        args, kwargs = map_structure(
            lambda v: convert_to_tensor(v) if isinstance(v, np.ndarray) else v, (args, kwargs)
        )
        return self._program(args, kwargs).run(args, kwargs)

    def _program(self, args: Any, kwargs: dict[str, Any]) -> TracedProgram:
        leaves = flatten((args, kwargs))
        strategy = _context.state.strategies[-1] if _context.state.strategies else None
        replicas = max(
            [strategy.num_replicas_in_sync if strategy else 1]
            + [len(leaf.values) for leaf in leaves if isinstance(leaf, PerReplica)]
        )
        key: Any = (_structure((args, kwargs)), tuple(_key(leaf) for leaf in leaves), replicas)
        program = self._programs.get(key)
        if program is not None and program.fixed:
            key = (key, _sizes(leaves))
            program = self._programs.get(key)
        if program is None:
            program = TracedProgram(self._python, args, kwargs, replicas)
            self._programs[key] = program
            if program.fixed:
                self._programs[(key, _sizes(leaves))] = program
        return program

    def explain(self, *args: Any, **kwargs: Any) -> str:
        """Phases, loops and memory of the step for these arguments."""
        return self._program(args, kwargs).explain()


def function(func: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Makes a function that is traced once per signature and then run by the engine.

    Example:
        >>> import samegrad as tf
        >>> @tf.function
        ... def double(x):
        ...     return 2.0 * x
        >>> float(double(tf.constant(3.0)))
        6.0
    """
    return Function(func) if func is not None else Function
