"""Steps of training as functions of a saved model: gradients, optimizers and draws inside."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import samegrad as tf

keras = pytest.importorskip("samegrad.keras")
layers = keras.layers
RNG = np.random.default_rng(0)
X = tf.constant(RNG.normal(size=(6, 8)).astype(np.float32))
Y = tf.constant(RNG.normal(size=(6, 1)).astype(np.float32))
SPECS = [tf.TensorSpec([None, 8]), tf.TensorSpec([None, 1])]


class Plain(tf.Module):
    """Momentum, dropout and a clipped gradient, by hand."""

    def __init__(self) -> None:
        super().__init__()
        self.w = tf.Variable(np.full((8, 1), 0.1, np.float32))
        self.velocity = tf.Variable(tf.zeros([8, 1]), trainable=False)
        self.steps = tf.Variable(0, trainable=False, dtype=tf.int64)

    @tf.function(input_signature=SPECS)
    def train(self, x: Any, y: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((tf.nn.dropout(x, 0.3) @ self.w - y) ** 2)
        gradient = tf.clip_by_norm(tape.gradient(loss, self.w), 1.0)
        self.velocity.assign(0.9 * self.velocity + gradient)
        self.w.assign_sub(0.1 * self.velocity)
        self.steps.assign_add(1)
        return {"loss": loss, "steps": self.steps + 0}


class OfKeras(tf.Module):
    """A model, an optimizer and a metric of Keras."""

    def __init__(self) -> None:
        super().__init__()
        self.model = keras.Sequential([
            keras.Input((8,)), layers.Dense(4, activation="tanh"), layers.BatchNormalization(),
            layers.Dropout(0.2, seed=3), layers.Dense(1),
        ])  # fmt: skip
        self.optimizer = keras.optimizers.Adam(0.01)
        self.optimizer.build(self.model.trainable_variables)
        self.metric = keras.metrics.Mean()

    @tf.function(input_signature=SPECS)
    def train(self, x: Any, y: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((self.model(x, training=True) - y) ** 2)
        weights = self.model.trainable_variables
        self.optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights, strict=True))
        self.metric.update_state(loss)
        return {"loss": loss, "mean": self.metric.result()}


@pytest.mark.parametrize("kind", [Plain, OfKeras])
def test_a_saved_step_goes_on_where_the_original_was(tmp_path: Path, kind: Any) -> None:
    keras.utils.set_random_seed(7)
    module = kind()
    module.train(X, Y)
    tf.saved_model.save(module, tmp_path / "m")
    loaded = tf.saved_model.load(tmp_path / "m")

    def steps(model: Any) -> list[bytes]:
        tf.random.set_seed(4)
        found = [model.train(X, Y) for _ in range(3)]
        return [part.numpy().tobytes() for one in found for _, part in sorted(one.items())]

    assert steps(loaded) == steps(module)
