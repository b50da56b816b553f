"""A mistake: its name, what it makes of the weights, and what to do about it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from samegrad._base.mistakes import Words
from samegrad.testing._grammar import Point
from samegrad.testing._situation import Situation
from samegrad.testing._updates import Vector
from samegrad.testing._words import remedy

Predict = Callable[[Situation], Vector]
RIGHT = Point()


@dataclass(frozen=True)
class Mistake:
    """A row of the catalogue, or a point of the grammar that has no row.

    Args:
        name: A few words.
        sentence: What happens.
        formula: The weight that an example gets. Default: that of the point.
        fix: What to write instead, in samegrad's words. Default: the remedy's.
        point: The weights, for a mistake that shows in weights.
        remedy: The key of what to do, in the words of all frameworks.
        uneven: Whether it takes examples of different weight. Default: as the point says.
        empty: Whether it takes a replica without examples.
        report: What it means where a reported loss or metric shows it.
        factor: A number that all weights of several replicas are multiplied by.

    Raises:
        TypeError: `point` is no point of the grammar.
    """

    name: str
    sentence: str
    formula: str = ""
    fix: str = ""
    point: Point | None = None
    remedy: str = "count"
    uneven: bool | None = None
    empty: bool = False
    report: str = ""
    factor: float = 1.0

    def __post_init__(self) -> None:
        if self.point is not None and not isinstance(self.point, Point):
            raise TypeError(
                f"[Mistake] point must be a point of the grammar or None: got {self.point!r}."
            )
        for name in ("formula", "fix"):
            if not isinstance(getattr(self, name), str):
                raise TypeError(
                    f"[Mistake] {name} must be text: got {getattr(self, name)!r:.80}; leave it out."
                )
        if not self.formula and self.point is not None:
            object.__setattr__(self, "formula", f"{self.point.formula}  instead of  w_i / W")
        if not self.fix:
            object.__setattr__(self, "fix", remedy(self.remedy))

    def predict(self, situation: Situation) -> Vector:
        """The weights for a situation; the right ones where the mistake does not show in them."""
        several = not situation.single and situation.replicas * situation.micro_batches > 1
        found = RIGHT(situation) if self.point is None else self.point(situation)
        return found * self.factor if several else found

    @property
    def fixed(self) -> bool:
        """Whether it also happens where a fixed number divides."""
        return self.point is not None and self.point.fixed

    @property
    def micro(self) -> bool:
        """Whether it takes several micro-batches to happen."""
        return self.point is not None and self.point.micro

    @property
    def weighted(self) -> bool:
        """Whether it takes examples of different weight."""
        if self.uneven is not None:
            return self.uneven
        return self.point is not None and self.point.weighted

    @property
    def words(self) -> Words:
        """What is said of it."""
        return Words(self.name, self.sentence, self.formula, self.fix)

    def fix_for(self, framework: str) -> str:
        """What to write instead, in the words of a framework."""
        return self.fix if framework == "samegrad" else remedy(self.remedy, framework)


def unnamed(point: Point) -> Mistake:
    """A point of the grammar that no row names: its formula tells it."""
    who, counts = point.who != "all" or point.seen != "once", point.micro
    key = "sampler" if point.seen != "once" else "keep" if "micro" in point.who else (
        "reduce" if who else "accumulate" if counts else "factor" if point.fixed else
        "weights" if point.weighted else "count"
    )  # fmt: skip
    name = point.words
    return Mistake(name, "what an example counts has no name, only this formula", point=point,
                   remedy=key)  # fmt: skip


__all__ = ["RIGHT", "Mistake", "Predict", "unnamed"]
