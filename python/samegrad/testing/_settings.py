"""What `diagnose` is asked to try."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from samegrad.testing._batches import StepError
from samegrad.testing._one_device import ENOUGH


@dataclass(frozen=True)
class Settings:
    """Arguments of `diagnose`."""

    weights: Sequence[float] | None
    replicas: Sequence[int]
    micro_batches: Sequence[int]
    examples: int
    even: bool
    seed: int

    def check(self, rows: int) -> None:
        """Whether all of this can be tried on so many examples.

        Raises:
            StepError: It cannot.
        """
        for name in ("replicas", "micro_batches"):
            counts = tuple(getattr(self, name))
            if not counts or any(n != int(n) or n < 1 for n in counts):
                raise StepError(f"[diagnose] {name} must be counts of at least 1: got {counts}.")
        if min(rows, self.examples) < 3:
            raise StepError(
                f"[diagnose] at least 3 examples are needed: got a batch of {rows}, and "
                f"examples={self.examples}."
            )
        if self.weights is None:
            return
        weights = np.asarray(self.weights, dtype=np.float64)
        if weights.shape != (rows,) or not (np.isfinite(weights) & (weights > 0)).all():
            raise StepError(
                f"[diagnose] weights must be one positive number for each of the {rows} examples: "
                f"got shape {weights.shape}, from {np.min(weights, initial=np.inf):g}; leave out "
                "examples without weight."
            )

    def usable(self, count: int) -> int:
        """How many of so many examples the layouts can take.

        Where uneven shares are taken, a little fewer, so that shares cannot be even: that hides
        mistakes.
        """
        if self.even:
            return self._even(count)
        for fewer in range(count, max(ENOUGH, count - 4) - 1, -1):
            if all(fewer % r for r in self.replicas if r > 1):
                return fewer
        return count

    def _even(self, count: int) -> int:
        whole = math.lcm(*(r * k for r in self.replicas for k in self.micro_batches))
        if count < max(whole, 3):
            raise StepError(
                f"[diagnose] even shares for replicas={tuple(self.replicas)} and micro_batches="
                f"{tuple(self.micro_batches)} take a multiple of {whole} independent examples: got "
                f"{count}; use more examples, or fewer replicas."
            )
        return count // whole * whole


__all__ = ["Settings"]
