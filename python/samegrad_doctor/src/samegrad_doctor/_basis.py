"""The updates of single examples, of which others are sums; a term that is in each; noise."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from samegrad_doctor._layouts import StepError
from samegrad_doctor._updates import Recorded, Vector

FLOOR = 1e-5  # relative; what float32 leaves that no run of one device shows
SAME = 1e-3  # relative; numbers of updates that differ by less are one
EXACT = 1e-4  # relative; what losses in float32, or differences of three updates, may be off
BEND = 1e-2  # relative; what a bend of the loss changes of weights and moments
NO_SUM = 0.02  # of the update of the whole batch, which no weights of examples explain
TELLING = 0.2  # of what a cause explains, above which noise hides the cause
_SPARE = 10  # numbers beyond the weights that tell how noisy an update is


class Fit:
    """An update as a sum of the examples' own: weights, what they leave, and its size.

    Least squares in float64 express it in a basis.
    `amount` is the norm of all updates that it is made of, as independent noise adds up.
    """

    def __init__(self, basis: Basis, update: Vector) -> None:
        scaled = basis.inverse @ update
        self.weights: Vector = scaled / basis.norms
        self.residual: Vector = update - basis.unit.T @ scaled
        self.scale = max(float(np.linalg.norm(update)), 1e-300)
        self.amount = float(np.hypot(self.scale, np.linalg.norm(scaled)))


class DependentError(StepError):
    """The updates of single examples depend on each other."""


class Basis:
    """The updates of single examples, in which all others are expressed.

    Raises:
        StepError: An update is 0 or not finite. DependentError: The updates of some examples
            depend on each other, so that their weights cannot be told apart.
    """

    def __init__(self, singles: list[Recorded], parameters: int) -> None:
        rows = checked_rows(singles)
        self.norms = np.linalg.norm(rows, axis=1)
        self.unit = rows / self.norms[:, None]
        _, values, self.directions = np.linalg.svd(self.unit, full_matrices=False)
        if values[0] > 1e7 * max(values[-1], 1e-300):
            raise DependentError(
                f"[step] the updates of {len(singles)} examples depend on each other: got "
                f"{parameters} parameters; use at least {len(singles)} parameters that see the "
                "examples differently, fewer examples, or different ones."
            )
        self.inverse = np.linalg.pinv(self.unit.T)
        # How much noise in a number of the sketch moves each weight.
        self.gain = np.linalg.norm(self.inverse, axis=1) / self.norms
        # Numbers of the sketch that are left to show noise.
        self.spare = max(0, int((rows != 0).any(axis=0).sum()) - len(rows))


def checked_rows(singles: list[Recorded]) -> Vector:
    """The updates of single examples, or StepError where one is not finite, or 0."""
    rows = np.stack([single.sketch for single in singles])
    if not (finite := np.isfinite(rows).all(axis=1)).all():
        raise StepError(
            f"[step] the update of example {int(np.argmin(finite))} alone is not finite; the step "
            "must work on one example (no statistics over a batch), and the data must be finite."
        )
    if not (moves := rows.any(axis=1)).all():
        raise StepError(
            f"[step] example {int(np.argmin(moves))} alone changes nothing, so that its weight "
            "cannot be seen: use data with a loss above 0, and parameters that are not at a "
            "minimum."
        )
    return rows


def independent(singles: list[Recorded], enough: int) -> list[int]:
    """Numbers of examples whose updates do not depend on each other, the most different ones.

    `enough` are taken where few parameters leave little to see noise by.
    """
    left = np.stack([single.sketch for single in singles])
    norms = np.linalg.norm(left, axis=1)
    usable = np.isfinite(norms) & (norms > 0)
    left = np.where(usable[:, None], left / np.where(usable, norms, 1.0)[:, None], 0.0)
    chosen: list[int] = []
    alive = int((left != 0).any(axis=0).sum())
    for _ in range(min(len(singles), max(enough, alive - _SPARE))):
        lengths = np.linalg.norm(left, axis=1)
        best = int(np.argmax(lengths))
        if lengths[best] < SAME:
            break
        chosen.append(best)
        direction = left[best] / lengths[best]
        left = left - np.outer(left @ direction, direction)
    return sorted(chosen)


@dataclass(frozen=True)
class Noise:
    """Noise level of updates: the one measure for equality and for explanations.

    A run's noise is taken to grow with its update and with those of the single examples, in which
    it is expressed, and to be alike in all numbers of the sketch. NOISE.md of the package derives
    the limit.

    Args:
        level: Standard deviation of a number of the sketch, relative to the updates.
        measured: How many numbers tell the level.
    """

    level: float
    measured: int

    @property
    def factor(self) -> float:
        """Deviations that one number may be off: many where few numbers tell the level."""
        return deviations(self.measured)

    def limit(self, numbers: int) -> float:
        """The norm of so many numbers of noise at most, relative to what the updates are made of.

        Twice what one device leaves, since every replica also rounds its shard.
        """
        return FLOOR + 2 * self.level * float(np.sqrt(numbers) + self.factor)


@lru_cache(maxsize=64)
def deviations(spare: int, chance: float = 1e-7) -> float:
    """The two-sided quantile of Student's t, for a level that so many numbers tell.

    With t = √n cot φ its tail is ∫₀^φ sin^(n-1) / ∫₀^(π/2) sin^(n-1).

    Example:
        >>> [round(deviations(n), 1) for n in (1000, 10)]
        [5.4, 13.4]
    """
    angles = np.geomspace(1e-9, np.pi / 2, 20_000)
    density = np.sin(angles) ** (spare - 1)
    areas = np.concatenate([[angles[0] * density[0] / spare], np.diff(angles)])
    areas[1:] *= (density[1:] + density[:-1]) / 2
    tail = np.cumsum(areas)
    return float(np.sqrt(spare) / np.tan(np.interp(chance, tail / tail[-1], angles)))
