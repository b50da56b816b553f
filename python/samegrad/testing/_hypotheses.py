"""Hypotheses with unknowns: what no row explains by itself, a row and a term or two rows may.

An update is a sum of updates that were seen (of single examples, of shares), as often as a row
says, and of unknown vectors (a term, each example's part of another loss), as often as a row or a
count says. With more layouts than unknowns that can be refuted: whatever is in no combination of
the unknown vectors must be noise.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from samegrad._base.mistakes import counted_regularization
from samegrad._base.mistakes import part_with as part_words
from samegrad.testing._basis import FLOOR
from samegrad.testing._catalogue import LOCAL_STATISTICS, OWN_NUMBERS, Mistake
from samegrad.testing._layouts import (
    Groups,
    Layout,
    StepError,
    layout,
    layouts_for,
    of_parts,
    of_shares,
    of_windows,
    uneven_sizes,
)
from samegrad.testing._measure import Runs, Sums
from samegrad.testing._select import EQUAL, Frame, Hypothesis, outside, simplest
from samegrad.testing._updates import Vector

# How often a term may count in a layout; once is right.
COUNTS: dict[str, Callable[[Layout], float]] = {
    "once": lambda item: 1.0,
    "once on every replica": lambda item: item.replicas,
    "divided by the replicas": lambda item: 1 / item.replicas,
    "once in every micro-batch": lambda item: item.micro_batches,
    "once in every micro-batch of every replica": lambda item: item.replicas * item.micro_batches,
    "divided by the micro-batches": lambda item: 1 / item.micro_batches,
}
_NEAR = 1e-4  # of the strongest pair, by which three pairs may miss a plane
PROBED = 7  # examples; no multiple of 2 or 3, as even shares hide mistakes
_SEVERAL = 4  # times the noise of one run, where sums of several runs are compared
_SPARE = 6  # layouts beyond the examples, so that a wrong row is refuted


def with_term(count: str, row: Mistake | None) -> Mistake | None:
    """The mistake of a term that counts so, and of a row for the data; None if both are right."""
    if row is None and count == "once":
        return None
    if row is not None and count == "once":
        more = "a regularisation or auxiliary term counts once, as it should"
        return replace(row, sentence=f"{row.sentence} ({more})")
    data, fix = ("", "") if row is None else (f"; and the data: {row.name}", row.fix)
    return Mistake(*counted_regularization(count, data, fix), remedy="term")


def part_with(
    first: Mistake | None, second: Mistake | None, parameters: bool = False
) -> Mistake | None:
    """The mistake of a part of the loss, or of the parameters, with `second` as a row of its own.

    `first` is that of the rest; either may be right (None).
    """
    if (row := second or first) is None:
        return None
    other = first.name if first is not None and second is not None else None
    return replace(row, **part_words(row.words, other, parameters)._asdict())


def by_share(rest: Mistake | None) -> Mistake:
    """The mistake of a part of the loss that each share makes by itself."""
    others = "the rest is right" if rest is None else f"and for the rest: {rest.name}"
    return replace(
        LOCAL_STATISTICS,
        name=f"in a part of the loss, {LOCAL_STATISTICS.name}",
        sentence=f"in a part of the loss, {LOCAL_STATISTICS.sentence}; {others}",
    )


def terms(
    layouts: Sequence[Layout], row: Mistake | None, known: Vector, held: Vector, start: int = 0
) -> Iterator[Hypothesis]:
    """One unknown term, as often as each count says.

    Args:
        layouts: Of the updates.
        row: What is wrong with the data; None if nothing is.
        known: What the data make.
        held: How often the term comes along with that.
        start: The first of the layouts among which the term must not be as strong everywhere.
    """
    tried: list[Vector] = []
    for name, count in COUNTS.items():
        left = np.array([count(item) for item in layouts]) - held
        if np.ptp(left[start:]) > EQUAL and not any(np.array_equal(left, own) for own in tried):
            tried.append(left)
            yield Hypothesis(partial(with_term, name, row), known, left[:, None])


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
        """Whether examples with their right weights explain the updates, whatever they do."""
        return outside(self.updates, self.right)[0] <= self.limit

    def first(self, *classes: Iterable[Hypothesis]) -> Mistake | None:
        """The mistake of the simplest hypothesis of the first class that has any, if it stands."""
        for alike in classes:
            if found := simplest(self.updates, alike, self.limit):
                return None if found[0].refuted() else found[0].made()
        return None


def probe_of(seen: Runs, layouts: list[Layout]) -> Probe:
    """The step on splits of the first examples; some may be of fewer."""
    updates = np.stack([seen.run(item).sketch for item in layouts])
    count = max(len(item.examples) for item in layouts)
    limit = seen.noise.limit(seen.alive) * float(np.linalg.norm(updates))
    return Probe(layouts, seen.weights[:count], seen.fixed, updates, limit)


def _small(seen: Runs, counts: Sequence[int] = (PROBED,)) -> list[Layout]:
    """One device, and uneven splits of a few examples in turning orders."""
    settings, found = seen.settings, []
    for count in counts:
        own = min(count, seen.examples)
        found.append(Layout(((tuple(range(own)),),)))
        found += _turning(own, settings.replicas, settings.micro_batches, own + _SPARE)
    return found


def _turning(
    examples: int, replicas: Sequence[int], micro_batches: Sequence[int], count: int
) -> list[Layout]:
    """So many uneven splits of the examples in turning orders."""
    rng = np.random.default_rng(0)
    more = {k + 1 for k in micro_batches if k > 1} - set(micro_batches)
    pairs = [
        (r, k)
        for r in replicas
        for k in (*micro_batches, *more)  # another K tells a factor K from 1 / K
        if (r > 1 or k > 1) and r * k <= examples
    ]
    found = []
    for place, (r, k) in zip(range(count), itertools.cycle(pairs)):
        sizes = uneven_sizes(examples, r, turn=place)
        if min(sizes) < k:
            sizes = [examples - k * (r - 1)] + [k] * (r - 1)
        found.append(layout(sizes, k).renumbered(rng.permutation(examples).tolist()))
    return found


def explain_term(evidence: Sums) -> list[Mistake] | None:
    """A term that no examples explain, as often as a count says.

    The update of a single example holds the term once, so that weights c bring it along Σc times
    (once where it is known and taken away). Layouts of a part of the batch are among those tried:
    a sum over all examples would be one vector too, as long as the batch is the same.

    Returns:
        Mistakes that cannot be told apart, none if nothing is wrong; None if it is no term.
    """
    probe = probe_of(evidence, [*evidence.layouts, *_of_a_part(evidence)])
    tried = (
        terms(probe.layouts, row, evidence.made(own), np.array([*map(evidence.held, own)]))
        for row, own in probe.said
    )
    found = simplest(probe.updates, itertools.chain.from_iterable(tried), probe.limit)
    if not found:
        return None
    made = [one.made() for one in found]
    alike = not evidence.given and any(_is_of_one_device(one, evidence) for one in found)
    if alike or None in made:
        return []
    return list({row.name: row for row in made if row is not None}.values())


def _is_of_one_device(one: Hypothesis, evidence: Sums) -> bool:
    """Whether it says the same of all layouts of the batch: right where it says what weighs."""
    count, known = len(evidence.layouts), np.asarray(one.known)
    differ = np.ptp(known[:count], axis=0).max() > EQUAL * np.abs(known).max()
    return not differ and not np.ptp(one.free[:count]) > EQUAL


def _of_a_part(evidence: Sums) -> list[Layout]:
    """Layouts of the first examples, as those of all are; none if there are too few."""
    settings = evidence.settings
    pairs = [r * k for r in settings.replicas for k in settings.micro_batches]
    equal = math.lcm(*pairs) if settings.even else 1
    count = max(1, max(evidence.examples // 2, *pairs) // equal) * equal
    if count >= evidence.examples:
        return []
    return layouts_for(count, settings.replicas, settings.micro_batches, settings.even)


def explain_parts(evidence: Sums) -> Mistake | None:
    """Two rows, one for each part of the loss or of the parameters.

    Single examples give g_i + p_i, the sum of both parts. If row A holds for one and row B for the
    other, an update is Σ A_i (g_i + p_i) + Σ (B_i - A_i) p_i with unknown p_i.
    """
    layouts = _small(evidence)
    if len(layouts) < 2 or evidence.settings.even:
        return None
    probe = probe_of(evidence, layouts)
    sketches = evidence.sketches[: len(probe.weights)]

    def made(a: Mistake | None, b: Mistake | None, first: Vector, second: Vector) -> Mistake | None:
        return part_with(a, b, _splits_parameters(evidence, layouts, first, second))

    def with_row(a: Mistake | None, first: Vector) -> list[Hypothesis]:
        return [
            Hypothesis(partial(made, a, b, first, second), first @ sketches, second - first)
            for b, second in probe.said
            if b is not a
        ]

    return probe.first(*(with_row(a, first) for a, first in probe.said))


def _splits_parameters(
    evidence: Sums, layouts: Sequence[Layout], first: Vector, second: Vector
) -> bool:
    """Whether each element of the update follows one of the two rows."""
    updates = np.stack([evidence.run(item).samples for item in layouts])
    alone = np.stack([single.samples for single in evidence.singles[: first.shape[1]]])
    scale = np.max([np.abs(row) @ np.abs(alone) for row in (first, second)], axis=(0, 1)) + 1e-300
    errors = [np.abs(updates - row @ alone).max(axis=0) / scale for row in (first, second)]
    return bool((np.minimum(*errors) <= max(1e-3, 10 * evidence.noise.limit(1))).all())


def explain_shared_batch(seen: Runs) -> Mistake | None:
    """A row for a step whose examples depend on the whole batch, which the replicas share.

    Each example's update is unknown. A term that belongs to no example is one more unknown vector;
    two counts in one loss are two unknown vectors for each example. What explains splits of a few
    must not be refuted by those of all, in which the examples may do something else.
    """
    probe, whole = probe_of(seen, _small(seen)), probe_of(seen, seen.layouts)
    if probe.is_right:
        return None
    if (two := _of_two_counts(seen)) is not None:
        return two

    classes: list[list[Hypothesis]] = []
    for name in (None, *COUNTS):
        each: tuple[list[Hypothesis], list[Hypothesis]] = ([], [])  # with a row, and without
        for (row, few), (_, own) in zip(probe.said, whole.said, strict=True):
            if row is not None or name not in (None, "once"):
                free = _with_count(probe.layouts, few, name)
                refuted = partial(_refutes, whole, own, name)
                made = partial(with_term, name or "once", row)
                each[row is None].append(Hypothesis(made, 0.0, free, refuted))
        classes += each
    return probe.first(*classes)


def _with_count(layouts: Sequence[Layout], own: Vector, name: str | None) -> Vector:
    """How often examples count, and a term beside them."""
    return np.hstack([own, [[COUNTS[name](item)] for item in layouts]]) if name else own


def _refutes(whole: Probe, own: Vector, name: str | None) -> bool:
    """Whether the splits of all examples are not what is said."""
    return outside(whole.updates, _with_count(whole.layouts, own, name))[0] > whole.limit


def _of_two_counts(seen: Runs) -> Mistake | None:
    """Two counts, with the weights that the user gave or that pairs of examples tell."""
    if seen.uneven:
        return _two_counts(seen)
    if seen.given or (tangents := _tangents(seen)) is None:
        return None
    for sign in (1, -1):  # which of both parts has the weights is seen in more than pairs
        own = (1 - sign * tangents) / (1 + sign * tangents)
        weights = np.concatenate([own, np.ones(seen.examples - len(own))])
        if (found := _two_counts(replace(seen, weights=weights))) is not None:
            return found
    return None


def _tangents(seen: Runs) -> Vector | None:
    """x_j = ±(w_0 - w_j) / (w_0 + w_j), where one part counts weights and the other examples.

    Two examples with g_i + p_i by themselves make their mean and x_ij (g_i - g_j) / 2 together, so
    that three pairs of three examples lie in a plane and tell x, but for one scale; that follows
    from x_jk = (x_k - x_j) / (1 - x_j x_k).
    """
    try:
        one = [seen.alone([i]).sketch for i in range(PROBED)]
        alone = {pair: seen.alone(pair).sketch - (one[pair[0]] + one[pair[1]]) / 2
                 for pair in itertools.combinations(range(PROBED), 2)}  # fmt: skip
    except StepError:  # a step may refuse single examples
        return None
    size = max(map(np.linalg.norm, alone.values()))
    if not np.isfinite(size) or size <= FLOOR * max(map(np.linalg.norm, one)):
        return None
    ref = max(range(1, PROBED), key=lambda j: float(np.linalg.norm(alone[0, j])))
    ratios, squares = np.zeros(PROBED), []
    ratios[ref] = 1.0
    for k in set(range(1, PROBED)) - {ref}:
        both = np.stack([alone[0, k], alone[0, ref]], axis=1)
        pair = alone[min(ref, k), max(ref, k)]
        (ahead, back), *_ = np.linalg.lstsq(both, pair, rcond=1e-6)
        # Equal weights of two leave nothing of their pair.
        flat, alike = (np.linalg.norm(own) <= _NEAR * size for own in (alone[0, k], pair))
        if not flat and np.linalg.norm(both @ (ahead, back) - pair) > _NEAR * size:
            return None
        ratios[k] = 0.0 if flat else 1.0 if alike else -back / ahead
        if not flat and not alike:
            squares.append((1 - (ratios[k] - 1) / (ahead * ratios[k])) / ratios[k])
    square = float(np.median(squares)) if squares else -1.0
    tangents = np.sqrt(max(square, 0.0)) * ratios
    return tangents if square > 0 and np.abs(tangents).max() < 1 else None


def explain_two_parts(seen: Runs) -> Mistake | None:
    """Two parts of the loss with a count each, which shares make by themselves or together."""
    return _mean_and_sum(seen) or _of_two_counts(seen)


def _two_counts(seen: Runs) -> Mistake | None:
    """Two parts of a loss, of which one counts weights and the other examples.

    Layouts of a part of the batch are among them: what is the same in all layouts of a batch could
    be in each of its examples, too.
    """
    probe = probe_of(seen, _small(seen, (PROBED, PROBED - 2)))
    classes: list[list[Hypothesis]] = [[], [], []]
    for a, first in probe.said:
        for b, second in replace(probe, weights=np.ones(len(probe.weights))).said:
            classes[(a is not None) + (b is not None)].append(
                Hypothesis(partial(part_with, a, b), 0.0, np.hstack([first, second]))
            )
    return probe.first(*classes)


def _mean_and_sum(seen: Runs) -> Mistake | None:
    """A mean over the examples beside a sum over them: a row for each part, or None.

    With g_i + p_i of one example, two make (g_i + g_j) / 2 + p_i + p_j, so that pairs tell all p_i;
    three together must say the same.
    """
    count = min(PROBED, seen.examples)
    one = np.stack([seen.alone([i]).sketch for i in range(count)])

    def together(i: int, j: int) -> Vector:  # p_i + p_j
        return np.asarray(2 * seen.alone([i, j]).sketch - one[i] - one[j])

    first = (together(0, 1) + together(0, 2) - together(1, 2)) / 2
    sums = np.stack([first, *(together(0, j) - first for j in range(1, count))])
    means = one - sums
    probe = probe_of(seen, _small(seen))
    limit = _SEVERAL * seen.noise.limit(seen.alive)
    three = means[:3].mean(axis=0) + sums[:3].sum(axis=0)
    scale = float(np.linalg.norm(one) + np.linalg.norm(sums))
    small = min(float(np.linalg.norm(part)) for part in (means, sums))
    if np.linalg.norm(seen.alone([0, 1, 2]).sketch - three) > limit * scale or small < 0.01 * scale:
        return None
    rows = [(row, table @ means) for row, table in probe.said]
    others = [(row, table @ sums) for row, table in replace(probe, fixed=True).said]
    found = [
        ((a is not None) + (b is not None), a, b)
        for (a, first), (b, second) in itertools.product(rows, others)
        if np.linalg.norm(probe.updates - first - second) <= limit * scale
    ]
    return part_with(*min(found, key=lambda one: one[0])[1:]) if found else None


def of_groups(
    seen: Runs, layouts: Sequence[Layout], table: Vector, groups: Groups, fixed: bool = False
) -> tuple[Vector, Vector]:
    """What the groups' own updates make, each counting as its examples do in a table of weights.

    `fixed` says whether a fixed number divides a group's own update.

    Returns:
        A row per layout, and how often groups count in it together.
    """
    made, held = [], []
    for item, weights in zip(layouts, table, strict=True):
        own = [weights[list(group)] for group in groups(item)]
        times = np.array([seen.examples * w.mean() if fixed else w.sum() for w in own])
        made.append(times @ np.stack([seen.alone(group).sketch for group in groups(item)]))
        held.append(times.sum())
    return np.stack(made), np.array(held)


def explain_shares_and_examples(seen: Runs) -> Mistake | None:
    """A part of the loss that depends on the share (or micro-batch) as a whole, beside a sum.

    The shares' own updates hold both parts; with row A for them and row B for the sum, an update is
    Σ A_g u(g) + Σ (B_i - A_i) p_i with unknown p_i.
    """
    probe = probe_of(seen, _small(seen))
    kinds = (of_shares, of_parts, of_windows) if seen.several else (of_shares,)
    for groups in kinds:
        classes: list[list[Hypothesis]] = [[], []]
        for _, first in probe.said:
            if any(
                np.ptp(weights[list(group)]) > EQUAL
                for weights, item in zip(first, probe.layouts, strict=True)
                for group in groups(item)
            ):
                continue
            known, _ = of_groups(seen, probe.layouts, first, groups)
            for b, second in probe.said:
                one = Hypothesis(partial(by_share, b), known, second - first)
                classes[b is not None].append(one)
        if found := probe.first(*classes):
            return found
    return None


def explain_own_numbers(evidence: Sums) -> Mistake | None:
    """A number that a replica has for itself, and all its examples share: a random factor, say.

    The weights of the examples may be right then, but what an example does depends on which replica
    has it: with x_i = 1 where the first of two replicas has example i, an update is
    Σ w_i (x_i g_i + (1 - x_i) h_i) with unknown g_i and h_i.
    """
    settings = evidence.settings
    replicas = min((count for count in settings.replicas if count > 1), default=0)
    count = min(PROBED, evidence.examples)
    if not replicas or 1 not in settings.micro_batches or count <= replicas:
        return None
    number = replicas * count + _SPARE  # more of them than there are unknowns
    layouts = _turning(count, (replicas,), (1,), number)
    if settings.even:
        size, rng = count // replicas, np.random.default_rng(0)
        orders = [rng.permutation(size * replicas).tolist() for _ in range(number)]
        layouts = [layout([size] * replicas).renumbered(order) for order in orders]
    probe = probe_of(evidence, layouts)
    if probe.is_right:
        return None
    right = probe.right
    owner = np.array(
        [[next(r for r, own in enumerate(of_shares(item)) if i in own)
          for i in range(right.shape[1])] for item in layouts]
    )  # fmt: skip
    own = np.hstack([right * (owner == r) for r in range(replicas)])
    return probe.first([Hypothesis(lambda: OWN_NUMBERS, 0.0, own)])
