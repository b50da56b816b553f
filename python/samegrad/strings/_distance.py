"""Edit distance between sequences."""

from __future__ import annotations

from typing import Any

import numpy as np

from samegrad._base.shown import shown
from samegrad._tensor.host_values import on_host
from samegrad._tensor.sparse import SparseTensor
from samegrad._tensor.tensor import Tensor, convert_to_tensor

__all__ = ["edit_distance"]
_Sequences = dict[tuple[int, ...], list[Any]]


@on_host()
def edit_distance(
    hypothesis: Any, truth: Any, normalize: bool = True, name: str = "edit_distance"
) -> Tensor:
    """Compute the Levenshtein distance between sequences.

    Args:
        hypothesis: A sparse tensor [..., longest] of sequences of integers or strings.
        truth: A sparse tensor of as many axes and the same dtype.
        normalize: Divide by the length of the true sequence. Where that is empty, the result is
            infinite, or 0 if the hypothesis is empty as well.
        name: Ignored.

    Returns:
        The distances: float32, in the shape of the sequences without their last axis.

    Raises:
        TypeError: An argument is not a sparse tensor.
        ValueError: The arguments differ in their numbers of axes.

    Example:
        >>> import samegrad as tf
        >>> words = tf.sparse.from_dense([[1, 2, 3], [4, 5, 0]])
        >>> edit_distance(words, tf.sparse.from_dense([[1, 3, 0], [4, 5, 0]])).numpy()
        array([0.5, 0. ], dtype=float32)
    """
    for what, given in (("hypothesis", hypothesis), ("truth", truth)):
        if not isinstance(given, SparseTensor):
            raise TypeError(
                f"[edit_distance] {what} must be a SparseTensor: got {shown(given)}; use "
                "samegrad.sparse.from_dense."
            )
    sizes = [np.asarray(given.dense_shape)[:-1] for given in (hypothesis, truth)]
    if len(sizes[0]) != len(sizes[1]):
        raise ValueError(
            "[edit_distance] hypothesis and truth must have as many axes: got dense shapes "
            f"{tuple(hypothesis.shape)} and {tuple(truth.shape)}."
        )
    found, right = _sequences(hypothesis), _sequences(truth)
    made = np.zeros(np.maximum(*sizes).tolist(), np.float32)
    for at in found.keys() | right.keys():
        wanted = right.get(at, [])
        distance = _levenshtein(found.get(at, []), wanted)
        made[at] = distance if not normalize else distance / len(wanted) if wanted else np.inf
    return convert_to_tensor(made)


def _sequences(sparse: SparseTensor) -> _Sequences:
    rows: _Sequences = {}
    for place, value in zip(np.asarray(sparse.indices).tolist(),
                            sparse.values.numpy().tolist(), strict=True):  # fmt: skip
        rows.setdefault(tuple(place[:-1]), []).append(value)
    return rows


def _levenshtein(one: list[Any], other: list[Any]) -> int:
    costs = list(range(len(other) + 1))
    for i, a in enumerate(one, 1):
        last, costs[0] = costs[0], i
        for j, b in enumerate(other, 1):
            last, costs[j] = costs[j], min(costs[j] + 1, costs[j - 1] + 1, last + (a != b))
    return costs[-1]
