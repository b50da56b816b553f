"""keras.backend.math: Fourier transforms, error functions, segments."""

from __future__ import annotations

import math

import numpy as np
import pytest
from backend_checks import check_gradients, same_when_traced

import samegrad as tf
from samegrad._keras import math as keras_math

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("size", [1, 2, 5, 97, 128, 240, 1000, 4096])
def test_transforms_of_any_length_are_those_of_numpy(size: int) -> None:
    x = RNG.normal(size=(2, size)) + 1j * RNG.normal(size=(2, size))
    real, imag = keras_math.fft((x.real, x.imag))
    np.testing.assert_allclose(real.numpy() + 1j * imag.numpy(), np.fft.fft(x), atol=1e-11 * size)
    real, imag = keras_math.rfft(x.real)
    wanted = np.fft.rfft(x.real)
    np.testing.assert_allclose(real.numpy() + 1j * imag.numpy(), wanted, atol=1e-11 * size)
    if size > 1:
        back = keras_math.irfft((real, imag), size)
        np.testing.assert_allclose(back, x.real, atol=1e-12 * size)


def test_lengths_are_cut_and_filled_up() -> None:
    x = RNG.normal(size=(7,))
    for size in (4, 5, 12):
        real, imag = keras_math.rfft(x, size)
        wanted = np.fft.rfft(x, size)
        np.testing.assert_allclose(real.numpy() + 1j * imag.numpy(), wanted, atol=1e-12)
        back = np.fft.irfft(np.fft.rfft(x), size)
        found = keras_math.irfft((np.fft.rfft(x).real, np.fft.rfft(x).imag), size)
        np.testing.assert_allclose(found, back, atol=1e-12)


def test_two_axes_are_transformed_and_back() -> None:
    x = RNG.normal(size=(3, 4, 6)) + 1j * RNG.normal(size=(3, 4, 6))
    real, imag = keras_math.fft2((x.real, x.imag))
    np.testing.assert_allclose(real.numpy() + 1j * imag.numpy(), np.fft.fft2(x), atol=1e-12)
    real, imag = keras_math.ifft2((real, imag))
    np.testing.assert_allclose(real.numpy() + 1j * imag.numpy(), x, atol=1e-12)
    same_when_traced(lambda a, b: keras_math.fft2((a, b)), x.real, x.imag)
    check_gradients(lambda a, b: keras_math.fft((a, b)), x.real[0], x.imag[0])


@pytest.mark.parametrize("window", ["hann", "hamming", None, "own"])
@pytest.mark.parametrize("center", [True, False])
def test_windows_are_transformed_and_put_together_again(window: str | None, center: bool) -> None:
    x = RNG.normal(size=(2, 64))
    weights = np.linspace(0.5, 1.0, 16) if window == "own" else window
    pair = keras_math.stft(x, 16, 4, 20, weights, center)
    assert pair[0].shape == (2, 17 if center else 12, 11)
    back = keras_math.istft(pair, 16, 4, 20, 64, weights, center).numpy()
    if window is not None:  # without a window, what overlaps is summed
        inner = slice(20, 40)
        np.testing.assert_allclose(back[:, inner], x[:, inner], atol=1e-10)
    same_when_traced(lambda y: keras_math.stft(y, 16, 4, 20, weights, center), x)


def test_what_is_no_pair_of_floats_is_refused() -> None:
    one = np.ones(3)
    for wrong in (one, (one,), (one, np.ones(4)), (np.ones(3, "int32"), one)):
        with pytest.raises(ValueError, match="Input `x` should be|not of type float"):
            keras_math.fft(wrong)
    with pytest.raises(TypeError, match="Expected `float32` or `float64`"):
        keras_math.stft(np.ones(64, "int32"), 4, 2, 4)
    with pytest.raises(ValueError, match="The shape of `window`"):
        keras_math.stft(np.ones(64), 4, 2, 4, np.ones(5))


def test_the_complement_of_the_error_function_is_exact_where_it_is_tiny() -> None:
    x = np.concatenate([np.linspace(-6, 26, 300), [0.46875, -0.46875, 4.0]])
    wanted = [math.erfc(v) for v in x]
    np.testing.assert_allclose(keras_math.erfc(x), wanted, rtol=1e-13)
    narrow = keras_math.erfc(x.astype("float32")[:60]).numpy()
    wanted = [math.erfc(v) for v in x.astype("float32")[:60].tolist()]
    np.testing.assert_allclose(narrow, wanted, rtol=1e-6)
    check_gradients(keras_math.erfc, np.array([-1.0, 0.1, 0.7, 3.0]))
    assert np.isnan(keras_math.erfc(np.array([np.nan])).numpy()).all()


def test_the_inverse_of_the_error_function_leads_back() -> None:
    y = np.linspace(-4, 4, 81)
    x = np.array([math.erf(v) for v in y])
    np.testing.assert_allclose(keras_math.erfinv(x), y, rtol=1e-6, atol=1e-15)
    edges = keras_math.erfinv(np.array([-1.0, 1.0, 1.5, np.nan])).numpy()
    np.testing.assert_array_equal(edges, [-np.inf, np.inf, np.nan, np.nan])
    check_gradients(keras_math.erfinv, np.array([-0.9, 0.0, 0.3]))
    same_when_traced(keras_math.erfinv, x)


@pytest.mark.parametrize("name", ["sum", "max", "min", "prod"])
def test_segments_are_reduced_sorted_or_not(name: str) -> None:
    data, ids = RNG.normal(size=(5, 2)), np.array([0, 0, 2, 1, 2])
    reduce = {"sum": np.sum, "max": np.max, "min": np.min, "prod": np.prod}[name]
    function = getattr(keras_math, f"segment_{name}")
    wanted = [reduce(data[ids == i], 0) for i in range(3)]
    np.testing.assert_allclose(function(data, ids), wanted)
    np.testing.assert_allclose(function(data, ids, num_segments=3), wanted)
    order = np.argsort(ids)
    np.testing.assert_allclose(function(data[order], ids[order], sorted=True), wanted)
    np.testing.assert_allclose(tf.function(function)(data, ids), wanted)  # falls back to Python
    two = tf.distribute.MirroredStrategy(replicas=2)
    with pytest.raises(ValueError, match="pass num_segments"):
        two.run(function, args=(tf.constant(data), tf.constant(ids)))


def test_distances_have_gradients_where_there_is_no_distance() -> None:
    x, y = RNG.normal(size=(2, 3, 4)), RNG.normal(size=(2, 5, 4))
    wanted = np.linalg.norm(x[:, :, None] - y[:, None], axis=-1)
    np.testing.assert_allclose(keras_math.cdist(x, y), wanted)
    check_gradients(keras_math.cdist, x, y)
    point = tf.constant(x)
    with tf.GradientTape() as tape:
        tape.watch(point)
        distances = keras_math.cdist(point, point)
    assert np.isfinite(tape.gradient(distances, point).numpy()).all()


def test_sums_of_exponentials_and_the_largest_are_those_of_numpy() -> None:
    x = 100 * RNG.normal(size=(3, 4))
    top = x.max(1)
    wanted = top + np.log(np.exp(x - top[:, None]).sum(1))
    np.testing.assert_allclose(keras_math.logsumexp(x, 1), wanted)
    values, places = keras_math.top_k(x, 2)
    np.testing.assert_array_equal(values, -np.sort(-x, 1)[:, :2])
    assert places.dtype == "int32"
    inside = keras_math.in_top_k(x.argmax(1), x.astype("float32"), 1)
    assert inside.numpy().all()
    np.testing.assert_array_equal(keras_math.extract_sequences(x, 2, 2), x.reshape(3, 2, 2))


def test_the_logarithm_of_a_determinant_is_that_of_numpy() -> None:
    x = RNG.normal(size=(2, 3, 3))
    x = x @ np.swapaxes(x, 1, 2) + np.eye(3)
    np.testing.assert_allclose(keras_math.logdet(x), np.linalg.slogdet(x)[1])
    same_when_traced(keras_math.logdet, x)
