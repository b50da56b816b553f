"""What each layer computes."""

import numpy as np
import pytest
from replica_values import examples

import samegrad as tf
from samegrad.keras import layers


def random(*shape):
    return np.random.default_rng(0).normal(size=shape).astype("float32")


@pytest.mark.parametrize("shape", [(5, 3), (5, 4, 3), (5, 2, 4, 3)])
def test_dense_over_the_last_axis(shape):
    layer = layers.Dense(6, activation="tanh", bias_initializer="random_normal")
    x = random(*shape)
    y = layer(x).numpy()
    np.testing.assert_allclose(
        y, np.tanh(x @ layer.kernel.numpy() + layer.bias.numpy()), rtol=1e-5, atol=1e-6
    )


def test_dense_gives_a_row_the_same_bits_wherever_it_is():
    layer, x = layers.Dense(7), random(9, 5, 3)
    whole = layer(x).numpy()
    for i in range(9):
        assert (layer(x[i : i + 1]).numpy() == whole[i]).all()


def test_dense_gradient_of_tokens():
    layer, x = layers.Dense(2, use_bias=False), random(4, 3, 5)
    with tf.GradientTape() as tape:
        y = layer(x)
    gradient = tape.gradient(y, layer.kernel).numpy()
    np.testing.assert_allclose(gradient, np.tile(x.sum((0, 1))[:, None], 2), rtol=1e-4, atol=1e-5)


def test_dense_of_a_plain_tensor_in_a_trace():
    layer = layers.Dense(2)

    @tf.function
    def call(x):
        return layer(x)

    x = random(4, 3, 5)
    np.testing.assert_allclose(call(tf.constant(x)).numpy(), layer(x).numpy(), rtol=1e-6)


def test_conv2d_strides_and_padding():
    x = random(2, 9, 8, 3)
    for padding, shape in [("valid", (2, 4, 3, 5)), ("same", (2, 5, 4, 5))]:
        layer = layers.Conv2D(5, 3, strides=2, padding=padding, activation="relu")
        y = layer(x)
        assert y.shape == shape
        product = tf.nn.conv2d(x, layer.kernel.numpy(), 2, padding.upper())
        np.testing.assert_array_equal(y.numpy(), np.maximum(product.numpy(), 0))


def test_conv2d_dilations_and_groups():
    x = random(2, 9, 8, 4)
    layer = layers.Conv2D(6, 3, padding="same", dilation_rate=(2, 1), groups=2, use_bias=False)
    y = layer(x).numpy()
    assert layer.kernel.shape == (3, 3, 2, 6)
    assert layers.Conv2D.from_config(layer.get_config()).groups == 2
    for g in (0, 1):
        kernel = layer.kernel.numpy()[..., 3 * g : 3 * g + 3]
        alone = tf.nn.conv2d(x[..., 2 * g : 2 * g + 2], kernel, 1, "SAME", dilations=(2, 1))
        np.testing.assert_array_equal(y[..., 3 * g : 3 * g + 3], alone.numpy())


def test_pooling_layers():
    x = random(2, 4, 6, 3)
    blocks = x.reshape(2, 2, 2, 3, 2, 3)
    np.testing.assert_array_equal(layers.MaxPooling2D()(x).numpy(), blocks.max((2, 4)))
    np.testing.assert_allclose(layers.AvgPool2D(2)(x).numpy(), blocks.mean((2, 4)), rtol=1e-5)
    mean = layers.GlobalAveragePooling2D()(x).numpy()
    np.testing.assert_allclose(mean, x.mean((1, 2)), rtol=1e-4, atol=1e-6)
    largest = layers.GlobalMaxPooling2D(keepdims=True)(x).numpy()
    np.testing.assert_array_equal(largest, x.max((1, 2), keepdims=True))


def test_shapes_of_examples():
    x = random(2, 3, 4)
    np.testing.assert_array_equal(layers.Flatten()(x).numpy(), x.reshape(2, 12))
    assert layers.Flatten()(x[:, 0, 0]).shape == (2, 1)
    np.testing.assert_array_equal(layers.Reshape((2, -1))(x).numpy(), x.reshape(2, 2, 6))
    with pytest.raises(ValueError, match="total size of the tensor must be unchanged"):
        layers.Reshape((5, -1))(x)


def test_no_examples_at_all():
    x = examples(np.zeros((0, 8, 8, 1), "float32"))
    y = layers.Conv2D(2, 3)(x)
    y = layers.Dense(4)(layers.Flatten()(layers.MaxPooling2D()(y)))
    assert y.shape == (0, 4)


def test_dropout_acts_in_training_only():
    x = np.ones((50, 20), "float32")
    layer = layers.Dropout(0.4)
    np.testing.assert_array_equal(layer(x).numpy(), x)
    first, second = (layer(x, training=True).numpy() for _ in range(2))
    assert set(np.unique(first)) == {0.0, np.float32(1 / 0.6)}
    assert (first != second).any()
    np.testing.assert_array_equal(layers.Dropout(0.0)(x, training=True).numpy(), x)


def test_activations_as_layers():
    x = np.float32([-2.0, 0.5, 8.0])
    relu = layers.ReLU(max_value=6.0, negative_slope=0.5, threshold=1.0)
    np.testing.assert_array_equal(relu(x).numpy(), [-1.5, -0.25, 6.0])
    np.testing.assert_allclose(layers.LeakyReLU()(x).numpy(), [-0.6, 0.5, 8.0], rtol=1e-6)
    np.testing.assert_allclose(layers.Softmax(axis=0)(x).numpy().sum(), 1.0, rtol=1e-6)
    np.testing.assert_array_equal(layers.Activation(tf.abs)(x).numpy(), abs(x))


def test_layers_of_several_inputs():
    x = random(3, 2)
    np.testing.assert_array_equal(layers.Add()([x, x]).numpy(), x + x)
    joined = layers.Concatenate()([x, x]).numpy()
    np.testing.assert_array_equal(joined, np.concatenate([x, x], -1))
