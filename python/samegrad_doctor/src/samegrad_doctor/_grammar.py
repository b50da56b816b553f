"""Grammar of example weights; the entries of the catalogue are points of it.

    own weight x times seen x who contributes x sums above / sums below x R^a A^b K^c

A sum is a measure (weights, examples, …) over a scope (micro-batch, replica, all, …). An ingredient
has its symbol, its words and its cost in one line here; a new one needs nothing else.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from samegrad_doctor._situation import Situation
from samegrad_doctor._updates import Vector

Sum = tuple[str, str]  # a measure and a scope
ALL: Sum = ("weight", "all")
NORM: Sum = ("weight", "norm")  # whatever makes the weights sum to 1


class Ingredient(NamedTuple):
    """A factor of the weight of an example, or a measure of sums."""

    make: Callable[..., Any]  # of the situation: a number per example
    symbol: str
    words: str
    cost: float = 1.0
    remedy: str = ""  # the key of what to do, where a point has no row


def _ends(axis: str, letter: str, end: str) -> dict[str, Ingredient]:
    name, mark = f"{end} {axis}", f"[{letter} = {end}]"
    key = "reduce" if axis == "replica" else "keep"

    def own(s: Situation) -> Any:  # if there are several
        return s.of(end, axis) & ((s.replicas if axis == "replica" else s.micro_batches) > 1)

    return {
        f"only {name}": Ingredient(lambda s: s.of(end, axis), mark, f"only the {name} is kept",
                                   remedy=key),
        f"not {name}": Ingredient(lambda s: ~own(s), mark.replace("=", "≠"),
                                  f"the {name} is left out", remedy=key),
        f"twice {name}": Ingredient(lambda s: 1.0 + own(s), f"(1 + {mark})",
                                    f"the {name} counts twice", remedy=key),
    }  # fmt: skip


def _end(s: Situation, last: bool, of: Any = True) -> Any:
    """Return True for the first (or last) example of a shard, on those replicas."""
    return (s.order[0] == (s.sizes - 1 if last else 0)) & of


def _to_even(s: Situation) -> Vector:
    """Return the number of examples missing for equal shards."""
    return -s.examples % s.replicas


def _filled_by(last: bool) -> Callable[[Situation], Any]:
    return lambda s: 1 + (s.sums(s.ones, "largest replica") - s.sizes) * _end(s, last)


def _multiple(count: Vector, size: Any) -> Vector:
    """Return the largest multiple of a size up to a count; a smaller count stays."""
    return np.where(count >= size, count // size * size, count)


def _drawn(make: Callable[..., Any], words: str, cost: float = 1.5) -> Ingredient:
    return Ingredient(make, "m_i", words, cost)


def _sized(part: str, whole: str, symbol: str, words: str) -> Ingredient:
    return Ingredient(lambda s: s.sums(s.ones, part) / s.sums(s.ones, whole), symbol,
                      f"the sum of each {words}, as if it were a mean", 2.0)  # fmt: skip


WHO: dict[str, Ingredient] = {
    "all": Ingredient(lambda s: s.ones, "", "", 0.0),
    **_ends("replica", "r", "first"),
    **_ends("replica", "r", "last"),
    **_ends("micro-batch", "k", "first"),
    **_ends("micro-batch", "k", "last"),
    **{f"only last micro-batch of the {end} replica": Ingredient(
        lambda s, end=end: s.of(end, "replica") & s.of("last", "micro-batch"),
        f"[r = {end}, k = last]",
        f"only the last micro-batch of the {end} replica is kept", 1.5, "keep")
       for end in ("first", "last")},
    "again": Ingredient(  # the gradients of micro-batch k are in K - k sums
        lambda s: s.replicas ** (s.micro_batches - 1.0 - s.micro_batch),
        "R^(K-1-k)", "gradients are reduced again in every micro-batch", 1.5,
        "once"),
    "later sums": Ingredient(  # a running sum of losses, differentiated in each micro-batch
        lambda s: s.micro_batches - 1.0 * s.micro_batch,
        "(K-k)", "micro-batch k counts K - k times, as in a running sum of losses that each "
        "micro-batch differentiates", 2.0, "accumulate"),
    "halved again": Ingredient(
        lambda s: 0.5 ** (s.micro_batches - 1.0 - s.micro_batch), "2^-(K-1-k)",
        "what is accumulated is halved with each later micro-batch", 2.5, "accumulate"),
    "by step": Ingredient(lambda s: 1.0 / (s.micro_batch + 1.0),
                          "1/(k+1)", "micro-batch k is divided by k + 1", 2.5, "accumulate"),
    "halved": Ingredient(
        lambda s: 0.5 ** (s.replicas - np.maximum(s.replica, 1.0)), "2^-(R - max(r, 1))",
        "the replicas are joined by a running average (a + g) / 2", 2.5, "reduce"),
    "sized replica": _sized("replica", "all", "n_r/n", "replica is weighted by n_r/n, its part of "
                            "all examples"),
    "sized micro-batch": _sized("part", "replica", "n_rk/n_r", "micro-batch is weighted by "
                                "n_rk/n_r, its part of the replica's examples"),
}  # fmt: skip
_IN_STEPS = ("again", "by step", "later sums", "halved again")
SEEN: dict[str, Ingredient] = {
    "once": Ingredient(lambda s: s.ones, "", "", 0.0),
    "filled": _drawn(
        lambda s: np.ceil((s.sums(s.ones, "largest replica") - s.order[0]) / s.sizes),
        "shares are filled up by repeating their examples", 1.0),
    "filled by the first": _drawn(_filled_by(False),
                                  "shares are filled up with their first example"),
    "filled by the last": _drawn(_filled_by(True), "shares are filled up with their last example"),
    "sampler": _drawn(lambda s: 1 + np.ceil((_to_even(s) - s.order[1]) / s.examples),
                      "examples are repeated until the shards are equal", 1.0),
    "last again": _drawn(lambda s: 1 + _to_even(s) * (s.order[1] == s.examples - 1),
                         "the last example is repeated until the shares are even"),
    "rest": _drawn(lambda s: s.order[1] < _multiple(s.examples, s.replicas),
                   "the rest of the batch is dropped", 1.0),
    "shortest": _drawn(lambda s: s.order[0] < s.sums(s.ones, "smallest replica"),
                       "what is longer than the shortest share is dropped", 1.0),
    "overlap": _drawn(lambda s: 1 + _end(s, True, ~s.of("last", "replica")),
                      "the last example of all shares but the last one counts twice"),
    "overlap first": _drawn(lambda s: 1 + _end(s, False, s.replica > 0),
                            "the first example of all shares but the first one counts twice"),
    "gap": _drawn(lambda s: 1 - _end(s, False, (s.replica > 0) & (s.sizes > 1)),
                  "the first example of all shares but the first one is lost"),
    "gap last": _drawn(lambda s: 1 - _end(s, True, ~s.of("last", "replica") & (s.sizes > 1)),
                       "the last example of all shares but the last one is lost"),
    "first of share": _drawn(lambda s: _end(s, False),
                             "only the first example of each share counts"),
    "last of share": _drawn(lambda s: _end(s, True), "only the last example of each share counts"),
    **{f"batches of {b}": _drawn(
        lambda s, b=b: s.order[0] < _multiple(s.sizes, b), "examples of a share that do not fill a "
        f"batch of {b} are dropped", 1.0 + b / 4) for b in (2, 3, 4)},
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
    "smallest replica": ("_min r", "the smallest share", 2.0),
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


def _weights(s: Situation, seen: Vector, scope: str) -> Vector:
    return s.sums(s.weights * seen, scope)


def _whole_number(s: Situation, seen: Vector, scope: str, parts: int) -> Vector:
    down = np.floor(_weights(s, seen, scope) / parts + 1e-9)
    return np.where(np.abs(down) < 1, 1.0, down)


# The values that are summed over a scope: of the situation, times seen and the scope.
MEASURES: dict[str, Ingredient] = {
    "weight": Ingredient(_weights, "W{0}", "the weights of {0}", 0.0),
    "count": Ingredient(lambda s, m, of: s.sums(m, of), "n{0}", "the examples of {0}", 0.5),
    "padded": Ingredient(lambda s, m, of: s.sums(m, of) * s.longest(of), "(n{0} max w)",
                      "the examples of {0} times the longest of them", 1.0),
    "at least 1": Ingredient(lambda s, m, of: np.maximum(_weights(s, m, of), 1.0), "max(W{0}, 1)",
                          "the weights of {0}, at least 1", 1.25),
    "mean at least 1": Ingredient(
        lambda s, m, of: np.maximum(_weights(s, m, of) / s.replicas, 1.0),
        "max(W{0}/R, 1)", "the mean of the replicas' weights, at least 1", 1.0),
    "rounded down": Ingredient(lambda s, m, of: _whole_number(s, m, of, s.replicas), "⌊W{0}/R⌋",
                            "the weights of {0} by the replicas, rounded down,", 1.5),
    "rounded up": Ingredient(lambda s, m, of: -_whole_number(s, -m, of, s.replicas), "⌈W{0}/R⌉",
                          "the weights of {0} by the replicas, rounded up,", 1.5),
    "rounded down by all": Ingredient(
        lambda s, m, of: _whole_number(s, m, of, s.replicas * s.micro_batches), "⌊W{0}/RK⌋",
        "the weights of {0} by the micro-batches of all replicas, rounded down,", 1.75),
    "less 1": Ingredient(lambda s, m, of: np.maximum(s.sums(m, of) - 1.0, 1.0),
                      "(n{0} - 1)", "one example less than {0} has", 1.5),
    "pieces": Ingredient(lambda s, m, of: s.pieces(of), "C", "their number", 0.0),
}  # fmt: skip
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
        def known(key: object, make: Callable[[], Any]) -> Vector:  # many points ask for it
            if key not in s.known:
                s.known[key] = np.asarray(make(), dtype=np.float64)
            return s.known[key]

        def of(what: Sum) -> Vector:
            key = (what, self.seen if self.counted else "once")
            return known(key, lambda: MEASURES[what[0]].make(s, own, what[1]))

        seen = known(self.seen, lambda: SEEN[self.seen].make(s))
        own = seen if self.counted else s.ones
        found = s.weights * seen * known(self.who, lambda: WHO[self.who].make(s))
        for what in self.times:
            found = found * of(what)
        for what in self.over:
            below = s.sums(found, "all") if what == NORM else of(what)
            zero = np.zeros(len(found))  # where no example is seen, 0 / 0 is nothing
            found = np.divide(found, below, out=zero, where=found != 0)
        return found * known(self.powers, lambda: (s.counts.T**self.powers).prod(axis=1))

    @property
    def fixed(self) -> bool:
        """Return True if it also happens with a fixed divisor."""
        return self.over == (ALL,) and not self.times

    @property
    def micro(self) -> bool:
        """Return True if it needs several micro-batches."""
        named = {scope for _, scope in (*self.over, *self.times)}
        axis = "micro-batch" in self.who or self.who in _IN_STEPS
        return bool(self.powers[2]) or axis or bool(named.intersection(_MICRO))

    @property
    def weighted(self) -> bool:
        """Return True if it needs examples of different weights."""
        return any(measure in ("count", "padded") for measure, _ in (*self.over, *self.times))

    @property
    def cost(self) -> float:
        """Return the distance from the correct weights."""
        below = [own for own in self.over if own[0] != "pieces"]
        sums = sum(MEASURES[m].cost + SCOPES.get(s, ("", "", 0.5))[2] for m, s in below)
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
                "Σ" if scope == "norm" else MEASURES[what].symbol.format(SCOPES[scope][0])
                for what, scope in sums
            ]
            return [x.replace("W", "M").replace("n", "m") if self.counted else x for x in known]

        above = ["w_i", SEEN[self.seen].symbol, WHO[self.who].symbol, *symbols(self.times)]
        below = symbols(self.over)
        for power, letter in zip(self.powers, "RAK", strict=True):
            letter = "R" if letter == "A" else letter
            if power:
                (above if power > 0 else below).append(letter + _SUPER.get(abs(power), ""))
        top = " ".join(filter(None, above))
        bottom = " ".join(below).replace("Σ", f"Σ({top})")
        bottom = f"({bottom})" if len(below) > 1 else bottom
        return f"{top} / {bottom}" if bottom else top

    @property
    def words(self) -> str:
        """In words, for a point that has no name."""
        said = [WHO[self.who].words, SEEN[self.seen].words]
        for verb, sums in (("divides", self.over), ("multiplies", self.times)):
            for measure, scope in sums:
                if (measure, scope) not in (ALL, NORM):
                    what = MEASURES[measure].words.format(SCOPES[scope][1])
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


_Sums = tuple[tuple[Sum, ...], tuple[Sum, ...]]  # below and above


def _sums() -> list[_Sums]:
    """Return the sums that points divide and multiply by."""
    chunks = [s for s in SCOPES if "chunk" in s]
    plain = [s for s in SCOPES if s not in chunks]
    some = ("part", "replica", "all")
    rounded = ("mean at least 1", "rounded down", "rounded up", "rounded down by all")
    below: list[tuple[Sum, ...]] = [(("weight", s),) for s in (*plain, *chunks)]
    below += [(("weight", s), ("pieces", s)) for s in (*chunks, "node")]
    below += [(("weight", s), ("weight", s)) for s in some[:2]]
    below += [((measure, s),) for measure in ("less 1", "at least 1") for s in some]
    below += [((measure, "all"),) for measure in rounded]
    below += [(("count", s),) for s in plain]
    below += [(("padded", s),) for s in (*some, "window")]
    found: list[_Sums] = [((NORM,), (("weight", "replica"),)), *((own, ()) for own in below)]
    for inner, outer in itertools.combinations(some, 2):
        found.append(((("weight", inner), ("count", outer)), (("count", inner),)))
        found.append(((("count", inner), ("weight", outer)), (("weight", inner),)))
    return found


@lru_cache(maxsize=16)
def points(micro: bool, weighted: bool, replicas: int, fixed: bool) -> tuple[Point, ...]:
    """Points without powers.

    Args:
        micro: Whether there are several micro-batches.
        weighted: Whether examples have different weights.
        replicas: How many there are at most.
        fixed: Whether a fixed number divides.
    """

    def is_possible(point: Point) -> bool:
        scopes = {scope for _, scope in (*point.over, *point.times)}
        joined = any("replica" in s or "window" in s for s in (point.who, *scopes))
        steps = point.micro or point.over[:1] == (("rounded down by all", "all"),)
        least = 3 if "node" in scopes else 1 + joined
        return replicas >= least and (micro or not steps) and (weighted or not point.weighted)

    plain: list[_Sums] = [((ALL,), ())]
    sums = plain if fixed else _sums()
    found = []
    for who in WHO:
        some = plain if who.startswith("sized") else sums
        found += [Point(over, times, who=who) for over, times in some]
    for seen in list(SEEN)[1:]:
        base = [Point(over, times, seen) for over, times in sums if not times]
        found += base
        found += [replace(p, counted=True) for p in base if not fixed]
        found.append(Point((NORM,), (), seen))
    return tuple(sorted(filter(is_possible, found), key=lambda point: point.cost))
