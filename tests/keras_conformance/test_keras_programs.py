"""Programs as Keras's users write them, on 1, 2 and 4 replicas."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import samegrad as tf

keras = tf.keras
layers = keras.layers


def _weights(model: Any) -> list[np.ndarray]:
    return [np.asarray(weight) for weight in model.get_weights()]


class _Autoencoder(keras.Model):  # type: ignore[misc, name-defined]
    """A variational autoencoder: no `call`, a `train_step` of its own, draws in the step."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder, self.mean = layers.Dense(8, "relu"), layers.Dense(2)
        self.log_variance, self.decoder = layers.Dense(2), layers.Dense(10)
        self.seed, self.tracker = keras.random.SeedGenerator(3), keras.metrics.Mean(name="loss")

    @property
    def metrics(self) -> list[Any]:
        return [self.tracker]

    def train_step(self, x: Any) -> Any:
        with tf.GradientTape() as tape:
            hidden = self.encoder(x)
            mean, log_variance = self.mean(hidden), self.log_variance(hidden)
            noise = keras.random.normal(tf.shape(mean), seed=self.seed)
            found = self.decoder(mean + tf.exp(log_variance / 2) * noise)
            losses = tf.reduce_sum(tf.square(found - x), -1)
            losses -= 0.5 * tf.reduce_sum(1 + log_variance - mean**2 - tf.exp(log_variance), -1)
            loss = tf.nn.compute_average_loss(losses)
        gradients = tape.gradient(loss, self.trainable_weights)
        self.optimizer.apply_gradients(zip(gradients, self.trainable_weights, strict=True))
        self.tracker.update_state(losses)
        return {"loss": self.tracker.result()}


def _autoencoder(replicas: int) -> list[Any]:
    keras.utils.set_random_seed(1)
    with tf.distribute.MirroredStrategy(replicas=replicas).scope():
        model = _Autoencoder()
        model.compile(keras.optimizers.Adam())
    x = np.random.default_rng(0).random((64, 10)).astype(np.float32)
    history = model.fit(x, batch_size=16, epochs=2, verbose=0)
    return [*_weights(model), history.history["loss"]]


def _series(replicas: int) -> list[Any]:
    """A recurrent layer that is made by the first batch of a dataset."""
    keras.utils.set_random_seed(1)
    wave = np.sin(np.arange(147) / 5).astype(np.float32)  # 128 windows of 10
    data = keras.utils.timeseries_dataset_from_array(wave[:137], wave[10:], 10, batch_size=64)
    with tf.distribute.MirroredStrategy(replicas=replicas).scope():
        model = keras.Sequential([layers.Reshape((10, 1)), layers.GRU(8), layers.Dense(1)])
        model.compile("adam", "mse")
    history = model.fit(data, epochs=1, verbose=0)
    return [*_weights(model), history.history["loss"]]


@pytest.mark.parametrize("program", [_autoencoder, _series])
def test_a_program_has_the_same_bits_on_any_replicas(program: Any) -> None:
    expected = program(1)
    for replicas in (2, 3):
        for one, other in zip(expected, program(replicas), strict=True):
            np.testing.assert_array_equal(one, other)


class _Gan(keras.Model):  # type: ignore[misc, name-defined]
    """Real and generated rows in one batch; two optimizers; metrics of scalar losses."""

    def __init__(self) -> None:
        super().__init__()
        self.critic = keras.Sequential(
            [keras.Input((6,)), layers.Dense(8, "tanh"), layers.Dense(1)]
        )
        self.generator = keras.Sequential([keras.Input((3,)), layers.Dense(6)])
        self.seed = keras.random.SeedGenerator(1)
        self.found = [keras.metrics.Mean(name=name) for name in ("critic", "generator")]

    def train_step(self, real: Any) -> Any:
        count = tf.shape(real)[0]
        loss_of = keras.losses.BinaryCrossentropy(from_logits=True)
        parts = (self.critic, self.generator)
        for part, optimizer, metric in zip(parts, self.optimizers, self.found, strict=True):
            with tf.GradientTape() as tape:
                made = self.generator(keras.random.normal((count, 3), seed=self.seed))
                if part is self.critic:
                    rows = tf.concat([made, real], 0)
                    labels = tf.concat([tf.ones((count, 1)), tf.zeros((count, 1))], 0)
                    loss = loss_of(labels, self.critic(rows))
                else:
                    loss = loss_of(tf.zeros((count, 1)), self.critic(made))
            weights = part.trainable_weights
            optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights, strict=True))
            metric.update_state(loss)
        return {metric.name: metric.result() for metric in self.found}


def _gan(replicas: int) -> list[Any]:
    keras.utils.set_random_seed(1)
    with tf.distribute.MirroredStrategy(replicas=replicas).scope():
        model = _Gan()
        model.optimizers = [keras.optimizers.Adam(1e-2), keras.optimizers.Adam(1e-2)]
        model.compile()
    x = np.random.default_rng(0).random((40, 6)).astype(np.float32)
    history = model.fit(x, batch_size=16, epochs=2, verbose=0).history
    return [*_weights(model), history["critic"], history["generator"]]


def test_a_gan_with_both_kinds_of_rows_in_one_batch_learns_as_on_one_device() -> None:
    # The rows of all replicas are not in the order of one device: equal within rounding.
    expected = _gan(1)
    for replicas in (2, 3):
        for one, other in zip(expected, _gan(replicas), strict=True):
            np.testing.assert_allclose(one, other, rtol=2e-4, atol=1e-6)


def test_one_target_of_several_outputs_is_not_taken_apart() -> None:
    # With as many examples as outputs, each would be the target of one of them.
    inputs = keras.Input((3,))
    hidden = layers.Dense(2)(inputs)
    model = keras.Model(inputs, [layers.Dense(1)(hidden), hidden])
    model.compile("sgd", loss=["mse", None])
    x, y = np.ones((6, 3), np.float32), np.ones((6, 1), np.float32)
    traces = []
    model.train_step = lambda data, step=model.train_step: (traces.append(1), step(data))[1]
    model.fit(x, y, batch_size=4, verbose=0)  # 4 examples, then 2
    model.fit(x[:3], y[:3], batch_size=1, verbose=0)
    assert len(traces) <= 2, "a trace for each number of examples"
