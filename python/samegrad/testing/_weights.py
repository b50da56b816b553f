"""The effective weight of every example in an update."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from samegrad.testing._batches import StepError
from samegrad.testing._updates import Recorded, Vector


@dataclass(frozen=True)
class Fit:
    """An update as a sum of the examples' own updates.

    Args:
        weights: One per example.
        residual: What no weights explain.
        scale: The norm of the update.
    """

    weights: Vector
    residual: Vector
    scale: float

    @property
    def unexplained(self) -> float:
        """The norm of the residual, relative to the update's."""
        return float(np.linalg.norm(self.residual)) / max(self.scale, 1e-300)


def independent(singles: list[Recorded], least: float = 1e-3) -> list[int]:
    """Numbers of examples whose updates do not depend on each other, the most different first.

    Args:
        singles: One run per example.
        least: How much of an update the others must not explain.
    """
    left = np.stack([single.sketch for single in singles])
    norms = np.linalg.norm(left, axis=1)
    usable = np.isfinite(norms) & (norms > 0)
    left = np.where(usable[:, None], left / np.where(usable, norms, 1.0)[:, None], 0.0)
    chosen: list[int] = []
    for _ in singles:
        lengths = np.linalg.norm(left, axis=1)
        best = int(np.argmax(lengths))
        if lengths[best] < least:
            break
        chosen.append(best)
        direction = left[best] / lengths[best]
        left = left - np.outer(left @ direction, direction)
    return sorted(chosen)


class Basis:
    """The updates of single examples, in which all others are expressed.

    Args:
        singles: One run per example.

    Raises:
        StepError: The updates of some examples depend on each other, so that their weights cannot
            be told apart.
    """

    def __init__(self, singles: list[Recorded], parameters: int) -> None:
        rows = np.stack([single.sketch for single in singles])
        if not np.isfinite(rows).all():
            bad = int(np.flatnonzero(~np.isfinite(rows).all(axis=1))[0])
            raise StepError(
                f"[step] the update of example {bad} alone is no number; the step must work on one "
                "example (no statistics over a batch), and the data must be finite."
            )
        norms = np.linalg.norm(rows, axis=1)
        if (norms == 0).any():
            bad = int(np.flatnonzero(norms == 0)[0])
            raise StepError(
                f"[step] example {bad} alone changes nothing, so that its weight cannot be seen: "
                "use data with a loss above 0, and parameters that are not at a minimum."
            )
        self._norms = norms
        unit = rows / norms[:, None]
        values = np.linalg.svd(unit, compute_uv=False)
        self.condition = float(values[0] / max(values[-1], 1e-300))
        if self.condition > 1e7:
            raise StepError(
                f"[step] the updates of {len(singles)} examples depend on each other: got "
                f"{parameters} parameters; use at least {len(singles)} parameters that see the "
                "examples differently, fewer examples, or different ones."
            )
        self._inverse = np.linalg.pinv(unit.T)
        self._unit = unit
        # How much noise in a number of the sketch moves each weight.
        self.gain = np.linalg.norm(self._inverse, axis=1) / norms

    def fit(self, run: Recorded) -> Fit:
        """The weights of the examples in an update (least squares in float64)."""
        scaled = self._inverse @ run.sketch
        residual = run.sketch - self._unit.T @ scaled
        return Fit(scaled / self._norms, residual, float(np.linalg.norm(run.sketch)))
