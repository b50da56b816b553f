"""Rows of the catalogue with factors: powers of the numbers of replicas and micro-batches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from samegrad.testing._catalogue import CATALOGUE, Mistake
from samegrad.testing._layouts import Layout
from samegrad.testing._updates import Vector

if TYPE_CHECKING:
    from samegrad.testing._evidence import Evidence

Powers = tuple[float, float]

# (power of R, power of K), the simple ones first.
_POWERS: tuple[Powers, ...] = (
    (0, 0), (-1, 0), (1, 0), (0, -1), (0, 1), (-1, -1), (1, 1), (1, -1), (-1, 1), (-2, 0), (2, 0),
    (0, -2), (0, 2), (0.5, 0), (-0.5, 0), (-2, -1), (-1, -2), (-2, -2), (2, 1), (1, 2),
)  # fmt: skip
_ALONE: dict[Powers, str] = {
    (-1, 0): "share of the global batch, then mean",
    (1, 0): "multiplied by the replicas",
    (0, -1): "micro-batches are divided twice",
    (0, 1): "multiplied by the micro-batches",
}
UNNAMED = "a factor on the whole update"
_TIMES = {1: "", 2: " twice", 0.5: " (their square root)"}


def _words(power: float, what: str) -> list[str]:
    if power == 0:
        return []
    return [f"{'multiplied' if power > 0 else 'divided'} by the {what}{_TIMES[abs(power)]}"]


def phrase(powers: Powers) -> str:
    """The powers in words."""
    both = _words(powers[0], "replicas") + _words(powers[1], "micro-batches")
    return ", and ".join(both)


def factor(powers: Powers, item: Layout) -> float:
    """R^a K^b."""
    return float(item.replicas ** powers[0] * item.micro_batches ** powers[1])


def find_factor(factors: Vector, layouts: Sequence[Layout], tolerance: float) -> Powers | None:
    """The powers that one number per layout shows, the simple ones first."""
    for powers in _POWERS:
        said = np.array([factor(powers, item) for item in layouts])
        if np.abs(factors / said - 1).max() <= tolerance:
            return powers
    return None


def explain_whole(factors: Vector, layouts: Sequence[Layout], tolerance: float) -> Mistake:
    """One factor on all examples, for each layout."""
    powers = find_factor(factors, layouts, tolerance)
    rows = {row.name: row for row in CATALOGUE}
    if powers in _ALONE:
        return rows[_ALONE[powers]]
    if powers is not None and all(abs(power) == 1 for power in powers):
        pair = [rows[_ALONE[one]] for one in ((powers[0], 0), (0, powers[1]))]
        return _joined(pair[0], f"{pair[0].name}; and {pair[1].name}", pair[1].sentence)
    if powers is not None and powers != (0, 0):
        name = f"the whole update is {phrase(powers)}"
        return _whole(name, f"all examples are {phrase(powers)}")
    several = np.array([item.replicas > 1 or item.micro_batches > 1 for item in layouts])
    spread = float(np.ptp(factors[several])) if several.any() else np.inf
    if (
        powers is None
        and spread <= tolerance * np.abs(factors).max()
        and abs(factors[0] - 1) <= tolerance
    ):
        value = float(factors[several].mean())
        return _whole(
            f"a constant divides instead of the count: a factor of {value:.4g}",
            f"wherever several replicas run, all is multiplied by {value:.4g}, as a batch size or "
            "a world size does that is not that of this step (a short batch)",
        )
    names = ", ".join(
        f"{value:.4g} for {item}" for value, item in list(zip(factors, layouts, strict=True))[:4]
    )
    return _whole(UNNAMED, f"all examples are scaled alike: {names}")


def _whole(name: str, sentence: str) -> Mistake:
    return Mistake(
        name,
        sentence,
        "f w_i / W  instead of  w_i / W",
        "look for a division or multiplication by a size of another run (a world size kept from "
        "before, a number of devices, a configured batch size)",
    )


def _joined(row: Mistake, name: str, more: str) -> Mistake:
    return replace(row, name=name, sentence=f"{row.sentence}; besides, {more}")


def explain_with_factor(evidence: Evidence) -> tuple[Mistake | None, float]:
    """A row of the catalogue with powers of R and K, or else with a number of its own.

    Returns:
        The row, and the error of its weights.
    """
    found = _with_powers(evidence)
    return found if found[0] is not None else _with_constant(evidence)


def _with_powers(evidence: Evidence) -> tuple[Mistake | None, float]:
    for powers in _POWERS[1:]:
        factors = [factor(powers, item) for item in evidence.layouts]
        errors = [
            evidence.error(lambda p, row=row: evidence.predicted(row, p) * factors[p])  # type: ignore[misc]  # noqa: B023
            for row in evidence.rows
        ]
        best = int(np.argmin(errors))
        if errors[best] <= evidence.tolerance:
            row = evidence.rows[best]
            name = f"{row.name}; and all is {phrase(powers)}"
            return _joined(row, name, f"all is {phrase(powers)}"), errors[best]
    return None, np.inf


def _with_constant(evidence: Evidence) -> tuple[Mistake | None, float]:
    several = [
        p for p, item in enumerate(evidence.layouts) if item.replicas > 1 or item.micro_batches > 1
    ]
    found: list[tuple[float, int, float]] = []
    for place, row in enumerate(evidence.rows):
        said = np.concatenate([evidence.predicted(row, p) for p in several])
        weights = np.concatenate([evidence.fits[p].weights for p in several])
        value = float(said @ weights / (said @ said)) if said.any() else 0.0
        scale = max(float(np.abs(said * value).max()), 1e-300)
        found.append((float(np.abs(weights - value * said).max()) / scale, place, value))
    best = min(found, default=(np.inf, 0, 0.0))[0]
    if best > 2 * evidence.tolerance:
        return None, best
    error, place, value = next(item for item in found if item[0] <= best + 1e-9)
    row = evidence.rows[place]
    more = f"all is multiplied by {value:.4g}, such as by a size of another run"
    return _joined(row, f"{row.name}, and a factor of {value:.4g}", more), error
