"""What an example may count: a grammar, of which the rows of the catalogue are points.

    own weight x times seen x who contributes x sums above / sums below x R^a A^b K^c

A sum is a measure (weights, examples, …) over a scope (micro-batch, replica, all, …). An ingredient
has its symbol, its words and its cost in one line here; a new one needs nothing else.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np

from samegrad.testing._situation import Situation
from samegrad.testing._updates import Vector

Sum = tuple[str, str]  # a measure and a scope
ALL: Sum = ("weight", "all")
NORM: Sum = ("weight", "norm")  # whatever makes the weights sum to 1


class Ingredient(NamedTuple):
    """A factor of the weight of an example."""

    make: Callable[[Situation], Any]  # a number per example
    symbol: str
    words: str
    cost: float = 1.0


def _several(make: Callable[[Situation], Any], micro: bool) -> Callable[[Situation], Any]:
    """1 where there is one replica (or micro-batch) only."""

    def of(s: Situation) -> Any:
        several = (s.micro_batches if micro else s.replicas) > 1
        return make(s) if several else s.ones

    return of


def _who() -> dict[str, Ingredient]:
    found = {"all": Ingredient(lambda s: s.ones, "", "", 0.0)}
    for what, letter in (("replica", "r"), ("micro-batch", "k")):
        for end in ("first", "last"):
            own = partial(Situation.of, end=end, axis=what)
            for key, factor, symbol, words in (
                ("only", own, f"[{letter} = {end}]", "is kept"),
                ("not", lambda s, own=own: ~own(s), f"[{letter} ≠ {end}]", "is left out"),
                ("twice", lambda s, own=own: 1.0 + own(s), f"(1 + [{letter} = {end}])",
                 "counts twice"),
            ):  # fmt: skip
                name = f"{key} {end} {what}"
                said = f"{'only ' if key == 'only' else ''}the {end} {what} {words}"
                found[name] = Ingredient(_several(factor, letter == "k"), symbol, said)
    found["only last micro-batch of the first replica"] = Ingredient(
        lambda s: s.of("first", "replica") & s.of("last", "micro-batch"),
        "[r = first, k = last]", "only the last micro-batch of the first replica is kept", 1.5,
    )  # fmt: skip
    found["again"] = Ingredient(
        # The gradients of micro-batch k are in K - k sums.
        _several(lambda s: s.replicas ** (s.micro_batches - 1.0 - s.micro_batch), True),
        "R^(K-1-k)", "gradients are reduced again in every micro-batch", 1.5,
    )  # fmt: skip
    found["by step"] = Ingredient(
        _several(lambda s: 1.0 / (s.micro_batch + 1.0), True), "1/(k+1)",
        "micro-batch k is divided by k + 1", 2.5,
    )  # fmt: skip
    found["halved"] = Ingredient(
        _several(lambda s: 0.5 ** (s.replicas - np.maximum(s.replica, 1.0)), False),
        "2^-(R - max(r, 1))", "the replicas are joined by a running average (a + g) / 2", 2.5,
    )  # fmt: skip
    return found


def _filled(extra: Callable[[Any, Any, float], Any]) -> Callable[[Situation], Vector]:
    """Shares as long as the largest one: extra(place, size, largest)."""
    return lambda s: extra(s.order[0] * 1.0, s.sizes, float(max(s.layout.sizes)))


def _end(s: Situation, last: bool) -> Any:
    """1 for the first (or last) example of each share."""
    place = s.sizes - 1 if last else 0.0
    return 1.0 * (s.order[0] == place)


def _rest(s: Situation) -> Vector:
    count = len(s.weights)
    kept = count - count % s.replicas if count >= s.replicas else count
    return np.asarray(s.order[1] < kept)


def _sampler(s: Situation) -> Vector:
    count = len(s.weights)
    more = np.bincount(np.arange(-count % s.replicas) % count, minlength=count)
    return np.asarray(1.0 + more[s.order[1]], dtype=np.float64)


def _last_again(s: Situation) -> Vector:
    count = len(s.weights)
    return np.asarray(1.0 + (-count % s.replicas) * (s.order[1] == count - 1), dtype=np.float64)


def _batches_of(size: int) -> Callable[[Situation], Vector]:
    """Whole batches of a size only; a share that is smaller stays."""

    def of(s: Situation) -> Vector:
        kept = np.where(s.sizes >= size, s.sizes // size * size, s.sizes)
        return np.asarray(s.order[0] < kept)

    return of


def _shortest(s: Situation) -> Vector:
    return np.asarray(s.order[0] < min(filter(None, s.layout.sizes)))


WHO = _who()
SEEN: dict[str, Ingredient] = {
    "once": Ingredient(lambda s: s.ones, "", "", 0.0),
    "filled": Ingredient(_filled(lambda p, n, most: most // n + (p < most % n)), "m_i",
                         "shares are filled up by repeating their examples"),
    "filled by the first": Ingredient(_filled(lambda p, n, most: 1 + (most - n) * (p == 0)), "m_i",
                                      "shares are filled up with their first example", 1.5),
    "filled by the last": Ingredient(_filled(lambda p, n, most: 1 + (most - n) * (p == n - 1)),
                                     "m_i", "shares are filled up with their last example", 1.5),
    "sampler": Ingredient(_sampler, "m_i", "examples are repeated until the shares are even"),
    "last again": Ingredient(_last_again, "m_i",
                             "the last example is repeated until the shares are even", 1.5),
    "rest": Ingredient(_rest, "m_i", "the rest of the batch is dropped"),
    "shortest": Ingredient(_shortest, "m_i", "what is longer than the shortest share is dropped"),
    "overlap": Ingredient(lambda s: 1 + _end(s, True) * (s.replica < s.replica.max()), "m_i",
                          "the last example of all shares but the last one counts twice", 1.5),
    "overlap first": Ingredient(lambda s: 1 + _end(s, False) * (s.replica > 0), "m_i",
                                "the first example of all shares but the first one counts twice",
                                1.5),
    "gap": Ingredient(lambda s: 1 - _end(s, False) * (s.replica > 0) * (s.sizes > 1), "m_i",
                      "the first example of all shares but the first one is lost", 1.5),
    "gap last": Ingredient(lambda s: 1 - _end(s, True) * (s.replica < s.replica.max())
                           * (s.sizes > 1), "m_i",
                           "the last example of all shares but the last one is lost", 1.5),
    "first of share": Ingredient(lambda s: _end(s, False), "m_i",
                                 "only the first example of each share counts", 1.5),
    "last of share": Ingredient(lambda s: _end(s, True), "m_i",
                                "only the last example of each share counts", 1.5),
    **{f"batches of {b}": Ingredient(_batches_of(b), "m_i", "examples of a share that do not fill "
                                     f"a batch of {b} are dropped", 1.0 + b / 4)
       for b in (2, 3, 4)},
}  # fmt: skip
# Scopes: the letter behind W or n, and the words of who divides.
SCOPES: dict[str, tuple[str, str, float]] = {
    "all": ("", "the global batch", 0.0),
    "replica": ("_r", "each replica", 1.0),
    "part": ("_rk", "each micro-batch of each replica", 1.0),
    "window": ("_k", "each micro-batch over all replicas", 1.0),
    "node": ("_node", "each node of two replicas", 2.0),
    "first replica": ("_0", "the first replica", 2.0),
    "last replica": ("_R", "the last replica", 2.0),
    "largest replica": ("_max r", "the largest share", 2.0),
    "first part": ("_r0", "the first micro-batch of each replica", 2.0),
    "last part": ("_rK", "the last micro-batch of each replica", 2.0),
    "first window": ("_k=0", "the first micro-batch over all replicas", 2.0),
    "last window": ("_K", "the last micro-batch over all replicas", 2.0),
    "largest part": ("_max rk", "the largest micro-batch", 2.5),
    **{f"{c} chunks": ("_chunk", f"each of {c} chunks that the step cuts", 2.5 + c / 8)
       for c in (2, 3, 4)},
    **{f"chunks of {c}": ("_chunk", f"each chunk of {c} examples that the step cuts", 2.5 + c / 8)
       for c in range(2, 9)},
}  # fmt: skip
_MICRO = ("part", "window", "first part", "last part", "first window", "last window",
          "largest part")  # fmt: skip
MEASURES: dict[str, tuple[str, str, float]] = {
    "weight": ("W{0}", "the weights of {0}", 0.0),
    "count": ("n{0}", "the examples of {0}", 0.5),
    "padded": ("(n{0} max w)", "the examples of {0} times the longest of them", 1.0),
    "at least 1": ("max(W{0}, 1)", "the weights of {0}, at least 1", 1.0),
    "mean at least 1": ("max(W{0}/R, 1)", "the mean of the replicas' weights, at least 1", 1.0),
    "rounded down": ("⌊W{0}/R⌋", "the weights of {0} by the replicas, rounded down,", 1.5),
    "less 1": ("(n{0} - 1)", "one example less than {0} has", 1.5),
    "pieces": ("C", "their number", 0.0),
}


def _known(s: Situation, key: object, make: Callable[[], Vector]) -> Vector:
    """What many points ask for is made once."""
    if key not in s.known:
        s.known[key] = make()
    return s.known[key]


def _measured(s: Situation, what: Sum, seen: Vector) -> Vector:
    """A sum for each example."""
    measure, scope = what
    if measure == "pieces":
        return s.pieces(scope)
    if measure == "padded":
        return s.sums(seen, scope) * s.longest(scope)
    if measure == "count":
        return s.sums(seen, scope)
    if measure == "less 1":
        return np.maximum(s.sums(seen, scope) - 1.0, 1.0)
    found = s.sums(s.weights * seen, scope)
    if measure == "rounded down":
        return np.maximum(np.floor(found / s.replicas + 1e-9), 1.0)
    if measure == "at least 1":
        return np.maximum(found, 1.0)
    return np.maximum(found / s.replicas, 1.0) if measure == "mean at least 1" else found


# Powers of R and K that go with a divisor: means and sums.
_NATURAL: dict[str, list[tuple[float, float]]] = {
    "part": [(-1, -1), (-1, 0), (0, -1), (0, 0)], "window": [(0, -1), (0, 0)], "all": [(0, 0)],
}  # fmt: skip


@dataclass(frozen=True)
class Point:
    """A point of the grammar.

    Args:
        over: Sums below.
        times: Sums above.
        seen: How often examples are drawn.
        who: Which replicas or micro-batches contribute.
        powers: Of R, A (replicas that have examples) and K.
        counted: Whether sums count an example as often as it is seen.
    """

    over: tuple[Sum, ...] = (ALL,)
    times: tuple[Sum, ...] = ()
    seen: str = "once"
    who: str = "all"
    powers: tuple[float, float, float] = (0, 0, 0)
    counted: bool = False

    def __call__(self, s: Situation) -> Vector:
        found = s.weights
        seen = _known(s, "once", lambda: s.ones)
        if not s.single and self.seen != "once":
            seen = _known(s, self.seen, lambda: np.asarray(SEEN[self.seen].make(s)) * 1.0)
            found = found * seen
        if not s.single and self.who != "all":
            found = found * _known(s, self.who, lambda: WHO[self.who].make(s))
        counted = self.seen if self.counted else "once"
        own = seen if self.counted else s.known["once"]
        for what in self.times:
            found = found * _known(s, (what, counted), lambda: _measured(s, what, own))  # noqa: B023
        for what in self.over:
            if what == NORM:
                found = found / (found if s.single else found.sum())
            else:
                below = _known(s, (what, counted), lambda: _measured(s, what, own))  # noqa: B023
                zero = np.zeros(len(found))  # where no example is seen, 0 / 0 is nothing
                found = np.divide(found, below, out=zero, where=found != 0)
        a, b, c = self.powers
        times = s.replicas**a * s.active**b * s.micro_batches**c if any(self.powers) else 1.0
        return np.asarray(found * float(times), dtype=np.float64)

    @property
    def fixed(self) -> bool:
        """Whether it also happens where a fixed number divides."""
        return self.over == (ALL,) and not self.times

    @property
    def micro(self) -> bool:
        """Whether it takes several micro-batches to happen."""
        named = {scope for _, scope in (*self.over, *self.times)}
        axis = "micro-batch" in self.who or self.who in ("again", "by step")
        return bool(self.powers[2]) or axis or bool(named.intersection(_MICRO))

    @property
    def weighted(self) -> bool:
        """Whether it takes examples of different weight."""
        return any(measure in ("count", "padded") for measure, _ in (*self.over, *self.times))

    @property
    def cost(self) -> float:
        """How far it is from the right weights."""
        sums = sum(
            MEASURES[m][2] + SCOPES.get(s, ("", "", 0.5))[2] for m, s in self.over if m != "pieces"
        )
        sums += 1.5 * len(self.times)
        mean = self.over[-1][1] if self.over else ""
        natural = _NATURAL.get(mean, [(-1, 0), (0, 0)])
        r, k = self.powers[0] + self.powers[1], self.powers[2]
        factors = min(abs(r - x) + abs(k - y) + 0.1 * (x + y + 2) for x, y in natural)
        return sums + SEEN[self.seen].cost + WHO[self.who].cost + factors

    @property
    def formula(self) -> str:
        """The weight of an example."""

        def symbols(sums: tuple[Sum, ...]) -> list[str]:
            known = [
                "Σ" if what == NORM else MEASURES[what[0]][0].format(SCOPES[what[1]][0])
                for what in sums
            ]
            return [x.replace("W", "M").replace("n", "m") if self.counted else x for x in known]

        above = ["w_i", SEEN[self.seen].symbol, WHO[self.who].symbol, *symbols(self.times)]
        below = symbols(self.over)
        for power, letter in zip(self.powers, "RAK", strict=True):
            letter = "R" if letter == "A" else letter
            if power:
                (above if power > 0 else below).append(letter + _SUPER.get(abs(power), ""))
        top = " ".join(filter(None, above))
        bottom = " ".join(below)
        if not bottom:
            return top
        return f"{top} / ({bottom})" if len(below) > 1 else f"{top} / {bottom}"

    @property
    def words(self) -> str:
        """In words, for a point that has no name."""
        said = [WHO[self.who].words, SEEN[self.seen].words]
        for verb, sums in (("divides", self.over), ("multiplies", self.times)):
            for measure, scope in sums:
                if (measure, scope) not in (ALL, NORM):
                    what = MEASURES[measure][1].format(SCOPES[scope][1])
                    said.append(f"{what} {verb}")
        r, k = self.powers[0] + self.powers[1], self.powers[2]
        if powers := phrase((r, k)):
            said.append(f"all is {powers}")
        return "; ".join(filter(None, said)) or "right"


_SUPER = {1: "", 2: "²", 0.5: "^½", 3: "³"}
_TIMES = {1: "", 2: " twice", 3: " three times", 0.5: " (their square root)"}
Powers = tuple[float, float]
# (power of R, power of K), the simple ones first.
POWERS: tuple[Powers, ...] = (
    (0, 0), (-1, 0), (1, 0), (0, -1), (0, 1), (-1, -1), (1, 1), (1, -1), (-1, 1), (-2, 0), (2, 0),
    (0, -2), (0, 2), (0.5, 0), (-0.5, 0), (-2, -1), (-1, -2), (-2, -2), (2, 1), (1, 2),
)  # fmt: skip


def phrase(powers: Powers) -> str:
    """Powers of the numbers of replicas and of micro-batches in words."""
    return ", and ".join(
        f"{'multiplied' if power > 0 else 'divided'} by the {what}{_TIMES[abs(power)]}"
        for power, what in zip(powers, ("replicas", "micro-batches"), strict=True)
        if power
    )


def _bottoms(micro: bool, weighted: bool, nodes: bool) -> Iterator[tuple[tuple[Sum, ...], ...]]:
    """Sums below, and sums above."""
    scopes = [s for s in SCOPES if (micro or s not in _MICRO) and (nodes or s != "node")]
    plain = [s for s in scopes if "chunk" not in s]
    yield (ALL,), ()
    for scope in plain[1:]:
        yield (("weight", scope),), ()
    for scope in [s for s in scopes if "chunk" in s or s == "node"]:
        if scope != "node":
            yield (("weight", scope),), ()
        yield (("weight", scope), ("pieces", scope)), ()
    for scope in ("all", "replica", *(("part",) if micro else ())):
        yield (("less 1", scope),), ()
        yield (("at least 1", scope),), ()
        if scope != "all":
            yield (("weight", scope), ("weight", scope)), ()
    yield (("mean at least 1", "all"),), ()
    yield (("rounded down", "all"),), ()
    yield (NORM,), (("weight", "replica"),)
    if not weighted:
        return
    for scope in plain:
        yield (("count", scope),), ()
    for scope in ("part", "replica", "window", "all"):
        if scope in plain:
            yield (("padded", scope),), ()
    for inner, outer in itertools.combinations(["part", "replica", "all"], 2):
        if inner in plain:
            yield (("weight", inner), ("count", outer)), (("count", inner),)
            yield (("count", inner), ("weight", outer)), (("weight", inner),)


@lru_cache(maxsize=16)
def points(micro: bool, weighted: bool, nodes: bool, fixed: bool) -> tuple[Point, ...]:
    """Points without powers.

    Args:
        micro: Whether there are several micro-batches.
        weighted: Whether examples have different weights.
        nodes: Whether there are more than two replicas.
        fixed: Whether a fixed number divides.
    """
    bottoms = [((ALL,), ())] if fixed else list(_bottoms(micro, weighted, nodes))
    found = []
    for who in WHO:
        if micro or not Point(who=who).micro:
            found += [Point(over, times, who=who) for over, times in bottoms]
    for seen in list(SEEN)[1:]:
        base = [Point(over, times, seen) for over, times in bottoms if not times]
        found += base
        found += [replace(p, counted=True) for p in base if not fixed]
        found.append(Point((NORM,), (), seen))
    return tuple(sorted(found, key=lambda point: point.cost))
