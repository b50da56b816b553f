"""The Python text of a program: what the engine runs and what a failure prints."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fuzz.ops import OPS
from fuzz.program import N, Program, Type, scale_of

if TYPE_CHECKING:
    from fuzz.worker import Mode

PREAMBLE = """import numpy as np
import samegrad as tf

FLOAT = tf.{dtype}

def draw(stream, *shape):
    return np.random.default_rng([{seed}, stream]).normal(size=shape).astype(FLOAT.as_numpy_dtype)
"""


def step_text(program: Program) -> str:
    """`def step(x0, …)`: one replica's part."""
    names = ", ".join(f"x{i}" for i in range(len(program.inputs)))
    weights = ", ".join(f"w{i}" for i in range(len(program.variables)))
    lines = [f"def step({names}):"]
    depth = 1

    def put(text: str) -> None:
        lines.append("    " * depth + text)

    if program.second:
        put("with tf.GradientTape() as outer:")
        depth += 1
    put("with tf.GradientTape() as tape:")
    depth += 1
    for s in program.body:
        for line in OPS[s.op].code(s.out, list(s.inputs), s.attrs):
            put(line)
    put("loss = " + " + ".join(_loss_text(program, kind, name) for kind, name in program.losses))
    depth -= 1
    put(f"g = tape.gradient(loss, [{weights}])")
    if program.second:
        put("parts = [tf.reduce_sum(a * d) for a, d in zip(g, directions) if a is not None]")
        put("s = tf.add_n(parts) if parts else None")
        depth -= 1
        put(f"h = outer.gradient(s, [{weights}]) if parts else [None] * len(g)")
    else:
        put("h = []")
    for update in program.updates:
        for line in update_text(update, weights):
            put(line)
    outputs = ", ".join(program.outputs)
    put(f"return [{outputs}{', ' if outputs else ''}loss], g, h")
    return "\n".join(lines) + "\n"


def mapped_text(program: Program) -> str:
    """`def mapped(x0, …)`: values and the loss, as a dataset's function computes them."""
    names = ", ".join(f"x{i}" for i in range(len(program.inputs)))
    lines = [f"def mapped({names}):"]
    for s in program.body:
        lines += [f"    {line}" for line in OPS[s.op].code(s.out, list(s.inputs), s.attrs)]
    losses = " + ".join(_loss_text(program, kind, name) for kind, name in program.losses)
    lines.append(f"    return {', '.join([*program.outputs, ''])} {losses},")
    return "\n".join(lines) + "\n"


def _loss_text(program: Program, kind: str, name: str) -> str:
    if kind == "penalty":
        return f"tf.nn.scale_regularization_loss(0.1 * tf.nn.l2_loss({name}))"
    if kind == "share":
        return f"tf.nn.scale_regularization_loss(0.1 * tf.reduce_sum({name}))"
    if kind == "sum":
        return f"0.1 * tf.reduce_sum({name})"
    rest = list(range(1, len(program.types()[name].shape)))
    each = f"tf.reduce_mean({name}, axis={rest})" if rest else name
    return f"tf.nn.compute_average_loss({each})"


def update_text(update: tuple[Any, ...], weights: str) -> list[str]:
    kind, *rest = update
    if kind == "apply":
        return [f"optimizer.apply_gradients(zip(g, [{weights}]))"]
    a = f"w{rest[0]}"
    b = f"w{rest[1]}" if len(rest) > 1 and kind != "descend" else ""
    reduced = f'tf.distribute.get_replica_context().all_reduce("SUM", g[{rest[0]}])'
    return {
        "descend": [f"if g[{rest[0]}] is not None:", f"    {a}.assign_sub(0.125 * {reduced})"],
        "assign": [f"{a}.assign({b})"],
        "average": [f"{a}.assign(0.75 * {a} + 0.25 * {b})"],
        "add": [f"{a}.assign_add({b})"],
        "change": [f"{a}.assign_add(tf.ones_like({a}))"],
        "scale": [f"{a}.assign({a} * 0.5)"],
        "swap": [f"old = tf.identity({a})", f"{a}.assign({b})", f"{b}.assign(old)"],
    }[kind]


def optimizer_text(program: Program) -> str:
    for update in program.updates:
        if update[0] == "apply":
            return f"optimizer = tf.keras.optimizers.{update[1]}"
    return ""


def _input_text(i: int, t: Type, program: Program) -> str:
    sizes = ", ".join("n" if d == N() else str(d) for d in t.shape)
    if t.kind == "i":
        rng = f"np.random.default_rng([{program.seed}, {i}])"
        return f"x{i} = {rng}.integers(0, {t.high}, ({sizes},)).astype(np.int32)"
    return f"x{i} = draw({i}, {sizes})"


def setup_text(program: Program) -> str:
    """Variables and optimizer."""
    lines = []
    for i, shape in enumerate(program.variables):
        sizes = "".join(f", {d}" for d in shape)
        data = f"(draw64({1000 + i}{sizes}) * {scale_of(shape)}).astype(FLOAT.as_numpy_dtype)"
        lines.append(f"w{i} = tf.Variable({data})")
    if optimizer_text(program):
        lines.append(optimizer_text(program))
    return "\n".join(lines) + "\n"


def text(program: Program, mode: str = "run") -> str:
    """The whole program, to be run by itself."""
    out = PREAMBLE.format(seed=program.seed, dtype=program.dtype)
    if program.dtype == "float64":
        out += "\ndraw64 = draw\n"
    else:
        out += "\ndef draw64(stream, *shape):\n"
        out += f"    return np.random.default_rng([{program.seed}, stream]).normal(size=shape)\n"
    out += "\ndef rows(x):\n    return tf.constant(x)"
    out += "._as_examples(0, 1)\n" if program.examples else "\n"
    out += f"\nn = {sum(program.shares)}\n"
    for i, t in enumerate(program.inputs):
        out += _input_text(i, t, program) + "\n"
    if program.second:
        sizes = ["".join(f", {d}" for d in s) for s in program.variables]
        drawn = ", ".join(f"draw({2000 + i}{s})" for i, s in enumerate(sizes))
        out += f"directions = [{drawn}]\n"
    names = ", ".join(f"x{i}" for i in range(len(program.inputs)))
    if mode in ("eager", "function"):
        out += setup_text(program) + "\n" + step_text(program)
        call = "step" if mode == "eager" else "tf.function(step)"
        return out + f"\nprint({call}(*map(rows, ({names},))))\n"
    bounds = [sum(program.shares[:i]) for i in range(1, len(program.shares))]
    out += f"strategy = tf.distribute.MirroredStrategy(replicas={len(program.shares)})\n"
    setup = setup_text(program).replace("\n", "\n    ").rstrip()
    out += f"with strategy.scope():\n    {setup}\n\n" + step_text(program)
    out += f"""
def share(x):
    parts = np.split(x, {bounds})
    return strategy.experimental_distribute_values_from_function(
        lambda c: rows(parts[c.replica_id_in_sync_group]))

print(strategy.run(step, args=tuple(map(share, ({names},)))))
"""
    return out


def divided_text(program: Program, mode: Mode) -> str:
    """A program that compares one replica with those of a mode."""
    out = PREAMBLE.format(seed=program.seed, dtype=program.dtype)
    if program.dtype == "float64":
        out += "\ndraw64 = draw\n"
    else:
        out += "\ndef draw64(stream, *shape):\n"
        out += f"    return np.random.default_rng([{program.seed}, stream]).normal(size=shape)\n"
    out += f"\nn = {sum(mode.shares)}\n"
    for i, t in enumerate(program.inputs):
        out += _input_text(i, t, program) + "\n"
    if program.second:
        sizes = ["".join(f", {d}" for d in s) for s in program.variables]
        drawn = ", ".join(f"draw({2000 + i}{s})" for i, s in enumerate(sizes))
        out += f"directions = [{drawn}]\n"
    names = ", ".join(f"x{i}" for i in range(len(program.inputs)))
    weights = ", ".join(f"w{i}" for i in range(len(program.variables)))
    setup = setup_text(program).replace("\n", "\n        ").rstrip()
    step = step_text(program).replace("\n", "\n    ").rstrip()
    return (
        out
        + f"""
def run(*shares):
    tf.random.set_seed({program.seed})
    strategy = tf.distribute.MirroredStrategy(replicas=len(shares))
    with strategy.scope():
        {setup}
    {step}

    def rows(x):
        parts = np.split(x, np.cumsum(shares)[:-1])
        return strategy.experimental_distribute_values_from_function(
            lambda c: tf.constant(parts[c.replica_id_in_sync_group]))

    def total(v):
        return None if v is None else strategy.reduce("SUM", v, axis=None)

    @tf.function
    def distributed(*xs):
        (*values, loss), g, h = strategy.run(step, args=xs)
        return values, [total(loss), *map(total, g), *map(total, h)]

    values, sums = distributed(*map(rows, ({names},)))
    return [v for v in [*sums, {weights}] if v is not None]

for i, pair in enumerate(zip(run({sum(mode.shares)}), run{mode.shares}, strict=True)):
    one, other = (v.numpy() for v in pair)
    print(i, np.sum(one != other), "of", one.size, "differ")
"""
    )
