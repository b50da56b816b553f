"""The simplest hypothesis that explains what is seen, within the noise.

What is seen of a layout (the weights found, those of whole shares, one factor, a reported loss) is
a linear function of the weights of the examples: a bench has both, and every search is on one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from samegrad.testing._catalogue import CATALOGUE, Mistake, unnamed
from samegrad.testing._grammar import POWERS, Point, Powers, phrase, points
from samegrad.testing._layouts import Layout
from samegrad.testing._situation import Situation
from samegrad.testing._updates import Vector

UNNAMED = "a factor on the whole update"
TIE = 0.1  # of the tolerance, by which the better of two hypotheses must be better
EQUAL = 1e-9  # relative; numbers that are equal but for float64
_MAX_ALIKE = 4  # hypotheses that are told as one of
_REFUTABLE = 4  # layouts beyond the unknowns
Said = list[tuple[Mistake | None, Vector]]


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
    _known: dict[int, Situation] = field(default_factory=dict, init=False, repr=False)

    def situation(self, place: int, single: bool = False) -> Situation:
        """Of a layout, or of each example by itself."""
        key = -1 if single else place
        if key not in self._known:
            item = self.layouts[place]
            own = self.weights if single else self.weights[: len(item.examples)]
            self._known[key] = Situation(item, own, single)
        return self._known[key]

    def table(self, predict: Callable[[Situation], Vector]) -> Vector:
        """Weights in terms of the updates of single examples, which the mistake made as well.

        Returns:
            A row per layout; 0 for absent examples.
        """
        places = [self.situation(p) for p in range(len(self.layouts))]
        found = np.zeros((len(places), len(self.weights)))
        for row, place in zip(found, places, strict=True):
            row[: len(place.weights)] = predict(place) / (place.right if self.fixed else 1.0)
        if self.fixed:
            return found
        alone = predict(self.situation(0, single=True))
        return np.asarray(found / np.where(alone == 0, 1.0, alone), dtype=np.float64)

    def right(self, place: int) -> Vector:
        """The weights that a layout should have, in terms of the single updates."""
        own = self.situation(place)
        found = np.zeros(len(self.weights))
        found[: len(own.weights)] = 1.0 if self.fixed else own.right
        return found

    @cached_property
    def said(self) -> Said:
        """What is right, and what each row says of all layouts: tables of weights."""
        right = np.stack([self.right(place) for place in range(len(self.layouts))])
        with np.errstate(all="ignore"):
            return [(None, right), *((row, self.table(row.predict)) for row in self.rows)]

    @property
    def several(self) -> bool:
        """Whether there are micro-batches."""
        return any(item.micro_batches > 1 for item in self.layouts)

    @property
    def uneven(self) -> bool:
        """Whether examples have different weights."""
        return bool(np.ptp(self.weights) > EQUAL)

    @property
    def rows(self) -> list[Mistake]:
        """The rows of the catalogue that can happen here."""
        empty = any(0 in item.sizes for item in self.layouts)
        return [
            row
            for row in CATALOGUE
            if (row.fixed or not self.fixed)
            and (self.several or not row.micro)
            and (self.uneven or not row.weighted)
            and (empty or not row.empty)
        ]


@dataclass
class Bench:
    """What is seen of the layouts of a frame.

    Args:
        frame: The layouts.
        seen: Some numbers for each layout.
        images: For each layout, the matrix that makes them of weights.
        tolerance: How far numbers may be off, relative to the largest of the layout.
    """

    frame: Frame
    seen: list[Vector]
    images: list[Vector]
    tolerance: float

    def errors(self, tables: Vector) -> Vector:
        """How far what is seen is from what tables of weights say (one per row), relative."""
        return self._left(tables, lambda said, _: np.ones(len(said)))[1]

    def error(self, table: Vector) -> float:
        """The same for one table."""
        return float(self.errors(table[None])[0])

    def _left(
        self, tables: Vector, factors_of: Callable[[Vector, Vector], Vector]
    ) -> tuple[Vector, Vector]:
        """One factor per layout on each table, and the error left, relative to what makes it."""
        factors, errors = [], []
        for p, (seen, image) in enumerate(zip(self.seen, self.images, strict=True)):
            said = tables[:, p] @ image.T
            factor = factors_of(said, seen)
            parts = np.sqrt(tables[:, p] ** 2 @ (image**2).sum(axis=0))  # as noise adds up
            amount = np.hypot(np.linalg.norm(said, axis=1), parts) * np.abs(factor)
            left = np.linalg.norm(seen - factor[:, None] * said, axis=1)
            factors.append(factor)
            errors.append(left / np.maximum(amount, 1e-300))
        return np.stack(factors), np.nan_to_num(np.max(errors, axis=0), nan=np.inf)

    def named(self) -> list[Mistake]:
        """The rows that explain what is seen, of equal ones the simpler first."""
        said = self.frame.said
        found = self.errors(np.stack([table for _, table in said]))
        errors = [(error, row) for error, (row, _) in zip(found, said, strict=True)]
        near = [(error, row) for error, row in errors if row and error <= self.tolerance]
        best = min((error for error, _ in near), default=0.0)
        return [row for error, row in near if error <= best + TIE * self.tolerance]

    def explained(self) -> list[Mistake]:
        """Rows, or else points of the grammar, the simplest first; those behind it are ties."""
        return self.named() or self._points()

    def _fitted(self, found: Sequence[Point]) -> tuple[Vector, Vector]:
        """For each point, one factor per layout that fits it best, and the error left."""

        def nearest(said: Vector, seen: Vector) -> Vector:
            squares = np.einsum("bq,bq->b", said, said)
            return np.asarray(said @ seen / np.where(squares > 0, squares, 1.0))

        return self._left(np.stack([self.frame.table(point) for point in found]), nearest)

    def _points(self) -> list[Mistake]:
        """Points of the grammar with powers of R and K, or with a constant."""
        frame = self.frame
        nodes = max(item.replicas for item in frame.layouts) > 2
        grid = points(frame.several, frame.uneven, nodes, frame.fixed)
        said = np.array([[factor(one, item) for item in frame.layouts] for one in POWERS])
        accepted: list[tuple[float, float, Mistake]] = []
        with np.errstate(all="ignore"):
            factors, errors = self._fitted(grid)
            for b in np.flatnonzero(errors <= self.tolerance):
                off = np.abs(factors[:, b] / said - 1).max(axis=1)
                first = int(np.argmax(off <= self.tolerance))  # the simplest powers
                if off[first] <= self.tolerance:
                    point = with_powers(grid[b], POWERS[first])
                    accepted.append((point.cost, max(off[first], errors[b]), called(point)))
                elif (constant := self._constant(factors[:, b])) is not None:
                    row = _times(called(grid[b]), constant)
                    accepted.append((grid[b].cost + 4.0, errors[b], row))
        best = min((error for _, error, _ in accepted), default=0.0)
        near = [item for item in accepted if item[1] <= best + TIE * self.tolerance]
        near.sort(key=lambda item: item[0])
        least = near[0][0] if near else 0.0
        rows = {row.name: row for cost, _, row in near if cost <= least + 1.0}
        return list(rows.values())[:_MAX_ALIKE]

    def _constant(self, factors: Vector) -> float | None:
        """A factor that all layouts of several replicas have, and one device has not."""
        several = np.array(
            [item.replicas * item.micro_batches > 1 for item in self.frame.layouts]
        )  # fmt: skip
        own = factors[several]
        if len(own) < 2 or abs(factors[~several] - 1).max(initial=0.0) > self.tolerance:
            return None
        same = float(np.ptp(own)) <= 2 * self.tolerance * float(np.abs(own).max())
        return float(own.mean()) if same else None


@dataclass(frozen=True)
class Hypothesis:
    """What updates are, for each layout.

    Args:
        made: Makes the mistake that says so; None if it is none.
        known: What is made of updates that were seen.
        free: How often each unknown vector counts: a row per layout.
    """

    made: Callable[[], Mistake | None]
    known: Vector | float
    free: Vector


def outside(values: Vector, columns: Vector) -> tuple[float, int]:
    """The norm of what no combination of the columns makes (a row per layout), and their rank."""
    left, strengths, _ = np.linalg.svd(columns, full_matrices=False)
    rank = int((strengths > EQUAL * max(strengths[0], 1e-300)).sum()) if strengths.size else 0
    kept = left[:, :rank]
    return float(np.linalg.norm(values - kept @ (kept.T @ values))), rank


def simplest(updates: Vector, alike: Iterable[Hypothesis], limit: float) -> list[Hypothesis]:
    """Those that leave no more than noise: of them the fewest unknowns, then the least left."""
    found = []
    for one in alike:
        error, rank = outside(updates - one.known, one.free)
        if 0 < rank <= len(updates) - min(_REFUTABLE, len(updates) - 1) and error <= limit:
            found.append((rank, error, one))
    least = min((item[:2] for item in found), default=(0, 0.0))
    return [
        one for rank, error, one in found if rank == least[0] and error <= least[1] + TIE * limit
    ]


def factor(powers: Powers, item: Layout) -> float:
    """R^a K^b."""
    return float(item.replicas ** powers[0] * item.micro_batches ** powers[1])


def with_powers(point: Point, powers: Powers) -> Point:
    """The point, and all of it times R^a K^b; a mean over replicas is one over active ones."""
    a, b = powers
    r, active, k = point.powers
    mean = -1 if a < 0 and point.over and point.over[-1][1] in ("replica", "part") else 0
    return replace(point, powers=(r + a - mean, active + mean, k + b))


def called(point: Point) -> Mistake:
    """The row of a point, or the nearest row with factors, or the point by its formula."""
    base, (r, active, k) = replace(point, powers=(0, 0, 0)), point.powers
    if base == Point() and not {abs(r + active), abs(k)} <= {0, 1}:
        said = phrase((r + active, k))
        return whole(f"the whole update is {said}", f"all examples are {said}", point)
    found: list[tuple[Mistake, Powers]] = []
    for row in CATALOGUE:
        if row.point is not None and not row.empty and replace(row.point, powers=(0, 0, 0)) == base:
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
    if base == Point():
        name, sentence, *_ = called(Point(powers=(left[0], 0, left[1]))).words
    return _joined(replace(row, point=point, formula=""), f"{row.name}; and {name}", sentence)


def whole(name: str, sentence: str, point: Point | None = None, times: float = 1.0) -> Mistake:
    """A mistake that scales all examples alike."""
    formula = "" if point is not None and times == 1.0 else "f w_i / W  instead of  w_i / W"
    return Mistake(name, sentence, formula, point=point, remedy="size", factor=times)


def _times(row: Mistake, value: float) -> Mistake:
    if row.point is None or row.point == Point():
        return whole(
            f"a constant divides instead of the count: a factor of {value:.4g}",
            f"wherever several replicas run, all is multiplied by {value:.4g}, as a batch size or "
            "a world size does that is not that of this step (a short batch)", Point(), value,
        )  # fmt: skip
    more = f"all is multiplied by {value:.4g}, such as by a size of another run"
    return replace(_joined(row, f"{row.name}, and a factor of {value:.4g}", more), factor=value)


def _joined(row: Mistake, name: str, more: str) -> Mistake:
    return replace(row, name=name, sentence=f"{row.sentence}; besides, {more}")


def factors_alike(frame: Frame, factors: Vector, tolerance: float) -> list[Mistake]:
    """What explains one factor per layout on all examples; the factors, if nothing does."""
    count = len(frame.weights)
    image = np.full((1, count), 1.0 / count if frame.fixed else 1.0)
    bench = Bench(frame, [np.array([f]) for f in factors], [image] * len(factors), tolerance)
    ratios = [(row, frame.table(row.predict) / frame.said[0][1]) for row in bench.explained()]
    if flat := [row for row, own in ratios if (np.ptp(own, 1) <= EQUAL * abs(own).max(1)).all()]:
        return flat
    listed = list(zip(factors, frame.layouts, strict=True))[:4]
    names = ", ".join(f"{value:.4g} for {item}" for value, item in listed)
    return [whole(UNNAMED, f"all examples are scaled alike: {names}")]
