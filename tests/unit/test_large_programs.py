"""Programs of thousands of operations are traced, derived and run like small ones."""

import numpy as np
import pytest

import samegrad as tf


@pytest.mark.parametrize("count", [10, 100, 333, 1000])
def test_gradients_of_many_broadcast_variables(count):
    variables = [tf.Variable(np.full(8, 1 + 1e-3 * i)) for i in range(count)]

    @tf.function
    def step(x):
        with tf.GradientTape() as tape:
            y = x
            for v in variables:
                y = tf.reduce_mean(y, axis=1, keepdims=True) * v
            loss = tf.reduce_sum(y)
        return loss, tape.gradient(loss, variables)

    loss, gradients = step(np.ones((1, 8)))
    scales = 1 + 1e-3 * np.arange(count)
    np.testing.assert_allclose(loss, 8 * np.prod(scales), rtol=1e-9)
    for gradient, scale in zip(gradients, scales, strict=True):
        np.testing.assert_allclose(gradient, np.full(8, loss.numpy() / 8 / scale), rtol=1e-9)


def test_a_network_of_500_layers_learns_the_same_on_any_number_of_replicas():
    def weights(replicas):
        strategy = tf.distribute.MirroredStrategy([f"cpu:{i}" for i in range(replicas)])
        with strategy.scope():
            layers = [tf.Variable(np.full((4, 4), 0.25 + 1e-3 * (i % 7))) for i in range(500)]
            optimizer = tf.keras.optimizers.SGD(1e-3)

        def loss_of(x):
            with tf.GradientTape() as tape:
                y = x
                for layer in layers:
                    y = tf.tanh(y @ layer)
                loss = tf.nn.compute_average_loss(tf.reduce_sum(y**2, axis=1), global_batch_size=8)
            optimizer.apply_gradients(zip(tape.gradient(loss, layers), layers, strict=True))

        rows = np.random.default_rng(0).normal(size=(8, 4))
        data = tf.data.Dataset.from_tensor_slices(rows).batch(8)
        step = tf.function(lambda batch: strategy.run(loss_of, args=(batch,)))
        for batch in strategy.experimental_distribute_dataset(data):
            step(batch)
        return [layer.numpy() for layer in layers]

    one, four = weights(1), weights(4)
    assert all(np.array_equal(a, b) for a, b in zip(one, four, strict=True))
    assert not np.array_equal(one[0], np.full((4, 4), 0.25))
