"""Limits for the size of gradients, applied after they are summed over the replicas."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TypeVar

from samegrad import _core
from samegrad._tensor import Tensor, convert_to_tensor

_ops = _core.ops
T = TypeVar("T")


class Clipping:
    """At most one of three ways to limit gradients.

    Args:
        clipnorm: Each gradient is scaled so that its norm is at most this.
        clipvalue: Each element is cut to [-clipvalue, clipvalue].
        global_clipnorm: All gradients are scaled so that the norm of all together is at most this.

    Raises:
        ValueError: Several are given, or one is not positive.

    Example:
        >>> import samegrad as tf
        >>> [g.numpy().round(4) for g in Clipping(clipnorm=1.0)([tf.constant([3.0, 4.0])])]
        [array([0.6, 0.8], dtype=float32)]
    """

    def __init__(
        self,
        clipnorm: float | None = None,
        clipvalue: float | None = None,
        global_clipnorm: float | None = None,
    ) -> None:
        limits = {
            "clipnorm": clipnorm,
            "clipvalue": clipvalue,
            "global_clipnorm": global_clipnorm,
        }
        given = {name: limit for name, limit in limits.items() if limit is not None}
        if len(given) > 1:
            raise ValueError(
                "[Optimizer] at most one of clipnorm, clipvalue and global_clipnorm may be given: "
                f"got {given}."
            )
        for name, limit in given.items():
            if not (math.isfinite(limit) and limit > 0):
                raise ValueError(f"[Optimizer] {name} must be positive: got {limit}.")
        self.clipnorm, self.clipvalue, self.global_clipnorm = clipnorm, clipvalue, global_clipnorm

    def __call__(self, gradients: Sequence[Tensor]) -> list[Tensor]:
        """The limited gradients."""
        if self.clipnorm is not None:
            return [_scaled(g, _norm(_square_sum(g)), self.clipnorm) for g in gradients]
        if self.clipvalue is not None:
            return [_cut(g, self.clipvalue) for g in gradients]
        if self.global_clipnorm is not None:
            return self._by_global_norm(gradients, self.global_clipnorm)
        return list(gradients)

    def _by_global_norm(self, gradients: Sequence[Tensor], limit: float) -> list[Tensor]:
        """A norm that is not finite makes all gradients NaN, as in TensorFlow."""
        squares = [_ops.cast(_square_sum(g), dtype="float64") for g in gradients]
        norm = _ops.sqrt(tree_sum(squares, _ops.add))
        limit64 = convert_to_tensor(limit, "float64")
        scale = limit64 / _ops.maximum(norm, limit64) + (norm - norm)
        return [g * _ops.cast(scale, dtype=g._dtype) for g in gradients]


def tree_sum(items: Sequence[T], join: Callable[[T, T], T]) -> T:
    """The items joined in a fixed order: both halves, then the two results.

    Example:
        >>> tree_sum(["a", "b", "c"], lambda left, right: f"({left} {right})")
        '((a b) c)'
    """
    if len(items) == 1:
        return items[0]
    half = (len(items) + 1) // 2
    return join(tree_sum(items[:half], join), tree_sum(items[half:], join))


def _square_sum(x: Tensor) -> Tensor:
    return _ops.reduce_sum(_ops.square(x), axes=tuple(range(x._rank)))


def _norm(square_sum: Tensor) -> Tensor:
    """The root; its own value where that is 0, so that no gradient of it is infinite."""
    positive = square_sum > 0.0
    one = convert_to_tensor(1.0, square_sum._dtype)
    return _ops.select(positive, _ops.sqrt(_ops.select(positive, square_sum, one)), square_sum)


def _scaled(x: Tensor, norm: Tensor, limit: float) -> Tensor:
    bound = convert_to_tensor(limit, x._dtype)
    return x * bound / _ops.maximum(norm, bound)


def _cut(x: Tensor, limit: float) -> Tensor:
    low, high = (convert_to_tensor(number, x._dtype) for number in (-limit, limit))
    return _ops.minimum(_ops.maximum(x, low), high)
