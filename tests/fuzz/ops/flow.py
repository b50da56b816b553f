"""Control flow, functions called from functions, and tapes inside the tape."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from fuzz import dual
from fuzz.dual import Dual, Number, add, mul, unary, value_of
from fuzz.ops.elementwise import UNARY
from fuzz.ops.table import Attrs, Drawn, Env, Op
from fuzz.program import N, Type

if TYPE_CHECKING:
    from fuzz.generate import Draw

TAME = ["tanh", "sigmoid", "sin", "cos", "erf", "atan", "softsign", "exp"]


def _chain(g: Draw, t: Type, smooth: bool = False) -> list[str]:
    """Functions one after the other, some with weights, that keep the type."""
    chain = []
    for _ in range(g.rng.randint(1, 3)):
        last = t.shape[-1] if t.shape else None
        if isinstance(last, int) and 0 < last <= 32 and len(t.shape) >= 2 and g.rng.random() < 0.35:
            chain.append("matmul:" + g.variable((last, last)))
        elif isinstance(last, int) and g.rng.random() < 0.35:
            chain.append("times:" + g.variable((last,)))
        else:
            names = (
                TAME
                if smooth
                else [n for n in UNARY if n not in ("square", "sinh", "cosh", "expm1")]
            )
            chain.append(g.rng.choice(names))
    return chain


def chain_text(chain: Sequence[str], name: str) -> str:
    for item in chain:
        fn, _, weight = item.partition(":")
        if fn == "matmul":
            name = f"tf.matmul({name}, {weight})"
        elif fn == "times":
            name = f"({name} * {weight})"
        else:
            name = "(" + UNARY[fn][0].format(name) + ")"
    return name


def chain_meaning(chain: Sequence[str], x: Number, env: Env) -> Number:
    for item in chain:
        fn, _, weight = item.partition(":")
        if fn == "matmul":
            x = dual.matmul(x, env.weights[weight], False, False)
        elif fn == "times":
            x = mul(x, env.weights[weight])
        else:
            x = UNARY[fn][1](x)
    return x


def _operand(g: Draw) -> str | None:
    return g.pick(lambda t: t.kind == "f" and t.axis >= 0 and 0 not in t.shape)


def _draw_call(g: Draw) -> Drawn | None:
    x = _operand(g)
    if x is None:
        return None
    return (x,), {"chains": [_chain(g, g.types[x])]}, g.types[x]


def _call_text(out: str, i: list[str], a: Attrs) -> list[str]:
    body = chain_text(a["chains"][0], "a")
    return [f"{out} = tf.function(lambda a: {body})({i[0]})"]


def _own(g: Draw) -> str | None:
    """Whole numbers by which each replica decides for itself, if this program is one of those."""
    if not g.across_examples() or g.rng.random() < 0.3:
        return None
    return g.pick(lambda t: t.kind == "i" and t.axis == 0)


def _draw_cond(g: Draw) -> Drawn | None:
    x = _operand(g)
    if x is None:
        return None
    t = g.types[x]
    chains = [_chain(g, t), _chain(g, t)]
    if (own := _own(g)) is not None:
        attrs: Attrs = {"chains": chains, "condition": "tf.reduce_sum({}) % 2 > {}", "bound": 0}
        return (x, own), attrs, Type(t.shape, local=False)
    w = g.variable((g.rng.randint(1, 4),))
    bound = g.rng.choice([-1.0, 0.0, 0.5])
    return (x, w), {"chains": chains, "condition": "tf.reduce_sum({}) > {}", "bound": bound}, t


def _cond_text(out: str, i: list[str], a: Attrs) -> list[str]:
    yes, no = (chain_text(c, i[0]) for c in a["chains"])
    condition = a["condition"].format(i[1], a["bound"])
    return [f"{out} = tf.cond({condition}, lambda: {yes}, lambda: {no})"]


def _cond(v: list[Number], a: Attrs, env: Env) -> Number:
    total = value_of(v[1]).sum()
    yes = (total % 2 if "%" in a["condition"] else total) > a["bound"]
    return chain_meaning(a["chains"][0 if yes else 1], v[0], env)


def _draw_while(g: Draw) -> Drawn | None:
    x = _operand(g)
    if x is None:
        return None
    t = g.types[x]
    chain = [*_chain(g, t, smooth=True), "tanh"]
    if (own := _own(g)) is not None:
        return (x, own), {"chains": [chain], "rounds": 4}, Type(t.shape, local=False)
    return (x,), {"chains": [chain], "rounds": g.rng.choice([0, 1, 2, 3])}, t


def _while_text(out: str, i: list[str], a: Attrs) -> list[str]:
    body = chain_text(a["chains"][0], "a")
    rounds = f"tf.reduce_sum({i[1]}) % {a['rounds']}" if len(i) > 1 else str(a["rounds"])
    return [
        f"rounds = {rounds}",
        f"_, {out} = tf.while_loop(lambda i, a: i < rounds, lambda i, a: (i + 1, {body}), "
        f"(tf.constant(0), {i[0]}))",
    ]


def _while(v: list[Number], a: Attrs, env: Env) -> Number:
    x = v[0]
    rounds = int(value_of(v[1]).sum()) % a["rounds"] if len(v) > 1 else a["rounds"]
    for _ in range(rounds):
        x = chain_meaning(a["chains"][0], x, env)
    return x


def _draw_tape(g: Draw) -> Drawn | None:
    """The derivative of an example's own results by what it is made of, along a direction."""
    x = _operand(g)
    if x is None:
        return None
    t = g.types[x]
    if t.axis != 0 or len(t.shape) < 2:
        return None
    chain = _chain(g, t, smooth=True)
    return (x,), {"chains": [chain], "rank": len(t.shape)}, Type(t.shape[:1], local=t.local)


def _tape_text(out: str, i: list[str], a: Attrs) -> list[str]:
    axes = list(range(1, a["rank"]))
    return [
        "with tf.GradientTape() as inner:",
        f"    inner.watch({i[0]})",
        f"    y = {chain_text(a['chains'][0], i[0])}",
        f"{out} = tf.reduce_sum(inner.gradient(y, {i[0]}) * (1.5 + {i[0]}), axis={axes})",
    ]


def _tape(v: list[Number], a: Attrs, env: Env) -> Number:
    level = env.fresh()
    along = add(1.5, v[0])
    y = chain_meaning(a["chains"][0], Dual(v[0], along, level), env)
    tangent = y.tangent if isinstance(y, Dual) and y.level == level else np.zeros_like(value_of(y))
    return dual.reduce_sum(tangent, tuple(range(1, a["rank"])))


def _draw_power(g: Draw) -> Drawn | None:
    """A weight changed before it is used, and used twice."""
    x = g.pick(lambda t: t.kind == "f" and len(t.shape) >= 2 and isinstance(t.shape[-1], int))
    if x is None:
        return None
    last = g.types[x].shape[-1]
    assert isinstance(last, int)
    return (x, g.variable((last,))), {}, g.types[x]


def _draw_random(g: Draw) -> Drawn | None:
    x = g.pick(lambda t: t.kind == "f" and t.axis == 0 and t.shape[0] == N() and 0 not in t.shape)
    if x is None:
        return None
    t = g.types[x]
    attrs = {"name": g.next_name(), "fn": g.rng.choice(RANDOM), "shape": "tf.shape"}
    if g.rng.random() < 0.3:  # of no examples
        t = Type((g.size(8), g.size(8)), local=False)
        attrs["shape"] = str(list(t.shape))
    attrs["dtype"] = "dtype=FLOAT"
    if g.rng.random() < 0.2:
        attrs |= {"fn": "uniform", "dtype": "maxval=7, dtype=tf.int32"}
        t = Type(t.shape, "i", 7, t.local)
    return (x,), attrs, t


def _random(v: list[Number], a: Attrs, env: Env) -> Number:
    """What the engine drew; its bits are compared, and that they change."""
    if a["name"] in env.given:
        return env.given[a["name"]]
    shape = value_of(v[0]).shape if a["shape"].startswith("tf") else ast.literal_eval(a["shape"])
    return np.zeros(shape, float if "FLOAT" in a["dtype"] else np.int32)


def _draw_gathered(g: Draw) -> Drawn | None:
    """A statistic of the examples of all replicas."""
    x = g.pick(
        lambda t: (
            t.kind == "f" and t.shape[:1] == (N(),) and t.local and len(t.shape) > 1
            and 0 not in t.shape
        )
    )  # fmt: skip
    if x is None or not g.across_examples():
        return None
    return (x,), {"stopped": g.rng.random() < 0.5}, Type(g.types[x].shape, local=False)


def _gathered_text(out: str, i: list[str], a: Attrs) -> list[str]:
    return [
        f"everyone = tf.distribute.get_replica_context().all_gather({i[0]}, axis=0)",
        *(["everyone = tf.stop_gradient(everyone)"] if a["stopped"] else []),
        f"{out} = {i[0]} - tf.reduce_mean(everyone, axis=0)",
    ]


def _gathered(v: list[Number], a: Attrs, env: Env) -> Number:
    assert env.whole is not None
    everyone = env.whole(env.inputs[0])
    return dual.sub(v[0], dual.reduce_mean(value_of(everyone) if a["stopped"] else everyone, (0,)))


def _draw_print(g: Draw) -> Drawn | None:
    x = g.pick(lambda t: t.kind in "fi")
    return None if x is None else ((x,), {}, g.types[x])


def _random_text(out: str, i: list[str], a: Attrs) -> list[str]:
    shape = f"tf.shape({i[0]})" if a["shape"].startswith("tf") else a["shape"]
    return [f"{out} = tf.random.{a['fn']}({shape}, {a['dtype']})"]


RANDOM = ["normal", "uniform", "truncated_normal"]

ROWS = [
    Op(
        "random",
        _draw_random,
        _random_text,
        _random,
        weight=0.8,
        feature="random",
    ),
    Op("gathered", _draw_gathered, _gathered_text, _gathered, 0.8),
    Op(
        "print",
        _draw_print,
        lambda out, i, a: [f"tf.print('{out}', {i[0]})", f"{out} = tf.identity({i[0]})"],
        lambda v, a, _: v[0],
        weight=0.2,
    ),
    Op(
        "call",
        _draw_call,
        _call_text,
        lambda v, a, e: chain_meaning(a["chains"][0], v[0], e),
        1.5,
        feature="calls",
    ),
    Op("cond", _draw_cond, _cond_text, _cond),
    Op("while", _draw_while, _while_text, _while, feature="while"),
    Op("inner_tape", _draw_tape, _tape_text, _tape, 1.2),
    Op(
        "weight_twice",
        _draw_power,
        lambda out, i, a: [f"{out} = tf.tanh({i[0]} * {i[1]}) + {i[0]} * tf.square({i[1]})"],
        lambda v, a, _: add(unary("tanh", mul(v[0], v[1])), mul(v[0], unary("square", v[1]))),
    ),
]
