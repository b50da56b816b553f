"""Calls for which a function was traced: what a saved model has a program for."""

from __future__ import annotations

import contextlib
import itertools
import weakref
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from samegrad._base.tree import map_structure
from samegrad._tensor.spec import TensorSpec
from samegrad._tensor.tensor import Tensor

# As many calls as a function keeps programs of.
_KEPT = 256
_PLAIN = (bool, int, float, str, bytes, type(None), TensorSpec)


class Unsaved:
    """Placeholder of an argument that no other process can pass.

    Args:
        what: What it is.
    """

    def __init__(self, what: str) -> None:
        self.what = what


class Call(NamedTuple):
    """Arguments of one trace: a spec for each array, and values of Python as they are.

    Objects are weak references.
    """

    args: tuple[Any, ...]
    kwargs: dict[str, Any]


class Calls:
    """Calls of a function, the last ones.

    Attributes:
        all: Those of the program.
        inner: Those of other functions, while these were traced.

    Example:
        >>> calls = Calls()
        >>> calls.add((np.ones((2, 3), np.float32), 2), {}, [2])
        >>> calls.all[0].args
        (TensorSpec(shape=(2, None), dtype=samegrad.float32), 2)
    """

    def __init__(self) -> None:
        self.all: list[Call] = []
        self.inner: list[Call] = []

    def add(
        self, args: Any, kwargs: dict[str, Any], lengths: Sequence[int], inner: bool = False
    ) -> None:
        """Note one call; `lengths`: per array, bits of the axes whose sizes are left open."""
        noted = self.inner if inner else self.all
        open_axes = itertools.chain(lengths, itertools.repeat(0))
        given = tuple(args), dict(kwargs)
        # Arguments without an order, or that contain themselves: another function may pass them.
        with contextlib.suppress(TypeError, ValueError, RecursionError):
            noted.append(Call(*map_structure(lambda leaf: _described(leaf, open_axes), given)))
        del noted[:-_KEPT]


def _described(leaf: Any, open_axes: Any) -> Any:
    if isinstance(leaf, np.ndarray | np.generic):
        return _spec(list(np.shape(leaf)), leaf.dtype, next(open_axes))
    if isinstance(leaf, Tensor):
        place = leaf._example_axis
        if place not in (None, (0, 1)):
            return Unsaved("a tensor whose examples are not the elements of its first axis")
        shape = list(leaf._shape)
        if place:
            shape[0] = None
        return _spec(shape, leaf._dtype, next(open_axes))
    if getattr(leaf, "_is_per_replica", False):
        if not getattr(leaf, "_has_strings", False):
            next(open_axes)
        return Unsaved("values of a strategy's replicas")
    if isinstance(leaf, _PLAIN):
        return leaf
    try:
        return weakref.ref(leaf)
    except TypeError:
        return Unsaved(f"an object of the class {type(leaf).__name__}")


def _spec(shape: list[Any], dtype: Any, lengths: int) -> TensorSpec | Unsaved:
    sizes = [None if lengths >> axis & 1 else size for axis, size in enumerate(shape)]
    try:
        spec: TensorSpec = TensorSpec(sizes, dtype)
    except TypeError as error:
        return Unsaved(str(error))
    return spec
