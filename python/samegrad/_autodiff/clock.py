"""The time of day, in steps as well."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from samegrad import _core
from samegrad._tensor.tensor import Tensor

_cells: list[Any] = []  # what traced steps read; made when the first one asks


def _now() -> Tensor:
    return Tensor(np.array(time.time(), np.float64), copy=False)


def timestamp(name: str | None = None) -> Tensor:
    """Return the seconds since 1970; a traced function gets the time at which its call began.

    Args:
        name: Ignored.

    Returns:
        A float64 scalar.

    Example:
        >>> import samegrad as tf
        >>> tf.timestamp().dtype
        samegrad.float64
    """
    if not _core.tracing():
        return _now()
    if not _cells:
        _cells.append(_core.StateVariable("timestamp", [_now()]))
    return _core.read_variable(_cells[0])


def tick() -> None:
    """Set the clock that traced steps read: a call of one begins."""
    if _cells:
        _cells[0].set([_now()])
