"""Many small layouts: what the weights of one row cannot explain, two rows or a row alone may.

With more layouts than examples, a model `updates = weights @ unknown` can be refuted: the updates
must lie in the column space of the weights that a row says. That needs no update of a single
example, so it also serves steps that work on the batch as a whole.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from samegrad._base.mistakes import part_with as part_words
from samegrad.testing._auxiliary import COUNTS, with_term
from samegrad.testing._catalogue import CATALOGUE, Mistake, Situation
from samegrad.testing._layouts import Layout, uneven_sizes
from samegrad.testing._updates import Recorded, Vector

if TYPE_CHECKING:
    from samegrad.testing._evidence import Evidence

SPARE = 6  # layouts beyond the examples, so that a wrong row is refuted
PROBED = 7  # examples; no multiple of 2 or 3, as even shares hide mistakes


def probe_layouts(
    examples: int, replicas: Sequence[int], micro_batches: Sequence[int], count: int
) -> list[Layout]:
    """Uneven splits of the examples in turning orders."""
    rng = np.random.default_rng(0)
    more = {k + 1 for k in micro_batches if k > 1} - set(micro_batches)
    pairs = [
        (r, k)
        for r in replicas
        for k in (*micro_batches, *more)  # another K tells a factor K from 1 / K
        if (r > 1 or k > 1) and r * k <= examples
    ]
    found = []
    for place in range(count if pairs else 0):
        r, k = pairs[place % len(pairs)]
        sizes = uneven_sizes(examples, r, turn=place)
        if min(sizes) < k:
            sizes = [examples - k * (r - 1)] + [k] * (r - 1)
        order = iter(rng.permutation(examples).tolist())
        shares = []
        for size in sizes:
            own = [next(order) for _ in range(size)]
            cuts = [size * i // k for i in range(k + 1)]
            shares.append(tuple(tuple(own[a:b]) for a, b in itertools.pairwise(cuts)))
        found.append(Layout(tuple(shares)))
    return found


def outside(values: Vector, weights: Vector) -> tuple[float, int]:
    """How much of the values (a row per layout) is in no combination of the weights' columns.

    Returns:
        The norm of what is left, and the rank of the weights.
    """
    left, strengths, _ = np.linalg.svd(weights, full_matrices=False)
    rank = int((strengths > 1e-9 * max(strengths[0], 1e-300)).sum()) if strengths.size else 0
    kept = left[:, :rank]
    return float(np.linalg.norm(values - kept @ (kept.T @ values))), rank


def explain_parts(evidence: Evidence) -> Mistake | None:
    """Two rows, one for each part of the loss or of the parameters.

    Single examples give g_i + p_i, the sum of both parts. If row A holds for one and row B for the
    other, an update is Σ A_i (g_i + p_i) + Σ (B_i - A_i) p_i with unknown p_i.
    """
    count = min(PROBED, len(evidence.weights))
    settings = evidence.settings
    layouts = probe_layouts(count, settings.replicas, settings.micro_batches, count + SPARE)
    if not layouts or settings.even:
        return None
    runs = [evidence.run(item) for item in layouts]
    updates = np.stack([run.sketch for run in runs])
    singles = np.stack([single.sketch for single in evidence.singles[:count]])
    probe = replace(evidence, layouts=layouts, weights=evidence.weights[:count])
    said: list[tuple[Mistake | None, Vector]] = [
        (None, np.stack([probe.right(p) for p in range(len(layouts))]))
    ]
    for row in probe.rows:
        said.append((row, np.stack([probe.predicted(row, p) for p in range(len(layouts))])))
    limit = (3 * evidence.fits[0].unexplained + 1e-4) * float(np.linalg.norm(updates))
    best = _best_pair(said, updates, singles, limit)
    if best is None:
        return None
    first, second = (said[i] for i in best)
    parameters = _splits_parameters(
        runs, evidence.singles[:count], first[1], second[1], limit / np.linalg.norm(updates)
    )
    return _part_with(first[0], second[0], parameters)


def _best_pair(
    said: list[tuple[Mistake | None, Vector]], updates: Vector, singles: Vector, limit: float
) -> tuple[int, int] | None:
    """The pair of the least freedom that explains the updates; the right weights go first."""
    for a, (_, first) in enumerate(said):
        left = updates - first @ singles
        found = []
        for b, (_, second) in enumerate(said):
            if a == b:
                continue
            error, rank = outside(left, second - first)
            if 0 < rank <= len(updates) - 4 and error <= limit:
                found.append((rank, b))
        if found:
            return a, min(found)[1]
    return None


def _splits_parameters(
    runs: Sequence[Recorded],
    singles: Sequence[Recorded],
    first: Vector,
    second: Vector,
    limit: float,
) -> bool:
    """Whether each element of the update follows one of the two rows."""
    updates = np.stack([run.samples for run in runs])
    alone = np.stack([single.samples for single in singles])
    scale = np.max([np.abs(row) @ np.abs(alone) for row in (first, second)], axis=(0, 1)) + 1e-300
    errors = [np.abs(updates - row @ alone).max(axis=0) / scale for row in (first, second)]
    bound = max(1e-3, 10 * limit)
    return bool((np.minimum(*errors) <= bound).all())


def _part_with(first: Mistake | None, second: Mistake | None, parameters: bool) -> Mistake:
    """The mistake of a part that has a row of its own.

    Args:
        first: Of the rest; None if that is right.
        second: Of the part.
        parameters: Whether it is a part of the parameters, not of the loss.
    """
    row = second if second is not None else first
    assert row is not None
    other = None if first is None or second is None else first
    words = part_words(row.words, None if other is None else other.name, parameters)
    return replace(row, **words._asdict())


def explain_whole_batch(
    run: Callable[[Layout], Recorded],
    replicas: Sequence[int],
    micro_batches: Sequence[int],
    near: float,
) -> Mistake | None:
    """A row for a step whose examples depend on the whole batch, which the replicas share.

    A term that belongs to no example is one more unknown update, as often as a count says.
    """
    whole = Layout(((tuple(range(PROBED)),),))
    layouts = [whole, *probe_layouts(PROBED, replicas, micro_batches, PROBED + SPARE)]
    updates = np.stack([run(item).sketch for item in layouts])
    limit = near * float(np.linalg.norm(updates))
    ones = np.ones(PROBED)
    several = any(item.micro_batches > 1 for item in layouts)
    rows = [
        row
        for row in CATALOGUE
        if not row.weighted and not row.empty and (several or not row.micro)
    ]
    right = np.stack([Situation(item, ones).right for item in layouts])
    if outside(updates, right)[0] <= limit:
        return None
    counts = {"": None, **COUNTS}
    for name, count in counts.items():
        more = np.zeros((len(layouts), 0))
        if count is not None:
            more = np.array([[count(item)] for item in layouts])
        found = []
        for place, row in enumerate(rows):
            said = np.stack([row.predict(Situation(item, ones)) for item in layouts])
            error, rank = outside(updates, np.concatenate([said, more], axis=1))
            if rank <= len(layouts) - 4 and error <= limit:
                found.append((rank, place))
        if found:
            row = rows[min(found)[1]]
            return row if name in ("", "once") else with_term(name, row)
        if count is not None and name != "once":
            error, _ = outside(updates, np.concatenate([right, more], axis=1))
            if error <= limit:
                return with_term(name, None)
    return None
