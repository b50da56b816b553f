"""Gathers, one-hot rows, losses of classes, and sizes that are made of the number of examples."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from fuzz import dual
from fuzz.dual import Number, linear, mul, value_of
from fuzz.ops.table import Attrs, Drawn, Op, line
from fuzz.program import N, Type

if TYPE_CHECKING:
    from fuzz.generate import Draw


def _draw_embedding(g: Draw) -> Drawn | None:
    """Rows of a weight: its gradient is a sum by segments."""
    i = g.pick(lambda t: t.kind == "i" and t.high > 0)
    if i is None:
        return None
    t = g.types[i]
    width = g.size(32)
    if g.too_big((*t.shape, width)):
        return None
    return (g.variable((t.high, width)), i), {}, Type((*t.shape, width), local=t.local)


def _draw_take(g: Draw) -> Drawn | None:
    x = g.pick(lambda t: t.kind == "f" and any(isinstance(d, int) and d > 0 for d in t.shape))
    if x is None:
        return None
    t = g.types[x]
    axis = g.rng.choice([i for i, d in enumerate(t.shape) if isinstance(d, int) and d > 0])
    size = t.shape[axis]
    assert isinstance(size, int)
    at = [g.rng.randrange(size) for _ in range(g.rng.randint(1, 5))]
    shape = (*t.shape[:axis], len(at), *t.shape[axis + 1 :])
    return (x,), {"at": at, "axis": axis}, Type(shape, local=t.local)


def _draw_one_hot(g: Draw) -> Drawn | None:
    i = g.pick(lambda t: t.kind == "i" and 0 < t.high <= 64)
    if i is None:
        return None
    t = g.types[i]
    depth = t.high + g.rng.choice([0, 0, -1, 2])
    if depth < 1 or g.too_big((*t.shape, depth)):
        return None
    attrs = {
        "depth": depth,
        "on": g.rng.choice([1.0, 0.9000001, 3.0]),
        "off": g.rng.choice([0.0, 0.1]),
    }
    return (i,), attrs, Type((*t.shape, depth), local=t.local)


def _one_hot(x: np.ndarray, attrs: dict) -> np.ndarray:  # type: ignore[type-arg]
    hit = x[..., None] == np.arange(attrs["depth"])
    return np.where(hit, attrs["on"], attrs["off"])


def _draw_argmax(g: Draw) -> Drawn | None:
    x = g.pick(
        lambda t: (
            t.kind == "f"
            and t.axis == 0
            and len(t.shape) > 1
            and isinstance(t.shape[-1], int)
            and 0 < t.shape[-1] < 5000
        )
    )
    if x is None:
        return None
    t = g.types[x]
    high = t.shape[-1]
    assert isinstance(high, int)
    fn = g.rng.choice(["argmax", "argmin"])
    return (x,), {"fn": fn}, Type(t.shape[:-1], kind="i", high=high, local=t.local)


def _draw_sparse(g: Draw) -> Drawn | None:
    """Labels below the number of classes."""
    i = g.pick(lambda t: t.kind == "i" and t.high > 0 and t.axis == 0)
    if i is None:
        return None
    labels = g.types[i]
    x = g.pick(
        lambda t: (
            t.kind == "f"
            and t.shape[:-1] == labels.shape
            and len(t.shape) == len(labels.shape) + 1
            and isinstance(t.shape[-1], int)
            and t.shape[-1] >= labels.high
        )
    )
    if x is None:
        return None
    attrs = {"smoothing": g.rng.choice([0.0, 0.0, 0.1, 0.6])}
    return (i, x), attrs, Type(labels.shape, local=labels.local and g.types[x].local)


def _sparse(v: list[Number], attrs: Attrs) -> Number:
    labels = value_of(v[0])
    classes = value_of(v[1]).shape[-1]
    smoothing = attrs["smoothing"] if classes > 1 else 0.0
    expected = np.where(
        labels[..., None] == np.arange(classes), 1 - smoothing, smoothing / max(classes - 1, 1)
    )
    logs = dual.log_softmax(v[1], value_of(v[1]).ndim - 1)
    return mul(-1.0, linear(lambda x: (expected * x).sum(-1), logs))


def _draw_dense_labels(g: Draw) -> Drawn | None:
    x = g.pick(
        lambda t: (
            t.kind == "f"
            and t.axis == 0
            and len(t.shape) >= 2
            and isinstance(t.shape[-1], int)
            and t.shape[-1] > 0
        )
    )
    if x is None:
        return None
    t = g.types[x]
    y = g.pick(lambda o: o.kind == "f" and o.shape == t.shape)
    assert y is not None
    return (y, x), {}, Type(t.shape[:-1], local=t.local and g.types[y].local)


def _dense_labels(v: list[Number]) -> Number:
    last = value_of(v[1]).ndim - 1
    labels = dual.softmax(v[0], last)
    return mul(-1.0, dual.reduce_sum(mul(labels, dual.log_softmax(v[1], last)), (last,)))


def _draw_per_count(g: Draw) -> Drawn | None:
    x = g.pick(lambda t: t.kind == "f" and t.axis == 0 and t.shape[0] == N())
    if x is None or not g.across_examples():
        return None
    t = g.types[x]
    return (x,), {}, Type(t.shape, local=False)


def _draw_eye(g: Draw) -> Drawn | None:
    x = g.pick(lambda t: t.kind == "f" and t.shape[:1] == (N(),) and len(t.shape) == 2)
    if x is None or not g.across_examples():
        return None
    return (x,), {}, Type(g.types[x].shape, local=False)


def _eye(x: Number) -> Number:
    n = value_of(x).shape[0]
    return dual.matmul(2.0 * np.eye(n) + 0.5 * np.ones((n, n)), x, False, False)


# What mixes the examples of a replica by sizes made of their number: text and meaning.
COUNTED: dict[str, tuple[str, Callable[[np.ndarray], np.ndarray]]] = {
    "places": (
        "{0} * tf.reshape(tf.cast(tf.range(rows), FLOAT), [-1{ones}])",
        lambda x: x * np.arange(len(x)).reshape([-1] + [1] * (x.ndim - 1)),
    ),
    "first": ("0.5 * {0} + tf.tile({0}[:1], [rows{ones}])", lambda x: 0.5 * x + x[:1]),
    "against the first": ("{0} - 0.5 * {0}[:1]", lambda x: x - 0.5 * x[:1]),
    "last": ("{0} - 0.5 * {0}[rows - 1]", lambda x: x - 0.5 * x[len(x) - 1]),
    "flat": (
        "tf.reshape(tf.reshape({0}, [rows * {size}])[::-1], tf.shape({0}))",
        lambda x: x.reshape(-1)[::-1].reshape(x.shape),
    ),
    "others": (
        "{0} - tf.reduce_sum({0}, axis=0) / tf.cast(rows + 1, FLOAT)",
        lambda x: x - x.sum(0) / (len(x) + 1),
    ),
    "neighbours": (
        "{0} + tf.reduce_sum({0}[::2][: rows // 2] - 0.5 * {0}[1::2], axis=0)",
        lambda x: x + (x[::2][: len(x) // 2] - 0.5 * x[1::2]).sum(0),
    ),
    "twice": (
        "tf.concat([{0}, {0} * 0.5], axis=0)[rows // 2 : rows // 2 + rows]",
        lambda x: np.concatenate([x, x * 0.5])[len(x) // 2 : len(x) // 2 + len(x)],
    ),
}
# Those that need an example.
OF_SOME = {"last"}


def _draw_counted(g: Draw) -> Drawn | None:
    x = g.pick(lambda t: t.kind == "f" and t.shape[:1] == (N(),) and 0 not in t.shape)
    if x is None or not g.across_examples():
        return None
    t = g.types[x]
    forms = sorted(COUNTED if g.least_examples() else COUNTED.keys() - OF_SOME)
    attrs = {
        "form": g.rng.choice(forms),
        "ones": ", 1" * (len(t.shape) - 1),
        "size": t.per_example(),
    }
    return (x,), attrs, Type(t.shape, local=False)


def _counted_text(out: str, i: list[str], a: Attrs) -> list[str]:
    form = COUNTED[a["form"]][0].format(*i, **a)
    return [f"rows = tf.shape({i[0]})[0]", f"{out} = {form}"]


ROWS = [
    Op(
        "counted",
        _draw_counted,
        _counted_text,
        lambda v, a, _: linear(COUNTED[a["form"]][1], v[0]),
        weight=2.5,
        feature="counts_as_sizes",
    ),
    Op(
        "embedding",
        _draw_embedding,
        line("tf.gather({0}, {1})"),
        lambda v, a, _: linear(lambda w: w[value_of(v[1]).astype(int)], v[0]),
        weight=2.5,
    ),
    Op(
        "take",
        _draw_take,
        line("tf.gather({0}, {at}, axis={axis})"),
        lambda v, a, _: linear(lambda x: np.take(x, a["at"], a["axis"]), v[0]),
        weight=1.5,
    ),
    Op(
        "one_hot",
        _draw_one_hot,
        line("tf.one_hot({0}, {depth}, on_value={on}, off_value={off}, dtype=FLOAT)"),
        lambda v, a, _: _one_hot(value_of(v[0]), a),
    ),
    Op(
        "argmax",
        _draw_argmax,
        line("tf.cast(tf.{fn}({0}, axis=-1), tf.int32)"),
        lambda v, a, _: getattr(np, a["fn"])(value_of(v[0]), -1),
        weight=0.7,
    ),
    Op(
        "sparse_cross_entropy",
        _draw_sparse,
        line(
            "tf.nn.sparse_softmax_cross_entropy_with_logits({0}, {1}, label_smoothing={smoothing})"
        ),
        lambda v, a, _: _sparse(v, a),
        weight=2,
    ),
    Op(
        "cross_entropy",
        _draw_dense_labels,
        line("tf.nn.softmax_cross_entropy_with_logits(tf.nn.softmax({0}), {1})"),
        lambda v, a, _: _dense_labels(v),
    ),
    Op(
        "per_count",
        _draw_per_count,
        line("{0} / tf.cast(tf.shape({0})[0], {0}.dtype)"),
        lambda v, a, _: mul(v[0], 1 / max(value_of(v[0]).shape[0], 1)),
        weight=0.5,
        feature="counts_as_sizes",
    ),
    Op(
        "eye",
        _draw_eye,
        lambda out, i, a: [
            f"rows = tf.shape({i[0]})[0]",
            f"{out} = tf.matmul(2.0 * tf.eye(rows, dtype=FLOAT) + "
            f"0.5 * tf.ones([rows, rows], FLOAT), {i[0]})",
        ],
        lambda v, a, _: _eye(v[0]),
        weight=0.4,
        feature="counts_as_sizes",
    ),
]
