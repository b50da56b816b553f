"""Derivatives of every element of a target: one backward walk for each."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from samegrad import _core
from samegrad._base.tree import flatten, map_structure
from samegrad._ops.arrays import reshape, stack
from samegrad._tensor.tensor import Tensor, convert_to_tensor

if TYPE_CHECKING:
    from samegrad._autodiff.tape import GradientTape

_ops = _core.ops


def jacobian(tape: GradientTape, target: Tensor, sources: Any, unconnected: Any) -> Any:
    """Compute the result of `GradientTape.jacobian`."""
    shape = _bound(target)
    flat = flatten(sources)
    count = math.prod(shape)
    unit = np.eye(count, dtype=target._dtype).reshape(count, *shape)
    seeds = [convert_to_tensor(row) for row in unit]
    if not seeds:  # no element: one walk says which sources are connected
        (found,) = _rows(tape, target, flat, [None], unconnected)
        empty = [None if g is None else _zeros(g, shape) for g in found]
        return pack(sources, empty)
    rows = _rows(tape, target, flat, seeds, unconnected)
    joined = [
        None if parts[0] is None else reshape(stack(parts), (*shape, *_bound(parts[0])))
        for parts in zip(*rows, strict=True)
    ]
    return pack(sources, joined)


def batch_jacobian(tape: GradientTape, target: Tensor, source: Any) -> Any:
    """Compute the result of `GradientTape.batch_jacobian`."""
    rows = convert_to_tensor(source)
    if min(target._rank, rows._rank) < 2 or target._shape[0] != rows._shape[0]:
        raise ValueError(
            "[batch_jacobian] target and source must have the same number of rows, and more axes "
            f"behind that one: got shapes {tuple(target._shape)} and {tuple(rows._shape)}."
        )
    shape = _known(target._shape[1:], "batch_jacobian", "target")
    inner = _known(rows._shape[1:], "batch_jacobian", "source")
    count = math.prod(shape)
    unit = np.eye(count, dtype=target._dtype).reshape(count, *shape)
    seeds = [_ops.broadcast_like(convert_to_tensor(row[None]), target) for row in unit]
    parts = [found for (found,) in _rows(tape, target, [source], seeds, "none")]
    if not parts or parts[0] is None:
        return _zeros_of_rows(rows, shape, inner)
    return reshape(stack(parts, axis=1), (target.shape[0], *shape, *inner))


def pack(sources: Any, gradients: list[Any]) -> Any:
    """Return the gradients in the structure of the sources."""
    results = iter(gradients)
    return map_structure(lambda _: next(results), sources)


def _zeros(like: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Return zeros of the shape, then of that of a gradient."""
    return convert_to_tensor(np.zeros((*shape, *_bound(like)), dtype=like._dtype))


def _zeros_of_rows(rows: Tensor, shape: tuple[int, ...], inner: tuple[int, ...]) -> Tensor:
    """Return zeros for each row: of the target's shape, then of the source's."""
    narrow = reshape(_ops.full_like(rows, value=0.0), (rows.shape[0], *(1 for _ in shape), *inner))
    wide = np.zeros((1, *shape, *(1 for _ in inner)), dtype=rows._dtype)
    zeros: Tensor = _ops.add(narrow, convert_to_tensor(wide))
    return zeros


def _rows(
    tape: GradientTape, target: Tensor, sources: list[Any], seeds: list[Any], unconnected: Any
) -> list[list[Any]]:
    """Return the gradients of the sources for each of the seeds."""
    return [
        list(tape._gradients(target, sources, seed, unconnected, again=i > 0))
        for i, seed in enumerate(seeds)
    ]


def _bound(value: Tensor) -> tuple[int, ...]:
    """Return the sizes, and bind a traced program to those that follow from the examples."""
    return tuple(int(size) for size in value.shape)


def _known(shape: Any, who: str, what: str) -> tuple[int, ...]:
    if any(size is None for size in shape):
        sizes = tuple("?" if size is None else size for size in shape)
        raise ValueError(
            f"[{who}] the sizes of the {what} must be known: got {sizes}, where ? follows from the "
            "number of examples; use batch_jacobian, or reduce that axis first."
        )
    return tuple(int(size) for size in shape)
