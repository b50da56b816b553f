"""Training by Keras over replicas is training on one device."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from keras_programs import (
    image_model,
    images,
    keras,
    text_model,
    texts,
    train_by_fit,
    train_in_a_loop,
)

import samegrad as tf

ops = keras.ops
SHARES = [[3, 2], [2, 1, 1, 1], [5, 0], [0, 0, 2, 3]]


def scalar_loss(y: Any, p: Any) -> Any:
    """A user's loss: a mean over the examples that he took himself."""
    return ops.mean(ops.square(y - p))


def scaled_sgd() -> Any:
    """SGD with momentum behind a loss scale."""
    return keras.optimizers.LossScaleOptimizer(
        keras.optimizers.SGD(0.1, momentum=0.9), initial_scale=8.0
    )


def _assert_near(found: Any, wanted: Any) -> None:
    np.testing.assert_allclose(found[0], wanted[0], rtol=0, atol=1e-12)
    for a, b in zip(found[1], wanted[1], strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-12)


@pytest.mark.parametrize("sizes", SHARES)
@pytest.mark.parametrize(
    ("model", "data", "reduction"),
    [
        (image_model, images, "sum_over_batch_size"),
        (text_model, texts, "sum_over_batch_size"),
        (text_model, texts, "mean_with_sample_weight"),
    ],
)
def test_a_custom_loop_gives_the_figures_of_one_device(
    float64: None, model: Any, data: Any, reduction: str, sizes: list[int]
) -> None:
    loss = keras.losses.MeanSquaredError(reduction=reduction)
    wanted = train_in_a_loop(model, scaled_sgd, loss, data(), [5])
    _assert_near(train_in_a_loop(model, scaled_sgd, loss, data(), sizes), wanted)


@pytest.mark.parametrize("replicas", [2, 3])
@pytest.mark.parametrize("loss", [scalar_loss, "mse"])
def test_fit_gives_the_figures_of_one_device(float64: None, replicas: int, loss: Any) -> None:
    for model, data in ((image_model, images()), (text_model, texts())):
        if model is text_model and loss is scalar_loss:
            continue  # a mask is beyond what the user's mean saw
        results = []
        for count in (1, replicas):
            history, trained = train_by_fit(
                model, data, count, optimizer=scaled_sgd(), loss=loss, metrics=["mae"],
                weighted_metrics=["mse"],
            )  # fmt: skip
            figures = [value for key in sorted(history) for value in history[key]]
            results.append((figures, [v.numpy() for v in trained.variables]))
        _assert_near(results[1], results[0])


def test_fit_on_one_example_leaves_the_other_replica_without_any(float64: None) -> None:
    x, y = images(1)
    one, several = (
        train_by_fit(image_model, (x, y), count, optimizer=scaled_sgd(), loss=scalar_loss)
        for count in (1, 2)
    )
    np.testing.assert_allclose(several[0]["loss"], one[0]["loss"], rtol=0, atol=1e-12)
    for a, b in zip(several[1].variables, one[1].variables, strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=0, atol=1e-12)


def test_fit_has_the_bits_of_one_device_for_any_number_of_replicas() -> None:
    x, y = images(37)
    data = x.astype("float32"), (y[:, 0] > 0).astype("int32")
    seen = []
    for replicas in (1, 2, 3, 4, 5, 8):
        history, model = train_by_fit(
            image_model, data, replicas, batch_size=16,
            optimizer=keras.optimizers.Adam(0.01), metrics=["accuracy"],
            loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        )  # fmt: skip
        seen.append((history, tf.fingerprint(model.variables)))
    assert all(one == seen[0] for one in seen[1:]), seen


@pytest.mark.parametrize("loss", [lambda y, p: ops.max(ops.square(y - p)),
                                  lambda y, p: ops.sum(ops.square(y - p))])  # fmt: skip
def test_a_scalar_loss_that_shows_no_mean_over_the_examples_is_refused(loss: Any) -> None:
    with pytest.raises(ValueError, match="one value per example"):
        train_by_fit(image_model, images(), 2, optimizer="sgd", loss=loss)


def test_predict_returns_every_example_once_in_order(float64: None) -> None:
    x, y = images(7)
    _, model = train_by_fit(image_model, (x, y), 3, optimizer="sgd", loss="mse", epochs=1)
    np.testing.assert_allclose(
        model.predict(x, batch_size=4, verbose=0), model(x, training=False).numpy(), atol=1e-12
    )


class _OwnStep(keras.Sequential):  # type: ignore[misc,name-defined]
    """A model whose training step returns what `returned` says."""

    returned = "share"

    def train_step(self, data: Any) -> Any:
        """One step of SGD without an optimizer."""
        x, y = data
        with tf.GradientTape() as tape:
            prediction = self(x, training=True)
            loss = self.compute_loss(x, y, prediction)
        gradients = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply_gradients(zip(gradients, self.trainable_variables, strict=True))
        local = ops.max(ops.abs(y - prediction))
        return {"loss": loss, "seen": loss if self.returned == "share" else local}


def _own_step() -> Any:
    return _OwnStep([
        keras.Input((4, 4, 2)), keras.layers.Flatten(),
        keras.layers.Dense(2, kernel_initializer="ones", kernel_regularizer="l2"),
    ])  # fmt: skip


def test_shares_that_a_train_step_returns_are_summed(float64: None) -> None:
    one, several = (
        train_by_fit(_own_step, images(), count, optimizer="sgd", loss="mse")[0] for count in (1, 3)
    )
    np.testing.assert_allclose(several["loss"], one["loss"], rtol=0, atol=1e-12)
    assert several["seen"] == several["loss"]


def test_a_train_step_that_returns_one_replicas_value_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(_OwnStep, "returned", "local")
    with pytest.raises(ValueError, match="'seen' differs between the replicas"):
        train_by_fit(_own_step, images(), 2, optimizer="sgd", loss="mse")
