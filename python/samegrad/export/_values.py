"""Values of an exported graph under construction: names, dtypes and sizes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

# A size: an integer, the name of a symbol, or None if only the run knows it.
Dim = int | str | None


class RefusedError(Exception):
    """Signal that a format lacks what an operation needs; the converter adds its name and line."""


class Ref(NamedTuple):
    """Name of a tensor in the exported graph, and its dtype."""

    name: str
    dtype: str


class Value:
    """Tensor of the traced graph, in up to two memory layouts.

    Images are channels-last in the traced graph and channels-first in ONNX. A layout is emitted
    when an operation first asks for it.

    Args:
        dtype: The name of the dtype.
        shape: The sizes.
        plain: The tensor in the layout of the traced graph.
        first: The tensor with its channels on axis 1.
        array: The elements, where the export knows them.
        scope: The nodes among which a missing layout is emitted.
    """

    def __init__(
        self,
        dtype: str,
        shape: tuple[Dim, ...],
        plain: Ref | None = None,
        first: Ref | None = None,
        array: Any = None,
        scope: Any = None,
    ) -> None:
        self.dtype, self.shape = dtype, shape
        self.plain, self.first, self.array, self.scope = plain, first, array, scope

    @property
    def rank(self) -> int:
        """The number of axes."""
        return len(self.shape)


class History(NamedTuple):
    """Values of all iterations of a loop, each with the iterations on axis 0."""

    entries: list[Value]


class Missing(NamedTuple):
    """Result that the format lacks, and why; an operation that reads it is refused."""

    reason: str


def to_first(rank: int) -> list[int]:
    """Return the permutation from channels-last to channels-first."""
    return [0, rank - 1, *range(1, rank - 1)]


def to_last(rank: int) -> list[int]:
    """Return the permutation from channels-first to channels-last."""
    return [0, *range(2, rank), 1]


def axis_in_first(axis: int, rank: int) -> int:
    """Return where channels-first has an axis of channels-last."""
    return to_first(rank).index(axis)


def broadcast(*shapes: tuple[Dim, ...]) -> tuple[Dim, ...]:
    """Return the shape of an elementwise result."""
    rank = max(map(len, shapes))
    padded = [(1,) * (rank - len(shape)) + tuple(shape) for shape in shapes]
    return tuple(_joined(sizes) for sizes in zip(*padded, strict=True))


def _joined(sizes: tuple[Dim, ...]) -> Dim:
    larger = {size for size in sizes if size != 1}
    if not larger:
        return 1
    numbers = [size for size in larger if isinstance(size, int)]
    if numbers:
        return numbers[0]
    return larger.pop() if len(larger) == 1 else None


def product(sizes: Any) -> int | None:
    """Return the product of sizes; None: one of them is unknown."""
    numbers = list(sizes)
    if not all(isinstance(size, int) for size in numbers):
        return None
    return int(np.prod(numbers, dtype=np.int64))


def slice_bounds(begin: Sequence[Any], end: Sequence[Any], strides: Sequence[int]) -> Any:
    """Return bounds of slices as ONNX has them: absent ones are beyond the axis."""
    most, least = 2**63 - 1, -(2**63)
    starts, ends = [], []
    for first, last, stride in zip(begin, end, strides, strict=True):
        far = (0, most) if stride > 0 else (most, least)
        starts.append(far[0] if first in (most, least) else first)
        ends.append(far[1] if last in (most, least) else last)
    return starts, ends
