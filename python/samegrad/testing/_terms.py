"""Example-independent terms: regularisation and auxiliary losses."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from samegrad._base.mistakes import counted_regularization
from samegrad.testing._layouts import Layout, layout, uneven_sizes
from samegrad.testing._mistake import Mistake
from samegrad.testing._select import EQUAL, LOOSE, TIE
from samegrad.testing._updates import Vector
from samegrad.testing._weights import Fit

if TYPE_CHECKING:
    from samegrad.testing._evidence import Evidence

# How often a term may count in a layout; once is right.
COUNTS: dict[str, Callable[[Layout], float]] = {
    "once": lambda item: 1.0,
    "once on every replica": lambda item: float(item.replicas),
    "divided by the replicas": lambda item: 1.0 / item.replicas,
    "once in every micro-batch": lambda item: float(item.micro_batches),
    "once in every micro-batch of every replica": lambda item: float(
        item.replicas * item.micro_batches
    ),
    "divided by the micro-batches": lambda item: 1.0 / item.micro_batches,
}
_FLOOR = 1e-3  # relative error of weights beside a term
_MISSED = 0.1  # of how a term's strength differs between layouts


def explain_residuals(evidence: Evidence) -> list[Mistake] | None:
    """The term that no examples explain: one direction, as strong as a count says.

    The update of a single example holds the term once, so that weights c bring it along Σc times
    (once where it is known and taken away); what is left over is (count - Σc) times the term. What
    the term shares with the examples' updates shifts their weights by the same numbers: the shift
    is fitted over all layouts, and must leave the weights of a row of the catalogue. Layouts of a
    part of the batch are among them: a sum over all examples would be one direction too, as long
    as the batch is the same.

    Returns:
        Mistakes that cannot be told apart, none if nothing is wrong; None if it is no term.
    """
    if not _one_direction(evidence.fits):
        return None
    part = _part_of(evidence)
    fits = [*evidence.fits, *part.fits]
    if not _one_direction(fits):
        return None
    residuals = np.stack([fit.residual for fit in fits])
    main = np.linalg.svd(residuals, full_matrices=False)[2][0]
    return _counted(evidence, part, residuals @ main)


def _one_direction(fits: Sequence[Fit]) -> bool:
    strengths = np.linalg.svd(np.stack([fit.residual for fit in fits]), compute_uv=False)
    return len(strengths) < 2 or bool(strengths[1] <= 0.05 * strengths[0])


def _part_of(evidence: Evidence) -> Evidence:
    """Runs on the first examples, as the layouts of all are."""
    kinds = {(item.replicas, item.micro_batches) for item in evidence.layouts}
    count = max(len(evidence.weights) // 2, max(r * k for r, k in kinds))
    if evidence.settings.even:
        equal = math.lcm(*(r * k for r, k in kinds))
        count = max(1, count // equal) * equal
    layouts = []
    for r, k in sorted(kinds):
        sizes = [count // r] * r if evidence.settings.even else uneven_sizes(count, r)
        if min(sizes) >= k and count < len(evidence.weights):
            layouts.append(layout(sizes, k))
    fits = [evidence.basis.fit(evidence.run(item)) for item in layouts]
    return replace(evidence, layouts=layouts, fits=fits, weights=evidence.weights[:count])


def _said(evidence: Evidence, part: Evidence, row: Mistake | None) -> list[Vector]:
    """The weights in all layouts, 0 for examples that are not in a part."""
    rest = np.zeros(len(evidence.weights) - len(part.weights))
    return [
        np.concatenate([own.right(p) if row is None else own.predicted(row, p), more])
        for own, more in ((evidence, np.zeros(0)), (part, rest))
        for p in range(len(own.fits))
    ]


def _counted(evidence: Evidence, part: Evidence, amplitudes: Vector) -> list[Mistake] | None:
    layouts = [*evidence.layouts, *part.layouts]
    weights = np.stack([fit.weights for fit in (*evidence.fits, *part.fits)])
    counts = _counts(layouts)
    found: list[tuple[float, str, Mistake | None]] = []
    for row in (None, *evidence.rows):
        said = np.stack(_said(evidence, part, row))
        held = np.array([evidence.held(w) for w in said])
        for name, own in counts:
            left = own - held
            if not _as_strong(amplitudes, left):
                continue
            shift = left @ (weights - said) / (left @ left)
            error = np.abs(weights - said - np.outer(left, shift)).max()
            found.append((float(error / np.abs(evidence.right(0)).max()), name, row))
    most = LOOSE * evidence.tolerance + _FLOOR
    best = min((error for error, *_ in found), default=np.inf)
    if best > most:
        return None
    alike = [item for item in found if item[0] <= best + TIE * evidence.tolerance + EQUAL]
    if alike[0][1:] == ("once", None) or (
        not evidence.given and any(_is_of_one_device(evidence, row, name) for _, name, row in alike)
    ):
        return []
    return list({(made := with_term(name, row)).name: made for _, name, row in alike}.values())


def _is_of_one_device(evidence: Evidence, row: Mistake | None, name: str) -> bool:
    """Whether one device does the same, which is right where it says what examples weigh."""
    places = range(len(evidence.layouts))
    own = {COUNTS[name](item) for item in evidence.layouts}
    if row is None or len(own) > 1:
        return False
    said = np.stack([evidence.predicted(row, p) for p in places])
    return bool(np.abs(said - said[0]).max() < EQUAL)


def _counts(layouts: Sequence[Layout]) -> list[tuple[str, Vector]]:
    """How often the term may count in each layout; of names that say the same here the first."""
    found: list[tuple[str, Vector]] = []
    for name, count in COUNTS.items():
        own = np.array([count(item) for item in layouts])
        if not any(np.array_equal(own, known) for _, known in found):
            found.append((name, own))
    return found


def _as_strong(amplitudes: Vector, left: Vector) -> bool:
    """Whether the term is as strong as a count says, also in how layouts differ.

    One amplitude for all layouts would fit any count.
    """
    if np.ptp(left) < EQUAL:
        return False
    said = (amplitudes @ left) / (left @ left) * left
    missed = float(np.linalg.norm(amplitudes - said))
    return missed <= _MISSED * float(np.linalg.norm(said - said[0]))


def with_term(count: str, row: Mistake | None) -> Mistake:
    """The mistake of a term that counts so, and of a row for the data."""
    if row is not None and count == "once":
        more = "a regularisation or auxiliary term counts once, as it should"
        return replace(row, sentence=f"{row.sentence} ({more})")
    data = "" if row is None else f"; and the data: {row.name}"
    words = counted_regularization(count, data, "" if row is None else row.fix)
    return Mistake(*words, remedy="term")


__all__ = ["COUNTS", "explain_residuals", "with_term"]
