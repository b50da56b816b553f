"""A row of the table of operations."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from fuzz.dual import Number
from fuzz.program import Type

if TYPE_CHECKING:
    from fuzz.generate import Draw

Attrs = dict[str, Any]
Drawn = tuple[tuple[str, ...], Attrs, Type]


@dataclasses.dataclass
class Env:
    """What the meaning of a statement depends on besides its operands.

    Args:
        n: Examples of the replica.
        weights: Values of the variables.
        fresh: A level for one more derivative.
        given: What was drawn at random, by name: nobody but the engine knows it.
        whole: The value of a name over the examples of all replicas, if it is local.
        inputs: The names of the operands.
    """

    n: int
    weights: dict[str, Number]
    fresh: Callable[[], int]
    given: dict[str, np.ndarray] = dataclasses.field(default_factory=dict)
    whole: Callable[[str], Number] | None = None
    inputs: tuple[str, ...] = ()


@dataclasses.dataclass
class Op:
    """One operation.

    Args:
        name: Of the row.
        draw: Operands, attributes and type of a random use; None where nothing fits.
        code: Lines of Python that make `out` of the operands.
        meaning: The same in NumPy.
        weight: How often it is drawn, relative to others.
        feature: The name of the switch that it hangs on.
    """

    name: str
    draw: Callable[[Draw], Drawn | None]
    code: Callable[[str, list[str], Attrs], list[str]]
    meaning: Callable[[list[Number], Attrs, Env], Number]
    weight: float = 1.0
    feature: str = ""


def line(template: str) -> Callable[[str, list[str], Attrs], list[str]]:
    """`out = template`, with {0}, {1}, … for operands and {name} for attributes."""

    def code(out: str, inputs: list[str], attrs: Attrs) -> list[str]:
        return [f"{out} = " + template.format(*inputs, **attrs)]

    return code
