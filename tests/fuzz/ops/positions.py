"""Running sums and products, reads at indices of each example, and sums of segments."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fuzz import dual
from fuzz.dual import Number, linear, mul, value_of
from fuzz.ops.table import Attrs, Drawn, Op, line
from fuzz.program import Type

if TYPE_CHECKING:
    from fuzz.generate import Draw


def _draw_scan(g: Draw, most: int) -> Drawn | None:
    x = g.pick(
        lambda t: t.kind == "f" and any(isinstance(d, int) and 0 < d <= most for d in t.shape)
    )
    if x is None:
        return None
    t = g.types[x]
    axis = g.rng.choice([i for i, d in enumerate(t.shape) if isinstance(d, int) and 0 < d <= most])
    attrs = {
        "axis": axis, "exclusive": g.rng.random() < 0.4, "reverse": g.rng.random() < 0.4,
    }  # fmt: skip
    return (x,), attrs, t


def _cumsum(x: np.ndarray, attrs: Attrs) -> np.ndarray:
    """Products with a triangle of ones."""
    size = x.shape[attrs["axis"]]
    ones = np.tri(size, k=-1 if attrs["exclusive"] else 0)
    moved = np.moveaxis(x, attrs["axis"], -1)
    return np.moveaxis(moved @ (ones if attrs["reverse"] else ones.T), -1, attrs["axis"])


def _cumprod(x: Number, attrs: Attrs) -> Number:
    """Each element of the result as the product that it is."""
    axis, size = attrs["axis"], value_of(x).shape[attrs["axis"]]
    parts = [linear(lambda v, i=i: np.take(v, [i], axis=axis), x) for i in range(size)]
    order = range(size - 1, -1, -1) if attrs["reverse"] else range(size)
    found: dict[int, Number] = {}
    product: Number = np.ones_like(value_of(parts[0]))
    for i in order:
        after = mul(product, parts[i])
        found[i] = product if attrs["exclusive"] else after
        product = after
    return linear(lambda *v: np.concatenate(v, axis=axis), *(found[i] for i in range(size)))


def _draw_own(g: Draw) -> Drawn | None:
    """Rows of each example by its own indices."""
    i = g.pick(lambda t: t.kind == "i" and t.high > 0 and t.axis == 0)
    if i is None:
        return None
    index = g.types[i]
    x = g.pick(
        lambda t: (
            t.kind == "f"
            and t.axis == 0
            and len(t.shape) > 1
            and t.shape[0] == index.shape[0]
            and isinstance(t.shape[1], int)
            and t.shape[1] >= index.high
        )
    )
    if x is None:
        return None
    t = g.types[x]
    shape = (*index.shape, *t.shape[2:])
    if g.too_big(shape):
        return None
    return (x, i), {}, Type(shape, local=t.local and index.local)


def _own(x: np.ndarray, index: np.ndarray) -> np.ndarray:
    rows = np.arange(len(x)).reshape([-1] + [1] * (index.ndim - 1))
    return x[rows, index.astype(int)]


ROWS = [
    Op(
        "cumsum",
        lambda g: _draw_scan(g, 5000),
        line("tf.cumsum({0}, axis={axis}, exclusive={exclusive}, reverse={reverse})"),
        lambda v, a, _: linear(lambda x: _cumsum(x, a), v[0]),
    ),
    Op(
        "cumprod",
        lambda g: _draw_scan(g, 5),
        line("tf.math.cumprod({0}, axis={axis}, exclusive={exclusive}, reverse={reverse})"),
        lambda v, a, _: _cumprod(v[0], a),
        weight=0.6,
    ),
    Op(
        "gather_own",
        _draw_own,
        line("tf.gather({0}, {1}, batch_dims=1)"),
        lambda v, a, _: dual.linear(lambda x: _own(x, value_of(v[1])), v[0]),
        weight=1.5,
    ),
]
