"""The loss that a step reports, judged by itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from samegrad.testing._diagnose import Evidence


def explain_loss(evidence: Evidence) -> str | None:
    """What is wrong with the reported loss, or None."""
    losses = [run.loss for run in evidence.runs]
    own = [single.loss for single in evidence.singles]
    if any(loss is None for loss in [*losses, *own]):
        return None
    each = np.array(own, dtype=np.float64)
    found = np.array(losses, dtype=np.float64)
    right = np.array([float(evidence.right(p) @ each) for p in range(len(found))])
    scale = max(float(np.abs(right).max()), 1e-300)
    tolerance = max(evidence.tolerance, 1e-4)
    if np.abs(found - right).max() <= tolerance * scale:
        return None
    worst = int(np.argmax(np.abs(found - right)))
    what = (
        f"it reads {found[worst]:.6g} where one device has {right[worst]:.6g} "
        f"({evidence.layouts[worst]})"
    )
    for row in evidence.rows:
        said = np.array([float(evidence.predicted(row, p) @ each) for p in range(len(found))])
        if np.abs(found - said).max() <= tolerance * scale:
            return f"{what}: {row.name}"
    return what
