"""Derivatives of every element of a target: one backward walk for each."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from samegrad import _core
from samegrad._arrays import reshape, stack
from samegrad._nest import flatten, map_structure
from samegrad._tensor import Tensor, convert_to_tensor

if TYPE_CHECKING:
    from samegrad._tape import GradientTape

_ops = _core.ops


def jacobian(tape: GradientTape, target: Tensor, sources: Any, unconnected: Any) -> Any:
    """See `GradientTape.jacobian`."""
    shape = _known(target._shape, "jacobian", "target")
    count = math.prod(shape)
    unit = np.eye(count, dtype=target._dtype).reshape(count, *shape)
    seeds = [convert_to_tensor(row) for row in unit]
    columns = _columns(tape, target, sources, seeds, unconnected)
    joined = [
        None if parts[0] is None else reshape(stack(parts), (*shape, *parts[0]._shape))
        for parts in columns
    ]
    results = iter(joined)
    return map_structure(lambda _: next(results), sources)


def batch_jacobian(tape: GradientTape, target: Tensor, source: Tensor, unconnected: Any) -> Any:
    """See `GradientTape.batch_jacobian`."""
    if not target._rank or not source._rank or target._shape[0] != source._shape[0]:
        raise ValueError(
            "[batch_jacobian] target and source must have the same number of rows: got shapes "
            f"{tuple(target._shape)} and {tuple(source._shape)}."
        )
    shape = _known(target._shape[1:], "batch_jacobian", "target")
    inner = _known(source._shape[1:], "batch_jacobian", "source")
    count = math.prod(shape)
    unit = np.eye(count, dtype=target._dtype).reshape(count, *shape)
    seeds = [_ops.broadcast_like(convert_to_tensor(row[None]), target) for row in unit]
    (parts,) = _columns(tape, target, [source], seeds, unconnected)
    if not parts or parts[0] is None:
        return None
    return reshape(stack(parts, axis=1), (target.shape[0], *shape, *inner))


def _columns(
    tape: GradientTape, target: Tensor, sources: Any, seeds: list[Tensor], unconnected: Any
) -> list[list[Any]]:
    """Per source, its gradients for each of the seeds."""
    found = []
    with tape._kept():
        for seed in seeds:
            gradients = tape.gradient(target, sources, seed, unconnected)
            found.append(flatten(gradients))
    return [list(parts) for parts in zip(*found, strict=True)]


def _known(shape: Any, who: str, what: str) -> tuple[int, ...]:
    if any(size is None for size in shape):
        sizes = tuple("?" if size is None else size for size in shape)
        raise ValueError(
            f"[{who}] the sizes of the {what} must be known: got {sizes}, where ? follows from the "
            "number of examples; use batch_jacobian, or reduce that axis first."
        )
    return tuple(int(size) for size in shape)
