"""Batches of any structure: arrays with examples along axis 0, in tuples, lists and dicts."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from samegrad._base.tree import flatten, map_structure


class StepError(ValueError):
    """The step, or what was given to it, cannot be judged; the message says what to do."""


class StepFailedError(StepError):
    """The step itself raised."""


def rows_of(batch: Any) -> int:
    """How many examples the batch has.

    Raises:
        StepError: It has no arrays, or they have other numbers of rows.
    """
    counts = {len(leaf) if np.ndim(leaf) else -1 for leaf in flatten(batch)}
    if len(counts) != 1 or -1 in counts:
        shapes = [np.shape(leaf) for leaf in flatten(batch)]
        raise StepError(
            "[batch] arrays must have the same number of examples along axis 0: got shapes "
            f"{shapes}."
        )
    return counts.pop()


def take(batch: Any, indices: npt.ArrayLike) -> Any:
    """The examples with these numbers, in the structure of the batch."""
    chosen = np.asarray(indices, dtype=np.intp)
    return map_structure(lambda leaf: np.asarray(leaf)[chosen], batch)


def described(structure: Any) -> str:
    """The structure with the type and shape of each array.

    Example:
        >>> described([(np.ones((2, 3)), np.ones(2))])
        '[(float64[2, 3], float64[2])]'
    """
    named = map_structure(lambda leaf: f"{np.asarray(leaf).dtype}{list(np.shape(leaf))}", structure)
    return repr(named).replace("'", "")
