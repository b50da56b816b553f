"""Weights of the micro-batches whose gradients an optimizer accumulates.

Their gradients are those of means: of micro-batches that are not alike, each counts as much as its
mean was divided by (its values, those that a mask leaves, or its weights), so that the sum is the
gradient of the mean over all of them.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any

from samegrad import _core
from samegrad._context import state as _context
from samegrad._tensor.tensor import Tensor
from samegrad.nn._loss_normalization import elements_of


class _Losses:
    """The losses that a step takes gradients of."""

    def __init__(self, trace: Any, examples: Tensor) -> None:
        self.trace, self.examples = trace, examples
        self.denominators: list[Tensor] = []
        self.seen_by: set[int] = set()


_losses: ContextVar[_Losses | None] = ContextVar("losses", default=None)


def note_loss(losses: Tensor, denominator: Tensor) -> None:
    """Says what the mean of losses is divided by, if a tape may record them.

    Args:
        losses: One or more for each example.
        denominator: Over all replicas.
    """
    trace = _traced()
    if trace is None and not losses._recorded:
        return
    present = _losses.get()
    if present is None or present.trace is not trace or present.seen_by:
        of_all = _context.get_replica_context() is not None
        present = _Losses(trace, elements_of(losses, (0,), of_all))
        _losses.set(present)
    present.denominators.append(denominator)


def weight_of_step(optimizer: Any) -> Tensor | None:
    """Return the weight of the present micro-batch; None where no loss of Keras shows it.

    Of a step with several losses it is the number of its examples.

    Args:
        optimizer: Which takes the step.
    """
    present = _losses.get()
    if present is None or present.trace is not _traced() or id(optimizer) in present.seen_by:
        return None
    present.seen_by.add(id(optimizer))
    return present.denominators[0] if len(present.denominators) == 1 else present.examples


def _traced() -> Any:
    """The function that is being traced; None in eager code, where each tape is a trace."""
    return _core.current_trace() if _core.tracing() else None
