"""A term that every run holds once, beside losses that are added up: weight decay, say."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from samegrad.testing._updates import Recorded, Vector


@dataclass(frozen=True)
class Term:
    """What belongs to no example.

    Args:
        sketch: Its part of the sketch of an update.
        samples: Its part of the samples.
    """

    sketch: Vector
    samples: Vector

    def removed(self, run: Recorded) -> Recorded:
        """The run without it; its loss, which may be divided otherwise, and its lengths stay."""
        return replace(run, sketch=run.sketch - self.sketch, samples=run.samples - self.samples)


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
    samples = np.sum([single.samples for single in singles], axis=0) - whole.samples
    return Term(term, samples / more)


__all__ = ["Term", "term_of"]
