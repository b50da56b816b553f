"""Copies of tensors, and tensors in pickles."""

from __future__ import annotations

from typing import Any

import numpy as np

from samegrad._tensor.conversion import Tensor, make


def restored(array: np.ndarray[Any, Any], example_axis: int | None, rows: int) -> Tensor:
    """Return the tensor of a pickle."""
    made = Tensor.__new__(Tensor)
    make(made, array, True, example_axis, rows)
    return made


def reduce(tensor: Tensor) -> Any:
    """Return the state of a tensor for pickle.

    Raises:
        TypeError: It belongs to a function that is being traced.
    """
    axis, rows = tensor._example_axis or (None, 1)
    return restored, (tensor._numpy(), axis, rows)


def copied(tensor: Tensor, memo: Any = None) -> Tensor:
    """Return the tensor itself, which never changes."""
    return tensor
