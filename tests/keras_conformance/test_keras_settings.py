"""Initializers, regularizers, activations by name, backend, seeds."""

import random as python_random

import numpy as np
import pytest

import samegrad as tf
from samegrad import keras
from samegrad.keras import initializers, regularizers

# Half-width or deviation of 64 inputs and 32 outputs.
SPREADS = {
    "glorot_uniform": np.sqrt(6 / 96) / np.sqrt(3),
    "glorot_normal": np.sqrt(2 / 96),
    "he_uniform": np.sqrt(6 / 64) / np.sqrt(3),
    "he_normal": np.sqrt(2 / 64),
    "lecun_uniform": np.sqrt(3 / 64) / np.sqrt(3),
    "lecun_normal": np.sqrt(1 / 64),
    "random_normal": 0.05,
    "random_uniform": 0.05 / np.sqrt(3),
    "truncated_normal": 0.05 * 0.87962566,
}


@pytest.mark.parametrize("name", SPREADS)
def test_spread_of_random_initializers(name):
    values = initializers.get(name)((64, 32)).numpy()
    assert values.dtype == np.float32
    assert abs(values.mean()) < 0.1 * SPREADS[name]
    assert values.std() == pytest.approx(SPREADS[name], rel=0.06)


def test_bounds():
    limit = np.sqrt(6 / 96)
    values = initializers.GlorotUniform()((64, 32)).numpy()
    assert -limit <= values.min() < values.max() <= limit
    assert abs(initializers.TruncatedNormal(stddev=1.0)((9999,)).numpy()).max() <= 2.0
    uniform = initializers.RandomUniform(2.0, 3.0)((999,)).numpy()
    assert 2.0 <= uniform.min() < uniform.max() <= 3.0


def test_fixed_values():
    np.testing.assert_array_equal(
        initializers.Constant([1.0, 2.0])((2, 2)).numpy(), [[1, 2], [1, 2]]
    )
    np.testing.assert_array_equal(initializers.get("ones")((2,), "int32").numpy(), [1, 1])
    np.testing.assert_array_equal(
        initializers.Identity(2.0)((2, 3)).numpy(), [[2, 0, 0], [0, 2, 0]]
    )
    with pytest.raises(ValueError, match="2D matrices"):
        initializers.Identity()((2,))
    with pytest.raises(ValueError, match="scale"):
        initializers.VarianceScaling(scale=0.0)


def test_draws_depend_on_seed_and_order_of_creation_only():
    def draw(disturb):
        tf.random.set_seed(3)
        first = initializers.HeNormal()((5,)).numpy()
        disturb()
        return first, initializers.HeNormal()((5,)).numpy()

    (a, b), (c, d) = draw(lambda: None), draw(lambda: tf.random.normal((9,)))
    assert (a == c).all()
    assert (b == d).all()
    assert (a != b).all()
    tf.random.set_seed(4)
    assert (initializers.HeNormal()((5,)).numpy() != a).all()


def test_drawing_weights_does_not_disturb_other_draws():
    def draw(disturb):
        tf.random.set_seed(3)
        disturb()
        return tf.random.normal((5,)).numpy()

    assert (draw(lambda: None) == draw(lambda: initializers.HeNormal()((5,)))).all()


def test_a_seed_of_its_own_alone_decides():
    tf.random.set_seed(1)
    a = initializers.HeNormal(seed=7)((5,)).numpy()
    tf.random.set_seed(2)
    initializers.HeNormal()((5,))
    assert (initializers.HeNormal(seed=7)((5,)).numpy() == a).all()
    assert (initializers.HeNormal(seed=8)((5,)).numpy() != a).all()


@pytest.mark.parametrize("name", ["glorot_uniform", "HeNormal", "zeros", "Ones", "identity"])
def test_configurations_of_initializers(name):
    made = initializers.get(name)
    twin = initializers.get(initializers.serialize(made))
    assert type(twin) is type(made)
    assert twin.get_config() == made.get_config()


def test_regularizers():
    x = tf.constant([[1.0, -2.0], [0.0, 3.0]])
    assert float(regularizers.L1(0.5)(x)) == 3.0
    assert float(regularizers.L2(0.5)(x)) == 7.0
    assert float(regularizers.l1_l2(0.5, 0.25)(x)) == 6.5
    assert float(regularizers.get("l2")(x)) == pytest.approx(0.14)
    assert float(regularizers.L1L2()(x)) == 0.0
    config = regularizers.serialize(regularizers.L1L2(0.5, 0.25))
    assert regularizers.get(config).get_config() == {"l1": 0.5, "l2": 0.25}
    assert regularizers.get(None) is None
    with pytest.raises(ValueError, match="l2"):
        regularizers.L2(-1)


def test_settings():
    assert (keras.backend.floatx(), keras.backend.epsilon()) == ("float32", 1e-7)
    with pytest.raises(ValueError, match="int32"):
        keras.backend.set_floatx("int32")
    keras.backend.set_epsilon(1e-5)
    try:
        assert keras.backend.epsilon() == 1e-5
    finally:
        keras.backend.set_epsilon(1e-7)


def test_one_seed_for_all():
    def draw():
        keras.utils.set_random_seed(9)
        return python_random.random(), np.random.rand(), float(tf.random.normal(()))

    assert draw() == draw()
