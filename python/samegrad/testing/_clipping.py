"""Limits on gradients that are applied before the replicas are joined."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from samegrad.testing._catalogue import Mistake
from samegrad.testing._catalogue._nonweight import CLIPPED_PARTS, CLIPPED_REPLICAS
from samegrad.testing._layouts import Layout
from samegrad.testing._updates import Vector

if TYPE_CHECKING:
    from samegrad.testing._evidence import Evidence


HIDDEN = (
    "the update is limited or normalized, which hides factors in front of the limit: switch it "
    "off to judge the loss"
)


def explain_clipping(evidence: Evidence) -> Mistake | None:
    """Examples of one replica (or micro-batch) are scaled alike, to a gradient of one length."""
    return _explain(evidence, _shares, CLIPPED_REPLICAS) or _explain(
        evidence, _micro_batches, CLIPPED_PARTS
    )


Groups = Callable[[Layout], list[list[int]]]


def _shares(item: Layout) -> list[list[int]]:
    return [[i for part in share for i in part] for share in item.parts]


def _micro_batches(item: Layout) -> list[list[int]]:
    return [list(part) for share in item.parts for part in share]


def _explain(evidence: Evidence, groups: Groups, found: Mistake) -> Mistake | None:
    limits, scales = [], []
    for place, fit in enumerate(evidence.fits[1:], start=1):
        right = evidence.right(place)
        for own in filter(None, groups(evidence.layouts[place])):
            factors = fit.weights[own] / right[own]
            factor = float(factors.mean())
            if np.abs(factors - factor).max() > 4 * evidence.tolerance * max(1.0, abs(factor)):
                return None
            gradient = sum(right[i] * evidence.singles[i].sketch for i in own)
            scales.append(factor)
            limits.append(factor * float(np.linalg.norm(gradient)))
    near = max(1e-3, evidence.tolerance)
    clipped = [limit for limit, scale in zip(limits, scales, strict=True) if scale < 1 - near]
    if not clipped or max(scales) > 1 + near:
        return None
    return found if max(clipped) <= (1 + max(0.05, 2 * near)) * min(clipped) else None


def is_limited(lengths: Sequence[Vector]) -> bool:
    """Whether several updates have the same length, and none is longer.

    Args:
        lengths: Of updates of one device: the norm, the norms of the arrays, and the peak.
    """
    table = np.stack([row for row in lengths if np.isfinite(row).all()])
    top = table.max(axis=0)
    hits = (table >= top * (1 - 3e-3)).sum(axis=0)
    norm, peak = hits[0] >= 3, hits[-1] >= 3
    arrays = hits[1:-1][top[1:-1] > 0]
    return bool(norm or peak or (arrays.size and (arrays >= 3).all()))
