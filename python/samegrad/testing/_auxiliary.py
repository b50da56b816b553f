"""Terms that belong to no example: regularisation and auxiliary losses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from samegrad.testing._catalogue import Mistake
from samegrad.testing._layouts import Layout
from samegrad.testing._updates import Vector

if TYPE_CHECKING:
    from samegrad.testing._diagnose import Evidence

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


@dataclass(frozen=True)
class Explained:
    """What is left over is a term that belongs to no example.

    Args:
        mistake: What is wrong with it or with the weights of the examples; None if nothing is.
    """

    mistake: Mistake | None


def explain_residuals(evidence: Evidence, given: bool) -> Explained | None:
    """The term that no examples explain: one direction, as strong as a count says.

    The update of a single example holds the term once, so that weights c bring it along Σc times;
    what is left over is (count - Σc) times the term. What the term shares with the examples'
    updates shifts their weights by the same numbers: the shift is fitted over all layouts, and
    must leave the weights of a row of the catalogue. Where a fixed number divides, one device
    already leaves something over, and its weights are shifted too.
    """
    residuals = np.stack([fit.residual for fit in evidence.fits])
    _, strengths, directions = np.linalg.svd(residuals, full_matrices=False)
    if len(strengths) > 1 and strengths[1] > 0.05 * strengths[0]:
        return None
    amplitudes = residuals @ directions[0]
    found = _counted(evidence, amplitudes)
    if found is None and not evidence.fixed:
        weights = evidence.weights if given else np.ones_like(evidence.weights)
        found = _counted(replace(evidence, fixed=True, weights=weights), amplitudes)
    return found


def _counted(evidence: Evidence, amplitudes: Vector) -> Explained | None:
    found: list[tuple[float, str, Mistake | None]] = []
    for row in (None, *evidence.rows):
        said = [
            evidence.right(p) if row is None else evidence.predicted(row, p)
            for p in range(len(evidence.fits))
        ]
        for name, count in COUNTS.items():
            own = [count(item) for item in evidence.layouts]
            left = np.array([n - weights.sum() for n, weights in zip(own, said, strict=True)])
            if np.abs(left).max() < 1e-9 or _cosine(amplitudes, left) < 0.999:
                continue
            found.append((_error_with_shift(evidence, left, said), name, row))
    best = min((error for error, *_ in found), default=np.inf)
    if best > 3 * evidence.tolerance + 1e-3:
        return None
    alike = (item for item in found if item[0] <= best + 0.1 * evidence.tolerance + 1e-6)
    _, name, row = next(alike)
    return Explained(None if name == "once" and row is None else _mistake(name, row))


def _cosine(a: np.ndarray, b: np.ndarray) -> float:
    return float(abs(a @ b) / (np.linalg.norm(a) * np.linalg.norm(b)))


def _error_with_shift(evidence: Evidence, left: np.ndarray, said: list[np.ndarray]) -> float:
    found = np.stack([fit.weights - w for fit, w in zip(evidence.fits, said, strict=True)])
    shift = left @ found / (left @ left)
    return float(np.abs(found - np.outer(left, shift)).max() / np.abs(evidence.right(0)).max())


def _mistake(count: str, row: Mistake | None) -> Mistake:
    if row is not None and count == "once":
        more = "a regularisation or auxiliary term counts once, as it should"
        return replace(row, sentence=f"{row.sentence} ({more})")
    data = "" if row is None else f"; and the data: {row.name}"
    return Mistake(
        f"regularisation counts {count}{data}",
        "a term that belongs to no example (regularisation, an auxiliary loss) counts "
        f"{count}, where one device has it once{_ALSO.get(count, '')}",
        "β ∇Ω with β other than 1",
        "divide it by the number of replicas on each of them: nn.scale_regularization_loss(losses)"
        + ("" if row is None else f"; {row.fix}"),
    )


# What gives the same update, and cannot be told apart from it.
_ALSO = {
    "once on every replica": "; each replica adds it, or a blanket factor of the world size hits "
    "it that is meant for the data",
    "divided by the replicas": "; it is averaged over replicas though only one adds it, or is "
    "scaled twice",
}


__all__ = ["Explained", "explain_residuals"]
