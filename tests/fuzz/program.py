"""A program as data: typed statements, what is lost, what is written; and its Python text."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any

import ml_dtypes
import numpy as np


@dataclasses.dataclass(frozen=True)
class N:
    """A size that counts examples: `times` for each."""

    times: int = 1


Dim = int | N
Shape = tuple[Dim, ...]


@dataclasses.dataclass(frozen=True)
class Type:
    """The type of a value.

    Args:
        shape: Sizes.
        kind: "f" for floats, "i" for int32, "b" for bools.
        high: Of ints: they are in [0, high).
        local: Each example of it depends on the same example of the inputs only, and all replicas
            agree on what has no examples.
    """

    shape: Shape
    kind: str = "f"
    high: int = 0
    local: bool = True

    @property
    def axis(self) -> int:
        """Of the examples; -1 if there are none."""
        return next((i for i, d in enumerate(self.shape) if isinstance(d, N)), -1)

    def per_example(self) -> int:
        """Elements of an example."""
        size = 1
        for d in self.shape:
            size *= d.times if isinstance(d, N) else d
        return size


@dataclasses.dataclass
class Statement:
    """`out = op(inputs)`; inputs are names of inputs (x), variables (w) and statements (v)."""

    out: str
    op: str
    inputs: tuple[str, ...]
    attrs: dict[str, Any]
    type: Type


@dataclasses.dataclass
class Program:
    """One step of a training.

    Args:
        seed: Of the data.
        dtype: Of all floats.
        shares: Examples of each replica.
        inputs: Types of x0, x1, …; all have their examples on axis 0.
        variables: Shapes of w0, w1, …
        body: What runs under the tape.
        losses: (kind, name): "average" over examples, "sum" of a value, "penalty" of a variable.
        updates: What is written after the gradients: (kind, operands …).
        outputs: Names of values that are returned.
        second: Whether second derivatives are taken as well.
        steps: How often it runs.
        examples: Whether the inputs say which axis counts examples, as those of a dataset do.
    """

    seed: int
    dtype: str
    shares: tuple[int, ...]
    inputs: list[Type]
    variables: list[tuple[int, ...]]
    body: list[Statement]
    losses: list[tuple[str, str]]
    updates: list[tuple[Any, ...]]
    outputs: list[str]
    second: bool = False
    steps: int = 1
    examples: bool = True

    def types(self) -> dict[str, Type]:
        found = {f"x{i}": t for i, t in enumerate(self.inputs)}
        found |= {f"w{i}": Type(tuple(s)) for i, s in enumerate(self.variables)}
        return found | {s.out: s.type for s in self.body}

    def is_local(self) -> bool:
        """Whether its results do not depend on how examples are shared among replicas."""
        types = self.types()
        return all(types[s.out].local for s in self.body) and all(
            k != "sum" for k, _ in self.losses
        )

    def gathers(self) -> bool:
        """Whether derivatives flow back from what was gathered of all replicas."""
        return any(s.op == "gathered" and not s.attrs["stopped"] for s in self.body)

    def draws(self) -> list[str]:
        """Names of what is drawn at random."""
        return [s.out for s in self.body if s.op == "random"]

    def uses_of_variables(self) -> dict[str, int]:
        counts = {f"w{i}": 0 for i in range(len(self.variables))}
        for s in self.body:
            for name in names_in(s):
                if name in counts:
                    counts[name] += 1
        return counts

    def largest(self) -> int:
        """Bytes of the largest value of one example."""
        width = {"float64": 8, "float32": 4, "bfloat16": 2}[self.dtype]
        types = [t for t in self.types().values() if t.axis >= 0]
        return max((t.per_example() for t in types), default=0) * width


def names_in(statement: Statement) -> Iterable[str]:
    """Operands, and what inner bodies read."""
    yield from statement.inputs
    for chain in statement.attrs.get("chains", ()):
        for item in chain:
            if ":" in item:
                yield item.split(":")[1]


# ---- data: the same numbers for the engine, the interpreter and the printed program ----


def concrete(shape: Shape, n: int) -> tuple[int, ...]:
    return tuple(d.times * n if isinstance(d, N) else d for d in shape)


def draw(seed: int, stream: int, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    return rounded(np.random.default_rng([seed, stream]).normal(size=shape), dtype)


def rounded(x: np.ndarray, dtype: str) -> np.ndarray:
    """In the dtype; of 16 bits, its numbers as float32."""
    if dtype != "bfloat16":
        return x.astype(dtype)
    return x.astype(ml_dtypes.bfloat16).astype(np.float32)


def input_data(program: Program, step: int) -> list[np.ndarray]:
    n = sum(program.shares)
    found = []
    for i, t in enumerate(program.inputs):
        shape = concrete(t.shape, n)
        if t.kind == "i":
            rng = np.random.default_rng([program.seed, 10 * step + i])
            found.append(rng.integers(0, t.high, shape).astype(np.int32))
        else:
            found.append(draw(program.seed, 10 * step + i, shape, program.dtype))
    return found


def scale_of(shape: tuple[int, ...]) -> float:
    fan = int(np.prod(shape[:-1])) if len(shape) > 1 else 4
    return round(1 / max(fan, 1) ** 0.5, 3)


def variable_data(program: Program) -> list[np.ndarray]:
    return [
        rounded(draw(program.seed, 1000 + i, s, "float64") * scale_of(s), program.dtype)
        for i, s in enumerate(program.variables)
    ]


def direction(program: Program, which: int) -> list[np.ndarray]:
    """Along which derivatives are compared: one array for each variable."""
    return [
        draw(program.seed, 2000 + 100 * which + i, s, program.dtype)
        for i, s in enumerate(program.variables)
    ]
