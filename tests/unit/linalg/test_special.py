"""Special functions are SciPy's; bits of integers are NumPy's."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from derivatives import check_derivatives
from special_cases import CASES, decoded

import samegrad as tf

RECORDED = json.loads(Path(__file__).with_name("scipy_special.json").read_text("utf-8"))["cases"]
TRACED = pytest.mark.parametrize("traced", [False, True], ids=["eager", "traced"])


@TRACED
@pytest.mark.parametrize("name", CASES)
def test_values_are_those_of_scipy(name, traced):
    _, operands, tolerance = CASES[name]
    fn = getattr(tf.math, name)
    found = (tf.function(fn) if traced else fn)(*map(tf.constant, operands))
    expected = decoded(RECORDED[name])
    np.testing.assert_allclose(found.numpy().ravel(), expected, rtol=tolerance, atol=1e-300)


@pytest.mark.parametrize("name", CASES)
def test_float32_is_rounded_once(name):
    operands = [x.astype(np.float32) for x in CASES[name][1]]
    fn = getattr(tf.math, name)
    wide = fn(*[tf.constant(x.astype(np.float64)) for x in operands]).numpy()
    narrow = fn(*map(tf.constant, operands)).numpy()
    assert narrow.dtype == np.float32
    # Those that are products of others are rounded more than once.
    with np.errstate(over="ignore"):
        np.testing.assert_allclose(narrow, wide.astype(np.float32), rtol=3e-6, atol=1e-37)


POINTS = {
    "lgamma": [[0.4, 1.3, 6.0, -0.5]],
    "digamma": [[0.6, 1.3, 6.0, -0.5]],
    "erfc": [[-1.0, 0.3, 2.0]],
    "erfinv": [[-0.7, 0.1, 0.9]],
    "erfcinv": [[0.2, 1.0, 1.7]],
    "ndtri": [[0.1, 0.5, 0.8]],
    "bessel_i0e": [[-2.0, 0.3, 25.0]],
    "bessel_i1e": [[-2.0, 0.3, 25.0]],
    "bessel_i0": [[-2.0, 0.3]],
    "bessel_i1": [[-2.0, 0.3]],
    "lbeta": [[0.5, 1.5, 2.5]],
    "xlog1py": [[0.5, 2.0], [0.3, -0.4]],
    "reciprocal_no_nan": [[0.5, -2.0]],
}


@TRACED
@pytest.mark.parametrize("name", POINTS)
def test_derivatives_are_those_of_differences(name, traced):
    check_derivatives(
        getattr(tf.math, name), *map(np.array, POINTS[name]), traced=traced, tolerance=1e-5
    )


@pytest.mark.parametrize(
    ("name", "parameters", "points"),
    [
        ("polygamma", [1.0], [0.7, 3.0]),
        ("zeta", [2.5], [0.7, 3.0]),
        ("igamma", [1.7], [0.2, 4.0]),
        ("igammac", [1.7], [0.2, 4.0]),
        ("betainc", [1.5, 2.5], [0.2, 0.9]),
    ],
)
def test_derivatives_along_the_last_operand(name, parameters, points):
    fn = getattr(tf.math, name)
    given = [tf.constant(p, "float64") for p in parameters]
    check_derivatives(lambda x: fn(*given, x), np.array(points), tolerance=1e-5)


def test_the_derivative_of_igamma_along_a():
    a, x = np.array([0.3, 1.0, 2.5, 20.0, 300.0]), np.array([0.1, 2.0, 2.0, 25.0, 290.0])
    with tf.GradientTape(persistent=True) as tape:
        places = tf.constant(a)
        tape.watch(places)
        lower, upper = (f(places, tf.constant(x)) for f in (tf.math.igamma, tf.math.igammac))
    step = 1e-5
    above, below = (tf.math.igamma(a + d, x).numpy() for d in (step, -step))
    found = tape.gradient(lower, places).numpy()
    np.testing.assert_allclose(found, (above - below) / (2 * step), rtol=1e-6, atol=1e-9)
    np.testing.assert_array_equal(tape.gradient(upper, places).numpy(), -found)


def test_the_slope_of_i1e_at_0_is_one_half():
    x = tf.constant([0.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.math.bessel_i1e(x)
    np.testing.assert_array_equal(tape.gradient(y, x).numpy(), [0.5])


def test_operands_broadcast():
    found = tf.math.igamma(tf.constant([[1.0], [2.0]]), tf.constant([0.5, 1.0, 2.0]))
    assert found.shape == (2, 3)
    with tf.GradientTape() as tape:
        x = tf.constant(0.5)
        tape.watch(x)
        y = tf.reduce_sum(tf.math.betainc([1.0, 2.0], 2.0, x))
    assert tape.gradient(y, x).shape == ()


def test_whole_numbers_are_refused():
    with pytest.raises(TypeError, match="needs floats: got int32"):
        tf.math.lgamma(3)


BITS = {
    "bitwise_and": np.bitwise_and,
    "bitwise_or": np.bitwise_or,
    "bitwise_xor": np.bitwise_xor,
    "left_shift": np.left_shift,
    "right_shift": np.right_shift,
}


@TRACED
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "uint32", "int64", "uint64"])
@pytest.mark.parametrize("name", BITS)
def test_bits_are_those_of_numpy(name, dtype, traced):
    limits = np.iinfo(dtype)
    x = np.array([[limits.min, 0, 1], [5, limits.max, 12]], dtype)
    y = np.array([1, 3, 7], dtype)
    fn = getattr(tf.bitwise, name)
    found = (tf.function(fn) if traced else fn)(tf.constant(x), tf.constant(y)).numpy()
    assert found.dtype == x.dtype
    np.testing.assert_array_equal(found, BITS[name](x, y))
    np.testing.assert_array_equal(tf.bitwise.invert(x).numpy(), np.invert(x))


def test_shifts_stop_at_the_last_bit():
    np.testing.assert_array_equal(tf.bitwise.left_shift([1, 1], [31, 40]).numpy(), [-(2**31)] * 2)
    np.testing.assert_array_equal(tf.bitwise.right_shift([-8, 8], [99, -3]).numpy(), [-1, 8])


def test_floats_have_no_bits():
    with pytest.raises(TypeError, match="needs integers: got float32"):
        tf.bitwise.bitwise_and([1.0], [2.0])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_zeta_of_any_numbers_comes_to_an_end(dtype: str) -> None:
    ends = [np.inf, -np.inf, np.nan, 0.0, -1.0, 1.0, 2.0, 0.5, 1e20, 1e30, -1e30]
    s, q = (x.ravel() for x in np.meshgrid(ends, ends))
    found = tf.math.zeta(tf.constant(s, dtype), tf.constant(q, dtype)).numpy()
    known = {(np.inf, 2.0): 0.0, (1e20, 1.0): 1.0, (1e30, 0.5): np.inf, (2.0, np.inf): 0.0}
    for (one, other), value in known.items():
        assert found[(s == one) & (q == other)] == value
    assert tf.math.polygamma(tf.constant(s, dtype), tf.constant(q, dtype)).shape == s.shape
