"""Sequential and subclassed models."""

import numpy as np
import pytest

import samegrad as tf
from samegrad import keras
from samegrad.keras import layers
from samegrad.train._trackable import build_tree, collect, restore_tree


def cnn():
    return keras.Sequential(
        [
            layers.Conv2D(4, 3, activation="relu"),
            layers.MaxPooling2D(),
            layers.Flatten(),
            layers.Dense(10),
        ]
    )


@pytest.mark.parametrize(
    "make",
    [
        lambda: cnn().build((None, 8, 8, 1)),
        lambda: keras.Sequential([keras.Input(shape=(8, 8, 1)), layers.Conv2D(4, 3)]),
        lambda: keras.Sequential([layers.Conv2D(4, 3, input_shape=(8, 8, 1))]),
        lambda: keras.Sequential([layers.Dense(4, input_dim=3)]),
        lambda: keras.Sequential([layers.InputLayer((8, 8, 1)), layers.Conv2D(4, 3)]),
    ],
)
def test_a_known_input_shape_makes_the_weights_at_once(make):
    model = make()
    if model is not None:
        assert model.built
        assert len(model.weights) == 2


def test_the_way_weights_are_made_does_not_change_them():
    images = np.random.default_rng(0).normal(size=(2, 8, 8, 1)).astype("float32")

    def weights(prepare):
        keras.utils.set_random_seed(5)
        model = cnn()
        prepare(model)
        return [w.tobytes() for w in model.get_weights()]

    def in_a_step(model):
        return tf.distribute.MirroredStrategy(replicas=2).run(lambda: model(images))

    ways = [
        lambda m: m(images),
        lambda m: m.build((None, 8, 8, 1)),
        tf.function(lambda m: m(images)),
        in_a_step,
    ]
    first, *others = [weights(way) for way in ways]
    assert all(other == first for other in others)


def test_building_computes_nothing_and_draws_nothing():
    looked = []

    def look(x):
        looked.append(type(x).__name__)
        assert x.shape[0] is not None
        with pytest.raises(TypeError, match="no value yet"):
            float(tf.reduce_sum(x))
        return x

    model = keras.Sequential([layers.Lambda(look), layers.Dropout(0.5), layers.Dense(2)])
    model.build((None, 3))
    assert looked == ["Tensor"]


def test_summary_counts_weights():
    model = cnn()
    model.build((None, 8, 8, 1))
    model.layers[0].trainable = False
    lines = []
    model.summary(print_fn=lines.append)
    text = "\n".join(lines)
    assert "(None, 6, 6, 4)" in text
    assert "Total params: 410" in text
    assert "Trainable params: 370" in text
    assert "Non-trainable params: 40" in text


def test_a_configuration_makes_the_same_model():
    model = cnn()
    twin = keras.Sequential.from_config(model.get_config())
    assert twin.get_config() == model.get_config()
    assert [type(layer) for layer in twin.layers] == [type(layer) for layer in model.layers]


class Two(keras.Model):
    """A model of two inputs."""

    def __init__(self):
        super().__init__()
        self.left, self.right = layers.Dense(2), layers.Dense(2)

    def call(self, inputs):
        a, b = inputs
        return self.left(a) + self.right(b)


def test_a_subclass_builds_from_shapes():
    model = Two()
    model.build([(None, 3), (None, 4)])
    assert [tuple(w.shape) for w in model.weights] == [(3, 2), (2,), (4, 2), (2,)]
    assert model((np.ones((1, 3)), np.ones((1, 4)))).shape == (1, 2)


@pytest.mark.parametrize("traced", [False, True])
def test_a_model_of_two_inputs_builds_when_it_is_called(traced):
    class Sum(tf.keras.Model):
        def __init__(self):
            super().__init__()
            self.first, self.second = tf.keras.layers.Dense(3), tf.keras.layers.Dense(3)

        def call(self, source, target, scale=2.0):
            return self.first(source) + scale * self.second(target)

    model = Sum()
    run = tf.function(model) if traced else model
    a, b = np.ones((2, 4), np.float32), np.ones((2, 5), np.float32)
    found = run(a, b).numpy()
    assert [tuple(w.shape) for w in model.weights] == [(4, 3), (3,), (5, 3), (3,)]
    kernels = [w.numpy() for w in model.weights]
    np.testing.assert_allclose(found, a @ kernels[0] + 2 * b @ kernels[2], rtol=1e-5)


def test_checkpoints_wait_for_weights_that_do_not_exist_yet():
    images = np.random.default_rng(0).normal(size=(2, 8, 8, 1)).astype("float32")
    model = cnn()
    expected = model(images).numpy()
    leaves, aliases = collect(model)
    leaves = {key: np.array(value) for key, value in leaves.items()}
    later = cnn()
    restore_tree(later, build_tree(leaves, aliases))
    np.testing.assert_array_equal(later(images).numpy(), expected)


def test_calls_under_a_tape_and_in_a_trace_agree():
    model, x = cnn(), np.random.default_rng(1).normal(size=(6, 8, 8, 1)).astype("float32")
    eager = model(x).numpy()
    traced = tf.function(lambda images: model(images))(x).numpy()
    assert (eager == traced).all()


class _Pair(keras.Model):
    """Two inputs and a flag, each an argument of `call`, as older programs write."""

    def __init__(self):
        super().__init__()
        self.first, self.second = layers.Dense(3), layers.Dense(3)

    def call(self, a, b, training, mask):
        return self.first(a) * mask + self.second(b)


@pytest.mark.parametrize("traced", [True, False])
def test_a_model_of_several_arguments_is_built_by_its_first_call(traced):
    model = _Pair()
    call = lambda a, b: model(a, b, training=True, mask=tf.ones_like(a))  # noqa: E731
    x = tf.ones((4, 3))
    y = (tf.function(call) if traced else call)(x, x)
    assert y.shape == (4, 3)
    assert model.built
    assert len(model.trainable_variables) == 4
