"""A sum whose weights drown in noise: whole updates may still tell the mistakes apart.

One example of a tiny gradient makes the weights of all inexact, though it hardly moves an update.
So updates are compared instead: a mistake says by how much a layout's update differs from that of
one device, and what is seen of that difference is noise if no mistake explains it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from samegrad.testing._mistake import Mistake
from samegrad.testing._one_device import NO_SUM
from samegrad.testing._select import EQUAL
from samegrad.testing._updates import Vector

if TYPE_CHECKING:
    from samegrad.testing._evidence import Evidence

_CLEAR = 2  # times its noise: at least 3/4 of what is said is no noise then
_SURE = 15  # standard deviations
_FAR = 4  # times less is left by a mistake than by what is right
_NOT = 0.35  # times what is said: neither 0 nor 3/4, by far


class Updates:
    """What is seen of updates less that of one device, and what a mistake says of it."""

    def __init__(self, evidence: Evidence) -> None:
        one = evidence.runs[0]
        self.evidence = evidence
        self.seen = [run.sketch - one.sketch for run in evidence.runs]
        self.scales = [float(np.hypot(run.norm, one.norm)) for run in evidence.runs]
        self.gap = self.far(self.seen)
        self.singles = np.stack([single.sketch for single in evidence.singles])
        self.norms = np.array([single.norm for single in evidence.singles])
        places = range(len(evidence.runs))
        said = [
            (row, [evidence.predicted(row, p) - evidence.right(p) for p in places])
            for row in evidence.rows
        ]
        # Others are right on these layouts, of which a note tells.
        self.rows = [
            item for item in said if max(float(np.abs(own).max()) for own in item[1]) > EQUAL
        ]

    def far(self, apart: list[Vector]) -> float:
        """How large differences are, relative to the updates; the largest one counts."""
        sizes = [float(np.linalg.norm(own)) for own in apart]
        return max(size / scale for size, scale in zip(sizes, self.scales, strict=True))

    def right(self) -> list[str] | None:
        """Notes on a right step, or None where updates do not tell that it is right.

        Mistakes of a sampler concern a few examples, which noise may hide; a note names them then.
        A mistake of any other kind must be told from what is right.
        """
        if self.gap > min(self._usual, NO_SUM) or not self._as_given:
            return None
        hidden = [row for row, moved in self.rows if not self._is_refuted(moved)]
        if any(row.remedy != "sampler" for row in hidden):
            return None
        note = (
            f"noise in the updates (relative, {self.evidence.device.noise.level:.1g}) hides the "
            f"weights of single examples; whole updates agree to {self.gap:.1g}"
        )
        names = ", ".join(row.name for row in hidden)
        return [f"{note}, which hides as well: {names}" if hidden else note]

    def mistakes(self) -> list[Mistake]:
        """The rows that explain the updates, far better than that all is right."""
        if not self._as_given:
            return []
        left = [
            (self.far([d - own @ self.singles for d, own in zip(self.seen, moved, strict=True)]), i)
            for i, (_, moved) in enumerate(self.rows)
        ]
        best = min(left, default=(np.inf, 0))[0]
        if best > min(self._usual, NO_SUM, self.gap / _FAR):
            return []
        return [self.rows[i][0] for error, i in left if error <= _CLEAR * best]

    @property
    def _usual(self) -> float:
        """How far noise may move an update, relative."""
        noise = self.evidence.device.noise
        return float(
            noise.factor * noise.level * np.sqrt(np.count_nonzero(self.singles.any(axis=0)))
        )

    @property
    def _as_given(self) -> bool:
        """Whether one device weights the examples as the user says."""
        if not self.evidence.given:
            return True
        one = self.evidence.runs[0].sketch
        own = one - self.evidence.right(0) @ self.singles
        return bool(np.linalg.norm(own) <= self._usual * np.linalg.norm(one))

    def _is_refuted(self, moved: list[Vector]) -> bool:
        """Whether a difference that a mistake says is not seen, on one layout at least."""
        return any(
            _is_refuted(own @ self.singles, d, self.gap * float(np.linalg.norm(own * self.norms)))
            for own, d in zip(moved, self.seen, strict=True)
        )


def _is_refuted(said: Vector, seen: Vector, noise: float) -> bool:
    """Whether a difference that a mistake says is not seen.

    Args:
        said: Times 1 of it is seen if the mistake is made, and times 0 else.
        seen: The difference of two updates.
        noise: The norm of what is noise in `said`.
    """
    size = float(np.linalg.norm(said))
    spread = float(np.linalg.norm(seen)) / np.sqrt(max(int(np.count_nonzero(said)), 1))
    if size <= _CLEAR * noise or size <= _SURE * spread:
        return False
    return abs(float(said @ seen)) <= _NOT * size**2


__all__ = ["Updates"]
