"""Draws programs at random: typed, reproducible from a seed."""

from __future__ import annotations

import random
from collections.abc import Callable

from fuzz import features
from fuzz.ops import OPS
from fuzz.program import N, Program, Shape, Statement, Type, names_in

BYTES = {"bfloat16": 2, "float32": 4, "float64": 8}


class Draw:
    """A program in the making.

    Args:
        seed: Decides everything.
        large: Whether examples may have hundreds of kilobytes.
    """

    def __init__(self, seed: int, large: bool) -> None:
        self.rng = random.Random(seed)
        self.large = large
        self.dtype = self.rng.choice(["float32", "float64", "float64"])
        if random.Random(f"type {seed}").random() < 0.15:  # the rest of the program stays
            self.dtype = "bfloat16"
        self.shares = self._shares()
        self.inputs = [self._input() for _ in range(self.rng.choice([1, 1, 2]))]
        if self.rng.random() < 0.5:
            self.inputs.append(self._integers())
        self.variables: list[tuple[int, ...]] = []
        self.types = {f"x{i}": t for i, t in enumerate(self.inputs)}
        self.body: list[Statement] = []
        self.crosses = self.rng.random() < 0.3

    # ---- sizes ----

    def _shares(self) -> tuple[int, ...]:
        most = 3 if self.large else 9
        replicas = self.rng.choice([1, 2, 2, 3, 4])
        kind = self.rng.random()
        if kind < 0.4:  # what promises of equal bits are about
            return (self.rng.randint(3, max(most, 4)),) * self.rng.choice([1, 2, 4])
        shares = [self.rng.randint(1, most) for _ in range(replicas)]
        if kind > 0.7:
            shares[self.rng.randrange(replicas)] = self.rng.choice([0, 1])
        if not self.large and kind > 0.97:
            shares[0] = self.rng.choice([64, 100, 300])
        return tuple(shares) if sum(shares) else (1,) * replicas

    def size(self, most: int) -> int:
        """Small, odd and large ones."""
        if most <= 1:
            return 1
        if self.rng.random() < 0.7:
            return self.rng.randint(1, min(most, 8))
        return self.rng.randint(1, most)

    @property
    def most_elements(self) -> int:
        """Of one example of a value."""
        if not self.large:
            return 1500
        return self.rng.choice([8_000, 16_000, 64_000, 200_000])

    @property
    def most_weights(self) -> int:
        return 20_000 if self.large else 2_000

    def _input(self) -> Type:
        shape: Shape
        if self.large:
            shape = self.rng.choice(
                [
                    (N(), 32, 32, self.rng.choice([4, 8])),
                    (N(), 96, 96),
                    (N(), self.rng.choice([4_099, 8_192, 20_000])),
                    (N(), 64, 3, 40),
                    (N(), 28, 28, 1),
                    (N(), 16, 513),
                    (N(), 300, 300),
                ]
            )
        else:
            rank = self.rng.choice([0, 1, 1, 2, 2, 3])
            shape = (N(), *(self.size(12 if rank < 3 else 9) for _ in range(rank)))
        return Type(shape)

    def _integers(self) -> Type:
        high = self.rng.choice([1, 2, 5, 10, 10, 37, 1000 if self.large else 50])
        tail = [self.size(7)] if self.rng.random() < 0.4 else []
        return Type((N(), *tail), kind="i", high=high)

    def too_big(self, shape: Shape) -> bool:
        return len(shape) > 6 or Type(shape).per_example() > (300_000 if self.large else 3_000)

    # ---- operands ----

    def pick(self, fits: Callable[[Type], bool]) -> str | None:
        """A value that fits; later ones are likelier."""
        names = [name for name, t in self.types.items() if fits(t)]
        if not names:
            return None
        if self.rng.random() < 0.5:
            return names[-1 - min(self.rng.randrange(3), len(names) - 1)]
        return self.rng.choice(names)

    def variable(self, shape: tuple[int, ...]) -> str:
        """A weight of the shape: often one that is used already."""
        known = [f"w{i}" for i, s in enumerate(self.variables) if s == shape]
        if known and self.rng.random() < 0.6:
            return self.rng.choice(known)
        self.variables.append(shape)
        name = f"w{len(self.variables) - 1}"
        self.types[name] = Type(shape)
        return name

    def across_examples(self) -> bool:
        """Whether this program may mix examples of a replica."""
        return self.crosses

    def least_examples(self) -> int:
        return min(self.shares)

    # ---- the program ----

    def next_name(self) -> str:
        """Of the statement that is being drawn."""
        return f"v{len(self.body)}"

    def add(self) -> None:
        names = [n for n, op in OPS.items() if features.DRAWN.get(op.feature, True)]
        name = self.rng.choices(names, [OPS[n].weight for n in names])[0]
        before = len(self.variables)
        drawn = OPS[name].draw(self)
        if drawn is None or self.too_big(drawn[2].shape):
            for i in range(before, len(self.variables)):
                self.types.pop(f"w{i}", None)
            del self.variables[before:]
            return
        inputs, attrs, type_ = drawn
        out = self.next_name()
        self.body.append(Statement(out, name, inputs, attrs, type_))
        self.types[out] = type_


def _losses(g: Draw) -> list[tuple[str, str]]:
    losses = []
    averaged = [
        s.out
        for s in g.body
        if s.type.kind == "f"
        and s.type.shape[:1] == (N(),)
        and s.type.local
        and 0 not in s.type.shape
    ]
    others = [s.out for s in g.body if s.type.kind == "f" and s.out not in averaged]
    if averaged:
        losses.append(("average", g.rng.choice(averaged[-3:])))
        if g.rng.random() < 0.3:
            losses.append(("average", g.rng.choice(averaged)))
    if others and (g.crosses or not losses):
        losses.append(("sum", g.rng.choice(others[-3:])))
    if g.variables and g.rng.random() < 0.2:
        losses.append(("penalty", f"w{g.rng.randrange(len(g.variables))}"))
    return losses


def _updates(g: Draw) -> list[tuple[object, ...]]:
    count = len(g.variables)
    if g.rng.random() < 0.3:
        optimizers = ["SGD(0.1)", "SGD(0.1, momentum=0.9)", "Adam(0.01)"]
        if g.dtype == "bfloat16":  # where Adam's second decay is 1 and nothing moves
            optimizers.pop()
        return [("apply", g.rng.choice(optimizers))]
    updates: list[tuple[object, ...]] = []
    if g.rng.random() < 0.7:
        updates += [("descend", i) for i in range(count) if g.rng.random() < 0.7]
    for _ in range(g.rng.choice([0, 1, 2, 3])):
        kind = g.rng.choice(["assign", "average", "add", "change", "scale", "swap"])
        a = g.rng.randrange(count)
        same = [i for i, s in enumerate(g.variables) if s == g.variables[a]]
        b = g.rng.choice(same)
        updates.append((kind, a) if kind in ("change", "scale") else (kind, a, b))
    return updates


FLAT = ("stop", "sign", "floor", "ceil", "round")  # what has no derivative but zero
DRAWN = ("argmax", "one_hot", "random")


def reached(program: Program) -> set[str]:
    """The variables that the loss depends on, by derivatives that need not be zero."""
    found = {name for _, name in program.losses}
    for s in reversed(program.body):
        if s.out in found and s.op not in DRAWN and s.attrs.get("fn") not in FLAT:
            found |= _reached_by(s)
    return {name for name in found if name.startswith("w")}


def _reached_by(statement: Statement) -> set[str]:
    """What has a derivative: of a branch or of rounds that may not run, what runs in any case."""
    chains = statement.attrs.get("chains", ())
    stops = [[k for k, item in enumerate(chain) if item in FLAT] for chain in chains]
    if statement.op in ("cond", "while"):
        return set() if any(stops) else set(statement.inputs[:1])
    if not any(stops):
        return set(names_in(statement))
    behind = [chain[at[-1] + 1 :] if at else chain for chain, at in zip(chains, stops, strict=True)]
    return {item.split(":")[1] for chain in behind for item in chain if ":" in item}


def generate(seed: int, large: bool = False) -> Program:
    """The program of a seed."""
    for attempt in range(100):
        g = Draw(seed * 128 + attempt, large)
        for _ in range(g.rng.randint(2, 14)):
            g.add()
        if g.rng.random() < 0.4 and g.variables:  # a second variable to write into
            g.variables.append(g.rng.choice(g.variables))
        losses = _losses(g)
        if not losses or not g.variables or not g.body:
            continue
        program = Program(
            seed=seed,
            dtype=g.dtype,
            shares=g.shares,
            inputs=g.inputs,
            variables=g.variables,
            body=g.body,
            losses=losses,
            updates=[],
            outputs=[],
        )
        connected = reached(program)
        if not connected:
            continue
        values = [s.out for s in g.body]
        returned = g.rng.sample(values, min(len(values), g.rng.randint(0, 3)))
        program.outputs = sorted({*returned, *program.draws()})
        pools = any(s.op == "pool" for s in g.body)  # has rows of its own in second derivatives
        program.second = g.rng.random() < (0.8 if pools else 0.4) and (
            features.DRAWN["second_of_while"] or all(s.op != "while" for s in g.body)
        )
        program.updates = _updates(g)
        program.steps = g.rng.choice([1, 1, 2, 3])
        program.examples = g.rng.random() < 0.8
        return program
    raise AssertionError(f"no program for seed {seed}")
