"""keras.backend.nn: activation functions are their formulas."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from backend_checks import check_gradients, same_when_traced

import samegrad as tf
from samegrad._keras import nn

X = np.array([[-7.0, -2.3, -0.7, -0.2, 0.1, 0.4], [0.8, 1.7, 2.9, 3.3, 6.4, 9.0]])


def _sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


FORMULAS = {
    "relu": lambda x: np.maximum(x, 0),
    "relu6": lambda x: np.clip(x, 0, 6),
    "sigmoid": _sigmoid,
    "sparse_sigmoid": lambda x: np.clip((x + 1) / 2, 0, 1),
    "tanh": np.tanh,
    "tanh_shrink": lambda x: x - np.tanh(x),
    "softplus": lambda x: np.log1p(np.exp(x)),
    "softsign": lambda x: x / (1 + np.abs(x)),
    "soft_shrink": lambda x: np.sign(x) * np.maximum(np.abs(x) - 0.5, 0),
    "sparse_plus": lambda x: np.where(x <= -1, 0, np.where(x < 1, (x + 1) ** 2 / 4, x)),
    "silu": lambda x: x * _sigmoid(x),
    "squareplus": lambda x: (x + np.sqrt(x * x + 4)) / 2,
    "log_sigmoid": lambda x: np.log(_sigmoid(x)),
    "leaky_relu": lambda x: np.where(x > 0, x, 0.2 * x),
    "hard_sigmoid": lambda x: np.clip(x + 3, 0, 6) / 6,
    "hard_silu": lambda x: x * np.clip(x + 3, 0, 6) / 6,
    "elu": lambda x: np.where(x > 0, x, np.expm1(x)),
    "selu": lambda x: 1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * np.expm1(x)),
    "celu": lambda x: np.maximum(x, 0) + np.expm1(np.minimum(x, 0)),
    "hard_tanh": lambda x: np.clip(x, -1, 1),
    "hard_shrink": lambda x: np.where(np.abs(x) > 0.5, x, 0),
    "gelu": lambda x: 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
    "softmax": lambda x: np.exp(x) / np.exp(x).sum(-1, keepdims=True),
    "log_softmax": lambda x: x - np.log(np.exp(x).sum(-1, keepdims=True)),
    "glu": lambda x: x[..., :3] * _sigmoid(x[..., 3:]),
}


@pytest.mark.parametrize("name", FORMULAS)
def test_an_activation_is_its_formula_traced_too_and_its_gradient_that_of_differences(
    name: str,
) -> None:
    function = getattr(nn, name)
    found = function(X)
    assert found.dtype == "float64"
    np.testing.assert_allclose(found, FORMULAS[name](X), rtol=1e-12, atol=1e-12)
    for kind, tolerance in (("float32", 1e-5), ("float16", 2e-2), ("bfloat16", 1e-1)):
        narrow = function(X.astype("float32").astype(_dtype(kind)))
        assert narrow.dtype == kind
        values = narrow.numpy().astype("float64")
        np.testing.assert_allclose(values, FORMULAS[name](X), rtol=tolerance, atol=tolerance)
    same_when_traced(function, X)
    check_gradients(function, X)
    assert function(X[:0]).shape[0] == 0


def _dtype(name: str) -> Any:
    import samegrad as tf

    return tf.as_dtype(name).as_numpy_dtype


def test_softmax_takes_any_axis_or_all() -> None:
    x = np.random.default_rng(0).normal(size=(3, 4, 5))
    whole = np.exp(x) / np.exp(x).sum()
    np.testing.assert_allclose(nn.softmax(x, axis=None), whole, rtol=1e-12)
    np.testing.assert_allclose(nn.log_softmax(x, axis=None), np.log(whole), rtol=1e-12)
    for axis in (-2, 0):
        rows = np.exp(x) / np.exp(x).sum(axis, keepdims=True)
        np.testing.assert_allclose(nn.softmax(x, axis=axis), rows, rtol=1e-12)


def test_sparsemax_is_the_nearest_point_of_the_simplex() -> None:
    x = np.random.default_rng(0).normal(size=(3, 5))
    found = nn.sparsemax(x).numpy()
    np.testing.assert_allclose(found.sum(-1), 1.0)
    shift = (x - found)[found > 0]
    for row, point in zip(x, found, strict=True):  # x - p is one number where p > 0, no more else
        shift = (row - point)[point > 0]
        assert np.ptp(shift) < 1e-12
        assert np.all(row[point == 0] <= shift[0] + 1e-12)
    np.testing.assert_allclose(nn.sparsemax(x.T, axis=0), found.T)
    same_when_traced(nn.sparsemax, x)
    check_gradients(nn.sparsemax, x)


def test_threshold_and_alpha_are_taken() -> None:
    np.testing.assert_allclose(nn.threshold(X, 1.0, -5.0), np.where(X > 1, X, -5))
    np.testing.assert_allclose(nn.elu(X, 0.5), np.where(X > 0, X, 0.5 * np.expm1(X)))
    celu = np.maximum(X, 0) + 2 * np.expm1(np.minimum(X, 0) / 2)
    np.testing.assert_allclose(nn.celu(X, 2.0), celu)


def test_an_axis_without_halves_is_refused() -> None:
    with pytest.raises(ValueError, match="divisible by 2"):
        nn.glu(np.ones((2, 3)))


def test_a_masked_softmax_is_traced_once_for_any_number_of_examples() -> None:
    softmax, traces = tf.keras.layers.Softmax(), []

    @tf.function
    def weigh(scores: Any, mask: Any) -> Any:
        traces.append(0)
        return softmax(scores, mask=mask)

    for count in (4, 1, 3, 0):
        scores = np.random.default_rng(0).normal(size=(count, 2, 5, 6)).astype(np.float32)
        mask = np.arange(6) < 2
        rows = [
            tf.constant(a)._as_examples(0, 1) for a in (scores, np.tile(mask, (count, 1, 1, 1)))
        ]
        expected = np.exp(scores) * mask
        expected = expected / expected.sum(-1, keepdims=True)
        np.testing.assert_allclose(weigh(*rows).numpy(), expected, rtol=1e-5)
    assert len(traces) == 1
    with pytest.raises(ValueError, match="must be broadcastable"):
        softmax(np.zeros((2, 3), np.float32), mask=np.ones((2, 4), bool))
