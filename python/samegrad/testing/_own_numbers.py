"""Numbers that a replica has for itself, and all its examples share: a random factor, say.

The weights of the examples may be right then, but what an example does depends on which replica
has it: with x_i = 1 where the first of two replicas has example i, an update is
Σ w_i (x_i g_i + (1 - x_i) h_i) with unknown g_i and h_i. More layouts than unknowns refute it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from samegrad.testing._catalogue import Mistake
from samegrad.testing._catalogue._nonweight import OWN_NUMBERS
from samegrad.testing._layouts import Layout
from samegrad.testing._probes import PROBED, SPARE, outside, probe_layouts

if TYPE_CHECKING:
    from samegrad.testing._evidence import Evidence


def explain_own_numbers(evidence: Evidence) -> Mistake | None:
    """The mistake, where updates depend on who has an example, and on nothing else.

    Args:
        evidence: Of updates that no weights of the examples explain.
    """
    settings = evidence.settings
    several = [count for count in settings.replicas if count > 1]
    count = min(PROBED, len(evidence.weights))
    if not several or 1 not in settings.micro_batches or count <= min(several):
        return None
    replicas = min(several)
    layouts = _layouts(count, replicas, settings.even)
    updates = np.stack([evidence.run(item).sketch for item in layouts])
    used = len(layouts[0].examples)
    probe = replace(evidence, layouts=layouts, weights=evidence.weights[:used])
    right = np.stack([probe.right(place) for place in range(len(layouts))])
    limit = (3 * evidence.fits[0].unexplained + 1e-4) * float(np.linalg.norm(updates))
    own = np.concatenate([right * _had_by(r, layouts) for r in range(replicas)], axis=1)
    error, rank = outside(updates, own)
    differ = outside(updates, right)[0] > 3 * limit
    return OWN_NUMBERS if differ and error <= limit and rank <= len(layouts) - 4 else None


def _layouts(count: int, replicas: int, even: bool) -> list[Layout]:
    """Splits in turning orders, more of them than there are unknowns."""
    number = replicas * count + SPARE
    if not even:
        return probe_layouts(count, (replicas,), (1,), number)
    size, rng = count // replicas, np.random.default_rng(0)
    orders = [rng.permutation(size * replicas).reshape(replicas, size) for _ in range(number)]
    return [Layout(tuple((tuple(map(int, row)),) for row in order)) for order in orders]


def _had_by(replica: int, layouts: list[Layout]) -> np.ndarray:
    """1 where the replica has the example, 0 elsewhere: a row per layout."""
    had = np.zeros((len(layouts), len(layouts[0].examples)))
    for row, item in zip(had, layouts, strict=True):
        row[[i for part in item.parts[replica] for i in part]] = 1.0
    return had


__all__ = ["explain_own_numbers"]
