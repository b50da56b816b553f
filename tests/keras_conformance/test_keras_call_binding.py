"""Arguments of a layer's call are bound as Python binds them."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import samegrad as tf
from samegrad._keras import signatures
from samegrad._keras.layer import Layer

Case = tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]

PLAIN: list[Case] = [
    (lambda x: x, (1,), {}),
    (lambda x, training=None: x, (1,), {}),
    (lambda x, training=None: x, (1,), {"training": False}),
    (lambda x, training=None: x, (1, True), {}),
    (lambda x, mask=None, training=None: x, (1,), {"training": True}),
    (lambda x, y, z=3, u=4: x, (), {"u": 0, "y": 2, "x": None}),
    (lambda: None, (), {}),
]
OTHERS: list[Case] = [
    (lambda *parts, training=None: parts, (1, 2), {"training": True}),
    (lambda x, *, training=None: x, (1,), {}),
    (lambda x, /, training=None: x, (1,), {}),
    (lambda x, **options: x, (1,), {"options": 2, "y": 3}),
]
WRONG: list[Case] = [
    (lambda x: x, (), {}),
    (lambda x: x, (1, 2), {}),
    (lambda x: x, (1,), {"x": 1}),
    (lambda x, training=None: x, (1,), {"trainin": True}),
    (lambda: None, (1,), {}),
]


@pytest.mark.parametrize(("function", "args", "kwargs"), PLAIN + OTHERS)
def test_arguments_are_those_that_python_binds(
    function: Callable[..., Any], args: Any, kwargs: dict[str, Any]
) -> None:
    signature = inspect.signature(function)
    bound = signature.bind(*args, **kwargs)
    given, before = dict(bound.arguments), dict(kwargs)
    bound.apply_defaults()
    found = Layer._bound(signature, args, kwargs)
    assert [list(each.items()) for each in found] == [
        list(given.items()),
        list(bound.arguments.items()),
    ]
    assert kwargs == before


@pytest.mark.parametrize(("function", "args", "kwargs"), WRONG)
def test_arguments_that_do_not_fit_are_refused_as_python_does(
    function: Callable[..., Any], args: Any, kwargs: dict[str, Any]
) -> None:
    signature = inspect.signature(function)
    with pytest.raises(TypeError) as wanted:
        signature.bind(*args, **kwargs)
    with pytest.raises(TypeError) as found:
        Layer._bound(signature, args, kwargs)
    assert str(found.value) == str(wanted.value)


@pytest.mark.parametrize(("cases", "by_python"), [(PLAIN, 0), (OTHERS, len(OTHERS))])
def test_plain_parameters_take_the_short_way(
    monkeypatch: pytest.MonkeyPatch, cases: list[Case], by_python: int
) -> None:
    calls = []
    original = signatures._bound
    monkeypatch.setattr(signatures, "_bound", lambda *a: calls.append(1) or original(*a))
    for function, args, kwargs in cases:
        Layer._bound(inspect.signature(function), args, kwargs)
    assert len(calls) == by_python


def test_layers_bind_by_the_short_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signatures, "_bound", None)
    x = tf.keras.layers.Dense(3)(np.ones((2, 4), np.float32))
    assert tf.keras.layers.Dropout(0.5)(x, training=True).shape == (2, 3)


def test_inputs_of_another_dtype_are_converted() -> None:
    dense = tf.keras.layers.Dense(2)
    wide = dense(tf.ones((2, 3), "float64"))
    assert wide.dtype == tf.float32
    np.testing.assert_array_equal(wide, dense(tf.ones((2, 3), "float32")))


def test_parts_of_a_policy_map_keep_their_dtypes() -> None:
    policies = tf.keras.dtype_policies
    policy = policies.DTypePolicyMap(default_policy="float32")
    policy["narrow"] = policies.DTypePolicy("bfloat16")
    found = {}
    for name in ("narrow", "other"):
        layer = tf.keras.layers.Dense(2, dtype=policy, name=name)
        layer.build((2, 3))
        found[name] = layer.compute_dtype, layer.variable_dtype, layer(tf.ones((2, 3))).dtype
    assert found == {
        "narrow": ("bfloat16", "bfloat16", tf.bfloat16),
        "other": ("float32", "float32", tf.float32),
    }


def test_flat_structures_are_those_of_optree() -> None:
    import optree
    from keras.src import tree

    one = tf.ones((2,))
    cases: list[Any] = [(), [], (1, None), [one], (one, "a"), [(1, 2), 3], {"b": 1, "a": 2}, None]
    for structure in cases:
        wanted = optree.tree_leaves(structure, none_is_leaf=True, namespace="keras")
        found = tree.flatten(structure)
        assert type(found) is list and len(found) == len(wanted)
        assert all(a is b for a, b in zip(found, wanted, strict=True))
