"""Numbers of the gamma and the Poisson distribution: as often as their formulas say."""

import json
import math
from pathlib import Path

import numpy as np
import pytest

import samegrad as tf
from samegrad._autodiff import random_variates

RECORDED = np.array(
    json.loads(Path(__file__).with_name("tensorflow_gamma_gradients.json").read_text("utf-8"))
)
COUNT = 20_000
LIMIT = 1.95 / math.sqrt(COUNT)  # Kolmogorov's distance, which one of 1,000 draws exceeds


@pytest.mark.parametrize("alpha", [0.05, 0.5, 1.0, 2.5, 30.0, 1000.0])
def test_gamma_numbers_have_their_distribution(alpha):
    tf.random.set_seed(1)
    drawn = np.sort(tf.random.gamma([COUNT], alpha, 2.0, "float64").numpy() * 2.0)
    below = tf.math.igamma(np.full(COUNT, alpha), drawn).numpy()
    steps = np.arange(COUNT) / COUNT
    assert max(abs(below - steps).max(), abs(below - steps - 1 / COUNT).max()) < LIMIT


@pytest.mark.parametrize("rate", [0.0, 0.01, 1.0, 9.999, 10.0, 11.5, 80.0, 12345.0])
def test_poisson_numbers_have_their_distribution(rate):
    tf.random.set_seed(2)
    drawn = tf.random.poisson([COUNT], rate, "float64").numpy()
    assert (drawn == np.floor(drawn)).all() and (drawn >= 0).all()
    counts = np.bincount(drawn.astype(int)) / COUNT
    places = range(len(counts))
    logs = [k * math.log(rate or 1e-300) - rate - math.lgamma(k + 1) for k in places]
    assert abs(np.cumsum(counts) - np.cumsum(np.exp(logs))).max() < LIMIT


def test_parameters_are_broadcast_behind_the_shape():
    assert tf.random.gamma([2], [[1.0], [2.0]], [1.0, 2.0, 3.0]).shape == (2, 2, 3)
    assert tf.random.gamma([], 3).shape == () and tf.random.gamma([0, 2], [1.0]).shape == (0, 2, 1)
    assert tf.random.poisson([3], [1.0, 2.0], tf.int32).dtype == tf.int32
    assert tf.random.stateless_poisson([3, 2], [1, 2], [1.0, 20.0]).shape == (3, 2)
    assert tf.random.stateless_gamma([3, 2], [1, 2], [[1.0]]).shape == (3, 2)


def test_what_is_no_parameter_gives_no_number():
    found = [tf.random.gamma([2], -1.0), tf.random.gamma([2], 1.0, -1.0)]
    found += [tf.random.poisson([2], value) for value in (math.nan, math.inf)]
    assert all(np.isnan(part.numpy()).all() for part in found)
    assert tf.random.poisson([2], -1.0).numpy().tolist() == [0.0, 0.0]


def test_derivatives_by_alpha_are_tensorflows():
    alpha, numbers, expected = (tf.constant(column) for column in RECORDED.T)
    with tf.GradientTape() as tape:
        tape.watch(alpha)
        z = random_variates._with_gradient(numbers, alpha)
    np.testing.assert_array_equal(z.numpy(), numbers.numpy())
    np.testing.assert_allclose(tape.gradient(z, alpha).numpy(), expected.numpy(), rtol=1e-6)


def test_gradients_of_means_are_those_of_the_formula():
    alpha, beta = tf.Variable([0.5, 2.0, 7.0]), tf.Variable(2.0)

    @tf.function
    def step():
        with tf.GradientTape() as tape:
            mean = tf.reduce_mean(tf.random.gamma([COUNT], alpha, beta), 0)
        return tape.gradient(mean, [alpha, beta])

    by_alpha, by_beta = step()
    np.testing.assert_allclose(by_alpha.numpy(), 0.5, rtol=0.03)
    np.testing.assert_allclose(by_beta.numpy(), -9.5 / 4.0, rtol=0.03)


def test_replicas_draw_what_one_device_draws():
    x = np.arange(8, dtype=np.float32)

    def drawn(replicas):
        tf.random.set_seed(5)
        strategy = tf.distribute.MirroredStrategy(replicas=replicas)

        def step(part):
            n = tf.shape(part)[:1]
            return tf.random.gamma(n, 0.7), tf.random.poisson(n, [3.0, 30.0])

        run = tf.function(lambda batch: strategy.run(step, (batch,)))
        (batch,) = strategy.experimental_distribute_dataset(
            tf.data.Dataset.from_tensor_slices(x).batch(8)
        )
        return [strategy.gather(part, axis=0).numpy() for part in run(batch)]

    for one, two in zip(drawn(1), drawn(4), strict=True):
        np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda r: r.gamma([2], 1.0, dtype="int32"), "[gamma] dtype must be a float: got int32"),
        (lambda r: r.poisson([2], 1.0, dtype="bool"), "int32 or int64: got bool"),
        (lambda r: r.gamma([2], [1.0, 2.0], [1.0, 2.0, 3.0]), "the shapes (2,) and (3,)"),
        (lambda r: r.stateless_gamma([3], [1, 2], [1.0, 2.0]), "got [3] for (2,)"),
        (lambda r: r.stateless_poisson([], [1, 2], [1.0]), "got [] for (1,)"),
        (lambda r: r.stateless_gamma([3], [1, 2, 3], 1.0), "must be two integers"),
    ],
)
def test_they_refuse(call, text):
    with pytest.raises((TypeError, ValueError)) as error:
        call(tf.random)
    assert text in str(error.value)
