"""Hypotheses with unknowns: what no row explains by itself, a row and a term or two rows may.

An update is a sum of updates that were seen (of single examples, of shares), as often as a row
says, and of unknown vectors (a term, each example's part of another loss), as often as a row or a
count says. With more layouts than unknowns that can be refuted: whatever is in no combination of
the unknown vectors must be noise.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from samegrad_doctor import _catalogue as rows
from samegrad_doctor._basis import SAME, Noise
from samegrad_doctor._catalogue import FailureMode
from samegrad_doctor._layouts import Groups, Layout, layout, of_parts, of_shares, of_windows
from samegrad_doctor._measure import Runs, Sums
from samegrad_doctor._select import EQUAL, Frame, Hypothesis, residual, simplest
from samegrad_doctor._updates import Recorded, Vector


def _by(groups: Groups, a: int = 0, b: int = 0) -> Callable[[Layout], float]:
    """Return the factor of a term that each group divides by its examples, times R^a K^b."""

    def count(item: Layout) -> float:
        each = sum(1 / len(group) for group in groups(item) if group)
        return float(each * item.replicas**a * item.micro_batches**b)

    return count


# How often a term may count that examples divide, on one device as well; the first is right.
DIVIDED: dict[str, Callable[[Layout], float]] = {
    "once, divided by all examples": lambda item: 1 / len(item.examples),
    "divided by the examples of each replica, then averaged": _by(of_shares, -1),
    "divided by the examples of each replica, then added": _by(of_shares),
    "divided by the examples of each micro-batch, then averaged": _by(of_parts, -1, -1),
    "divided by the examples of each micro-batch, then added": _by(of_parts, -1),
    "divided by the examples of each micro-batch of every replica, then added": _by(of_parts),
}
RIGHT_COUNTS = ("once", next(iter(DIVIDED)))
# How often a term may count in a layout.
COUNTS: dict[str, Callable[[Layout], float]] = {
    "once": lambda item: 1.0,
    "once on every replica": lambda item: item.replicas,
    "divided by the replicas": lambda item: 1 / item.replicas,
    "once in every micro-batch": lambda item: item.micro_batches,
    "once in every micro-batch of every replica": lambda item: item.replicas * item.micro_batches,
    "divided by the micro-batches": lambda item: 1 / item.micro_batches,
    **DIVIDED,
}
PROBED = 7  # examples; no multiple of 2 or 3, as even shares hide mistakes
Rows = Sequence[tuple[FailureMode | None, Vector]]
Combined = Callable[[Vector, Vector], Any]  # what two design matrices make
Made = Callable[[str], FailureMode | None]  # of a count
SPARE = 6  # layouts beyond the examples, so that a wrong row is refuted


class Alone(NamedTuple):
    """A kind of group that may compute a value from its own examples only."""

    groups: Groups  # the examples of each of them
    name: str  # of one of them
    limit: FailureMode  # where each limits its own gradient
    statistics: FailureMode  # where each makes a function of its own examples


_SHARES = Alone(of_shares, "replica", rows.CLIPPED_REPLICAS, rows.LOCAL_STATISTICS)
_PARTS = (
    Alone(of_parts, "micro-batch", rows.CLIPPED_PARTS, rows.STATISTICS_OF_PARTS),
    Alone(of_windows, "step's micro-batch", rows.CLIPPED_PARTS, rows.STATISTICS_OF_PARTS),
)


def alone_in(seen: Runs) -> list[Alone]:
    """Return those that are not the whole batch."""
    return [*([_SHARES] if seen.replicas > 1 else []), *(_PARTS if seen.several else ())]


def with_term(count: str, row: FailureMode | None) -> FailureMode | None:
    """Return the failure mode of a term that counts so, and of the data; None if both are right."""
    if count not in RIGHT_COUNTS:
        return rows.term_counted(count, count in DIVIDED, row)
    more = "a regularisation or auxiliary term counts once, as it should"
    return row and replace(row, sentence=f"{row.sentence} ({more})")


def terms(
    layouts: Sequence[Layout], known: Vector, held: Vector | float, made: Made, start: int = 0
) -> Iterator[Hypothesis]:
    """Yield hypotheses of one unknown term, as often as each count says.

    Args:
        layouts: Of the updates.
        known: What the data make.
        held: How often the term comes along with that.
        made: Makes the mistake of a term that counts so.
        start: The first of the layouts among which the term must not be as strong everywhere.
    """
    tried: list[Vector] = []
    for name, count in COUNTS.items():
        left = np.array([count(item) for item in layouts]) - held
        if np.ptp(left[start:]) > EQUAL and not any(np.array_equal(left, own) for own in tried):
            tried.append(left)
            yield Hypothesis(partial(made, name), known, left[:, None])


def pairs(first: Rows, second: Rows, known: Combined, nuisance: Combined) -> Iterator[Hypothesis]:
    """Yield the hypotheses of two rows; the rank is the number of wrong ones.

    Args:
        first: Rows with their design matrices.
        second: The same for what is added.
        known: Returns what two design matrices make of updates that were seen.
        nuisance: Returns the design matrix of the unknown vectors.
    """
    for (a, one), (b, two) in itertools.product(first, second):
        rank = (a is not None) + (b is not None)
        yield Hypothesis(
            partial(rows.part_with, a, b), known(one, two), nuisance(one, two), rank=rank
        )


@dataclass
class Probe(Frame):
    """Splits of some examples, and what the step makes of them.

    Args:
        updates: A row per layout.
        limit: How much of them noise leaves unexplained.
    """

    updates: Vector
    limit: float

    @property
    def is_right(self) -> bool:
        """Return True if examples with their correct weights explain the updates."""
        return residual(self.updates, self.right)[0] <= self.limit

    @property
    def owners(self) -> Vector:
        """Return the replica of each example: a row per layout."""
        return self.table(self.situation.replica)

    def first(self, alike: Iterable[Hypothesis]) -> FailureMode | None:
        """Return the failure mode of the simplest hypothesis, unless other layouts refute it."""
        found = simplest(self.updates, alike, self.limit)
        return None if not found or found[0].refuted() else found[0].made()


def probe_of(seen: Runs, layouts: list[Layout] | None = None, noise: Noise | None = None) -> Probe:
    """Run the step on splits of the first examples, some of fewer; default: those of a few."""
    layouts = few_of(seen) if layouts is None else layouts
    updates = np.stack([seen.run(item).sketch for item in layouts])
    count = max(len(item.examples) for item in layouts)
    limit = (noise or seen.noise).limit(seen.alive) * float(np.linalg.norm(updates))
    return Probe(layouts, seen.weights[:count], seen.fixed, updates, limit)


def few_of(seen: Runs, counts: Sequence[int] = (PROBED,)) -> list[Layout]:
    """Return one device, and unequal splits of a few examples in random orders."""
    found = []
    for count in counts:
        own = min(count, seen.examples)
        found += [layout([own]), *seen.settings.turning(own, own + SPARE)]
    return found


def explain_term(evidence: Sums, noise: Noise | None = None) -> list[FailureMode] | None:
    """Explain a term that belongs to no example, as often as a count says.

    The update of a single example holds the term once, so that weights c bring it along Σc times
    (once where it is known and taken away). Layouts of a part of the batch are among those tried:
    a sum over all examples would be one vector too, as long as the batch is the same.

    Args:
        evidence: The runs.
        noise: Another one than that of the runs, in which a small term drowns.

    Returns:
        Mistakes that cannot be told apart, none if nothing is wrong; None if it is not a term.
    """
    probe = probe_of(evidence, [*evidence.layouts, *_of_a_part(evidence)], noise)
    known_term = float(evidence.term is not None)
    tried: list[Hypothesis] = []
    for row, own in (*probe.said, *probe.scaled):
        held = known_term or own.sum(axis=1)
        tried += terms(probe.layouts, own @ evidence.sketches, held, partial(with_term, row=row))
    found = simplest(probe.updates, tried, probe.limit)
    if not found:
        return None
    made = [one.made() for one in found]
    alike = not evidence.given and any(_is_of_one_device(one, evidence) for one in found)
    if alike or None in made:
        return []
    return list({row.name: row for row in made if row is not None}.values())


def _is_of_one_device(one: Hypothesis, evidence: Sums) -> bool:
    """Return True if it agrees on all layouts of the batch, and is correct in its weights."""
    count, known = len(evidence.layouts), np.asarray(one.known)
    differ = np.ptp(known[:count], axis=0).max() > EQUAL * np.abs(known).max()
    return not differ and not np.ptp(one.nuisance[:count]) > EQUAL


def _of_a_part(evidence: Sums) -> list[Layout]:
    """Return splits of the first examples, like those of all; none if there are too few."""
    settings = evidence.settings
    most = max(settings.replicas) * max(settings.micro_batches)
    count = max(1, max(evidence.examples // 2, most) // settings.multiple) * settings.multiple
    return settings.splits(count) if count < evidence.examples else []


def explain_parameters(evidence: Sums) -> FailureMode | None:
    """Explain two parts of the parameters by a row each: every element of an update follows one."""
    updates = np.stack([run.samples for run in evidence.runs])
    alone = np.stack([single.samples for single in evidence.singles])
    most = np.abs(alone).sum(axis=0) + 1e-300
    limit = max(SAME, 10 * evidence.noise.limit(1))
    said = [*evidence.said, *evidence.unreduced]
    errors = np.stack(
        [np.abs(updates - own @ alone).max(axis=0) / most / np.abs(own).max() for _, own in said]
    )
    fits = errors <= limit
    # A row that explains all is none for a part.
    useful = [place for place, own in enumerate(fits) if own.any() and not own.all()]
    found = [
        (bool(said[a][0]) + bool(said[b][0]), np.minimum(errors[a], errors[b]).max(), a, b)
        for a, b in itertools.combinations(useful, 2)
        if (fits[a] | fits[b]).all()
    ]
    if not found:
        return None
    *_, a, b = min(found)
    return rows.part_with(said[a][0], said[b][0], parameters=True)


def explain_parts(evidence: Sums) -> FailureMode | None:
    """Explain two parts of the loss by a row each.

    Single examples give g_i + p_i, the sum of both parts. If row A holds for one and row B for the
    other, an update is Σ A_i (g_i + p_i) + Σ (B_i - A_i) p_i with unknown p_i.
    """
    if evidence.settings.equal_shards:
        return None
    probe = probe_of(evidence)
    sketches = evidence.sketches[: len(probe.weights)]
    return probe.first(pairs(probe.said, probe.said, lambda a, b: a @ sketches, lambda a, b: b - a))


def of_groups(
    seen: Runs,
    layouts: Sequence[Layout],
    table: Vector,
    groups: Groups,
    fixed: bool = False,
    own: Callable[[Recorded], Vector] = lambda run: run.sketch,
) -> tuple[Vector, Vector]:
    """Return the sums of the groups' updates, weighted by a table of example weights.

    Args:
        seen: The runs.
        layouts: Some of their layouts.
        table: Weights of the examples, a row per layout.
        groups: Of a layout.
        fixed: Whether a fixed number divides a group's own update.
        own: What is taken of its run.

    Returns:
        A row per layout, and how often groups count in it together.
    """
    made, held = [], []
    for item, weights in zip(layouts, table, strict=True):
        parts = [group for group in groups(item) if group]
        own_weights = [weights[list(group)] for group in parts]
        times = np.array([seen.examples * w.mean() if fixed else w.sum() for w in own_weights])
        made.append(times @ np.stack([own(seen.alone(group)) for group in parts]))
        held.append(times.sum())
    return np.stack(made), np.array(held)


def alike_in(layouts: Sequence[Layout], table: Vector, groups: Groups) -> bool:
    """Return True if the examples of each group have one weight."""
    both = zip(layouts, table, strict=True)
    return all(np.ptp(w[list(own)]) <= EQUAL for item, w in both for own in groups(item))


def explain_own_numbers(evidence: Sums) -> FailureMode | None:
    """Explain a number that a replica has for itself, such as a random factor.

    The weights of the examples may be right then, but what an example does depends on which replica
    has it: with x_i = 1 where the first of two replicas has example i, an update is
    Σ w_i (x_i g_i + (1 - x_i) h_i) with unknown g_i and h_i.
    """
    replicas = min((count for count in evidence.settings.replicas if count > 1), default=0)
    count = min(PROBED, evidence.examples)
    if not replicas or 1 not in evidence.settings.micro_batches or count <= replicas:
        return None
    settings = replace(evidence.settings, replicas=(replicas,), micro_batches=(1,))
    number = replicas * count + SPARE  # more of them than there are unknowns
    layouts = settings.turning(count // settings.multiple * settings.multiple, number)
    probe = probe_of(evidence, layouts)
    if probe.is_right:
        return None
    shares = [probe.right * (probe.owners == r) for r in range(replicas)]
    found = probe.first([Hypothesis(lambda: rows.OWN_NUMBERS, 0.0, np.hstack(shares))])
    return None if found and _scales_parameters(evidence, layouts, shares) else found


def _scales_parameters(evidence: Sums, layouts: list[Layout], shares: list[Vector]) -> bool:
    """Return True if each replica multiplies the gradient of each parameter by a number.

    A random number in the loss changes what an example does. One that multiplies the whole loss is
    the same for all parameters.
    """
    updates = np.stack([evidence.run(item).samples for item in layouts])
    alone = np.stack([single.samples for single in evidence.singles[: shares[0].shape[1]]])
    made = np.stack([own @ alone for own in shares], axis=-1).transpose(1, 0, 2)
    factors = np.einsum("erl,le->er", np.linalg.pinv(made), updates)
    left = np.abs(updates.T - np.einsum("elr,er->el", made, factors)).max(axis=1)
    size = np.abs(made).max(axis=(1, 2))
    moved = size > SAME * size.max()
    near = max(SAME, 10 * evidence.noise.limit(1))
    spread = np.ptp(factors[moved], axis=0).max()
    return bool((left[moved] <= near * size[moved]).all() and spread > near)


def hides_a_term(seen: Sums) -> bool:
    """Return True if most of the differences vary with a count that a term may have."""
    ones = np.ones((len(seen.layouts), 1))
    updates = np.stack([run.sketch for run in seen.runs])
    apart, _ = residual(updates, ones)
    chance = 1 / (len(updates) - 1)  # of the squares one column explains so much of any noise
    counts = ([[count(item)] for item in seen.layouts] for count in COUNTS.values())
    fits = (residual(updates, np.hstack([ones, often])) for often in counts)
    return any(rank > 1 and left**2 < (1 - chance) / 2 * apart**2 for left, rank in fits)
