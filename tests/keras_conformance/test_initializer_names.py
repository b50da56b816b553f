"""tf.constant_initializer, as TensorFlow has it, and the device of a tensor."""

import numpy as np
import pytest

import samegrad as tf


def test_numbers_take_the_shape_of_the_weights(tmp_path):
    values = np.arange(9, dtype=np.float32).reshape(1, 3, 3)
    start = tf.constant_initializer(values)
    assert start([3, 3, 1, 1]).numpy().ravel().tolist() == values.ravel().tolist()
    assert start([9], dtype="float64").dtype == tf.float64
    assert tf.constant_initializer(2.0)([2, 2]).numpy().tolist() == [[2, 2], [2, 2]]
    with pytest.raises(ValueError, match=r"each of the weights of shape \(4,\)"):
        start([4])
    layer = tf.keras.layers.Conv2D(1, 3, kernel_initializer=tf.constant_initializer([1.0] * 9))
    model = tf.keras.Sequential([tf.keras.Input((4, 4, 1)), layer])
    model.save(tmp_path / "a.keras")
    again = tf.keras.models.load_model(tmp_path / "a.keras")
    np.testing.assert_array_equal(again.weights[0], np.ones((3, 3, 1, 1)))
    assert isinstance(again.layers[0].kernel_initializer, tf.keras.initializers.Constant)


@pytest.mark.parametrize(
    ("value", "shape", "made"),
    [
        ([[[3.0]]], [1], [3.0]), ([[5.0]], [], 5.0), ([5.0], [], 5.0), ([5.0], [2], [5.0, 5.0]),
        ([[[3.0]]], [1, 1], [[3.0]]), ([], [0], []), (5.0, [2, 1], [[5.0], [5.0]]),
    ],
)  # fmt: skip
def test_one_number_in_brackets(value, shape, made):
    """TensorFlow 2.21's answers."""
    assert tf.constant_initializer(value)(shape).numpy().tolist() == made


@pytest.mark.parametrize(("value", "shape"), [([[5.0]], [2]), ([[5.0]], [0]), ([], [2])])
def test_other_counts_are_refused(value, shape):
    """TensorFlow 2.21 refuses them as well."""
    with pytest.raises(ValueError, match="one number for each of the weights of shape"):
        tf.constant_initializer(value)(shape)


def test_tensors_lie_on_the_cpu():
    assert tf.constant(1.0).device.endswith("CPU:0")
