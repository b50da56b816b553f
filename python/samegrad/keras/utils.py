"""Helpers around training."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import numpy.typing as npt

from samegrad._boundary import guard as _guard
from samegrad._shown import shown


def set_random_seed(seed: int) -> None:
    """Seeds Python's, NumPy's and samegrad's random numbers.

    Args:
        seed: From 0 to 2**32 - 1.

    Raises:
        ValueError: It is out of range (NumPy's rule).

    Example:
        >>> set_random_seed(7)
    """
    from samegrad._sizes import whole
    from samegrad.random import set_seed

    seed = whole(seed, "a seed is a whole number")
    if not 0 <= seed < 2**32:
        raise ValueError(f"[set_random_seed] a seed is from 0 to 2**32 - 1: got {seed}.")
    np.random.seed(seed)
    random.seed(seed)
    set_seed(seed)


def to_categorical(
    y: npt.ArrayLike, num_classes: int | None = None, dtype: str = "float32"
) -> npt.NDArray[Any]:
    """Class numbers as rows of zeros with a one at the class.

    Args:
        y: Class numbers [...] or [..., 1], integers from 0.
        num_classes: How many classes there are. None: the largest number plus 1.
        dtype: NumPy's dtype of the result.

    Returns:
        An array [..., num_classes].

    Raises:
        ValueError: A number is no class.

    Example:
        >>> to_categorical([0, 2], num_classes=3)
        array([[1., 0., 0.],
               [0., 0., 1.]], dtype=float32)
    """
    given = np.asarray(y)
    if given.dtype.kind not in "iufb":
        raise TypeError(f"[to_categorical] class numbers are needed: got {shown(y)}.")
    labels = given.astype(np.int64)
    if labels.ndim > 1 and labels.shape[-1] == 1:
        labels = labels[..., 0]
    classes = num_classes or (int(labels.max()) + 1 if labels.size else 0)
    if labels.size and (labels.min() < 0 or labels.max() >= classes):
        raise ValueError(
            f"[to_categorical] labels must be in [0, {classes}): got {labels.min()} to "
            f"{labels.max()}; give a larger num_classes."
        )
    rows = np.zeros((labels.size, classes), dtype)  # not a square of all classes
    rows[np.arange(labels.size), labels.reshape(-1)] = 1
    return rows.reshape(*labels.shape, classes)


_guard(__name__)
