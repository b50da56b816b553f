"""Softmax along an axis, and x / (1 + |x|)."""

from __future__ import annotations

from samegrad import _core
from samegrad._tensor.tensor import Tensor, TensorLike, convert_to_tensor

_ops = _core.ops


def softsign(features: TensorLike, name: str | None = None) -> Tensor:
    """Returns x / (1 + |x|) of each element.

    Example:
        >>> softsign([1.0]).numpy()
        array([0.5], dtype=float32)
    """
    x = convert_to_tensor(features)
    return x / (_ops.abs(x) + 1.0)


def softmax(logits: TensorLike, axis: int | None = None, name: str | None = None) -> Tensor:
    """exp(x) divided by its sum along an axis.

    Args:
        logits: Tensor of floats with at least one axis.
        axis: Along which axis the results add up to 1. None: the last.
        name: Ignored.

    Returns:
        A tensor of the same shape.

    Raises:
        ValueError: There is no such axis.

    Example:
        >>> softmax([[0.0, 0.0]]).numpy()
        array([[0.5, 0.5]], dtype=float32)
    """
    return _along(_ops.softmax, "softmax", convert_to_tensor(logits), axis)


def log_softmax(logits: TensorLike, axis: int | None = None, name: str | None = None) -> Tensor:
    """The logarithm of `softmax`, exact where that is tiny.

    Args:
        logits: Tensor of floats with at least one axis.
        axis: Along which axis the probabilities add up to 1. None: the last.
        name: Ignored.

    Returns:
        A tensor of the same shape.

    Raises:
        ValueError: There is no such axis.

    Example:
        >>> log_softmax([[0.0, 0.0]]).numpy().round(4)
        array([[-0.6931, -0.6931]], dtype=float32)
    """
    return _along(_ops.log_softmax, "log_softmax", convert_to_tensor(logits), axis)


def move_axis_last(who: str, x: Tensor, axis: int | None) -> tuple[Tensor, list[int] | None]:
    """The tensor with an axis swapped with the last, and the permutation that swaps them back."""
    rank = x._rank
    axis = -1 if axis is None else axis
    if not -rank <= axis < rank:
        raise ValueError(
            f"[{who}] axis must be one of the tensor's {rank} axes: got axis={axis}; "
            f"use a number from {-rank} to {rank - 1}."
        )
    if axis % rank == rank - 1:
        return x, None
    swap = list(range(rank))
    swap[axis % rank], swap[-1] = swap[-1], swap[axis % rank]
    return _ops.transpose(x, perm=swap), swap


def _along(operation: object, who: str, x: Tensor, axis: int | None) -> Tensor:
    moved, swap = move_axis_last(who, x, axis)
    result = operation(moved)  # type: ignore[operator]
    return result if swap is None else _ops.transpose(result, perm=swap)
