"""The simplest hypothesis that explains what is seen, within the noise.

What is seen of a layout (updates, weights of whole shares, one factor, a reported loss) is a linear
function of the weights of the examples: a bench has both, and every search of rows and points is on
one. What has unknown vectors is a `Hypothesis`.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from samegrad_doctor._catalogue import CATALOGUE, RIGHT, FailureMode, unnamed
from samegrad_doctor._grammar import ALL, POWERS, Point, Powers, Sum, phrase, points
from samegrad_doctor._layouts import Layout, one_device
from samegrad_doctor._situation import Indices, Situation
from samegrad_doctor._updates import Vector

EQUAL = 1e-9  # relative; numbers that are equal but for float64
_TIE = 0.1  # of the tolerance, by which the better of two hypotheses must be better
_AMBIGUITY_SET = 4  # hypotheses at most that are told as alternatives
_CONSTANT = 4.0  # cost of a factor that only this step has
_REFUTABLE = 4  # layouts beyond the unknowns


@dataclass
class Frame:
    """Layouts of examples, and what the examples count.

    Args:
        layouts: Of all examples or of the first ones.
        weights: Of the examples, as one device has them.
        fixed: Whether a fixed number divides.
    """

    layouts: list[Layout]
    weights: Vector
    fixed: bool

    @cached_property
    def situation(self) -> Situation:
        """Return the situation of all layouts, and behind them of each example by itself."""
        layouts = [*self.layouts, *(one_device([i]) for i in range(len(self.weights)))]
        weights = [self.weights[sorted(item.examples)] for item in layouts]
        return Situation(layouts, np.concatenate(weights))

    def table(self, values: Vector | Indices) -> Vector:
        """Return values of the situation: a row per layout, 0 for absent examples."""
        found = np.zeros((len(self.layouts) + len(self.weights), len(self.weights)))
        found[tuple(self.situation.places[:2])] = values
        return found[: len(self.layouts)]

    def design_matrix(self, predict: Callable[[Situation], Vector]) -> Vector:
        """Return the design matrix: weights in terms of the updates of single examples.

        Returns:
            A row per layout, a column per example; 0 for absent examples.
        """
        own = self.situation
        found = predict(own)
        alone = found[-len(self.weights) :]
        below = own.right if self.fixed else np.where(alone == 0, 1.0, alone)[own.places[1]]
        return self.table(found / below)

    @cached_property
    def right(self) -> Vector:
        """The weights that the layouts should have, in terms of the single updates."""
        return self.design_matrix(lambda own: own.right)

    @cached_property
    def said(self) -> list[tuple[FailureMode | None, Vector]]:
        """Return the correct weights, and those of each entry that is possible here."""
        with np.errstate(all="ignore"):
            return [(None, self.right), *self._tables(CATALOGUE)]

    @property
    def scaled(self) -> list[tuple[FailureMode, Vector]]:
        """Return whole updates by powers of replicas and micro-batches."""
        return self._tables(called(with_powers(RIGHT, powers)) for powers in POWERS[1:])

    @property
    def unreduced(self) -> list[tuple[FailureMode, Vector]]:
        """Return gradients that one replica keeps, by each power of the replicas."""
        bottoms: list[tuple[Sum, ...]] = [(ALL,), (("weight", "replica"),)]
        made = [
            called(with_powers(Point(over, who=f"only {end} replica"), (power, 0)))
            for end in ("first", "last") for over in bottoms for power in (0, -1, 1)
        ]  # fmt: skip
        return self._tables(row for row in made if row not in CATALOGUE)

    def _tables(self, rows: Iterable[FailureMode]) -> list[tuple[FailureMode, Vector]]:
        """Return the design matrices of the entries that are possible here."""
        empty = any(0 in item.sizes for item in self.layouts)
        return [
            (row, self.design_matrix(row.predict))
            for row in rows
            if (row.point.fixed or not self.fixed)
            and (self.several or not row.point.micro)
            and (self.uneven or not row.weighted)
            and (empty or not row.empty)
            and (self.replicas > 1 or row.point.micro or row.weighted)
        ]

    @property
    def replicas(self) -> int:
        """The largest number of replicas."""
        return max(item.replicas for item in self.layouts)

    @property
    def several(self) -> bool:
        """Return True if there are micro-batches."""
        return any(item.micro_batches > 1 for item in self.layouts)

    @property
    def uneven(self) -> bool:
        """Return True if examples have different weights."""
        return bool(np.ptp(self.weights) > EQUAL)


@dataclass
class Bench:
    """Observations on the layouts of a frame.

    Args:
        frame: The layouts.
        seen: Some numbers for each layout.
        images: For each layout, the matrix that makes them of weights.
        tolerance: How far numbers may be off, relative to what they are made of.
    """

    frame: Frame
    seen: list[Vector]
    images: list[Vector]
    tolerance: float

    def fitted(self, tables: Vector, free: bool = False) -> tuple[Vector, Vector]:
        """Fit tables of weights (one per entry) to the observations.

        Returns:
            One factor per layout on each table, the best if it is free or else 1, and the error
            left.
        """
        factors, errors = [], []
        for p, (seen, image) in enumerate(zip(self.seen, self.images, strict=True)):
            said = tables[:, p] @ image.T
            squares = np.einsum("bq,bq->b", said, said)
            factor = said @ seen / np.where(squares > 0, squares, 1.0) if free else 1 + 0 * squares
            parts = tables[:, p] ** 2 @ (image**2).sum(axis=0)  # as independent noise adds up
            amount = np.sqrt(squares + parts) * np.abs(factor)
            left = np.linalg.norm(seen - factor[:, None] * said, axis=1)
            factors.append(factor)
            errors.append(left / np.maximum(amount, 1e-300))
        return np.stack(factors), np.nan_to_num(np.max(errors, axis=0), nan=np.inf)

    def fits(self, table: Vector, free: bool = False) -> bool:
        """Return True if a table of weights explains the observations."""
        return bool(self.fitted(table[None], free)[1][0] <= self.tolerance)

    def named(self, free: bool = False) -> list[FailureMode]:
        """The rows that explain what is seen, of equal ones the simpler first.

        `free` is for one factor on each layout, which a limit hides; means go before sums then.
        """
        said = self.frame.said
        if free:
            said = sorted(said, key=lambda own: bool(np.ptp([*own[1].sum(axis=1), 1.0]) > EQUAL))
        _, errors = self.fitted(np.stack([table for _, table in said]), free)
        near = [(error, row) for error, (row, _) in zip(errors, said, strict=True)
                if row and error <= self.tolerance]  # fmt: skip
        best = min((error for error, _ in near), default=0.0)
        return [row for error, row in near if error <= best + _TIE * self.tolerance]

    def explained(self) -> list[FailureMode]:
        """Rows, or else points of the grammar, the simplest first; those behind it are ties."""
        return self.named() or self._points()

    def _points(self) -> list[FailureMode]:
        """Points of the grammar with powers of R and K, or with a constant."""
        frame = self.frame
        grid = points(frame.several, frame.uneven, frame.replicas, frame.fixed)
        said = np.array([[_factor(one, item) for item in frame.layouts] for one in POWERS])
        accepted: list[tuple[float, float, FailureMode]] = []
        with np.errstate(all="ignore"):
            factors, errors = self.fitted(
                np.stack([frame.design_matrix(point) for point in grid]), True
            )
            for b in np.flatnonzero(errors <= self.tolerance):
                off = np.abs(factors[:, b] / said - 1).max(axis=1)
                first = int(np.argmax(off <= self.tolerance))  # the simplest powers
                if off[first] <= self.tolerance:
                    point = with_powers(grid[b], POWERS[first])
                    accepted.append((point.cost, max(off[first], errors[b]), called(point)))
                elif (constant := self._constant(factors[:, b])) is not None:
                    row = _times(called(grid[b]), constant)
                    accepted.append((grid[b].cost + _CONSTANT, errors[b], row))
        best = min((error for _, error, _ in accepted), default=0.0)
        near = [item for item in accepted if item[1] <= best + _TIE * self.tolerance]
        near.sort(key=lambda item: item[0])
        rows = {row.name: row for cost, _, row in near if cost <= near[0][0] + 1.0}
        return list(rows.values())[:_AMBIGUITY_SET]

    def _constant(self, factors: Vector) -> float | None:
        """A factor that all layouts of several replicas have, and one device has not."""
        several = np.array([item.replicas * item.micro_batches > 1 for item in self.frame.layouts])
        own, one = factors[several], factors[~several]
        if len(own) < 2 or abs(one - 1).max(initial=0.0) > self.tolerance:
            return None
        same = np.ptp(own) <= 2 * self.tolerance * np.abs(own).max()
        return float(own.mean()) if same else None


class Hypothesis(NamedTuple):
    """A hypothesis on the updates of each layout.

    Args:
        made: Creates the failure mode of the hypothesis; None if there is none.
        known: What is made of updates that were seen.
        nuisance: The design matrix of the nuisance terms: how often each unknown vector counts in
            each layout.
        refuted: Asked of the selected one alone: whether other layouts refute it.
        rank: The number of its rows that are wrong; a lower one is selected first.
    """

    made: Callable[[], FailureMode | None]
    known: Vector | float
    nuisance: Vector
    refuted: Callable[[], bool] = lambda: False
    rank: int = 0


def residual(values: Vector, columns: Vector) -> tuple[float, int]:
    """Return the norm of the residual of a regression on columns, and the rank of these."""
    left, strengths, _ = np.linalg.svd(columns, full_matrices=False)
    rank = int((strengths > EQUAL * max(strengths[0], 1e-300)).sum()) if strengths.size else 0
    kept = left[:, :rank]
    return float(np.linalg.norm(values - kept @ (kept.T @ values))), rank


def simplest(updates: Vector, alike: Iterable[Hypothesis], limit: float) -> list[Hypothesis]:
    """Select hypotheses whose residual is noise: the lowest ranks, then the smallest residual.

    The rank of the hypothesis goes before that of its nuisance terms. Several selected ones are an
    ambiguity set: these layouts do not identify one of them.
    """
    most = len(updates) - min(_REFUTABLE, len(updates) - 1 or 1)
    for _, group in itertools.groupby(sorted(alike, key=lambda one: one.rank), lambda o: o.rank):
        found = []
        for one in group:
            error, rank = residual(updates - one.known, one.nuisance)
            if bool(one.nuisance.size) <= rank <= most and error <= limit:
                found.append((rank, error, one))
        if found:
            least, best = min(item[:2] for item in found)
            near = best + _TIE * limit
            return [one for rank, error, one in found if rank == least and error <= near]
    return []


def _factor(powers: Powers, item: Layout) -> float:
    """R^a K^b."""
    return float(item.replicas ** powers[0] * item.micro_batches ** powers[1])


def with_powers(point: Point, powers: Powers) -> Point:
    """The point, and all of it times R^a K^b; a mean over replicas is one over active ones."""
    a, b = powers
    r, active, k = point.powers
    mean = -1 if a < 0 and point.over and point.over[-1][1] in ("replica", "part") else 0
    return replace(point, powers=(r + a - mean, active + mean, k + b))


def called(point: Point) -> FailureMode:
    """The row of a point, or the nearest row with factors, or the point by its formula."""
    base, (r, active, k) = replace(point, powers=(0, 0, 0)), point.powers
    if base == RIGHT and not {abs(r + active), abs(k)} <= {0, 1}:
        said = phrase((r + active, k))
        return _whole(f"the whole update is {said}", f"all examples are {said}", point)
    found: list[tuple[FailureMode, Powers]] = []
    for row in CATALOGUE:
        if not row.empty and replace(row.point, powers=(0, 0, 0)) == base:
            own = row.point.powers
            found.append((row, (r + active - own[0] - own[1], k - own[2])))
    if not found:
        return unnamed(point)
    row, left = min(found, key=lambda item: abs(item[1][0]) + abs(item[1][1]))
    if left == (0, 0):
        return row
    if left not in POWERS:
        return unnamed(point)
    name = sentence = f"all is {phrase(left)}"
    if base == RIGHT:
        whole = called(Point(powers=(left[0], 0, left[1])))
        name, sentence = whole.name, whole.sentence
    more = f"{row.sentence}; besides, {sentence}"
    return replace(row, point=point, formula="", name=f"{row.name}; and {name}", sentence=more)


def _whole(name: str, sentence: str, point: Point = RIGHT, times: float = 1.0) -> FailureMode:
    """A mistake that scales all examples alike."""
    formula = "f w_i / W  instead of  w_i / W" if point == RIGHT else ""
    return FailureMode(name, sentence, formula, point=point, remedy="size", factor=times)


def _times(row: FailureMode, value: float) -> FailureMode:
    if row.point == RIGHT:
        return _whole(
            f"a constant divides instead of the count: a factor of {value:.4g}",
            f"wherever several replicas run, all is multiplied by {value:.4g}, as a batch size or "
            "a world size does that is not that of this step (a short batch)", times=value,
        )  # fmt: skip
    more = f"besides, all is multiplied by {value:.4g}, such as by a size of another run"
    name = f"{row.name}, and a factor of {value:.4g}"
    return replace(row, name=name, sentence=f"{row.sentence}; {more}", factor=value)


def factors_alike(frame: Frame, factors: Vector, tolerance: float) -> list[FailureMode]:
    """Return explanations of one factor per layout on all examples."""
    count = len(frame.weights)
    image = np.full((1, count), 1.0 / count if frame.fixed else 1.0)
    bench = Bench(frame, [np.array([f]) for f in factors], [image] * len(factors), tolerance)
    ratios = [(row, frame.design_matrix(row.predict) / frame.right) for row in bench.explained()]
    return [row for row, own in ratios if (np.ptp(own, 1) <= EQUAL * abs(own).max(1)).all()]


def factor_of(layouts: list[Layout], factors: Vector) -> FailureMode:
    """Return the failure mode of factors that nothing explains."""
    names = ", ".join(f"{factors[p]:.4g} for {item}" for p, item in enumerate(layouts[:4]))
    return _whole("a factor on the whole update", f"all examples are scaled alike: {names}")
