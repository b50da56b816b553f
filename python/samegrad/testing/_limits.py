"""Limits on gradients: whether there is one, and whether it meets shares, parts, or scaled ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from samegrad.testing._catalogue import CLIPPED_PARTS, CLIPPED_REPLICAS
from samegrad.testing._layouts import Layout
from samegrad.testing._mistake import Mistake
from samegrad.testing._select import LOOSE
from samegrad.testing._updates import Vector

if TYPE_CHECKING:
    from samegrad.testing._evidence import Evidence

HIDDEN = (
    "the update is limited or normalized, which hides factors in front of the limit: switch it "
    "off to judge the loss"
)
Groups = Callable[[Layout], list[tuple[int, ...]]]


def of_shares(item: Layout) -> list[tuple[int, ...]]:
    """The examples of each replica."""
    return [tuple(i for part in share for i in part) for share in item.parts]


def of_parts(item: Layout) -> list[tuple[int, ...]]:
    """The examples of each micro-batch of each replica."""
    return [part for share in item.parts for part in share]


def explain_clipping(evidence: Evidence) -> Mistake | None:
    """Examples of one replica (or micro-batch) are scaled alike, to a gradient of one length."""
    for groups, mistake in ((of_shares, CLIPPED_REPLICAS), (of_parts, CLIPPED_PARTS)):
        if _to_one_length(evidence, groups):
            return mistake
    return None


def _to_one_length(evidence: Evidence, groups: Groups) -> bool:
    limits, scales = [], []
    for place, fit in enumerate(evidence.fits[1:], start=1):
        right = evidence.right(place)
        for own in map(list, filter(None, groups(evidence.layouts[place]))):
            factors = fit.weights[own] / right[own]
            factor = float(factors.mean())
            if np.abs(factors - factor).max() > LOOSE * evidence.tolerance * max(1.0, abs(factor)):
                return False
            gradient = sum(right[i] * evidence.singles[i].sketch for i in own)
            scales.append(factor)
            limits.append(factor * float(np.linalg.norm(gradient)))
    near = max(1e-3, evidence.tolerance)
    clipped = [limit for limit, scale in zip(limits, scales, strict=True) if scale < 1 - near]
    if not clipped or max(scales) > 1 + near:
        return False
    return max(clipped) <= (1 + max(0.05, 2 * near)) * min(clipped)


def _limited_lengths(lengths: Sequence[Vector]) -> list[float]:
    """The lengths that several updates have, none being longer.

    Args:
        lengths: Of updates of one device: the norm, the norms of the arrays, and the peak.
    """
    table = np.stack([row for row in lengths if np.isfinite(row).all()])
    top = table.max(axis=0)
    hits = (table >= top * (1 - 3e-3)).sum(axis=0) >= 3
    arrays = hits[1:-1][top[1:-1] > 0]
    found = [float(top[place]) for place in (0, len(top) - 1) if hits[place]]
    if arrays.size and arrays.all():
        found += top[1:-1][top[1:-1] > 0].tolist()
    return found


def is_limited(lengths: Sequence[Vector]) -> bool:
    """Whether several updates have the same length, and none is longer."""
    return bool(_limited_lengths(lengths))


def is_limited_scaled(lengths: Sequence[Vector]) -> bool:
    """Whether a limit looks like one of scaled gradients: a round number by a power of two.

    Loss scales are powers of two; limits and learning rates are round in decimals.
    """
    return any(
        not _is_round(limit) and any(_is_round(limit * 2.0**j) for j in range(8, 25))
        for limit in _limited_lengths(lengths)
        if 0 < limit < 5e-3
    )


def _is_round(value: float) -> bool:
    """Whether one digit, or 1.5 or 2.5, tells the number."""
    digits = value / 10.0 ** np.floor(np.log10(value) + 1e-9)
    return bool(min(abs(digits - d) for d in (1, 1.5, 2, 2.5, 3, 4, 5, 6, 7, 8, 9, 10)) < 2e-4)


__all__ = ["HIDDEN", "explain_clipping", "is_limited", "is_limited_scaled", "of_parts", "of_shares"]
