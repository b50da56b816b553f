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
        self.seen_shape = input_shape
        self.factor = self.add_weight("factor", (input_shape[-1],), initializer="ones")
        self.calls = self.add_weight("calls", dtype="int64", trainable=False)

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
    assert layer.seen_shape == (None, 3)
    assert [w.name for w in layer.weights] == [f"{layer.name}/factor:0", f"{layer.name}/calls:0"]
    assert layer.trainable_weights == [layer.factor]
    assert layer.non_trainable_weights == [layer.calls]
    assert layer.calls.dtype == tf.int64
    assert layer(np.ones((7, 3), "float32")).shape == (7, 3)


def test_names_are_given_once():
    keras.backend.clear_session()
    names = [layers.Dense(1).name, layers.Dense(1).name, layers.MaxPooling2D().name]
    assert names == ["dense", "dense_1", "max_pooling2d"]
    assert layers.Dense(1, name="mine").name == "mine"


def test_layers_and_variables_in_attributes_belong_to_the_model():
    model = Tower()
    model(np.ones((2, 3), "float32"))
    assert model.layers == [*model.blocks, *model.heads.values()]
    assert len(model.trainable_variables) == 9
    assert model.trainable_variables[0] is model.offset
    assert model.non_trainable_variables == [model.frozen]
    assert model.variables == model.trainable_variables + model.non_trainable_variables
    assert model.count_params() == 6 + 2 + 4 + 2 + 3 + 3 + 2


def test_what_is_not_trainable_is_among_the_others():
    model = Tower()
    model(np.ones((2, 3), "float32"))
    model.blocks[0].trainable = False
    assert len(model.trainable_variables) == 7
    assert len(model.variables) == 10
    model.trainable = False
    assert model.trainable_variables == []
    assert len(model.non_trainable_variables) == 10
    assert not model.heads["a"].trainable


def test_checkpoints_find_weights_by_attribute():
    model = Tower()
    model(np.ones((2, 3), "float32"))
    leaves, aliases = collect(model)
    assert sorted(leaves) == sorted(
        [f"{where}/{name}" for where in ("blocks/0", "blocks/1", "heads/a", "heads/b")
         for name in ("kernel", "bias")] + ["offset", "frozen"]
    )  # fmt: skip
    assert aliases == {"shared": "blocks/0"}
    layer = layers.Layer(name="bare")
    layer.add_weight("w")
    assert list(collect(layer)[0]) == ["w"]


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


class Spy(layers.Layer):
    """Notes the value of `training` it gets."""

    def call(self, inputs, training=None):
        self.seen = training
        return inputs


class Outer(keras.Model):
    """Does not take `training` itself."""

    def __init__(self, forced=None):
        super().__init__()
        self.spy = Spy()
        self.forced = forced

    def call(self, inputs):
        return self.spy(inputs, training=self.forced)


@pytest.mark.parametrize("given", [True, False])
def test_training_reaches_inner_layers(given):
    spy = Spy()
    model = keras.Sequential([keras.Sequential([spy])])
    model([1.0], training=given)
    assert spy.seen is given
    model(tf.constant([1.0]), given)
    assert spy.seen is given


def test_training_is_false_unless_said():
    spy = Spy()
    keras.Sequential([spy])([1.0])
    assert spy.seen is False
    model = Outer()
    model([1.0])
    assert model.spy.seen is False


def test_what_is_said_inside_wins():
    model = Outer(forced=True)
    keras.Sequential([model])([1.0], training=False)
    assert model.spy.seen is True


class WithDefault(layers.Layer):
    """Trains unless told otherwise."""

    def call(self, inputs, training=True):
        self.seen = training
        return inputs


def test_a_default_of_call_holds():
    layer = WithDefault()
    layer([1.0])
    assert layer.seen is True
    keras.Sequential([layer])([1.0], training=False)
    assert layer.seen is False


class Penalty(layers.Layer):
    """Adds a loss of its input."""

    def call(self, inputs):
        self.add_loss(tf.reduce_sum(inputs))
        return inputs


def test_losses_of_weights_and_of_the_last_call():
    dense = layers.Dense(1, kernel_regularizer=keras.regularizers.L2(0.5), bias_regularizer="l1",
                         kernel_initializer="ones", bias_initializer="ones")  # fmt: skip
    model = keras.Sequential([Penalty(), dense])
    model([[1.0, 2.0]])
    model([[1.0, 3.0]])
    assert [round(float(loss), 4) for loss in model.losses] == [4.0, 1.0, 0.01]


def test_gradients_flow_through_the_losses_of_weights():
    dense = layers.Dense(1, use_bias=False, kernel_regularizer=keras.regularizers.L2(0.5))
    with tf.GradientTape() as tape:
        dense([[0.0, 0.0]])
        loss = tf.nn.scale_regularization_loss(dense.losses)
    gradient = tape.gradient(loss, dense.kernel)
    np.testing.assert_allclose(gradient.numpy(), dense.kernel.numpy())


def test_losses_that_are_functions_are_computed_when_read():
    layer = layers.Layer()
    layer.weight = tf.Variable(2.0)
    layer.add_loss(lambda: layer.weight * 3.0)
    assert float(layer.losses[0]) == 6.0
    layer.weight.assign(1.0)
    assert float(layer.losses[0]) == 3.0


class Fails(layers.Layer):
    """Breaks off its first build."""

    broken = True

    def build(self, input_shape):
        self.add_weight("w", (1,), regularizer="l2")
        if self.broken:
            raise OSError("broken")

    def call(self, inputs):
        return inputs


def test_a_build_that_fails_leaves_no_weights():
    layer = Fails()
    with pytest.raises(OSError, match="broken"):
        layer([1.0])
    assert layer.weights == []
    assert layer.losses == []
    layer.broken = False
    layer([1.0])
    assert len(layer.weights) == len(layer.losses) == 1


def test_weights_as_arrays():
    layer = layers.Dense(2)
    with pytest.raises(ValueError, match="got 1 for 0 weights; the layer must be built first"):
        layer.set_weights([np.ones((3, 2))])
    layer.build((None, 3))
    layer.set_weights([np.ones((3, 2)), np.arange(2.0)])
    np.testing.assert_array_equal(layer([[1.0, 1.0, 1.0]]).numpy(), [[3.0, 4.0]])
    copies = layer.get_weights()
    copies[0][:] = 7.0
    assert layer.kernel.numpy()[0, 0] == 1.0
    with pytest.raises(ValueError, match=r"bias:0 must have its shape \(2,\): got \(3,\)"):
        layer.set_weights([np.zeros((3, 2)), np.zeros(3)])
    assert layer.kernel.numpy()[0, 0] == 1.0


def test_calls_without_inputs_and_before_init_are_refused():
    with pytest.raises(TypeError, match="call it on inputs"):
        layers.Dense(1)()

    class Forgetful(keras.Model):
        def __init__(self):
            self.x = 1

    with pytest.raises(RuntimeError, match=r"\[Forgetful\] its __init__ must call super"):
        Forgetful()([1.0])
    with pytest.raises(TypeError, match=r"\[Dense\] no such argument: got color"):
        layers.Dense(1, color="red")
    with pytest.raises(NotImplementedError, match=r"\[Layer\] define call"):
        layers.Layer()([1.0])


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
    layers.LeakyReLU(alpha=0.1),
    layers.Softmax(axis=0),
    layers.Concatenate(axis=1),
    layers.Add(),
    layers.InputLayer(input_shape=(3,)),
]


@pytest.mark.parametrize("layer", CONFIGURED, ids=lambda layer: layer.name)
def test_a_configuration_makes_the_same_layer(layer):
    config = layer.get_config()
    assert type(layer).from_config(config).get_config() == config


def test_output_shapes_without_computing():
    layer = layers.Conv2D(4, 3, strides=2)
    assert layer.compute_output_shape((None, 9, 9, 2)) == (None, 4, 4, 4)
    with pytest.raises(ValueError, match=r"all sizes but that of the examples must be known"):
        layers.Flatten().compute_output_shape((None, None, 3))


def test_a_watched_input_keeps_its_gradient():
    x = tf.constant([[1.0, 2.0]])
    layer = layers.Dense(1, use_bias=False)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = layer(x)
    np.testing.assert_allclose(tape.gradient(y, x).numpy(), layer.kernel.numpy().T)
