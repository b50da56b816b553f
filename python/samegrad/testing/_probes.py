"""Many small layouts: what the weights of one row cannot explain, two rows or a row alone may.

With more layouts than examples, a model `updates = weights @ unknown` can be refuted: the updates
must lie in the column space of the weights that a row says. That needs no update of a single
example, so it also serves steps that work on the batch as a whole.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from samegrad._base.mistakes import counted_regularization
from samegrad._base.mistakes import part_with as part_words
from samegrad.testing._catalogue import OWN_NUMBERS, Mistake
from samegrad.testing._evidence import Evidence
from samegrad.testing._layouts import Layout, layout, uneven_sizes
from samegrad.testing._one_device import Fit
from samegrad.testing._select import EQUAL, LOOSE, TIE, Frame
from samegrad.testing._updates import Recorded, Vector

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


def counted_term(
    layouts: Sequence[Layout], rest: Vector, held: Vector, limit: float, start: int = 0
) -> str | None:
    """How often one term counts that is all that is left over; None if it is no such term.

    Args:
        layouts: One row of `rest` belongs to each.
        rest: What the examples do not explain.
        held: How often the term came along with what they explain.
        limit: How much of `rest` may stay, as a norm.
        start: The first of the layouts among which the term must not be as strong everywhere.
    """
    for name, count in COUNTS.items():
        left = np.array([count(item) for item in layouts]) - held
        if np.ptp(left[start:]) > EQUAL and outside(rest, left[:, None])[0] <= limit:
            return name
    return None


def with_term(count: str, row: Mistake | None) -> Mistake:
    """The mistake of a term that counts so, and of a row for the data."""
    if row is not None and count == "once":
        more = "a regularisation or auxiliary term counts once, as it should"
        return replace(row, sentence=f"{row.sentence} ({more})")
    data = "" if row is None else f"; and the data: {row.name}"
    words = counted_regularization(count, data, "" if row is None else row.fix)
    return Mistake(*words, remedy="term")


_FLOAT32 = 1e-4  # relative; what float32 leaves of updates
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
    rank = int((strengths > EQUAL * max(strengths[0], 1e-300)).sum()) if strengths.size else 0
    kept = left[:, :rank]
    return float(np.linalg.norm(values - kept @ (kept.T @ values))), rank


def _left(evidence: Evidence) -> float:
    """How much of the updates a model may leave over, relative."""
    return LOOSE * evidence.fits[0].unexplained + _FLOAT32


Said = list[tuple[Mistake | None, Vector]]


def _all_said(frame: Frame) -> Said:
    """What the right weights (None) and each row say of all layouts."""
    places = range(len(frame.layouts))
    found: Said = [(None, np.stack([frame.right(p) for p in places]))]
    found += [(row, np.stack([frame.predicted(row, p) for p in places])) for row in frame.rows]
    return found


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
    said = _all_said(Frame(layouts, evidence.weights[:count], evidence.fixed))
    limit = _left(evidence) * float(np.linalg.norm(updates))
    best = _best_pair(said, updates, singles, limit)
    if best is None:
        return None
    first, second = (said[i] for i in best)
    parameters = _splits_parameters(
        runs, evidence.singles[:count], first[1], second[1], limit / np.linalg.norm(updates)
    )
    return _part_with(first[0], second[0], parameters)


def _best_pair(
    said: Said, updates: Vector, singles: Vector, limit: float
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


def explain_shared_batch(
    run: Callable[[Layout], Recorded],
    weights: Vector,
    replicas: Sequence[int],
    micro_batches: Sequence[int],
    near: float,
) -> Mistake | None:
    """A row for a step whose examples depend on the whole batch, which the replicas share.

    A term that belongs to no example is one more unknown update, as often as a count says; two
    counts in one loss are two unknown updates for each example.
    """
    alone = Layout(((tuple(range(PROBED)),),))
    layouts = [alone, *probe_layouts(PROBED, replicas, micro_batches, PROBED + SPARE)]
    updates = np.stack([run(item).sketch for item in layouts])
    limit = near * float(np.linalg.norm(updates))
    frame = Frame(layouts, weights[:PROBED], False)
    said = _all_said(frame)
    if outside(updates, said[0][1])[0] <= limit:
        return None
    if (two := _two_counts(run, frame, replicas, micro_batches, near)) is not None:
        return two
    for name, count in {"": None, **COUNTS}.items():
        more = np.zeros((len(layouts), 0))
        if count is not None:
            more = np.array([[count(item)] for item in layouts])
        found = []
        for place, (_, own) in enumerate(said[1:], start=1):
            error, rank = outside(updates, np.concatenate([own, more], axis=1))
            if rank <= len(layouts) - 4 and error <= limit:
                found.append((rank, place))
        if found:
            row = said[min(found)[1]][0]
            return row if name in ("", "once") or row is None else with_term(name, row)
        if count is not None and name != "once":
            error, _ = outside(updates, np.concatenate([said[0][1], more], axis=1))
            if error <= limit:
                return with_term(name, None)
    return None


def _two_counts(
    run: Callable[[Layout], Recorded],
    frame: Frame,
    replicas: Sequence[int],
    micro_batches: Sequence[int],
    near: float,
) -> Mistake | None:
    """Two parts of a loss, of which one counts weights and the other examples.

    Layouts of a part of the batch are among them: what is the same in all layouts of a batch could
    be in each of its examples, too.
    """
    if not frame.uneven:
        return None
    layouts: list[Layout] = []
    for count in (PROBED, PROBED - 2):
        layouts.append(Layout(((tuple(range(count)),),)))
        layouts += probe_layouts(count, replicas, micro_batches, PROBED + SPARE)
    updates = np.stack([run(item).sketch for item in layouts])
    limit = near * float(np.linalg.norm(updates))
    said, counts = _padded(layouts, frame.weights), _padded(layouts, np.ones(PROBED))
    found: list[tuple[int, int, int]] = []
    for a, (_, first) in enumerate(said):
        for b, (_, second) in enumerate(counts):
            error, rank = outside(updates, np.concatenate([first, second], axis=1))
            if rank <= len(updates) - 4 and error <= limit:
                found.append(((a > 0) + (b > 0), a, b))
    if not found or min(found)[0] == 0:
        return None
    _, a, b = min(found)
    return _part_with(said[a][0], counts[b][0], False)


def _padded(layouts: list[Layout], weights: Vector) -> Said:
    """What rows say of layouts of some of the examples, 0 for the others."""
    by_count: dict[int, Said] = {}
    for count in sorted({len(item.examples) for item in layouts}, reverse=True):
        own = [item for item in layouts if len(item.examples) == count]
        by_count[count] = _all_said(Frame(own, weights[:count], False))
    known = set.intersection(*({row and row.name for row, _ in said} for said in by_count.values()))
    found: Said = []
    for row, _ in next(iter(by_count.values())):
        if (row and row.name) in known:
            tables = [
                np.pad(table, ((0, 0), (0, PROBED - count)))
                for count, said in by_count.items()
                for other, table in said
                if (other and other.name) == (row and row.name)
            ]
            found.append((row, np.concatenate(tables)))
    return found


def explain_own_numbers(evidence: Evidence) -> Mistake | None:
    """A number that a replica has for itself, and all its examples share: a random factor, say.

    The weights of the examples may be right then, but what an example does depends on which replica
    has it: with x_i = 1 where the first of two replicas has example i, an update is
    Σ w_i (x_i g_i + (1 - x_i) h_i) with unknown g_i and h_i. More layouts than unknowns refute it.
    """
    settings = evidence.settings
    several = [count for count in settings.replicas if count > 1]
    count = min(PROBED, len(evidence.weights))
    if not several or 1 not in settings.micro_batches or count <= min(several):
        return None
    replicas = min(several)
    layouts = _turning(count, replicas, settings.even)
    updates = np.stack([evidence.run(item).sketch for item in layouts])
    used = len(layouts[0].examples)
    probe = Frame(layouts, evidence.weights[:used], evidence.fixed)
    right = np.stack([probe.right(place) for place in range(len(layouts))])
    limit = _left(evidence) * float(np.linalg.norm(updates))
    own = np.concatenate([right * _had_by(r, layouts) for r in range(replicas)], axis=1)
    error, rank = outside(updates, own)
    differ = outside(updates, right)[0] > LOOSE * limit
    return OWN_NUMBERS if differ and error <= limit and rank <= len(layouts) - 4 else None


def _turning(count: int, replicas: int, even: bool) -> list[Layout]:
    """Splits in turning orders, more of them than there are unknowns."""
    number = replicas * count + SPARE
    if not even:
        return probe_layouts(count, (replicas,), (1,), number)
    size, rng = count // replicas, np.random.default_rng(0)
    orders = [rng.permutation(size * replicas).reshape(replicas, size) for _ in range(number)]
    return [Layout(tuple((tuple(map(int, row)),) for row in order)) for order in orders]


def _had_by(replica: int, layouts: list[Layout]) -> Vector:
    """1 where the replica has the example, 0 elsewhere: a row per layout."""
    had = np.zeros((len(layouts), len(layouts[0].examples)))
    for row, item in zip(had, layouts, strict=True):
        row[[i for part in item.parts[replica] for i in part]] = 1.0
    return had
