"""The engine's short way of operators and parts gives what Python's way gives, errors included."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import samegrad as tf
from samegrad._tensor.example_axis import as_examples
from samegrad._tensor.tensor import Tensor

NAMES = [
    name for name, part in vars(Tensor).items()
    if hasattr(type(part), "in_python") and name != "__getitem__"
]  # fmt: skip
DTYPES = ["float32", "float64", "float16", "bfloat16", "int32", "int64", "uint8", "bool"]


class Counted(int):
    """No plain number."""


NUMBERS: list[Any] = [
    1.0, 2, 0, -1, 3.5, 300, 1e39, -(2**24) - 1, 2**40, 2**70, float("nan"), True, None, "text",
    np.float64(2.0), np.int32(2), np.ones((2, 1), "float32"), Counted(2), [1.0, 2.0],
]  # fmt: skip


def outcome(call: Any) -> Any:
    """What a call returns or raises, in a form that compares."""
    try:
        made = call()
    except Exception as error:
        return type(error), str(error)
    if not isinstance(made, Tensor):
        return type(made), made
    values = made._numpy()
    return made._dtype, values.shape, values.tobytes(), made._example_axis


def operands(dtype: str) -> list[Tensor]:
    values = tf.cast(tf.constant([[1.0, 2.0, 3.0], [4.0, 0.0, 1.0]]), dtype)
    return [values, values[1], tf.reshape(values, [3, 2]), values[0, 1], as_examples(values)]


@pytest.mark.parametrize("name", NAMES)
def test_operators(name: str) -> None:
    method = vars(Tensor)[name]
    kinds = [operands(dtype) for dtype in DTYPES]
    pairs = [
        (a, b) for xs, ys in itertools.product(kinds, kinds[:1] + kinds[4:5])
        for a, b in itertools.product(xs, ys)
    ]  # fmt: skip
    pairs += [(a, b) for xs in kinds for a in xs[:2] for b in xs]
    pairs += [(xs[0], number) for xs in kinds for number in NUMBERS]
    for a, b in pairs:
        assert outcome(lambda: method(a, b)) == outcome(lambda: method.in_python(a, b)), (a, b)  # noqa: B023


@pytest.mark.parametrize("name", ["__add__", "__rsub__", "__truediv__", "__lt__", "__matmul__"])
def test_operators_of_a_trace_and_a_tape(name: str) -> None:
    method = vars(Tensor)[name]

    def programs(call: Any) -> Any:
        x, n = tf.constant([[1.0, 2.0], [3.0, 4.0]]), tf.constant([[2, 3], [4, 5]])
        function = tf.function(lambda a, b: call(a, b))
        made = [outcome(lambda: function(x, x)), outcome(lambda: function(n, n))]
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = call(x, x * x)
        gradient = tape.gradient(y, x) if y.dtype == tf.float32 else None
        return [*made, None if gradient is None else gradient.numpy().tobytes()]

    assert programs(method) == programs(method.in_python)


def test_a_size_stays_a_size() -> None:
    @tf.function
    def doubled(x: Any) -> Any:
        return tf.zeros([tf.shape(x)[0] * 2, 3])

    assert doubled(as_examples(np.ones((5, 2), "float32"))).shape == (10, 3)


KEYS: list[Any] = [
    0, -1, 3, -4, 4, -5, slice(None), slice(1, 3), slice(None, None, -1), slice(3, 0, -2),
    slice(-2, None), slice(2, 2), slice(5, 9), slice(2**70), slice(0, 2, 0), ..., None,
    (1, 2), (1, -3), (slice(1), 0), (0, slice(1)), (..., 0), (0, ...), (..., None), (None, 1, None),
    (None, ..., None, 2), (slice(None, None, 2), None, -1), (), (0, 0, 0, 0), (..., ...), (0, True),
    True, 1.0, "a", [0, 1], np.int64(1), (np.int64(1), 0), slice(np.int64(1), None), 2**40, 2**70,
]  # fmt: skip


@pytest.mark.parametrize("key", KEYS, ids=str)
def test_parts(key: Any) -> None:
    method = vars(Tensor)["__getitem__"]
    array = np.arange(24, dtype="float32").reshape(4, 3, 2)
    for x in (tf.constant(array), as_examples(array), tf.constant(7.0), tf.zeros([0, 2])):
        found = outcome(lambda: method(x, key))  # noqa: B023
        assert found == outcome(lambda: method.in_python(x, key))  # noqa: B023
    x, plain = tf.constant(array), not isinstance(key, bool | list) and repr(key) != "(0, True)"
    made = outcome(lambda: x[key])
    if plain and isinstance(made[0], str):
        np.testing.assert_array_equal(x[key], array[key])


def test_parts_of_a_tape() -> None:
    x = tf.constant(np.arange(6, dtype="float32").reshape(2, 3))
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x[1, None, ::2] * 2.0 + x[0, 0]
    np.testing.assert_array_equal(tape.gradient(y, x), [[2, 0, 0], [2, 0, 2]])


def test_a_part_of_a_tensor_has_memory_of_its_own() -> None:
    array = np.arange(6, dtype="float32").reshape(2, 3)
    x = Tensor(array, copy=False)
    row = x[1]
    array[:] = 0
    np.testing.assert_array_equal(row, [3, 4, 5])


def test_numpy_leaves_its_operators_to_tensors() -> None:
    x = tf.constant([1.0, 2.0])
    for made in (np.ones(2, "float32") - x, np.float32(1) - x, [1.0, 1.0] - x):
        assert type(made) is Tensor
        np.testing.assert_array_equal(made, [0, -1])


def test_an_operator_is_a_method_with_a_name() -> None:
    x = tf.constant(2.0)
    assert float(x.__add__(1.0)) == 3.0 and float(Tensor.__radd__(x, 1)) == 3.0
    assert Tensor.__add__.__qualname__ == "Tensor.__add__"
    with pytest.raises(TypeError):
        x.__add__()


def test_numerics_are_checked() -> None:
    x = tf.constant([1e38, 2.0])
    tf.debugging.enable_check_numerics()
    try:
        with pytest.raises(tf.errors.NonFiniteError, match=r'test_short_operators.py", line \d+'):
            x * x
    finally:
        tf.debugging.disable_check_numerics()


def test_a_tensor_without_values_has_no_properties() -> None:
    for name in ("_dtype", "_shape", "_rank", "_symbolic", "_looks", "_example_axis"):
        with pytest.raises(TypeError):
            getattr(Tensor.__new__(Tensor), name)
    with pytest.raises(TypeError):
        Tensor.__new__(Tensor) + 1.0
