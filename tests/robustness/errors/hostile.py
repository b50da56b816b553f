"""Arguments for random calls: right ones, and all kinds of wrong ones."""

from __future__ import annotations

import inspect
import itertools
import types
from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np

import samegrad as tf
from samegrad._tensor.per_replica import PerReplica


class OwnError(Exception):
    """What objects of the program raise: it must come out unchanged."""


def raising(name: str) -> Any:
    """An object of a class that raises when Python or NumPy asks it for something."""

    def method(self: Any, *args: Any, **options: Any) -> Any:
        raise OwnError(name)

    members: dict[str, Any] = {name: method}
    if name == "__eq__":
        members["__hash__"] = object.__hash__
    base: type = object
    if name == "__iter__":
        base = list
    elif name in ("__len__", "__bool__"):
        members["__iter__"] = lambda self: iter(())
    elif name == "__array_float__":
        base = float
    return type(f"Raises{name.strip('_').title()}", (base,), members)()


RAISING = (
    "__len__", "__iter__", "__array__", "__eq__", "__bool__", "__hash__", "__index__", "__float__",
    "__int__", "__getitem__", "__repr__", "__call__", "__str__", "__getattr__",
)  # fmt: skip


def recursive(random: Random) -> Any:
    kind = random.randrange(3)
    if kind == 0:
        loop: Any = [1.0]
        loop.append(loop)
        return loop
    if kind == 1:
        table: dict[str, Any] = {"a": 1}
        table["b"] = table
        return table
    deep: Any = 1.0
    for _ in range(random.choice((40, 100, 5000))):
        deep = [deep]
    return deep


def array(random: Random) -> Any:
    """NumPy arrays of every kind that NumPy has."""
    made = random.choice((
        lambda: np.zeros((0,), np.float32),
        lambda: np.zeros((3, 0, 2), np.float32),
        lambda: np.arange(24, dtype=np.float32).reshape(4, 6)[::2, ::-3],
        lambda: np.arange(6, dtype=">f4").reshape(2, 3),
        lambda: np.arange(6, dtype=">i8"),
        lambda: np.array([1, "a", None], dtype=object),
        lambda: np.array([1.0, 2.0], dtype=object),
        lambda: np.zeros(3, dtype=[("a", "f4"), ("b", "i4")]),
        lambda: np.array(["a", "bc"]),
        lambda: np.array([b"a", b"bc"]),
        lambda: np.array([1 + 2j]),
        lambda: np.array([1.0], np.float16),
        lambda: np.array([1.0], np.longdouble),
        lambda: np.array([1], np.int8),
        lambda: np.array([2**64 - 1], np.uint64),
        lambda: np.array(["2026-01-01"], "datetime64[D]"),
        lambda: np.zeros((1,) * random.choice((9, 17, 40)), np.float32),
        lambda: np.broadcast_to(np.float32(1), (2**20, 2**20)),
        lambda: np.array([np.nan, np.inf, -np.inf], np.float32),
        lambda: np.matrix([[1.0, 2.0]]),
        lambda: np.ma.masked_array([1.0, 2.0], [True, False]),
        lambda: frozen(np.ones((2, 2), np.float32)),
        lambda: np.ones(5, bool),
        lambda: np.frombuffer(b"12345678x", np.float32, 2, 1),
    ))  # fmt: skip
    return made()


def frozen(values: Any) -> Any:
    values.flags.writeable = False
    return values


NUMBERS: tuple[Any, ...] = (
    0, -1, 1, 2, 7, 2**31, -(2**31), 2**32, 2**63, -(2**63), 2**70, 10**30, 10**400, 0.5, -0.0,
    1e308, float("nan"), float("inf"), -float("inf"), True, False, 1 + 2j, 10**6,
)  # fmt: skip
WORDS = (
    "", "x", "relu", "same", "SUM", "mean", "float32", "none", "auto", "a/b", "../x", "\0",
    "\ud800", "é" * 300, "{}", "%s", "float16", "CPU:0", "GPU:99", "euclidean",
)  # fmt: skip


def fails(*args: Any, **options: Any) -> Any:
    raise OwnError("function")


def functions(random: Random) -> Any:
    function = random.choice((
        fails, len, print, lambda: 1.0, lambda *a: None, lambda *a: a, lambda x: x, lambda x, y: x,
        lambda *a: "text", lambda *a: tf.ones((2, 3)), int, np.mean, tf.abs, lambda *a: a[5],
        lambda *a: {}["x"], lambda *a: 1 // 0,
    ))  # fmt: skip
    return limited(function) if isinstance(function, types.LambdaType) else function


def limited(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, which ends a loop without end."""
    calls = itertools.count()

    def call(*args: Any) -> Any:
        if next(calls) > 50:
            raise OwnError("called too often")
        return function(*args)

    return call


def generator(random: Random) -> Any:
    if random.random() < 0.3:
        return (1 // x for x in (2, 1, 0))
    return (x for x in (1, 2, 3))


def value_of_samegrad(random: Random) -> Any:
    made = random.choice((
        lambda: tf.constant(2.0),
        lambda: tf.constant([1, 2, 3]),
        lambda: tf.ones((2, 3)),
        lambda: tf.zeros((0, 4)),
        lambda: tf.constant([True, False]),
        lambda: tf.constant([1.0], dtype="float64"),
        lambda: tf.Variable([1.0, 2.0]),
        lambda: tf.Variable(3),
        lambda: PerReplica([tf.ones((2,)), tf.ones((3,))]),
        lambda: PerReplica([1, "a"]),
        lambda: tf.data.Dataset.range(4),
        lambda: tf.data.Dataset.from_tensor_slices(np.ones((5, 2), np.float32)).batch(2),
        lambda: tf.distribute.MirroredStrategy(replicas=2),
        lambda: tf.keras.layers.Dense(2),
        lambda: tf.keras.optimizers.SGD(0.1),
        lambda: tf.keras.losses.MeanSquaredError(),
        lambda: tf.keras.metrics.Mean(),
        lambda: tf.TensorSpec((2,)),
        lambda: tf.float32,
        lambda: tf.function(lambda x: x),
        lambda: tf.Tensor,
        lambda: tf.distribute.ReduceOp.SUM,
        lambda: tf.train.Checkpoint(v=tf.Variable(1.0)),
        lambda: tf.keras.Sequential([tf.keras.layers.Dense(2)]),
        lambda: tf.GradientTape(),
        lambda: tf.SparseTensor([[0, 1], [1, 0]], [1.0, 2.0], [2, 2]),
        lambda: tf.SparseTensor([[1, 0], [0, 1]], [1, 2], [2, 2]),
        lambda: tf.ragged.constant([[1], [2, 3]]),
        lambda: tf.constant(["a", "b"]),
        lambda: tf.lookup.KeyValueTensorInitializer(["a"], [1]),
        lambda: tf.lookup.experimental.MutableHashTable("string", "int64", -1),
    ))  # fmt: skip
    return made()


def container(random: Random, depth: int = 0) -> Any:
    size = random.choice((0, 1, 2, 3))
    parts = [wrong(random, depth + 1) for _ in range(size)]
    kind = random.randrange(5)
    if kind == 0:
        return tuple(parts)
    if kind == 1:
        return {random.choice(("a", "b", 3, None)): part for part in parts}
    if kind == 2:
        return [[1.0, 2.0], [3.0]]
    if kind == 3:
        return {1, 2}
    return parts


KINDS: tuple[tuple[float, Callable[[Random], Any]], ...] = (
    (5, lambda r: r.choice(NUMBERS)),
    (3, lambda r: r.choice(WORDS)),
    (2, lambda r: r.choice((None, b"bytes", object(), types, Ellipsis, slice(0, 2**70, 0), range(3),
                            int, type, NotImplemented, 1 / 3, slice("a"), bytearray(b"x")))),
    (3, array),
    (3, value_of_samegrad),
    (2, functions),
    (1, generator),
    (2, lambda r: raising(r.choice(RAISING))),
    (1, recursive),
    (1, lambda r: [r.choice(NUMBERS) for _ in range(r.choice((1, 2, 3, 20)))]),
)  # fmt: skip


def wrong(random: Random, depth: int = 0) -> Any:
    """Anything at all."""
    if depth < 2 and random.random() < 0.15:
        return container(random, depth)
    weights = [weight for weight, _ in KINDS]
    return random.choices([make for _, make in KINDS], weights)[0](random)


ROWS: tuple[Callable[[], Any], ...] = (
    lambda: tf.ragged.constant([[1.0, 2.0], [], [3.0]]),
    lambda: tf.ragged.constant([[1, 0], [1]]),
    lambda: tf.ragged.constant([["a", "b"], ["c"]]),
    lambda: tf.RaggedTensor.from_row_lengths(np.ones((3, 2), np.float32), [1, 2]),
    lambda: tf.RaggedTensor.from_row_splits(np.zeros(0, np.float32), [0]),
)


def tensor_like(random: Random) -> Any:
    made = random.choice((
        lambda: tf.constant([[1.0, 2.0], [3.0, 4.0]]),
        lambda: np.arange(6, dtype=np.float32).reshape(2, 3) / 8,
        lambda: [[0.5, 0.25], [0.125, 0.0]],
        lambda: tf.Variable([[1.0, 2.0], [3.0, 4.0]]),
        lambda: tf.constant([1, 0]),
        lambda: 2.0,
        lambda: tf.ones((2, 4, 4, 3)),
        lambda: np.zeros((0, 2), np.float32),
        lambda: random.choice(ROWS)(),
    ))  # fmt: skip
    return made()


BY_NAME: dict[str, Callable[[Random], Any]] = {
    "shape": lambda r: r.choice(((2, 2), [4], (), (2, -1), [0], (1, 2, 3))),
    "axis": lambda r: r.choice((0, 1, -1, None, (0, 1), [0])),
    "dtype": lambda r: r.choice(("float32", tf.float64, np.int32, None)),
    "strategy": lambda r: tf.distribute.MirroredStrategy(replicas=2),
    "variables": lambda r: [tf.Variable(1.0)],
    "name": lambda r: None,
    "model": lambda r: tf.keras.Sequential([tf.keras.layers.Dense(2)]),
    "optimizer": lambda r: tf.keras.optimizers.SGD(0.1),
    "inputs": tensor_like,
    "dataset": lambda r: tf.data.Dataset.range(4).batch(2),
    "values": lambda r: [tensor_like(r), tensor_like(r)],
    "path": lambda r: r.choice(("there/is", "none")),
    "grads_and_vars": lambda r: [(tf.constant(1.0), tf.Variable(1.0))],
    "reduce_op": lambda r: r.choice(("SUM", "MEAN")),
    "layers": lambda r: [tf.keras.layers.Dense(2)],
    "activation": lambda r: r.choice(("relu", None)),
    "args": lambda r: (tensor_like(r),),
    "sp_inputs": lambda r: [tf.SparseTensor([[0, 1]], [2.0], [2, 3])] * r.choice((1, 2)),
    "sp_input": lambda r: tf.SparseTensor([[0, 1]], [2.0], [2, 3]),
    "a": lambda r: r.choice(([[1, 2], [3, 4]], tf.SparseTensor([[0, 1]], [2], [2, 3]))),
    "initializer": lambda r: tf.lookup.KeyValueTensorInitializer(["a"], [1.0]),
    "keys": lambda r: r.choice((["a", "b"], [3, 4], tf.constant("a"))),
    "label_length": lambda r: [1, 2],
    "logit_length": lambda r: [2, 2],
    "sequence_length": lambda r: [2, 2],
    "labels": lambda r: [[1, 0], [1, 1]],
    "logits": lambda r: np.ones((2, 2, 3), np.float32),
}


def right(parameter: inspect.Parameter, random: Random) -> Any:
    """Something that may well be right for a parameter, by its name and what it is annotated as."""
    if parameter.name in BY_NAME:
        return BY_NAME[parameter.name](random)
    kind = str(parameter.annotation)
    if "Callable" in kind or parameter.name in ("fn", "func", "function", "body", "cond"):
        return limited(random.choice((lambda *a: a[0] if a else 1.0, lambda *a: 1.0)))
    for name, choices in (
        ("bool", (True, False)), ("int", (0, 1, 2, 3, -1)), ("float", (0.5, 1.0, 0.0, 1e-3)),
        ("str", ("relu", "same", "SUM", "x")), ("DType", ("float32", tf.int32)),
    ):  # fmt: skip
        if kind.startswith(name) or f"| {name}" in kind:
            return random.choice(choices)
    if parameter.default not in (inspect.Parameter.empty, None) and random.random() < 0.5:
        return parameter.default
    return tensor_like(random)
