"""Gradients are summed over the replicas once, at the top of `apply`."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Any

from keras.src.optimizers import base_optimizer

from samegrad import _context
from samegrad._scaling_check import note_use
from samegrad._tensor import Tensor
from samegrad.nn._loss_scaling import all_reduce_sum

_reduced: ContextVar[bool] = ContextVar("gradients_reduced", default=False)


@contextlib.contextmanager
def _gradients_of_all() -> Iterator[None]:
    token = _reduced.set(True)
    try:
        yield
    finally:
        _reduced.reset(token)


class ReducingOptimizer(base_optimizer.BaseOptimizer):  # type: ignore[misc]
    """Base of Keras's optimizers: all that `apply` does is done with the sums over the replicas.

    So clipping, loss scales, accumulation and averages see what one device would see.
    """

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "apply" in cls.__dict__:
            cls.apply = _with_sums(cls.__dict__["apply"])  # type: ignore[method-assign]

    def apply(self, grads: Any, trainable_variables: Any = None) -> None:
        """Updates variables by the gradients of all replicas."""
        with _sums(self, list(grads)) as total:
            super().apply(total, trainable_variables)


@contextlib.contextmanager
def _sums(optimizer: Any, grads: list[Any]) -> Iterator[list[Any]]:
    if _reduced.get():
        yield grads
        return
    context = _context.current()
    if context.strategy is not None and context.replica_context is None:
        raise RuntimeError(
            f"[{optimizer.name}] apply_gradients needs a replica's gradients: got called in "
            "cross-replica context; call it in the function given to strategy.run."
        )
    present = [g for g in grads if g is not None]
    for gradient in present:
        if isinstance(gradient, Tensor):
            note_use("gradient", gradient)
    summed = iter(all_reduce_sum(present) if present else [])
    with _gradients_of_all():
        yield [None if g is None else next(summed) for g in grads]


def _with_sums(apply: Any) -> Any:
    def summed(self: Any, grads: Any, trainable_variables: Any = None) -> Any:
        with _sums(self, list(grads)) as total:
            return apply(self, total, trainable_variables)

    summed.__doc__ = apply.__doc__
    return summed
