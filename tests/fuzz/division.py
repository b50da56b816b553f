"""Divisions of global batches over replicas, drawn at random, and the programs that get them."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable, Iterator

from fuzz import features
from fuzz.generate import generate
from fuzz.own import own_names
from fuzz.program import Program
from fuzz.worker import Mode

MOST_REPLICAS, MOST_EXAMPLES, MOST_LARGE_EXAMPLES = 32, 400, 9
# Of the workers: small programs go down the paths of large ones.
ENVIRONMENTS = ["usual", "usual", "ones", "inner", "deferred", "machine"]
Shares = tuple[int, ...]


@dataclasses.dataclass
class Trial:
    """A program and ways to divide its global batch.

    Args:
        program: Has the whole batch as its only share.
        environment: A name in `processes.ENVIRONMENTS`.
        modes: How it is divided; the first one is one replica's.
        kinds: Of the divisions.
    """

    program: Program
    environment: str
    modes: list[Mode]
    kinds: list[str]


def trials(seed: int, batches: int = 2, divisions: int = 5) -> Iterator[Trial]:
    """The trials with the program of a seed."""
    rng = random.Random(f"divisions {seed}")
    large = seed % 11 == 10
    program = _with_shares_of_sums(generate(seed, large=large), rng)
    environment = rng.choice(ENVIRONMENTS)
    for _ in range(batches):
        n = _batch_size(rng, MOST_LARGE_EXAMPLES if large else MOST_EXAMPLES)
        one = Mode("reduced", (n,), hides=rng.random() < 0.5)
        drawn = [_divided(rng, one, n, bool(program.draws())) for _ in range(divisions)]
        modes, kinds = [one, *(mode for mode, _ in drawn)], ["", *(kind for _, kind in drawn)]
        yield Trial(dataclasses.replace(program, shares=(n,)), environment, modes, kinds)


def _with_shares_of_sums(program: Program, rng: random.Random) -> Program:
    """The program with sums of what all replicas have divided by their number."""
    types, own = program.types(), own_names(program)
    kept = 0.1 if features.EQUAL_BITS["summands_that_all_replicas_have"] else 0.0

    def shared(kind: str, name: str) -> str:
        everywhere = kind == "sum" and types[name].axis < 0 and name not in own
        return "share" if everywhere and rng.random() >= kept else kind

    losses = [(shared(kind, name), name) for kind, name in program.losses]
    return dataclasses.replace(program, losses=losses)


def _batch_size(rng: random.Random, most: int) -> int:
    return rng.randint(0, min(rng.choice([0, 9, 9, 37, 37, 37, 130, 130, most]), most))


def _divided(rng: random.Random, one: Mode, n: int, draws: bool) -> tuple[Mode, str]:
    kind = rng.choice([*KINDS, "cuts"])
    replicas = rng.choice([2, 3, 4, 5, 8, rng.randint(1, 16), rng.randint(1, MOST_REPLICAS)])
    if kind == "one each":
        replicas = rng.choice([min(max(n, 1), MOST_REPLICAS), replicas])
    layouts = ["slices", "slices", "apart", "shuffled", "gaps", "mixed"]
    layouts += ["dataset"] * 3 if kind == "chunks" and n else []
    layout = rng.choice(layouts)
    mode = dataclasses.replace(
        one,
        shares=KINDS[kind](rng, n, replicas),
        threads=rng.choice([1, 2, 4]),
        cover=True,
        resized=rng.random() < 0.2 and layout != "dataset" and not draws,
        layout=layout,
    )
    return mode, kind


# ---- kinds of divisions ----


def _chunks(rng: random.Random, n: int, replicas: int) -> Shares:
    """TensorFlow's division."""
    size = -(-n // replicas)
    return tuple(min(size, max(n - i * size, 0)) for i in range(replicas))


def _one_each(rng: random.Random, n: int, replicas: int) -> Shares:
    """A row for each replica as far as they go; the last replica has those that are left."""
    shares = [int(i < n) for i in range(replicas)]
    shares[-1] += n - sum(shares)
    return tuple(shares)


def _all_on_one(rng: random.Random, n: int, replicas: int) -> Shares:
    chosen = rng.randrange(replicas)
    return tuple(n if i == chosen else 0 for i in range(replicas))


def _cuts(rng: random.Random, n: int, replicas: int) -> Shares:
    return _between(sorted(rng.randint(0, n) for _ in range(replicas - 1)), n)


def _few_cuts(rng: random.Random, n: int, replicas: int) -> Shares:
    """Many replicas have no examples."""
    places = [rng.randint(0, n) for _ in range(3)]
    return _between(sorted(rng.choice(places) for _ in range(replicas - 1)), n)


def _cuts_at_fours(rng: random.Random, n: int, replicas: int) -> Shares:
    """At the ends of leaves of the summation tree, or next to them."""
    cuts = [4 * rng.randint(0, n // 4) + rng.choice([0, 0, 1, -1]) for _ in range(replicas - 1)]
    return _between(sorted(min(max(cut, 0), n) for cut in cuts), n)


def _halves(rng: random.Random, n: int, replicas: int) -> Shares:
    """Subtrees of the summation tree."""
    shares = [n]
    while len(shares) < replicas:
        widest = max(range(len(shares)), key=shares.__getitem__)
        whole = shares[widest]
        shares[widest : widest + 1] = [-(-whole // 2), whole // 2]
    return tuple(shares)


def _between(cuts: list[int], n: int) -> Shares:
    return tuple(b - a for a, b in zip([0, *cuts], [*cuts, n], strict=True))


KINDS: dict[str, Callable[[random.Random, int, int], Shares]] = {
    "chunks": _chunks,
    "one each": _one_each,
    "all on one": _all_on_one,
    "cuts": _cuts,
    "few cuts": _few_cuts,
    "cuts at fours": _cuts_at_fours,
    "halves": _halves,
}
