"""Sums, means, extremes and softmaxes over any axes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fuzz import dual
from fuzz.dual import Number, mul, sub, unary, value_of
from fuzz.ops.table import Drawn, Env, Op, line
from fuzz.program import Type

if TYPE_CHECKING:
    from fuzz.generate import Draw

REDUCTIONS = [
    "reduce_sum",
    "reduce_mean",
    "reduce_max",
    "reduce_min",
    "reduce_logsumexp",
    "reduce_variance",
]


def _reduced(shape: tuple, axes: tuple[int, ...], keep: bool) -> tuple:  # type: ignore[type-arg]
    if keep:
        return tuple(1 if i in axes else d for i, d in enumerate(shape))
    return tuple(d for i, d in enumerate(shape) if i not in axes)


def _draw(g: Draw) -> Drawn | None:
    x = g.pick(lambda t: t.kind == "f" and len(t.shape) > 0 and 0 not in t.shape)
    if x is None:
        return None
    t = g.types[x]
    choices = [i for i in range(len(t.shape)) if i != t.axis]
    across = t.axis >= 0 and (not choices or g.rng.random() < 0.15) and g.across_examples()
    axes = [i for i in choices if g.rng.random() < 0.6] + ([t.axis] if across else [])
    if not axes:
        return None
    fn = g.rng.choice(REDUCTIONS)
    if across and g.least_examples() == 0:
        fn = "reduce_sum"
    axes = tuple(sorted(axes))
    keep = g.rng.random() < 0.4
    attrs = {
        "fn": ("math." if fn == "reduce_variance" else "") + fn,
        "axes": list(axes),
        "keep": keep,
    }
    return (x,), attrs, Type(_reduced(t.shape, axes, keep), local=t.local and not across)


def _meaning(values: list[Number], attrs: dict, env: Env) -> Number:  # type: ignore[type-arg]
    x, axes, keep = values[0], tuple(attrs["axes"]), attrs["keep"]
    fn = attrs["fn"].removeprefix("math.")
    if fn == "reduce_sum":
        return dual.reduce_sum(x, axes, keep)
    if fn == "reduce_mean":
        return dual.reduce_mean(x, axes, keep)
    if fn == "reduce_logsumexp":
        return dual.logsumexp(x, axes, keep)
    if fn == "reduce_variance":
        centered = sub(x, dual.reduce_mean(x, axes, True))
        return dual.reduce_mean(unary("square", centered), axes, keep)
    return dual.reduce_extreme(x, axes, keep, fn == "reduce_max")


def _draw_prod(g: Draw) -> Drawn | None:
    x = g.pick(lambda t: t.kind == "f" and any(isinstance(d, int) and 0 < d < 6 for d in t.shape))
    if x is None:
        return None
    t = g.types[x]
    axis = g.rng.choice([i for i, d in enumerate(t.shape) if isinstance(d, int) and 0 < d < 6])
    keep = g.rng.random() < 0.4
    return (x,), {"axis": axis, "keep": keep}, Type(_reduced(t.shape, (axis,), keep), local=t.local)


def _draw_last(g: Draw) -> Drawn | None:
    x = g.pick(
        lambda t: (
            t.kind == "f" and len(t.shape) > 1 and isinstance(t.shape[-1], int) and t.shape[-1] > 0
        )
    )
    if x is None:
        return None
    t = g.types[x]
    axis = -1
    if g.rng.random() < 0.2:
        axis = g.rng.choice([i for i, d in enumerate(t.shape) if isinstance(d, int) and d > 0])
    return (x,), {"axis": axis}, t


def _draw_any(g: Draw) -> Drawn | None:
    drawn = _draw_last(g)
    if drawn is None:
        return None
    fn, bound = g.rng.choice([("reduce_any", 1.0), ("reduce_all", -1.0)])
    return drawn[0], drawn[1] | {"fn": fn, "bound": bound}, drawn[2]


def _any(x: np.ndarray, attrs: dict) -> np.ndarray:  # type: ignore[type-arg]
    reduce = np.any if attrs["fn"] == "reduce_any" else np.all
    hit: np.ndarray = reduce(x > attrs["bound"], axis=attrs["axis"], keepdims=True)
    return hit.astype(float)


def _normalized(x: Number) -> Number:
    """Layer normalization without weights."""
    centered = sub(x, dual.reduce_mean(x, (-1,), True))
    variance = dual.reduce_mean(unary("square", centered), (-1,), True)
    return mul(centered, unary("rsqrt", dual.add(variance, 0.125)))


def _normalize_text(out: str, inputs: list[str], attrs: object) -> list[str]:
    x = inputs[0]
    return [
        f"centered = {x} - tf.reduce_mean({x}, axis=-1, keepdims=True)",
        f"{out} = centered * tf.math.rsqrt("
        "tf.reduce_mean(tf.square(centered), axis=-1, keepdims=True) + 0.125)",
    ]


def _draw_normalize(g: Draw) -> Drawn | None:
    drawn = _draw_last(g)
    return drawn and (drawn[0], {}, drawn[2])


def _draw_average(g: Draw) -> Drawn | None:
    """Something of all examples of the replica: statistics as batch normalization has them."""
    x = g.pick(lambda t: t.kind == "f" and t.axis == 0)
    if x is None or not g.across_examples() or g.least_examples() == 0:
        return None
    t = g.types[x]
    return (x,), {}, Type(t.shape, local=False)


ROWS = [
    Op("reduce", _draw, line("tf.{fn}({0}, axis={axes}, keepdims={keep})"), _meaning, weight=4),
    Op(
        "reduce_prod",
        _draw_prod,
        line("tf.reduce_prod({0}, axis={axis}, keepdims={keep})"),
        lambda v, a, _: dual.reduce_prod(v[0], a["axis"], a["keep"]),
        weight=0.6,
    ),
    Op(
        "softmax",
        _draw_last,
        line("tf.nn.softmax({0}, axis={axis})"),
        lambda v, a, _: dual.softmax(v[0], a["axis"] % value_of(v[0]).ndim),
    ),
    Op(
        "log_softmax",
        _draw_last,
        line("tf.nn.log_softmax({0}, axis={axis})"),
        lambda v, a, _: dual.log_softmax(v[0], a["axis"] % value_of(v[0]).ndim),
    ),
    Op("normalize", _draw_normalize, _normalize_text, lambda v, a, _: _normalized(v[0])),
    Op(
        "center",
        _draw_average,
        line("{0} - tf.reduce_mean({0}, axis=0, keepdims=True)"),
        lambda v, a, _: sub(v[0], dual.reduce_mean(v[0], (0,), True)),
        weight=0.4,
    ),
    Op(
        "any",
        _draw_any,
        line("{0} * tf.cast(tf.{fn}({0} > {bound}, axis={axis}, keepdims=True), {0}.dtype)"),
        lambda v, a, _: mul(v[0], _any(value_of(v[0]), a)),
        weight=0.8,
    ),
]
