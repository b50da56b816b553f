"""Batches of any structure: arrays with examples along axis 0, in tuples, lists and dicts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt


class StepError(ValueError):
    """The step, or what was given to it, cannot be judged; the message says what to do."""


def rows_of(batch: Any) -> int:
    """How many examples the batch has.

    Raises:
        StepError: It has no arrays, or they have other numbers of rows.
    """
    counts = {len(leaf) if np.ndim(leaf) else -1 for leaf in leaves_of(batch)}
    if len(counts) != 1 or -1 in counts:
        shapes = [np.shape(leaf) for leaf in leaves_of(batch)]
        raise StepError(
            "[batch] arrays must have the same number of examples along axis 0: got shapes "
            f"{shapes}."
        )
    return counts.pop()


def take(batch: Any, indices: npt.ArrayLike) -> Any:
    """The examples with these numbers, in the structure of the batch."""
    chosen = np.asarray(indices, dtype=np.intp)
    return map_leaves(lambda leaf: np.asarray(leaf)[chosen], batch)


def leaves_of(structure: Any) -> list[Any]:
    """The leaves from left to right; dicts by their sorted keys."""
    if isinstance(structure, Mapping):
        return [leaf for key in sorted(structure) for leaf in leaves_of(structure[key])]
    if isinstance(structure, list | tuple):
        return [leaf for part in structure for leaf in leaves_of(part)]
    return [structure]


def map_leaves(function: Callable[[Any], Any], structure: Any) -> Any:
    """The structure with function(leaf) in place of each leaf."""
    if isinstance(structure, Mapping):
        return {key: map_leaves(function, part) for key, part in structure.items()}
    if isinstance(structure, tuple) and hasattr(structure, "_fields"):
        return type(structure)(*(map_leaves(function, part) for part in structure))
    if isinstance(structure, list | tuple):
        return type(structure)(map_leaves(function, part) for part in structure)
    return function(structure)
