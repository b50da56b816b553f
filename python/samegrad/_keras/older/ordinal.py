"""Functions of `keras.utils` before version 3."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["to_ordinal"]


def to_ordinal(
    y: Any, num_classes: int | None = None, dtype: npt.DTypeLike = "float32"
) -> npt.NDArray[Any]:
    """Encode ordered classes: class k has k ones before zeros.

    Args:
        y: Integers from 0 of any shape; a last axis of size 1 is dropped.
        num_classes: Number of classes. None: the largest integer plus one.
        dtype: Dtype of the result.

    Returns:
        Array of shape [..., num_classes - 1].

    Example:
        >>> to_ordinal([0, 2, 1], 3).tolist()
        [[0.0, 0.0], [1.0, 1.0], [1.0, 0.0]]
    """
    classes = np.asarray(y, dtype="int64")
    if classes.ndim > 1 and classes.shape[-1] == 1:
        classes = classes[..., 0]
    count = int(classes.max()) + 1 if num_classes is None else num_classes
    return (np.arange(count - 1) < classes[..., None]).astype(dtype)
