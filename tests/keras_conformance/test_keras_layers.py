"""What all layers do: weights, inner layers, losses, training, calls."""

import numpy as np
import pytest

import samegrad as tf
from samegrad import keras
from samegrad.keras import layers
from samegrad.train._trackable import collect


class Scale(layers.Layer):
    """Multiplies by a weight; keeps a number that training does not change."""

    def build(self, input_shape):
        self.factor = self.add_weight("factor", (input_shape[-1],), initializer="ones")
        self.calls = self.add_weight(name="calls", dtype="int64", trainable=False)

    def call(self, inputs):
        return inputs * self.factor


class Tower(keras.Model):
    """Layers in a list, in a dict and shared."""

    def __init__(self):
        super().__init__()
        self.blocks = [layers.Dense(2), layers.Dense(2)]
        self.heads = {"a": layers.Dense(1), "b": layers.Dense(1)}
        self.shared = self.blocks[0]
        self.offset = tf.Variable([1.0], name="offset")
        self.frozen = tf.Variable([1.0], trainable=False)

    def call(self, inputs):
        x = inputs
        for block in self.blocks:
            x = block(x)
        return self.heads["a"](x) + self.heads["b"](x) + self.offset


def test_weights_are_made_at_the_first_call_for_any_number_of_examples():
    layer = Scale()
    assert layer.weights == []
    layer(np.ones((4, 3), "float32"))
    assert [w.path for w in layer.weights] == [f"{layer.name}/factor", f"{layer.name}/calls"]
    assert layer.trainable_weights == [layer.factor]
    assert layer.non_trainable_weights == [layer.calls]
    assert layer.calls.dtype == "int64"
    assert layer(np.ones((7, 3), "float32")).shape == (7, 3)


def test_names_are_given_once():
    keras.backend.clear_session()
    names = [layers.Dense(1).name, layers.Dense(1).name, layers.MaxPooling2D().name]
    assert names == ["dense", "dense_1", "max_pooling2d"]
    assert layers.Dense(1, name="mine").name == "mine"


def test_checkpoints_find_weights_by_their_places():
    model = Tower()
    model(np.ones((2, 3), "float32"))
    leaves, aliases = collect(model)
    places = [f"layers/{i}/{name}" for i in range(4) for name in ("kernel", "bias")]
    assert sorted(leaves) == sorted([*places, "offset", "frozen"])
    assert not aliases
    layer = layers.Layer(name="bare")
    layer.add_weight(name="w")
    assert list(collect(layer)[0]) == ["w"]


def test_variables_of_samegrad_in_attributes_are_weights():
    model = Tower()
    model(np.ones((2, 3), "float32"))
    assert len(model.trainable_variables) == 9
    assert len(model.non_trainable_variables) == 1
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(model(np.ones((2, 3), "float32")))
    gradients = tape.gradient(loss, model.trainable_variables)
    keras.optimizers.SGD(0.5).apply_gradients(
        zip(gradients, model.trainable_variables, strict=True)
    )
    assert float(model.offset.numpy()[0]) == 0.0
    model.trainable = False
    assert model.trainable_variables == []


def test_inputs_of_floats_get_the_dtype_of_the_layer():
    assert layers.Dense(1)(np.ones((1, 2))).dtype == tf.float32
    assert layers.Dense(1, dtype="float64")(np.ones((1, 2), "float32")).dtype == tf.float64
    assert layers.Lambda(lambda x: x)(np.array([1])).dtype == tf.int64


def test_floatx_decides_for_layers_made_later():
    keras.backend.set_floatx("float64")
    try:
        layer = layers.Dense(1)
    finally:
        keras.backend.set_floatx("float32")
    assert layer(np.ones((1, 2), "float32")).dtype == tf.float64
    assert layer.kernel.dtype == tf.float64


def test_gradients_flow_through_the_losses_of_weights():
    dense = layers.Dense(1, use_bias=False, kernel_regularizer=keras.regularizers.L2(0.5))
    with tf.GradientTape() as tape:
        dense(np.zeros((1, 2), "float32"))
        loss = tf.nn.scale_regularization_loss(dense.losses)
    gradient = tape.gradient(loss, dense.kernel)
    np.testing.assert_allclose(gradient.numpy(), dense.kernel.numpy())


class Fails(layers.Layer):
    """Breaks off its first build."""

    broken = True

    def build(self, input_shape):
        self.add_weight(name="w", shape=(1,), regularizer="l2")
        if self.broken:
            raise OSError("broken")

    def call(self, inputs):
        return inputs


def test_a_build_that_fails_leaves_no_weights():
    layer = Fails()
    with pytest.raises(OSError, match="broken"):
        layer(np.ones(1, "float32"))
    assert layer.weights == []
    assert layer.losses == []
    layer.broken = False
    layer(np.ones(1, "float32"))
    assert len(layer.weights) == len(layer.losses) == 1


def test_weights_as_arrays():
    layer = layers.Dense(2)
    with pytest.raises(ValueError, match="expecting 0 weights"):
        layer.set_weights([np.ones((3, 2))])
    layer.build((None, 3))
    layer.set_weights([np.ones((3, 2)), np.arange(2.0)])
    np.testing.assert_array_equal(layer(np.ones((1, 3), "float32")).numpy(), [[3.0, 4.0]])
    copies = layer.get_weights()
    copies[0][:] = 7.0
    assert layer.kernel.numpy()[0, 0] == 1.0
    with pytest.raises(ValueError, match="not compatible"):
        layer.set_weights([np.zeros((3, 2)), np.zeros(3)])
    assert layer.kernel.numpy()[0, 0] == 1.0


CONFIGURED = [
    layers.Dense(3, activation="relu", kernel_regularizer=keras.regularizers.L1L2(0.1, 0.2)),
    layers.Conv2D(3, (2, 1), strides=2, padding="SAME", use_bias=False, bias_initializer="ones"),
    layers.MaxPooling2D(3, strides=1, padding="same"),
    layers.AveragePooling2D((2, 3)),
    layers.GlobalAveragePooling2D(keepdims=True),
    layers.Flatten(),
    layers.Reshape((2, -1)),
    layers.Dropout(0.25, noise_shape=(None, 1), seed=3),
    layers.Activation("tanh"),
    layers.ReLU(max_value=6.0, negative_slope=0.1, threshold=0.5),
    layers.LeakyReLU(negative_slope=0.1),
    layers.Softmax(axis=0),
    layers.Concatenate(axis=1),
    layers.Add(),
    layers.InputLayer(shape=(3,)),
]


@pytest.mark.parametrize("layer", CONFIGURED, ids=lambda layer: layer.name)
def test_a_configuration_makes_the_same_layer(layer):
    config = layer.get_config()
    assert type(layer).from_config(config).get_config() == config


def test_output_shapes_without_computing():
    layer = layers.Conv2D(4, 3, strides=2)
    assert layer.compute_output_shape((None, 9, 9, 2)) == (None, 4, 4, 4)


def test_a_watched_input_keeps_its_gradient():
    x = tf.constant([[1.0, 2.0]])
    layer = layers.Dense(1, use_bias=False)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = layer(x)
    np.testing.assert_allclose(tape.gradient(y, x).numpy(), layer.kernel.numpy().T)
