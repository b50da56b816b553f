"""A term that every run holds once, beside losses that are added up: weight decay, say."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from samegrad.testing._updates import Recorded, Vector


@dataclass(frozen=True)
class Term:
    """What belongs to no example.

    Args:
        sketch: Its part of an update.
        loss: Its part of the loss, where losses are reported.
    """

    sketch: Vector
    loss: float | None

    def removed(self, run: Recorded) -> Recorded:
        """The run without it."""
        loss = None if run.loss is None or self.loss is None else run.loss - self.loss
        return replace(run, sketch=run.sketch - self.sketch, loss=loss)


def term_of(singles: list[Recorded], whole: Recorded, half: Recorded, count: int) -> Term | None:
    """The term, where examples are added up and not averaged.

    n examples together then hold it once, alone n times: the sum of the singles less the whole is
    n - 1 times the term. The first `count` examples must say the same.

    Args:
        singles: One run per example, on one device as all of them.
        whole: All examples.
        half: The first `count` examples.
        count: At least 2, fewer than all.
    """
    rows = np.stack([single.sketch for single in singles])
    more = len(rows) - 1
    term = (rows.sum(axis=0) - whole.sketch) / more
    size = float(np.linalg.norm(term))
    if not size > 1e-5 * float(np.linalg.norm(whole.sketch)):
        return None
    data = rows[:count].sum(axis=0) - count * term
    left = float(np.linalg.norm(half.sketch - data - term))
    # Means fail here: they miss by as much as their examples differ.
    if left > 0.25 * min((count - 1) * size, float(np.linalg.norm(data))):
        return None
    losses = [single.loss for single in singles]
    if whole.loss is None or any(loss is None for loss in losses):
        return Term(term, None)
    return Term(term, float(sum(loss or 0.0 for loss in losses) - whole.loss) / more)


__all__ = ["Term", "term_of"]
