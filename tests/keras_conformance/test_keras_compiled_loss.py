"""A `train_step` of an older program, with compiled_loss and compiled_metrics, is that of `fit`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from keras_programs import keras

import samegrad as tf

layers = keras.layers
X = np.random.default_rng(1).normal(size=(5, 3)).astype("float32")
Y = X[:, :1] - X[:, 1:2] ** 2
WEIGHTS = np.array([1, 2, 0.5, 1, 3], "float32")


class Plain(keras.Model):  # type: ignore[misc,name-defined]
    """A layer with a penalty, trained by Keras's own step."""

    def __init__(self) -> None:
        super().__init__()
        self.dense = layers.Dense(1, kernel_regularizer="l2")

    def call(self, x: Any) -> Any:
        """One number for each example."""
        return self.dense(x)


class Older(Plain):
    """The same, trained as TensorFlow's guide of version 2.8 wrote it."""

    def train_step(self, data: Any) -> Any:
        """One step."""
        x, y, *weight = data
        with tf.GradientTape() as tape:
            predicted = self(x, training=True)
            loss = self.compiled_loss(y, predicted, *weight, regularization_losses=self.losses)
        gradients = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply_gradients(zip(gradients, self.trainable_variables, strict=True))
        self.compiled_metrics.update_state(y, predicted)
        return {metric.name: metric.result() for metric in self.metrics}


def trained(kind: type, replicas: int, weighted: bool, **compiled: Any) -> Any:
    with tf.distribute.MirroredStrategy(replicas=replicas).scope():
        keras.utils.set_random_seed(3)
        model = kind()
        model.compile(optimizer="sgd", **compiled)
    weight = {"sample_weight": WEIGHTS} if weighted else {}
    found = model.fit(X, Y, batch_size=5, epochs=3, verbose=0, shuffle=False, **weight)
    return found.history, model.get_weights()


@pytest.mark.parametrize("replicas", [1, 2, 3])
@pytest.mark.parametrize("weighted", [False, True])
def test_it_trains_as_fit_does(replicas: int, weighted: bool) -> None:
    compiled = {"loss": "mse", "metrics": ["mae"]}
    wanted, weights = trained(Plain, 1, weighted, **compiled)
    found, own = trained(Older, replicas, weighted, **compiled)
    assert set(found) == set(wanted) == {"loss", "mae"}
    for name, values in wanted.items():
        np.testing.assert_allclose(found[name], values, rtol=2e-6)
    for a, b in zip(own, weights, strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-6)


def test_without_metrics_nothing_is_counted() -> None:
    found, _ = trained(Older, 1, False, loss="mse")
    assert set(found) == {"loss"}


def test_penalties_alone_are_a_loss_and_nothing_is_none() -> None:
    model = Plain()
    model.compile(optimizer="sgd")
    predicted = model(X)
    assert float(model.compiled_loss(Y, predicted, None, model.losses)) > 0
    assert [metric.name for metric in model.compiled_loss.metrics] == ["loss"]
    assert model.compiled_metrics.metrics == []
    with pytest.raises(ValueError, match="a loss is needed"):
        model.compiled_loss(Y, predicted)
