"""The meaning of a program: each replica by itself, in NumPy float64."""

from __future__ import annotations

import dataclasses
import functools
import itertools
from typing import Any

import numpy as np

from fuzz import dual
from fuzz.dual import Dual, Number, add, mul, value_of
from fuzz.ops import OPS
from fuzz.ops.table import Env
from fuzz.program import Program, concrete

# A learning rate is a variable of float32, whatever weights are.
RATES = {"SGD": float(np.float32(0.1)), "Adam": float(np.float32(0.01))}
# Keras makes tensors of momentum and decays, in float32 as TensorFlow does.
MOMENTUM = float(np.float32(0.9))
DECAYS = float(np.float32(0.9)), float(np.float32(0.999))
# Operations with sums inside.
SUMS = {
    "dense",
    "matmul",
    "matrices",
    "gram",
    "conv2d",
    "normalize",
    "center",
    "softmax",
    "log_softmax",
    "cross_entropy",
    "sparse_cross_entropy",
    "reduce",
    "reduce_prod",
    "outer",
    "pairwise",
    "eye",
    "gathered",
    "counted",
    "close",  # a difference of nearly equal numbers
}
# Those that may be 0 by cancellation, where rounding leaves so many parts of the operand's size.
CENTERED = {"normalize": 1, "center": 1, "gathered": 1, "counted": 1, "close": 300}
Arrays = list[np.ndarray]
Given = dict[str, np.ndarray]  # what was drawn at random


@dataclasses.dataclass
class Share:
    """What one replica has of a step.

    Args:
        values: By name, outputs of the program and its loss.
        first: Of the loss, along the direction of the derivatives.
        second: Of the loss, along both directions.
    """

    values: dict[str, np.ndarray]
    first: float
    second: float


def forward(
    program: Program,
    xs: Arrays,
    weights: list[Number],
    given: Given,
    moved: tuple[float, bool] = (0.0, False),
    everyone: tuple[Arrays, Given] | None = None,
) -> dict[str, Number]:
    """All values of one replica.

    Args:
        everyone: Inputs and draws of all replicas together, for what is gathered.
    """
    levels = itertools.count(10)
    values: dict[str, Number] = {f"x{i}": x for i, x in enumerate(xs)}
    values |= {f"w{i}": w for i, w in enumerate(weights)}
    n = len(xs[0])
    env = Env(n, values, lambda: next(levels), given)

    @functools.cache
    def of_all() -> dict[str, Number]:
        if everyone is None:
            return values
        return forward(program, everyone[0], weights, everyone[1])

    env.whole = lambda name: of_all()[name]
    rng = np.random.default_rng(program.seed)
    noise, apart = moved
    if noise:
        env.moved = lambda x, is_sum: mul(
            1 + noise * rng.normal(size=value_of(x).shape if is_sum or apart else ()), x
        )
    for s in program.body:
        env.inputs = s.inputs
        values[s.out] = OPS[s.op].meaning([values[name] for name in s.inputs], s.attrs, env)
        shape = concrete(s.type.shape, n)
        found = value_of(values[s.out]).shape
        assert found == shape, f"{s.out} ({s.op}) has the shape {found}, drawn as {shape}"
        if noise and s.type.kind == "f" and s.op != "random":
            # One factor for all elements, so that what is equal within a value stays equal; but
            # for sums, which are rounded each in its own way.
            each = concrete(s.type.shape, n) if s.op in SUMS or apart else ()
            values[s.out] = mul(1 + noise * rng.normal(size=each), values[s.out])
            if s.op in CENTERED:
                size = CENTERED[s.op] * np.max(np.abs(value_of(values[s.inputs[0]])), initial=0)
                values[s.out] = add(values[s.out], noise * size * rng.normal(size=each))
    return values


def loss_of(program: Program, values: dict[str, Number], total: int, replicas: int) -> Number:
    """Of one replica: its share of the mean over all examples."""
    loss: Number = np.zeros(())
    for kind, name in program.losses:
        loss = add(loss, _loss(kind, values[name], total, replicas))
    return loss


def _loss(kind: str, x: Number, total: int, replicas: int) -> Number:
    everything = tuple(range(value_of(x).ndim))
    if kind == "penalty":
        return mul(0.05 / replicas, dual.reduce_sum(mul(x, x), everything))
    if kind == "sum":
        return mul(0.1, dual.reduce_sum(x, everything))
    if len(everything) > 1:
        x = dual.reduce_mean(x, everything[1:])
    return mul(1 / total, dual.reduce_sum(x, (0,)))


def interpret(
    program: Program,
    xs: Arrays,
    weights: Arrays,
    directions: tuple[Arrays, Arrays],
    total: int,
    replicas: int,
    given: Given,
    moved: tuple[float, bool] = (0.0, False),
    everyone: tuple[Arrays, Given] | None = None,
) -> Share:
    """One replica's step, up to the derivatives of its loss.

    Args:
        moved: By how much what statements make is moved, to see how far rounding can carry, and
            whether equal elements are moved apart.
    """
    duals: list[Number] = [Dual(w, d, 1) for w, d in zip(weights, directions[0], strict=True)]
    if program.second:
        duals = [Dual(w, d, 2) for w, d in zip(duals, directions[1], strict=True)]
    with np.errstate(all="ignore"):
        values = forward(program, xs, duals, given, moved, everyone)
        loss = loss_of(program, values, total, replicas)
    found = {name: value_of(values[name]) for name in program.outputs}
    found["loss"] = value_of(loss)
    once = loss.primal if isinstance(loss, Dual) and loss.level == 2 else loss
    first = float(value_of(once.tangent)) if isinstance(once, Dual) and once.level == 1 else 0.0
    second = 0.0
    if isinstance(loss, Dual) and loss.level == 2:
        both = loss.tangent
        second = float(value_of(both.tangent)) if isinstance(both, Dual) else 0.0
    return Share(found, first, second)


class Optimizer:
    """What `apply_gradients` does, step by step."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.slots: dict[int, Any] = {}
        self.step = 0

    def apply(self, gradients: list[np.ndarray | None], weights: Arrays) -> None:
        self.step += 1
        for i, g in enumerate(gradients):
            if g is None:
                continue
            if self.text.startswith("Adam"):
                weights[i] = weights[i] - self._adam(i, g)
            elif "momentum" in self.text:
                self.slots[i] = MOMENTUM * self.slots.get(i, 0.0) - RATES["SGD"] * g
                weights[i] = weights[i] + self.slots[i]
            else:
                weights[i] = weights[i] - RATES["SGD"] * g

    def _adam(self, i: int, g: np.ndarray) -> np.ndarray:
        m, v = self.slots.get(i, (0.0, 0.0))
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        self.slots[i] = (m, v)
        first, second = (1 - decay**self.step for decay in DECAYS)
        rate = RATES["Adam"] * np.sqrt(second) / first
        change: np.ndarray = rate * m / (np.sqrt(v) + 1e-7)
        return change


def update(
    program: Program,
    weights: Arrays,
    gradients: list[np.ndarray | None],
    optimizer: Optimizer | None,
) -> Arrays:
    """The variables after a step whose summed gradients are given."""
    w = [np.asarray(x, np.float64) for x in weights]
    for kind, *rest in program.updates:
        if kind == "apply":
            assert optimizer is not None
            optimizer.apply(gradients, w)
            continue
        a = rest[0]
        if kind == "descend":
            g = gradients[a]
            w[a] = w[a] if g is None else w[a] - 0.125 * g
        elif kind == "assign":
            w[a] = w[rest[1]]
        elif kind == "average":
            w[a] = 0.75 * w[a] + 0.25 * w[rest[1]]
        elif kind == "add":
            w[a] = w[a] + w[rest[1]]
        elif kind == "change":
            w[a] = w[a] + 1.0
        elif kind == "scale":
            w[a] = 0.5 * w[a]
        else:
            w[a], w[rest[1]] = w[rest[1]], w[a]
    return w
