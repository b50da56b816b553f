"""Functions of numbers give what NumPy gives, at once and in functions."""

import math
from fractions import Fraction

import numpy as np
import pytest

import samegrad as tf

A = np.float64([[0.1, 0.5, 0.9], [0.3, 0.7, 0.2]])
B = np.float64([[2.0, -1.5, 0.4], [1.0, 3.0, -0.3]])
WITHIN = {  # as NumPy calls them
    "abs": np.abs, "acos": np.arccos, "asin": np.arcsin, "asinh": np.arcsinh, "atan": np.arctan,
    "atanh": np.arctanh, "ceil": np.ceil, "cos": np.cos, "cosh": np.cosh,
    "erf": np.vectorize(math.erf), "exp": np.exp, "expm1": np.expm1, "floor": np.floor,
    "is_finite": np.isfinite, "is_inf": np.isinf, "is_nan": np.isnan, "log": np.log,
    "log1p": np.log1p, "log_sigmoid": lambda x: -np.log1p(np.exp(-x)), "negative": np.negative,
    "reciprocal": np.reciprocal, "round": np.round, "rsqrt": lambda x: 1 / np.sqrt(x),
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)), "sign": np.sign, "sin": np.sin, "sinh": np.sinh,
    "softplus": lambda x: np.log1p(np.exp(x)), "sqrt": np.sqrt, "square": np.square, "tan": np.tan,
    "tanh": np.tanh,
}  # fmt: skip
OF_TWO = {
    "add": np.add, "atan2": np.arctan2, "divide": np.divide, "divide_no_nan": np.divide,
    "equal": np.equal, "floordiv": np.floor_divide, "floormod": np.mod, "greater": np.greater,
    "greater_equal": np.greater_equal, "less": np.less, "less_equal": np.less_equal,
    "maximum": np.maximum, "minimum": np.minimum, "mod": np.mod, "multiply": np.multiply,
    "not_equal": np.not_equal, "pow": np.power, "subtract": np.subtract, "truediv": np.divide,
    "squared_difference": lambda a, b: (a - b) ** 2, "xlogy": lambda a, b: a * np.log(b),
}  # fmt: skip
REDUCTIONS = {
    "reduce_sum": np.sum, "reduce_mean": np.mean, "reduce_max": np.max, "reduce_min": np.min,
    "reduce_prod": np.prod, "reduce_std": np.std, "reduce_variance": np.var,
    "reduce_euclidean_norm": lambda x, axis, keepdims: np.sqrt(
        np.sum(x * x, axis=axis, keepdims=keepdims)),
    "reduce_logsumexp": lambda x, axis, keepdims: np.log(
        np.sum(np.exp(x), axis=axis, keepdims=keepdims)),
    "count_nonzero": lambda x, axis, keepdims: np.count_nonzero(x, axis=axis, keepdims=keepdims),
}  # fmt: skip
TRACED = pytest.mark.parametrize("traced", [False, True], ids=["eager", "traced"])


def called(fn, traced, *values):
    return (tf.function(fn) if traced else fn)(*map(tf.constant, values)).numpy()


def close(found, expected):
    assert found.shape == np.shape(expected)
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-15)


@TRACED
@pytest.mark.parametrize("name", WITHIN)
def test_a_function_of_one_number_is_numpys(name, traced):
    value = A + 0.25 if name == "reciprocal" else A
    close(called(getattr(tf.math, name), traced, value), WITHIN[name](value))


@TRACED
@pytest.mark.parametrize("name", OF_TWO)
@pytest.mark.parametrize("broadcast", [False, True], ids=["alike", "broadcast"])
def test_a_function_of_two_numbers_is_numpys(name, broadcast, traced):
    a, b = (A[:, :1], B[:1]) if broadcast else (A, B)
    b = np.abs(b) if name == "xlogy" else b
    close(called(getattr(tf.math, name), traced, a, b), OF_TWO[name](a, b))


@TRACED
@pytest.mark.parametrize("name", REDUCTIONS)
@pytest.mark.parametrize("axis", [None, 0, 1, (0, 1), -1])
@pytest.mark.parametrize("keepdims", [False, True])
def test_a_reduction_is_numpys(name, axis, keepdims, traced):
    def fn(x):
        return getattr(tf.math, name)(x, axis=axis, keepdims=keepdims)

    close(called(fn, traced, B), REDUCTIONS[name](B, axis=axis, keepdims=keepdims))


@TRACED
@pytest.mark.parametrize("name", ["and", "or", "xor"])
def test_logic_is_numpys(name, traced):
    a, b = np.array([[True], [False]]), np.array([True, False])
    found = called(getattr(tf.math, f"logical_{name}"), traced, a, b)
    np.testing.assert_array_equal(found, getattr(np, f"logical_{name}")(a, b))


@TRACED
@pytest.mark.parametrize("name", ["all", "any"])
def test_reductions_of_truths_are_numpys(name, traced):
    found = called(lambda x: getattr(tf.math, f"reduce_{name}")(x, axis=0), traced, B > 0)
    np.testing.assert_array_equal(found, getattr(np, name)(B > 0, axis=0))
    assert not tf.math.logical_not(True).numpy()


@TRACED
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_the_place_of_the_largest_is_numpys(axis, traced):
    close(called(lambda x: tf.argmax(x, axis=axis), traced, B), np.argmax(B, axis=axis))
    close(called(lambda x: tf.argmin(x, axis=axis), traced, B), np.argmin(B, axis=axis))


def test_a_sum_of_several_is_numpys():
    close(tf.add_n([tf.constant(A), tf.constant(B), tf.constant(A)]).numpy(), A + B + A)


def test_inverse_functions_far_out_are_numpys():
    close(tf.math.acosh(tf.constant(A + 1)).numpy(), np.arccosh(A + 1))


def test_small_functions_are_numpys():
    x = np.array([0.5, 1.5, -2.5, 0.0, -0.0])
    close(tf.math.accumulate_n([tf.constant(A), tf.constant(B)]).numpy(), A + B)
    close(tf.math.rint(tf.constant(x)).numpy(), np.rint(x))
    close(tf.math.nextafter(tf.constant(x), tf.constant(1.0, tf.float64)), np.nextafter(x, 1.0))
    close(tf.math.softsign(tf.constant(x)).numpy(), x / (1 + np.abs(x)))
    close(tf.math.multiply_no_nan(tf.constant([np.inf, 2.0]), tf.constant([0.0, 3.0])), [0.0, 6.0])
    close(tf.math.reciprocal_no_nan(tf.constant([0.0, 4.0])), [0.0, 0.25])
    shifted = np.exp(B - B.max(axis=0))
    close(tf.math.softmax(tf.constant(B), axis=0).numpy(), shifted / shifted.sum(axis=0))
    close(tf.math.log_softmax(tf.constant(B), axis=0), np.log(shifted / shifted.sum(axis=0)))


def test_every_public_function_of_numbers_is_compared():
    tested = {*WITHIN, *OF_TWO, *REDUCTIONS, "acosh", "add_n", "argmax", "argmin", "reduce_all"}
    tested |= {"cumprod", "cumsum", "in_top_k", "top_k"}  # test_scans.py, test_order.py
    tested |= {name for name in tf.math.__all__ if "segment_" in name}  # test_segments.py
    tested |= {"bincount", "confusion_matrix", "cumulative_logsumexp", "l2_normalize"}
    tested |= {"reduce_any", "logical_and", "logical_or", "logical_xor", "logical_not"}
    tested |= compared_elsewhere()
    assert set(tf.math.__all__) == tested


def compared_elsewhere() -> set[str]:
    """Names whose values other files hold: those of special and of small functions."""
    special = {
        "bessel_i0", "bessel_i0e", "bessel_i1", "bessel_i1e", "betainc", "digamma", "erfc",
        "erfcinv", "erfinv", "igamma", "igammac", "lbeta", "lgamma", "ndtri", "polygamma", "zeta",
    }  # fmt: skip
    small = {
        "accumulate_n", "approx_max_k", "approx_min_k", "invert_permutation", "is_non_decreasing",
        "is_strictly_increasing", "log_softmax", "multiply_no_nan", "nextafter", "polyval",
        "reciprocal_no_nan", "rint", "scalar_mul", "softmax", "softsign", "xdivy", "xlog1py",
        "zero_fraction",
    }  # fmt: skip
    return special | small | {"angle", "conj", "imag", "real"}  # of complex numbers: signals/


@pytest.mark.parametrize("traced", [False, True])
def test_the_derivative_of_a_sign_is_zero_and_that_of_a_rounded_number_is_none(traced):
    """As in TensorFlow, whatever flows back; a sign may be NaN."""

    def step(x):
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(x)
            signs = tf.sign(x) * np.inf
            rounded = [fn(x) for fn in (tf.floor, tf.math.ceil, tf.round)]
        return tape.gradient(signs, x), [tape.gradient(y, x) for y in rounded]

    run = tf.function(step) if traced else step
    zeros, nothing = run(tf.constant([-2.0, 0.0, 3.0, np.nan]))
    np.testing.assert_array_equal(zeros.numpy(), [0.0, 0.0, 0.0, 0.0])
    assert nothing == [None] * 3


def test_the_second_derivative_of_a_magnitude_is_zero():
    x = tf.constant([-2.0, 3.0])
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.abs(x)
        slope = tape.gradient(y, x)
    np.testing.assert_array_equal(outer.gradient(slope, x).numpy(), [0.0, 0.0])


INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]


@pytest.mark.parametrize("traced", [False, True])
@pytest.mark.parametrize("dtype", [*INTEGERS, "float16", "float32", "float64"])
def test_truncated_division_rounds_towards_0(dtype, traced):
    x, y = np.array([7, -7, 7, -7, 0, 5]).astype(dtype), np.array([2, 2, -2, -2, 3, 5])
    y = y.astype(dtype)
    call = (tf.function if traced else lambda f: f)(
        lambda x, y: (tf.truncatediv(x, y), tf.truncatemod(x, y))
    )
    quotient, rest = call(x, y)
    pairs = zip(map(Fraction, x.tolist()), map(Fraction, y.tolist()), strict=True)
    exact = [math.trunc(a / b) for a, b in pairs]
    np.testing.assert_array_equal(quotient.numpy(), np.array(exact).astype(dtype))
    np.testing.assert_array_equal(rest.numpy(), np.fmod(x, y))  # with the sign of x
    assert quotient.dtype.name == rest.dtype.name == dtype


def test_truncated_division_of_extremes_is_that_of_tensorflow():
    least = tf.constant([-(2**31)])
    assert tf.truncatediv(least, -1).numpy().tolist() == [-(2**31)]
    assert tf.truncatemod(least, -1).numpy().tolist() == [0]
    x, y = (
        [7.5, -7.5, 1.0, -1.0, 0.0, np.inf, 5.3, 1e30],
        [2.0, 2.0, 0.0, 0.0, 0.0, 2.0, np.inf, 3.0],
    )
    expected = np.float32([3.0, -3.0, np.inf, -np.inf, np.nan, np.inf, 0.0, 1e30 / 3])
    np.testing.assert_array_equal(tf.truncatediv(x, y).numpy(), expected)
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(
            tf.truncatemod(x, y).numpy(), np.fmod(np.float32(x), np.float32(y))
        )
    with pytest.raises(tf.errors.InvalidArgumentError, match="cannot be divided by 0"):
        tf.truncatediv([7], [0])


def test_gradients_of_truncated_division_are_those_of_its_parts():
    x, y = tf.Variable([7.5, -7.5]), tf.Variable([2.0, 2.0])
    with tf.GradientTape(persistent=True) as tape:
        quotient, rest = tf.truncatediv(x, y), tf.truncatemod(x, y)
    assert tape.gradient(quotient, [x, y]) == [None, None]
    dx, dy = tape.gradient(rest, [x, y])
    assert dx.numpy().tolist() == [1.0, 1.0] and dy.numpy().tolist() == [-3.0, 3.0]
