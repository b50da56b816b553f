"""Counts of a function's traces, and the reasons for new ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from samegrad._base.location import warn
from samegrad._base.shown import shown
from samegrad._base.tree import flatten
from samegrad._function.calls import Calls
from samegrad._tensor.tensor import is_tensor

# Traces for other Python numbers, and for other shapes, before the single warning.
_NUMBERS, _SHAPES = 8, 32


class Traces:
    """Counts a function's traces, and warns once where one argument makes many.

    Args:
        name: Of the function.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.count = 0
        self._last: list[tuple[str, Any]] = []
        self._changes: dict[tuple[int, str], int] = {}
        self._warned = False
        self.calls = Calls()

    def add(
        self,
        args: Any,
        kwargs: dict[str, Any],
        granted: Sequence[str] = (),
        lengths: Sequence[int] = (),
    ) -> None:
        """Another trace, for these arguments.

        Args:
            args: Of the call.
            kwargs: The same by name.
            granted: What the trace took for granted of lengths.
            lengths: Per array, bits of the axes whose sizes it leaves open.

        Warns:
            UserWarning: One argument has changed in many of them.
        """
        self.count += 1
        self.calls.add(args, kwargs, lengths)
        before, now = self._last, [_described(leaf) for leaf in flatten((args, kwargs))]
        self._last = now
        if self._warned or len(before) != len(now):
            return
        for place, (old, new) in enumerate(zip(before, now, strict=True)):
            if old == new or old[0] != new[0]:
                continue
            many = self._changes[place, new[0]] = self._changes.get((place, new[0]), 1) + 1
            if many >= (_NUMBERS if new[0] == "number" else _SHAPES):
                self._warned = True
                self._warn(place, old, new, many, granted)
                return

    def _warn(
        self,
        place: int,
        old: tuple[str, Any],
        new: tuple[str, Any],
        many: int,
        granted: Sequence[str],
    ) -> None:
        what, remedy = (
            ("another number of Python", "pass a tensor, tf.constant(number)")
            if new[0] == "number"
            else ("another shape", "pad to a few lengths, or give input_signature")
        )
        if granted:  # the signature leaves sizes open, and the program asks for them
            remedy = f"the last trace is bound to {'; '.join(granted[:3])}"
        warn(
            f"[{self.name}] each trace takes long, and one is made for every number of Python and "
            f"every shape: got {what} {many} times as argument {place}, {shown(old[1])} and then "
            f"{shown(new[1])}; {remedy}."
        )


def _described(leaf: Any) -> tuple[str, Any]:
    if isinstance(leaf, int | float) and not isinstance(leaf, bool):
        return "number", leaf
    if is_tensor(leaf) and not getattr(leaf, "_is_per_replica", False):
        return "shape", tuple(leaf.shape)
    return "other", None


def python_values(args: Any, kwargs: dict[str, Any]) -> list[Any]:
    """Return the values of Python among arguments; objects by their identity."""
    leaves = [x for x in flatten((args, kwargs)) if not (is_tensor(x) or isinstance(x, np.ndarray))]
    return [(type(x), x) if isinstance(x, bool | int | float | str) else id(x) for x in leaves]


def objects_of(key: Any) -> Any:
    """Return the objects in a key of arguments: neither tensors nor numbers."""
    return key[1] if isinstance(key, tuple) else ()
