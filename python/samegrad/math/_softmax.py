"""Softmax along an axis, and x / (1 + |x|)."""

from __future__ import annotations

from samegrad import _core
from samegrad._tensor.tensor import Tensor, TensorLike, convert_to_tensor

_ops = _core.ops


def softsign(features: TensorLike, name: str | None = None) -> Tensor:
    """Compute x / (1 + |x|) of each element.

    Args:
        features: A tensor of floats of any shape.
        name: Ignored.

    Returns:
        A tensor of the shape and dtype of `features`.

    Raises:
        TypeError: The tensor does not hold floats.

    Example:
        >>> softsign([1.0]).numpy()
        array([0.5], dtype=float32)
    """
    x = convert_to_tensor(features)
    return x / (_ops.abs(x) + 1.0)


def softmax(logits: TensorLike, axis: int | None = None, name: str | None = None) -> Tensor:
    """Compute exp(x) / Σ exp(x) along an axis.

    Args:
        logits: A tensor of floats with at least one axis.
        axis: The axis whose results sum to 1; None: the last.
        name: Ignored.

    Returns:
        A tensor of the shape and dtype of `logits`.

    Raises:
        ValueError: There is no such axis.

    Example:
        >>> softmax([[0.0, 0.0]]).numpy()
        array([[0.5, 0.5]], dtype=float32)
    """
    return _along(_ops.softmax, "softmax", convert_to_tensor(logits), axis)


def log_softmax(logits: TensorLike, axis: int | None = None, name: str | None = None) -> Tensor:
    """Compute the logarithm of `softmax`, exact where the probability is tiny.

    Args:
        logits: A tensor of floats with at least one axis.
        axis: The axis whose probabilities sum to 1; None: the last.
        name: Ignored.

    Returns:
        A tensor of the shape and dtype of `logits`.

    Raises:
        ValueError: There is no such axis.

    Example:
        >>> log_softmax([[0.0, 0.0]]).numpy().round(4)
        array([[-0.6931, -0.6931]], dtype=float32)
    """
    return _along(_ops.log_softmax, "log_softmax", convert_to_tensor(logits), axis)


def move_axis_last(who: str, x: Tensor, axis: int | None) -> tuple[Tensor, list[int] | None]:
    """Swap an axis with the last one; return the tensor and the inverse permutation."""
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
