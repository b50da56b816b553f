"""Axes of tensors, as functions are given them."""

from __future__ import annotations

from typing import Any, Protocol

from samegrad._tensor.conversion import Tensor
from samegrad._tensor.sizes import whole


class HasRank(Protocol):
    """Protocol of values with axes: tensors and strings."""

    @property
    def _rank(self) -> int: ...


def axes_of(x: HasRank, axis: Any) -> list[int]:
    """Return the axes as a list; None means all.

    Example:
        >>> from samegrad._tensor.conversion import convert_to_tensor
        >>> axes_of(convert_to_tensor([[1.0]]), None)
        [0, 1]
    """
    if axis is None:
        return list(range(x._rank))
    rule, remedy = "an axis is an integer", "pass an int, or a tuple of ints"
    several = isinstance(axis, list | tuple) or getattr(axis, "ndim", 0) == 1
    return [whole(a, rule, remedy) for a in (axis if several else [axis])]


def axis_in(rank: int, axis: Any) -> int:
    """Return an axis of a tensor of this rank, counted from the first.

    Raises:
        TypeError: The axis is not an integer.
        ValueError: The axis is out of range.

    Example:
        >>> axis_in(2, -1)
        1
    """
    number = whole(axis, "an axis is an integer")
    if not -rank <= number < rank:
        raise ValueError(f"[shape] axis must lie in [{-rank}, {rank}): got {number}.")
    return number % rank


def axis_of(x: Tensor, axis: Any) -> int:
    """Return an axis of a tensor, counted from the first; see `axis_in`.

    Example:
        >>> from samegrad._tensor.conversion import convert_to_tensor
        >>> axis_of(convert_to_tensor([[1.0]]), -1)
        1
    """
    return axis_in(x._rank, axis)


def counts_examples(x: Tensor, axis: int) -> bool:
    """Tell whether the axis, counted from the first, is the batch axis.

    Example:
        >>> from samegrad._tensor.conversion import convert_to_tensor
        >>> counts_examples(convert_to_tensor([[1.0]]), 0)
        False
    """
    return x._example_axis is not None and x._example_axis[0] == axis
