"""Limits on gradients that are applied before the replicas are joined."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from samegrad.testing._catalogue import Mistake

if TYPE_CHECKING:
    from samegrad.testing._diagnose import Evidence


def explain_clipping(evidence: Evidence) -> Mistake | None:
    """Each replica's examples are scaled alike, by what makes its gradient as long as a limit."""
    limits, scales = [], []
    for place, fit in enumerate(evidence.fits[1:], start=1):
        item, right = evidence.layouts[place], evidence.right(place)
        for share in item.parts:
            own = [i for part in share for i in part]
            factors = fit.weights[own] / right[own]
            factor = float(factors.mean())
            if np.abs(factors - factor).max() > 4 * evidence.tolerance * max(1.0, abs(factor)):
                return None
            gradient = sum(right[i] * evidence.singles[i].sketch for i in own)
            scales.append(factor)
            limits.append(factor * float(np.linalg.norm(gradient)))
    clipped = [limit for limit, scale in zip(limits, scales, strict=True) if scale < 0.999]
    if not clipped or max(scales) > 1.001:
        return None
    if max(clipped) > 1.05 * min(clipped):
        return None
    return Mistake(
        "gradients are clipped before the replicas are joined",
        "each replica limits its own gradient, so that the sum is another one than the limited "
        "gradient of the batch",
        "Σ clip(g_r)  instead of  clip(Σ g_r)",
        "reduce first, then clip, then update: samegrad's optimizers take clipnorm and "
        "global_clipnorm",
        lambda s: s.right,
    )
