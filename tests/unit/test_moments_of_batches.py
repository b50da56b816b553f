"""Normalization by the moments of batches: right to second order, the same bits wherever it runs,
and in as many passes over the data as it needs."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from derivatives import check_derivatives
from replica_values import cut, examples, local, shares, strategy

import samegrad as tf
from samegrad import nn
from samegrad._function import trace as _trace

EPSILON = 1e-3


def normalize(x: Any, mean: Any, variance: Any, scale: Any, offset: Any) -> Any:
    return tf.nn.relu((x - mean) * (tf.math.rsqrt(variance + EPSILON) * scale) + offset)


def of_all(x: Any, n: float, scale: Any, offset: Any) -> Any:
    """By the moments of all replicas' rows."""
    context = tf.distribute.get_replica_context()
    axes = list(range(len(x.shape) - 1))
    mean = context.all_reduce("SUM", tf.reduce_sum(x, axes) / n)
    distance = x - mean
    variance = context.all_reduce("SUM", tf.reduce_sum(distance * distance, axes) / n)
    return normalize(x, mean, variance, scale, offset)


def in_numpy(x: np.ndarray, scale: np.ndarray, offset: np.ndarray, ct: np.ndarray) -> Any:
    """Value and gradients by x, scale and offset (Ioffe and Szegedy 2015, section 3)."""
    axes = tuple(range(x.ndim - 1))
    rstd = 1 / np.sqrt(x.var(axes) + EPSILON)
    hat = (x - x.mean(axes)) * rstd
    y = hat * scale + offset
    g = np.where(y > 0, ct, 0)
    along = (g * hat).mean(axes)
    dx = scale * rstd * (g - g.mean(axes) - hat * along)
    return np.maximum(y, 0), dx, (g * hat).sum(axes), g.sum(axes)


def arrays(shape: tuple[int, ...], dtype: str = "float64") -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(sum(shape))
    x, ct = rng.normal(0.7, 1.3, shape), rng.normal(size=shape)
    scale, offset = rng.uniform(0.5, 2, shape[-1]), rng.normal(size=shape[-1])
    return tuple(a.astype(dtype) for a in (x, scale, offset, ct))


def trained(x: Any, scale: Any, offset: Any, ct: Any, n: float) -> Any:
    with tf.GradientTape() as tape:
        tape.watch([x, scale, offset])
        y = of_all(x, n, scale, offset)
    dx, *others = tape.gradient(y, [x, scale, offset], output_gradients=ct)
    context = tf.distribute.get_replica_context()
    return y, dx, *(context.all_reduce("SUM", d) for d in others)


def run_on(counts: tuple[int, ...], given: tuple[np.ndarray, ...]) -> list[np.ndarray]:
    """Rows of all replicas; sums of the first one, which all have."""
    x, scale, offset, ct = given
    on = strategy(len(counts))
    n = float(x.size // x.shape[-1])
    constants = tf.constant(scale), tf.constant(offset)

    @tf.function
    def step(x: Any, ct: Any) -> Any:
        return on.run(lambda x, ct: trained(x, *constants, ct, n), args=(x, ct))

    def batch(array: np.ndarray) -> Any:
        return shares(*cut(array, counts)) if len(counts) > 1 else examples(array)

    y, dx, *sums = (local(part) for part in step(batch(x), batch(ct)))
    for parts in sums:
        assert all(np.array_equal(part, parts[0]) for part in parts)
    return [np.concatenate(y), np.concatenate(dx), *(parts[0] for parts in sums)]


@pytest.mark.parametrize("axes", [[0], [0, 1], [0, 1, 2], [1, 2], [-1]])
@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("traced", [False, True])
def test_variances_have_the_derivatives_of_differences(axes, keepdims, traced):
    x = np.random.default_rng(3).normal(size=(4, 3, 2, 5))
    check_derivatives(lambda x: tf.math.reduce_variance(x, axes, keepdims), x, traced=traced)
    check_derivatives(
        lambda x: (
            tf.math.reduce_std(tf.sin(x), axes, keepdims) * nn.moments(x, axes, None, keepdims)[0]
        ),
        x,
        traced=traced,
    )


def test_the_second_derivative_of_the_variance_goes_through_the_mean():
    x = np.random.default_rng(4).normal(size=6)
    with tf.GradientTape() as outer:
        t = tf.constant(x)
        outer.watch(t)
        with tf.GradientTape() as inner:
            inner.watch(t)
            variance = tf.math.reduce_variance(t)
        first = inner.gradient(variance, t)
    np.testing.assert_allclose(first.numpy(), 2 * (x - x.mean()) / 6, rtol=1e-13)
    expected = 2 / 6 * (np.eye(6) - 1 / 6)
    np.testing.assert_allclose(outer.jacobian(first, t).numpy(), expected, atol=1e-14)


def test_a_constant_has_no_variance_and_no_gradient():
    for rows in (1, 5):
        x = examples(np.full((rows, 3, 2), 1e6, "float32"))
        with tf.GradientTape() as tape:
            tape.watch(x)
            mean, variance = nn.moments(x, [0, 1])
        assert variance.numpy().tolist() == [0, 0] and mean.numpy().tolist() == [1e6, 1e6]
        assert not np.any(tape.gradient(variance, x).numpy())


def test_numbers_that_are_none_come_out():
    x = np.ones((4, 3, 2), "float32")
    x[1, 2, 0], x[2, 0, 1] = np.nan, np.inf
    mean, variance = nn.moments(examples(x), [0, 1])
    assert (
        np.isnan(variance.numpy()).all() and np.isnan(mean.numpy()[0]) and np.isinf(mean.numpy()[1])
    )


@pytest.mark.parametrize("shape", [(8, 6, 5, 3), (3, 20, 20, 4), (1, 4, 4, 2), (12, 7)])
@pytest.mark.parametrize("moments", [False, True])
def test_normalized_batches_are_numpys(shape, moments):
    x, scale, offset, ct = arrays(shape)
    expected = in_numpy(x, scale, offset, ct)
    if moments:

        @tf.function
        def step(x: Any, scale: Any, offset: Any) -> Any:
            with tf.GradientTape() as tape:
                tape.watch([x, scale, offset])
                found = nn.moments(x, list(range(len(shape) - 1)))
                y = tf.nn.relu(nn.batch_normalization(x, *found, offset, scale, EPSILON))
            return y, *tape.gradient(y, [x, scale, offset], output_gradients=examples(ct))

        found = [
            part.numpy() for part in step(examples(x), tf.constant(scale), tf.constant(offset))
        ]
    else:
        found = run_on((len(x),), (x, scale, offset, ct))
    for got, wanted in zip(found, expected, strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("counts", [(3, 5), (1, 0, 7), (2, 2, 3, 1)])
def test_uneven_shares_are_numpys(counts):
    given = arrays((8, 9, 8, 5))
    for got, wanted in zip(run_on(counts, given), in_numpy(*given), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize(
    "shape", [(32, 5, 7, 3), (8, 56, 56, 64), (32, 17, 16, 33), (32, 1, 129, 20)]
)
def test_replicas_change_no_bit(shape):
    given = arrays(shape, "float32")
    alone = run_on((shape[0],), given)
    for replicas in (2, 3, 8):
        counts = tuple(len(part) for part in np.array_split(np.arange(shape[0]), replicas))
        for got, wanted in zip(run_on(counts, given), alone, strict=True):
            assert got.tobytes() == wanted.tobytes()


@pytest.mark.parametrize("shape", [(4, 40, 40, 8), (8, 33, 20, 64), (2, 3, 3, 700), (3, 300, 5)])
def test_passes_change_no_bit(shape, monkeypatch):
    given = arrays(shape, "float32")
    fused = run_on((shape[0],), given)
    monkeypatch.setattr(_trace.OPTIONS, "fuse_elementwise", False)
    for got, wanted in zip(run_on((shape[0],), given), fused, strict=True):
        assert got.tobytes() == wanted.tobytes()


def plan_of(by_moments: bool) -> str:
    x, scale, offset, ct = arrays((8, 28, 28, 64), "float32")
    constants = tf.constant(scale), tf.constant(offset)

    @tf.function
    def step(x: Any, ct: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(x)
            if by_moments:
                found = nn.moments(x, [0, 1, 2])
                y = tf.nn.relu(nn.batch_normalization(x, *found, *constants[::-1], EPSILON))
            else:
                mean = tf.reduce_mean(x, [0, 1, 2])
                distance = x - mean
                variance = tf.reduce_mean(distance * distance, [0, 1, 2])
                y = normalize(x, mean, variance, *constants)
        return y, tape.gradient(y, x, output_gradients=ct)

    return str(step.explain(examples(x), examples(ct)))


@pytest.mark.parametrize("by_moments", [False, True])
def test_sums_are_taken_in_the_loops_that_make_what_they_add(by_moments):
    plan = plan_of(by_moments)
    loops = plan.split("loop over the examples")[1:]
    # The sums of x, of squared distances and of the gradients; without the derivative that goes
    # through the mean of the distances, their normalization follows.
    assert len(loops) == (4 if by_moments else 5)
    assert "sub square reduce_sum'" in plan or "sub mul reduce_sum'" in plan
    assert loops[2].split("'")[1].split().count("reduce_sum") == 2
    # What is summed is nowhere in memory; an example leaves one row of each sum.
    between = [re.search(r"each with (\S+ \S+) between", loop)[1] for loop in loops]
    assert between[:3] == ["0 bytes", "256 bytes", "512 bytes"]
    # The distances are recomputed where they are read.
    assert loops[2].split("'")[1].startswith(("sub", "mul"))
    assert loops[3].split("'")[1].split().count("relu") == 1
