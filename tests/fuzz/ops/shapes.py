"""Operations that move numbers: reshape, transpose, slices, joins, padding, copies."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from fuzz.dual import Number, linear
from fuzz.ops.table import Attrs, Drawn, Op, line
from fuzz.program import Dim, N, Shape, Type

if TYPE_CHECKING:
    from fuzz.generate import Draw


def moved(
    f: Callable[[np.ndarray, Attrs], np.ndarray],
) -> Callable[[list[Number], Attrs, Any], Number]:
    return lambda v, a, _: linear(lambda x: f(x, a), v[0])


def _floats(g: Draw, rank: int = 1) -> str | None:
    return g.pick(lambda t: t.kind == "f" and len(t.shape) >= rank)


def _split_size(g: Draw, size: int) -> list[int]:
    factors = [d for d in range(2, min(size, 64)) if size % d == 0]
    if not factors or g.rng.random() < 0.4:
        return [size]
    first = g.rng.choice(factors)
    return [first, size // first]


def _draw_reshape(g: Draw) -> Drawn | None:
    """Other axes of the same example; sometimes its rows join those of the others."""
    x = _floats(g, 2)
    if x is None:
        return None
    t = g.types[x]
    if t.axis != 0:
        return None
    lead = t.shape[0]
    assert isinstance(lead, N)
    tail: list[int] = [d for d in t.shape[1:] if isinstance(d, int)]
    size = int(np.prod(tail))
    if 0 in tail:
        return None
    if lead.times > 1 and g.rng.random() < 0.5:  # back to one row for each example
        shape: Shape = (N(), lead.times, *tail)
    elif g.rng.random() < 0.25 and tail and tail[0] <= 64:
        shape = (N(lead.times * tail[0]), *tail[1:])
    else:
        shape = (lead, *_split_size(g, size))
    if len(shape) > 6:
        return None
    return (
        (x,),
        {"shape": [-1 if isinstance(d, N) else d for d in shape]},
        Type(shape, local=t.local),
    )


def _draw_transpose(g: Draw) -> Drawn | None:
    x = _floats(g, 2)
    if x is None:
        return None
    t = g.types[x]
    perm = list(range(len(t.shape)))
    if t.axis == 0 and g.rng.random() < 0.7:
        rest = perm[1:]
        g.rng.shuffle(rest)
        perm = [0, *rest]
    else:
        g.rng.shuffle(perm)
    return (x,), {"perm": perm}, Type(tuple(t.shape[p] for p in perm), local=t.local)


def _draw_slice(g: Draw) -> Drawn | None:
    x = _floats(g, 2)
    if x is None:
        return None
    t = g.types[x]
    parts, shape = [], []
    for d in t.shape:
        if isinstance(d, N) or d == 0 or g.rng.random() < 0.4:
            parts.append(":")
            shape.append(d)
            continue
        begin = g.rng.randrange(d)
        if g.rng.random() < 0.2:
            parts.append(str(begin - (d if g.rng.random() < 0.3 else 0)))
            continue
        end, stride = g.rng.randint(begin, d), g.rng.choice([1, 1, 2, -1])
        if stride > 0:
            parts.append(f"{begin}:{end}:{stride}")
            shape.append(len(range(begin, end, stride)))
        else:
            parts.append("::-1")
            shape.append(d)
        if shape[-1] == 0:
            return None
    return (x,), {"index": ", ".join(parts)}, Type(tuple(shape), local=t.local)


def _index(text: str) -> tuple[Any, ...]:
    found: list[Any] = []
    for part in text.split(", "):
        if ":" not in part:
            found.append(int(part))
            continue
        found.append(slice(*(int(p) if p else None for p in part.split(":"))))
    return tuple(found)


def _draw_concat(g: Draw) -> Drawn | None:
    x = _floats(g, 1)
    if x is None:
        return None
    t = g.types[x]
    axes = [i for i, d in enumerate(t.shape) if isinstance(d, int)]
    if not axes:
        return None
    axis = g.rng.choice(axes)

    def fits(o: Type) -> bool:
        return (
            o.kind == "f"
            and len(o.shape) == len(t.shape)
            and isinstance(o.shape[axis], int)
            and all(
                a == b for i, (a, b) in enumerate(zip(o.shape, t.shape, strict=True)) if i != axis
            )
        )

    names = [x] + [n for _ in range(g.rng.randint(1, 3)) if (n := g.pick(fits)) is not None]
    g.rng.shuffle(names)
    total = sum(d for n in names if isinstance(d := g.types[n].shape[axis], int))
    shape = tuple(total if i == axis else d for i, d in enumerate(t.shape))
    if g.too_big(shape):
        return None
    return tuple(names), {"axis": axis}, Type(shape, local=all(g.types[n].local for n in names))


def _draw_stack(g: Draw) -> Drawn | None:
    x = _floats(g, 1)
    if x is None:
        return None
    t = g.types[x]
    if t.axis < 0 or len(t.shape) > 5:
        return None
    y = g.pick(lambda o: o.kind == "f" and o.shape == t.shape)
    assert y is not None
    axis = g.rng.randint(t.axis + 1, len(t.shape))
    shape: Shape = (*t.shape[:axis], 2, *t.shape[axis:])
    if g.too_big(shape):
        return None
    return (x, y), {"axis": axis}, Type(shape, local=t.local and g.types[y].local)


def _draw_pad(g: Draw) -> Drawn | None:
    x = _floats(g, 2)
    if x is None:
        return None
    t = g.types[x]
    pads = [
        [0, 0] if isinstance(d, N) else [g.rng.randint(0, 2), g.rng.randint(0, 2)] for d in t.shape
    ]
    shape: Shape = tuple(
        d if isinstance(d, N) else d + sum(p) for d, p in zip(t.shape, pads, strict=True)
    )
    if g.too_big(shape):
        return None
    value = g.rng.choice([0.0, 0.0, 1.0, 1.00000025, 0.1234567])
    return (x,), {"pads": pads, "value": value}, Type(shape, local=t.local)


def _pad(v: list[Number], a: Attrs) -> Number:
    ones = np.pad(np.zeros(np.shape(_shape_of(v[0]))), a["pads"], constant_values=1.0)
    padded = linear(lambda x: np.pad(x, a["pads"]), v[0])
    from fuzz.dual import add

    return add(padded, ones * a["value"])


def _shape_of(x: Number) -> np.ndarray:
    from fuzz.dual import value_of

    return np.zeros(value_of(x).shape)


def _draw_tile(g: Draw) -> Drawn | None:
    x = _floats(g, 2)
    if x is None:
        return None
    t = g.types[x]
    times = [1 if isinstance(d, N) else g.rng.choice([1, 1, 2, 3]) for d in t.shape]
    shape: Shape = tuple(
        d if isinstance(d, N) else d * k for d, k in zip(t.shape, times, strict=True)
    )
    return None if g.too_big(shape) else ((x,), {"times": times}, Type(shape, local=t.local))


def _draw_repeat(g: Draw) -> Drawn | None:
    x = _floats(g, 2)
    if x is None:
        return None
    t = g.types[x]
    axes = [i for i, d in enumerate(t.shape) if isinstance(d, int)]
    axis, times = g.rng.choice(axes) if axes else -1, g.rng.randint(1, 3)
    if axis < 0:
        return None
    shape: Shape = tuple(
        d * times if i == axis and isinstance(d, int) else d for i, d in enumerate(t.shape)
    )
    return (
        None
        if g.too_big(shape)
        else ((x,), {"axis": axis, "times": times}, Type(shape, local=t.local))
    )


def _draw_expand(g: Draw) -> Drawn | None:
    x = _floats(g, 1)
    if x is None or len(g.types[x].shape) > 5:
        return None
    t = g.types[x]
    axis = g.rng.randint(0, len(t.shape))
    return (x,), {"axis": axis}, Type((*t.shape[:axis], 1, *t.shape[axis:]), local=t.local)


def _draw_squeeze(g: Draw) -> Drawn | None:
    x = g.pick(lambda t: t.kind == "f" and 1 in t.shape)
    if x is None:
        return None
    t = g.types[x]
    axis = t.shape.index(1)
    return (x,), {"axis": axis}, Type((*t.shape[:axis], *t.shape[axis + 1 :]), local=t.local)


def _draw_broadcast(g: Draw) -> Drawn | None:
    x = g.pick(lambda t: t.kind == "f" and t.axis < 0 and len(t.shape) < 3)
    if x is None:
        return None
    t = g.types[x]
    lead = [g.rng.randint(1, 4) for _ in range(g.rng.randint(1, 2))]
    shape: Shape = (*lead, *t.shape)
    return (x,), {"shape": list(shape)}, Type(shape, local=t.local)


def _draw_reverse(g: Draw) -> Drawn | None:
    x = _floats(g, 2)
    if x is None:
        return None
    t = g.types[x]
    axes: list[int] = [i for i, d in enumerate(t.shape) if isinstance(d, int)]
    return ((x,), {"axis": g.rng.choice(axes)}, t) if axes else None


def _draw_split(g: Draw) -> Drawn | None:
    x = _floats(g, 2)
    if x is None:
        return None
    t = g.types[x]
    cuts = [
        (i, p)
        for i, d in enumerate(t.shape)
        if isinstance(d, int)
        for p in (2, 3)
        if d and d % p == 0
    ]
    if not cuts:
        return None
    axis, parts = g.rng.choice(cuts)
    shape: list[Dim] = list(t.shape)
    size = shape[axis]
    assert isinstance(size, int)
    shape[axis] = size // parts
    attrs = {"axis": axis, "parts": parts, "which": g.rng.randrange(parts)}
    return (x,), attrs, Type(tuple(shape), local=t.local)


ROWS = [
    Op(
        "reshape",
        _draw_reshape,
        line("tf.reshape({0}, {shape})"),
        moved(lambda x, a: x.reshape(_filled(x, a["shape"]))),
        weight=2.5,
    ),
    Op(
        "transpose",
        _draw_transpose,
        line("tf.transpose({0}, {perm})"),
        moved(lambda x, a: np.transpose(x, a["perm"])),
        weight=1.5,
    ),
    Op(
        "slice",
        _draw_slice,
        line("{0}[{index}]"),
        moved(lambda x, a: x[_index(a["index"])]),
        weight=2,
    ),
    Op(
        "concat",
        _draw_concat,
        lambda out, i, a: [f"{out} = tf.concat([{', '.join(i)}], axis={a['axis']})"],
        lambda v, a, _: linear(lambda *xs: np.concatenate(xs, a["axis"]), *v),
        weight=1.5,
    ),
    Op(
        "stack",
        _draw_stack,
        line("tf.stack([{0}, {1}], axis={axis})"),
        lambda v, a, _: linear(lambda x, y: np.stack([x, y], a["axis"]), *v),
    ),
    Op(
        "pad",
        _draw_pad,
        line("tf.pad({0}, {pads}, constant_values={value})"),
        lambda v, a, _: _pad(v, a),
    ),
    Op(
        "tile",
        _draw_tile,
        line("tf.tile({0}, {times})"),
        moved(lambda x, a: np.tile(x, a["times"])),
    ),
    Op(
        "repeat",
        _draw_repeat,
        line("tf.repeat({0}, {times}, axis={axis})"),
        moved(lambda x, a: np.repeat(x, a["times"], a["axis"])),
    ),
    Op(
        "expand_dims",
        _draw_expand,
        line("tf.expand_dims({0}, {axis})"),
        moved(lambda x, a: np.expand_dims(x, a["axis"])),
        weight=0.7,
    ),
    Op(
        "squeeze",
        _draw_squeeze,
        line("tf.squeeze({0}, axis=[{axis}])"),
        moved(lambda x, a: np.squeeze(x, a["axis"])),
        weight=0.7,
    ),
    Op(
        "broadcast_to",
        _draw_broadcast,
        line("tf.broadcast_to({0}, {shape})"),
        moved(lambda x, a: np.broadcast_to(x, a["shape"]).copy()),
        weight=0.5,
    ),
    Op(
        "reverse",
        _draw_reverse,
        line("tf.reverse({0}, [{axis}])"),
        moved(lambda x, a: np.flip(x, a["axis"])),
        weight=0.7,
    ),
    Op(
        "split",
        _draw_split,
        line("tf.split({0}, {parts}, axis={axis})[{which}]"),
        moved(lambda x, a: np.split(x, a["parts"], a["axis"])[a["which"]]),
        weight=0.7,
    ),
]


def _filled(x: np.ndarray, shape: list[int]) -> list[int]:
    """-1 replaced by hand: NumPy cannot where there are no examples."""
    known = int(np.prod([d for d in shape if d != -1]))
    return [x.size // known if d == -1 else d for d in shape]
