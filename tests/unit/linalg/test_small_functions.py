"""Small functions of tf.math; the numbers are TensorFlow 2.21's."""

from __future__ import annotations

import numpy as np
import pytest

import samegrad as tf

TRACED = pytest.mark.parametrize("traced", [False, True], ids=["eager", "traced"])
VALUES = [-1.0, 0.0, 1.5, 2.0, 5.0, 15.0]


@TRACED
def test_histograms_have_the_counts_of_tensorflow(traced):
    def both(x):
        limits = [0.0, 5.0]
        return tf.histogram_fixed_width(x, limits, 5), tf.histogram_fixed_width_bins(x, limits, 5)

    counts, places = (tf.function(both) if traced else both)(tf.constant(VALUES))
    np.testing.assert_array_equal(counts.numpy(), [2, 1, 1, 0, 2])
    np.testing.assert_array_equal(places.numpy(), [0, 0, 1, 2, 4, 4])
    assert tf.histogram_fixed_width([1, 2, 9], [0, 10], 2, dtype="int64").numpy().tolist() == [2, 1]
    assert tf.histogram_fixed_width(tf.zeros(0), [0.0, 1.0], 3).numpy().tolist() == [0, 0, 0]


@TRACED
def test_polynomials_are_those_of_numpy(traced):
    x = np.random.default_rng(0).normal(size=(2, 3))
    fn = lambda x: tf.math.polyval([2.0, -1.0, 0.5], x)  # noqa: E731
    found = (tf.function(fn) if traced else fn)(tf.constant(x))
    np.testing.assert_allclose(found.numpy(), np.polyval([2.0, -1.0, 0.5], x))
    np.testing.assert_array_equal(tf.math.polyval([], x).numpy(), np.zeros((2, 3)))


def test_order_of_elements():
    assert bool(tf.math.is_non_decreasing([])) and bool(tf.math.is_strictly_increasing([[1, 2]]))
    assert not bool(tf.math.is_non_decreasing([[3, 2], [4, 5]]))
    x = np.random.default_rng(0).permutation(50)
    np.testing.assert_array_equal(tf.math.invert_permutation(x).numpy(), np.argsort(x))


def test_what_does_not_fit_is_refused():
    with pytest.raises(ValueError, match=r"scalar must have no axes: got shape"):
        tf.math.scalar_mul([1.0, 2.0], [1.0])
    with pytest.raises(ValueError, match="value_range has two numbers"):
        tf.histogram_fixed_width([1.0], [1.0])
    with pytest.raises(ValueError, match="nbins is a number from 1 on: got 0"):
        tf.histogram_fixed_width([1.0], [0.0, 1.0], 0)
    with pytest.raises(ValueError, match="coeffs is a list"):
        tf.math.polyval(tf.ones(2), 1.0)
    with pytest.raises(ValueError, match="one axis of integers"):
        tf.math.invert_permutation([[1.0]])


@pytest.mark.parametrize("name", ["eig", "eigvals"])
def test_eigenvalues_have_a_remedy(name):
    with pytest.raises(AttributeError, match="symmetric matrices: see linalg.eigh"):
        getattr(tf.linalg, name)
