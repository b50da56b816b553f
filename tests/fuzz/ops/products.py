"""Matrix products, convolutions, pooling."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fuzz import dual
from fuzz.dual import mul
from fuzz.ops.table import Drawn, Op, line
from fuzz.program import N, Type

if TYPE_CHECKING:
    from fuzz.generate import Draw


def _fixed(t: Type, *axes: int) -> bool:
    return len(t.shape) >= max(-a if a < 0 else a + 1 for a in axes) and all(
        isinstance(t.shape[a], int) and t.shape[a] > 0
        for a in axes  # type: ignore[operator]
    )


def _draw_dense(g: Draw) -> Drawn | None:
    """A value times a weight, by its last axis."""
    x = g.pick(
        lambda t: t.kind == "f" and len(t.shape) >= 2 and _fixed(t, -1) and t.shape[-1] <= 4096
    )
    if x is None:
        return None
    t = g.types[x]
    k = t.shape[-1]
    assert isinstance(k, int)
    m = g.size(max(1, min(64, g.most_weights // k)))
    transpose = g.rng.random() < 0.3
    w = g.variable((m, k) if transpose else (k, m))
    shape = (*t.shape[:-1], m)
    if g.too_big(shape):
        return None
    fused = g.rng.choice(["", "bias", "bias relu"]) if not transpose else ""
    inputs = (x, w, g.variable((m,))) if fused else (x, w)
    return inputs, {"t": transpose, "fused": fused}, Type(shape, local=t.local)


def _dense_text(out: str, i: list[str], attrs: dict) -> list[str]:  # type: ignore[type-arg]
    product = f"tf.matmul({i[0]}, {i[1]}, transpose_b={attrs['t']})"
    return [f"{out} = " + _fused_text(product, i, attrs["fused"])]


def _dense(v: list[dual.Number], attrs: dict) -> dual.Number:  # type: ignore[type-arg]
    return _fused(dual.matmul(v[0], v[1], False, attrs["t"]), v, attrs["fused"])


def _draw_batched(g: Draw) -> Drawn | None:
    """Matrices of each example with each other, as in attention."""
    x = g.pick(lambda t: t.kind == "f" and t.axis == 0 and len(t.shape) >= 3 and _fixed(t, -1, -2))
    if x is None:
        return None
    t = g.types[x]
    rows, k = t.shape[-2], t.shape[-1]
    ta, tb = g.rng.random() < 0.4, g.rng.random() < 0.5

    def fits(o: Type) -> bool:
        if (
            o.kind != "f"
            or o.shape[:-2] != t.shape[:-2]
            or len(o.shape) != len(t.shape)
            or not _fixed(o, -1, -2)
        ):
            return False
        return o.shape[-1 if tb else -2] == (rows if ta else k)

    y = g.pick(fits)
    if y is None:
        return None
    o = g.types[y]
    shape = (*t.shape[:-2], k if ta else rows, o.shape[-2 if tb else -1])
    if g.too_big(shape):
        return None
    return (x, y), {"ta": ta, "tb": tb}, Type(shape, local=t.local and o.local)


def _draw_attention(g: Draw) -> Drawn | None:
    """Rows of each example that look at each other, or at those before."""
    x = g.pick(
        lambda t: (
            t.kind == "f"
            and len(t.shape) == 3
            and t.shape[0] == N()
            and _fixed(t, -1, -2)
            and t.shape[1] <= 256
        )
    )
    if x is None:
        return None
    attrs = {
        "causal": g.rng.random() < 0.5,
        "padding": g.rng.choice([0, 0, 2, 3]),  # every second or third key is hidden, the first too
        "keys": g.types[x].shape[1],
    }
    return (x,), attrs, Type(g.types[x].shape, local=g.types[x].local)


def _attention_text(out: str, i: list[str], attrs: dict) -> list[str]:  # type: ignore[type-arg]
    attend = "tf.nn.dot_product_attention({0}, 0.5 * {0}, {0}, mask={1}, scale=0.3, is_causal={2})"
    mask = "None"
    if attrs["padding"]:
        mask = f"(tf.range({attrs['keys']}) % {attrs['padding']} != 0)[None, None, None, :]"
    head = f"{i[0]}[:, :, None, :]"
    return [f"{out} = {attend.format(head, mask, attrs['causal'])}[:, :, 0, :]"]


def _attention(v: list[dual.Number], attrs: dict) -> dual.Number:  # type: ignore[type-arg]
    scores = mul(0.15, dual.matmul(v[0], v[0], False, True))
    rows = attrs["keys"]
    seen = np.tril(np.ones((rows, rows))) if attrs["causal"] else np.ones((rows, rows))
    if attrs["padding"]:
        seen = seen * (np.arange(rows) % attrs["padding"] != 0)
    scores = dual.add(mul(seen, scores), (1 - seen) * -1e4)  # rows that see nothing weigh equally
    return dual.matmul(dual.softmax(scores, 2), v[0], False, False)


def _draw_gram(g: Draw) -> Drawn | None:
    """xᵀ·y over the examples: the tree's own product."""
    x = g.pick(
        lambda t: t.kind == "f" and t.shape[:1] == (N(),) and len(t.shape) == 2 and _fixed(t, -1)
    )
    if x is None or not g.across_examples():
        return None
    y = g.pick(
        lambda t: t.kind == "f" and t.shape[:1] == (N(),) and len(t.shape) == 2 and _fixed(t, -1)
    )
    assert y is not None
    shape = (g.types[x].shape[1], g.types[y].shape[1])
    return (x, y), {}, Type(shape, local=False)


def _draw_pairwise(g: Draw) -> Drawn | None:
    """x·yᵀ: each example with each other, then a mean over the others."""
    x = g.pick(
        lambda t: t.kind == "f" and t.shape[:1] == (N(),) and len(t.shape) == 2 and _fixed(t, -1)
    )
    if x is None or not g.across_examples():
        return None
    return (x,), {}, Type((N(),), local=False)


def _pairwise(v: list[dual.Number]) -> dual.Number:
    scores = mul(0.25, dual.matmul(v[0], v[0], False, True))
    return dual.logsumexp(scores, (1,), False)


def _draw_outer(g: Draw) -> Drawn | None:
    """A value with an axis of the number of examples beside that of the examples."""
    x = g.pick(lambda t: t.kind == "f" and t.shape[:1] == (N(),) and 0 not in t.shape)
    if x is None or not g.across_examples():
        return None
    return (x,), {"axis": g.rng.choice([0, 1])}, Type(g.types[x].shape, local=False)


def _outer(x: dual.Number) -> dual.Number:
    rows, columns = (dual.linear(lambda v, a=a: np.expand_dims(v, a), x) for a in (1, 0))
    return dual.unary("tanh", mul(rows, columns))


def _image(t: Type) -> bool:
    return t.kind == "f" and len(t.shape) == 4 and t.shape[0] == N() and _fixed(t, 1, 2, 3)


def _draw_conv(g: Draw) -> Drawn | None:
    x = g.pick(_image)
    if x is None:
        return None
    _, h, w, c = g.types[x].shape
    assert isinstance(h, int) and isinstance(w, int) and isinstance(c, int)
    same, stride = g.rng.random() < 0.5, g.rng.choice([1, 1, 2, 3])
    dilation = g.rng.choice([1, 1, 1, 2, 3])
    kh, kw = (min(g.rng.randint(1, 5), (d - 1) // dilation + 1) for d in (h, w))
    groups = g.rng.choice([1, 1, c, *(n for n in range(2, c) if c % n == 0)])
    if kh * kw * c > 800 * groups or groups > 64:
        return None
    filters = groups * g.size(max(16 // groups, 1))
    shape = (
        N(),
        dual.paddings(h, kh, stride, same, dilation)[0],
        dual.paddings(w, kw, stride, same, dilation)[0],
        filters,
    )
    if g.too_big(shape) or shape[1] < 1 or shape[2] < 1:
        return None
    inputs = [x, g.variable((kh, kw, c // groups, filters))]
    fused = g.rng.choice(["", "bias", "bias relu"])
    if fused:
        inputs.append(g.variable((filters,)))
    attrs = {
        "stride": stride,
        "dilation": dilation,
        "same": same,
        "padding": "SAME" if same else "VALID",
        "fused": fused,
    }
    return tuple(inputs), attrs, Type(shape, local=g.types[x].local)


def _conv_text(out: str, i: list[str], a: dict) -> list[str]:  # type: ignore[type-arg]
    product = (
        f"tf.nn.conv2d({i[0]}, {i[1]}, strides={a['stride']}, padding='{a['padding']}', "
        f"dilations={a['dilation']})"
    )
    return [f"{out} = " + _fused_text(product, i, a["fused"])]


def _fused_text(product: str, i: list[str], fused: str) -> str:
    if fused:
        product = f"tf.nn.bias_add({product}, {i[2]})"
    return f"tf.nn.relu({product})" if "relu" in fused else product


def _fused(y: dual.Number, v: list[dual.Number], fused: str) -> dual.Number:
    if fused:
        y = dual.add(y, v[2])
    return dual.unary("relu", y) if "relu" in fused else y


def _draw_pool(g: Draw) -> Drawn | None:
    x = g.pick(_image)
    if x is None:
        return None
    _, h, w, c = g.types[x].shape
    assert isinstance(h, int) and isinstance(w, int)
    size = min(g.rng.randint(1, 3), h, w)
    same, stride = g.rng.random() < 0.5, g.rng.randint(1, 3)
    shape = (
        N(),
        dual.paddings(h, size, stride, same)[0],
        dual.paddings(w, size, stride, same)[0],
        c,
    )
    fn = g.rng.choice(["max_pool2d", "max_pool2d", "avg_pool2d"])
    attrs = {
        "size": size,
        "stride": stride,
        "same": same,
        "padding": "SAME" if same else "VALID",
        "fn": fn,
    }
    return (x,), attrs, Type(shape, local=g.types[x].local)


ROWS = [
    Op("dense", _draw_dense, _dense_text, lambda v, a, _: _dense(v, a), weight=4),
    Op(
        "matmul",
        _draw_batched,
        line("tf.matmul({0}, {1}, transpose_a={ta}, transpose_b={tb})"),
        lambda v, a, _: dual.matmul(v[0], v[1], a["ta"], a["tb"]),
        weight=1.5,
    ),
    Op(
        "attention",
        _draw_attention,
        _attention_text,
        lambda v, a, _: _attention(v, a),
        weight=1.5,
    ),
    Op(
        "gram",
        _draw_gram,
        line("tf.matmul({0}, {1}, transpose_a=True)"),
        lambda v, a, _: dual.matmul(v[0], v[1], True, False),
        weight=0.7,
    ),
    Op(
        "pairwise",
        _draw_pairwise,
        line("tf.reduce_logsumexp(0.25 * tf.matmul({0}, {0}, transpose_b=True), axis=1)"),
        lambda v, a, _: _pairwise(v),
        weight=0.4,
        feature="counts_as_sizes",
    ),
    Op(
        "outer",
        _draw_outer,
        line("tf.reduce_mean(tf.tanh({0}[:, None] * {0}[None, :]), axis={axis})"),
        lambda v, a, _: dual.reduce_mean(_outer(v[0]), (a["axis"],)),
        weight=0.7,
        feature="counts_as_sizes",
    ),
    Op(
        "conv2d",
        _draw_conv,
        _conv_text,
        lambda v, a, _: _fused(
            dual.conv2d(v[0], v[1], a["stride"], a["same"], a["dilation"]), v, a["fused"]
        ),
        weight=3,
    ),
    Op(
        "pool",
        _draw_pool,
        line("tf.nn.{fn}({0}, {size}, {stride}, '{padding}')"),
        lambda v, a, _: dual.pool(v[0], a["size"], a["stride"], a["same"], a["fn"] == "max_pool2d"),
        weight=3,
    ),
]
