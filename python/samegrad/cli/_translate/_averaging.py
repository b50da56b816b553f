"""The mean of the weights of several checkpoints."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import samegrad as tf
from samegrad.train._state_file import all_checkpoints


def last_checkpoints(
    folder: str, count: int, counts: Callable[[str], bool] = lambda path: True
) -> list[str]:
    """The newest checkpoints of a folder, the oldest of them first.

    Args:
        folder: Where they were saved.
        count: How many, at least 1.
        counts: Whether a checkpoint is one of those that are wanted, by its path.

    Raises:
        ValueError: There are fewer.
    """
    found: list[str] = []
    for path in reversed(all_checkpoints(folder)):
        if 1 <= count == len(found):
            break  # the others need not be read
        if counts(path):
            found.insert(0, path)
    if not 1 <= count <= len(found):
        raise ValueError(
            f"[average] there must be as many checkpoints as are averaged, and at least 1: got "
            f"{len(found)} in {folder} for {count}; keep more of them."
        )
    return found


def average_checkpoints(model: Any, paths: Sequence[str], name: str = "model") -> None:
    """Assign to a model the mean of its weights in checkpoints (Vaswani et al., 2017, 6.1).

    Means are computed in float64. Values that are not floats, such as random states, are those of
    the last checkpoint. If a checkpoint cannot be read, the model is unchanged.

    Args:
        model: Whose variables are in the checkpoints, and are assigned.
        paths: Of the checkpoints, in any order but for the last.
        name: What the model is called in them.

    Raises:
        ValueError: There is no path, or a checkpoint is damaged.
        AssertionError: A checkpoint has not all variables of the model.
        OSError: A checkpoint cannot be read.

    Example:
        >>> import tempfile
        >>> layer = tf.keras.layers.Dense(1, use_bias=False)
        >>> layer.build((None, 1))
        >>> checkpoint = tf.train.Checkpoint(model=layer)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     for weight in (1.0, 2.0, 6.0):
        ...         _ = layer.kernel.assign([[weight]])
        ...         _ = checkpoint.save(folder + "/ckpt")
        ...     average_checkpoints(layer, last_checkpoints(folder, 2))
        >>> float(layer.kernel[0, 0])
        4.0
    """
    if not paths:
        raise ValueError("[average] at least one checkpoint is needed: got none.")
    variables = list(model.variables)
    before = [variable.numpy() for variable in variables]
    checkpoint = tf.train.Checkpoint(**{name: model})
    sums = [np.zeros(value.shape, np.float64) for value in before]
    try:
        for path in paths:
            checkpoint.read(path).expect_partial().assert_existing_objects_matched()
            for total, variable in zip(sums, variables, strict=True):
                total += variable.numpy()
        means = [total / len(paths) for total in sums]
    except BaseException:
        for variable, value in zip(variables, before, strict=True):
            variable.assign(value)
        raise
    for variable, mean, value in zip(variables, means, before, strict=True):
        if not np.issubdtype(value.dtype, np.integer):
            variable.assign(mean.astype(value.dtype))
