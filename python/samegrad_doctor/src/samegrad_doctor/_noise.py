"""Detection of effects that noise hides, or that are as small as noise."""

from __future__ import annotations

from functools import partial

import numpy as np

from samegrad_doctor._basis import deviations
from samegrad_doctor._hypotheses import COUNTS
from samegrad_doctor._layouts import Layout, StepError, if_taken
from samegrad_doctor._measure import Sums
from samegrad_doctor._select import residual
from samegrad_doctor._updates import Vector

_ALIKE = 0.5  # of what is apart, which another example changes little and noise wholly
_WORST = 2  # layouts that are looked at


def hidden(seen: Sums) -> StepError:
    """Return an error with the remedy for noise that hides the weights."""
    return StepError(
        f"[step] noise in the updates (relative, {seen.noise.level:.1g}) hides the "
        f"weights: they are exact to {seen.detection_limit:.1g} only; use more parameters, "
        "examples that differ more, a smaller constant term, or float64."
    )


def hides_a_term(seen: Sums) -> bool:
    """Return True if most of the differences vary with a count that a term may have."""
    ones = np.ones((len(seen.layouts), 1))
    updates = np.stack([run.sketch for run in seen.runs])
    apart, _ = residual(updates, ones)
    chance = 1 / (len(updates) - 1)  # of the squares one column explains so much of any noise
    counts = ([[count(item)] for item in seen.layouts] for count in COUNTS.values())
    fits = (residual(updates, np.hstack([ones, often])) for often in counts)
    return any(rank > 1 and left**2 < (1 - chance) / 2 * apart**2 for left, rank in fits)


def hides_a_part(seen: Sums) -> bool:
    """Return True if differences within the noise of the examples are not noise.

    A part that is not a sum of the examples is as small as noise. Where one example is another one,
    it stays much the same; what rounding leaves is new in every number.
    """
    apart = [run.sketch - seen.one for run in seen.runs]
    sizes = [float(np.linalg.norm(own)) for own in apart]
    limit = seen.of_wholes.limit(seen.alive) * seen.fits[0].amount
    t = deviations(max(seen.alive, 2))
    least = max(_ALIKE, t / float(np.hypot(t, np.sqrt(seen.alive))))
    for place in np.argsort(sizes)[: -_WORST - 1 : -1]:
        if sizes[place] <= limit:
            return False
        other = if_taken(partial(_apart, seen, _with_another(seen.layouts[place])), None)
        if other is None:
            return False
        if apart[place] @ other > least * sizes[place] * np.linalg.norm(other):
            return True
    return False


def _apart(seen: Sums, item: Layout) -> Vector:
    """Return the difference of a layout's update from that of one device."""
    return np.asarray(seen.run(item).sketch - seen.alone(item.examples).sketch)


def _with_another(item: Layout) -> Layout:
    """The layout with an example of another part in place of the last one of the largest part."""
    _, r, k = max(
        (len(part), r, k) for r, own in enumerate(item.parts) for k, part in enumerate(own)
    )
    largest = item.parts[r][k]
    other = next((i for i in item.examples if i not in largest), largest[0])
    parts = [list(own) for own in item.parts]
    parts[r][k] = (*largest[:-1], other)
    return Layout(tuple(map(tuple, parts)))
