"""Terms that belong to no example: regularisation and auxiliary losses."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from samegrad.testing._catalogue import Mistake
from samegrad.testing._layouts import Layout, layout

if TYPE_CHECKING:
    from samegrad.testing._diagnose import Evidence

# How often a term may count in a layout; once is right.
_COUNTS: dict[str, Callable[[Layout], float]] = {
    "once": lambda item: 1.0,
    "once on every replica": lambda item: float(item.replicas),
    "divided by the replicas": lambda item: 1.0 / item.replicas,
    "once in every micro-batch": lambda item: float(item.micro_batches),
    "once in every micro-batch of every replica": lambda item: float(
        item.replicas * item.micro_batches
    ),
    "divided by the micro-batches": lambda item: 1.0 / item.micro_batches,
}


def explain_residuals(evidence: Evidence) -> list[Mistake]:
    """The term that no examples explain: one direction, as strong as a count says.

    Several counts are returned where the layouts cannot tell them apart.

    The update of a single example holds the term once, so that weights c bring it along Σc times
    (once where it is known and taken away); what is left over is (count - Σc) times the term.
    What the term shares with the examples' updates shifts their weights by the same numbers: the
    shift is fitted over all layouts, and must leave the weights of a row of the catalogue.
    """
    residuals = np.stack([fit.residual for fit in evidence.fits])
    _, strengths, directions = np.linalg.svd(residuals, full_matrices=False)
    if len(strengths) > 1 and strengths[1] > 0.05 * strengths[0]:
        return []
    amplitudes = residuals @ directions[0]
    found: list[tuple[float, str, Mistake | None]] = []
    for row in (None, *evidence.rows):
        said = [
            evidence.right(p) if row is None else evidence.predicted(row, p)
            for p in range(len(evidence.fits))
        ]
        for name, own in _counts(evidence.layouts):
            left = np.array([n - evidence.held(w) for n, w in zip(own, said, strict=True)])
            if np.abs(left).max() < 1e-9 or _cosine(amplitudes, left) < 0.999:
                continue
            found.append((_error_with_shift(evidence, left, said), name, row))
    most = 3 * evidence.tolerance + 1e-3
    error = min((item[0] for item in found), default=np.inf)
    if error > most:
        return []
    alike = [item[1:] for item in found if item[0] <= max(2 * error, 0.1 * most)]
    # A factor on the data is one on the term, if the mean of the examples is taken for the term.
    of_term = [item for item in alike if item[1] is None]
    if of_term and len(of_term) < len(alike):
        alike = of_term if _term_changes(evidence) else [i for i in alike if i not in of_term]
    return [_mistake(name, row) for name, row in alike]


def _term_changes(evidence: Evidence) -> bool:
    """Whether replicas change the update by the same, whichever examples they have."""
    first = evidence.runs[0].sketch
    changes = [float(np.linalg.norm(run.sketch - first)) for run in evidence.runs]
    place = int(np.argmax(changes))
    item = evidence.layouts[place]
    parts = item.replicas * item.micro_batches
    count = parts * max(1, len(evidence.weights) // 2 // parts)
    recorder = evidence.device.recorder
    some = recorder.run(layout([count // item.replicas] * item.replicas, item.micro_batches)).sketch
    change = some - recorder.run(layout([count])).sketch
    same = np.linalg.norm(change - (evidence.runs[place].sketch - first))
    return bool(same <= 0.1 * changes[place])


def _counts(layouts: list[Layout]) -> list[tuple[str, list[float]]]:
    """How often the term may count in each layout; of names that say the same here the first."""
    found: list[tuple[str, list[float]]] = []
    for name, count in _COUNTS.items():
        own = [count(item) for item in layouts]
        if own not in [known for _, known in found]:
            found.append((name, own))
    return found


def _cosine(a: np.ndarray, b: np.ndarray) -> float:
    return float(abs(a @ b) / (np.linalg.norm(a) * np.linalg.norm(b)))


def _error_with_shift(evidence: Evidence, left: np.ndarray, said: list[np.ndarray]) -> float:
    found = np.stack([fit.weights - w for fit, w in zip(evidence.fits, said, strict=True)])
    shift = left @ found / (left @ left)
    return float(np.abs(found - np.outer(left, shift)).max() / np.abs(evidence.right(0)).max())


def _mistake(count: str, row: Mistake | None) -> Mistake:
    if row is not None and count == "once":
        return Mistake(
            row.name,
            f"{row.sentence} (a regularisation or auxiliary term counts once, as it should)",
            row.formula,
            row.fix,
            row.predict,
        )
    data = "" if row is None else f"; and the data: {row.name}"
    return counted_regularization(count, data, row)


def counted_regularization(count: str, data: str = "", row: Mistake | None = None) -> Mistake:
    """The row of a term that belongs to no example and counts wrongly."""
    return Mistake(
        f"regularisation counts {count}{data}",
        "a term that belongs to no example (regularisation, an auxiliary loss) counts "
        f"{count}, where one device has it once",
        "β ∇Ω with β other than 1",
        "divide it by the number of replicas on each of them: nn.scale_regularization_loss(losses)"
        + ("" if row is None else f"; {row.fix}"),
        lambda s: s.right,
    )


__all__ = ["explain_residuals"]
