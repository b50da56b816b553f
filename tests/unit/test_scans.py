"""Sums and products up to each element are NumPy's, with derivatives that zeros do not spoil."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from derivatives import check_derivatives, differences
from replica_values import examples, local, shares, strategy

import samegrad as tf

SCANS = {"cumsum": np.add, "cumprod": np.multiply}
BOTH = pytest.mark.parametrize("name", SCANS)
TRACED = pytest.mark.parametrize("traced", [False, True], ids=["eager", "traced"])
FORMS = pytest.mark.parametrize(
    ("exclusive", "reverse"), [(False, False), (True, False), (False, True), (True, True)]
)


def numpys(name: str, x: np.ndarray, axis: int, exclusive: bool, reverse: bool) -> np.ndarray:
    line = np.moveaxis(x, axis, 0)
    line = line[::-1] if reverse else line
    if exclusive:
        first = np.full_like(line[:1], SCANS[name].identity)
        line = np.concatenate([first, line[:-1]])
    found = SCANS[name].accumulate(line, axis=0, dtype=x.dtype)
    return np.moveaxis(found[::-1] if reverse else found, 0, axis)


def scan(name: str, **how: Any) -> Any:
    return lambda x: getattr(tf.math, name)(x, **how)


@BOTH
@FORMS
@TRACED
@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64", "uint8"])
def test_a_scan_is_numpys(name, exclusive, reverse, axis, traced, dtype):
    x = (np.arange(30).reshape(2, 3, 5) * 37 % 11 + 1).astype(dtype)
    run = scan(name, axis=axis, exclusive=exclusive, reverse=reverse)
    found = (tf.function(run) if traced else run)(tf.constant(x)).numpy()
    expected = numpys(name, x, axis, exclusive, reverse)
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(found, expected, rtol=1e-6)


@BOTH
@FORMS
@pytest.mark.parametrize("shape", [(0,), (1,), (3, 0), (0, 3), (3, 1), (1, 1, 1)])
def test_lines_of_no_and_of_one_element(name, exclusive, reverse, shape):
    x = np.full(shape, 3.0)
    found = scan(name, axis=-1, exclusive=exclusive, reverse=reverse)(tf.constant(x)).numpy()
    assert found.shape == shape
    np.testing.assert_array_equal(found, SCANS[name].identity if exclusive else x)


@FORMS
@pytest.mark.parametrize("shape", [(100_000,), (100_001, 3), (2, 40_000)])
def test_rounding_of_long_sums_grows_slowly(exclusive, reverse, shape):
    x = np.random.default_rng(0).uniform(size=shape).astype(np.float32)
    axis = int(np.argmax(shape))
    found = scan("cumsum", axis=axis, exclusive=exclusive, reverse=reverse)(tf.constant(x))
    expected = numpys("cumsum", x.astype(np.float64), axis, exclusive, reverse)
    np.testing.assert_allclose(found.numpy(), expected, rtol=3e-6)


@BOTH
def test_long_lines_of_whole_numbers_are_exact(name):
    x = np.random.default_rng(0).integers(1, 1000, size=100_000)
    np.testing.assert_array_equal(scan(name)(tf.constant(x)), SCANS[name].accumulate(x))


@BOTH
@pytest.mark.parametrize("shape", [(20_000,), (20_000, 3)])
def test_what_comes_behind_an_element_changes_no_bit_of_it(name, shape):
    x = np.random.default_rng(0).uniform(0.9, 1.1, size=shape).astype(np.float32)
    whole = scan(name)(tf.constant(x)).numpy()
    for n in (1, 127, 128, 129, 16_384, 16_385):
        np.testing.assert_array_equal(scan(name)(tf.constant(x[:n])).numpy(), whole[:n])
    without = scan(name, exclusive=True)(tf.constant(x)).numpy()
    np.testing.assert_array_equal(without[1:], whole[:-1])
    backwards = scan(name, reverse=True)(tf.constant(x[::-1].copy())).numpy()
    np.testing.assert_array_equal(backwards[::-1], whole)


@BOTH
def test_nan_and_infinity_reach_what_is_behind_them(name):
    x = np.array([1.0, 2.0, np.inf, 3.0, np.nan, 4.0])
    expected = SCANS[name].accumulate(x)
    np.testing.assert_array_equal(scan(name)(tf.constant(x)).numpy(), expected)
    long = np.ones(1000)
    long[300], long[700] = np.inf, -np.inf
    found = scan(name)(tf.constant(long)).numpy()
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(found, SCANS[name].accumulate(long))


@BOTH
@FORMS
@TRACED
@pytest.mark.parametrize("zeros", [0, 1, 2, 4])
def test_derivatives_agree_with_differences_at_any_number_of_zeros(
    name, exclusive, reverse, traced, zeros
):
    x = np.array([[1.3, -0.7, 0.4, 2.1], [0.9, 1.6, -1.2, 0.5]])
    x[:, :zeros] = 0.0
    check_derivatives(scan(name, axis=1, exclusive=exclusive, reverse=reverse), x, traced=traced)


@pytest.mark.parametrize("zeros", [0, 1, 2, 3, 6])
@pytest.mark.parametrize("axis", [None, 0, 1, -1, (0, 1)])
def test_derivatives_of_a_product_agree_with_differences_at_any_number_of_zeros(zeros, axis):
    x = np.array([[1.3, -0.7, 0.4], [0.9, 1.6, -1.2]])
    x.reshape(-1)[:zeros] = 0.0
    check_derivatives(lambda v: tf.reduce_prod(v, axis=axis), x)
    check_derivatives(lambda v: tf.reduce_prod(v, axis=axis, keepdims=True), x, traced=True)


def test_a_third_derivative_of_a_product_of_zeros():
    x = tf.constant([0.0, 0.0, 0.0])
    with tf.GradientTape() as third:
        third.watch(x)
        with tf.GradientTape() as second:
            second.watch(x)
            with tf.GradientTape() as first:
                first.watch(x)
                y = tf.reduce_prod(x)
            one = first.gradient(y, x)[0]
        two = second.gradient(one, x)[1]
    np.testing.assert_array_equal(third.gradient(two, x).numpy(), [0.0, 0.0, 1.0])


@pytest.mark.parametrize("name", ["cumsum", "cumprod", "reduce_prod"])
@pytest.mark.parametrize("counts", [(5, 4, 3), (12,), (6, 0, 6)])
def test_scans_inside_examples_are_the_same_on_any_replicas(name, counts):
    x = np.random.default_rng(0).uniform(0.5, 1.5, size=(12, 9)).astype(np.float32)
    parts = np.split(x, np.cumsum(counts)[:-1])
    replicas = strategy(len(counts))

    @tf.function
    def step(v):
        def each(rows):
            with tf.GradientTape() as tape:
                tape.watch(rows)
                y = getattr(tf.math, name)(rows, axis=1)
            return y, tape.gradient(y, rows)

        return replicas.run(each, (v,))

    y, gradient = step(shares(*parts) if len(counts) > 1 else examples(x))
    with tf.GradientTape() as tape:
        whole = tf.constant(x)
        tape.watch(whole)
        expected = getattr(tf.math, name)(whole, axis=1)
    np.testing.assert_array_equal(np.concatenate(local(y)), expected.numpy())
    slope = tape.gradient(expected, whole).numpy()
    np.testing.assert_array_equal(np.concatenate(local(gradient)), slope)


@BOTH
@FORMS
def test_along_the_examples_each_replica_scans_its_own(name, exclusive, reverse):
    parts = [np.full((n, 2), 1.5) for n in (4, 1, 0)]
    replicas = strategy(3)
    run = scan(name, axis=0, exclusive=exclusive, reverse=reverse)
    found = local(tf.function(lambda v: replicas.run(run, (v,)))(shares(*parts)))
    for got, part in zip(found, parts, strict=True):
        np.testing.assert_array_equal(got, numpys(name, part, 0, exclusive, reverse))


def test_the_plan_names_a_scan_along_the_examples():
    replicas = strategy(2)

    def step(v):
        y = replicas.run(lambda x: tf.reduce_sum(tf.cumsum(x)), (v,))
        return replicas.reduce("sum", y, axis=None)

    plan = str(tf.function(step).explain(shares(np.ones(4), np.ones(4))))
    assert "cumsum" in plan and "is computed from one replica's batch" in plan


def test_gradients_through_a_scan_along_the_examples():
    x = np.array([[0.5], [0.0], [2.0], [0.0]])

    def loss(v):
        return tf.reduce_sum(tf.math.cumprod(v, exclusive=True) * [[1.0], [2.0], [3.0], [4.0]])

    rows = examples(x)
    with tf.GradientTape() as tape:
        tape.watch(rows)
        y = loss(rows)
    (expected,) = differences(lambda v: float(loss(tf.constant(v[0]))), [x.copy()])
    np.testing.assert_allclose(tape.gradient(y, rows).numpy(), expected, atol=1e-8)


@BOTH
@pytest.mark.parametrize(("x", "axis", "words"), [
    (1.0, 0, r"axis must lie in \[0, 0\): got 0"),
    ([1.0], 1, r"axis must lie in \[-1, 1\): got 1"),
    ([[1.0]], -3, r"axis must lie in \[-2, 2\): got -3"),
])  # fmt: skip
def test_an_axis_that_is_not_there_is_refused(name, x, axis, words):
    with pytest.raises(ValueError, match=words):
        getattr(tf.math, name)(x, axis=axis)


@BOTH
@pytest.mark.parametrize(("x", "how", "words"), [
    ([True], {}, "must be float32, .*uint64: got bool"),
    ([1.0], {"axis": 0.5}, "axis"),
    ("x", {}, r"\[cum"),
])  # fmt: skip
def test_what_cannot_be_scanned_is_refused(name, x, how, words):
    with pytest.raises(TypeError, match=words):
        getattr(tf.math, name)(x, **how)
