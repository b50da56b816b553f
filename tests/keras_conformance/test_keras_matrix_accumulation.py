"""Accumulated gradients of micro-batches that are not alike: one step on all of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from keras_programs import keras
from matrix_programs import assert_near, masked, trained, weights_of

import samegrad as tf

layers, optimizers = keras.layers, keras.optimizers
RNG = np.random.default_rng(8)
# Examples of each replica in two micro-batches; None is one device.
SHARES = [(None, None), ([3, 2], [1, 0]), ([2, 1, 1, 1], [1, 0, 0, 0]), ([0, 5], [1, 0])]


def _model() -> Any:
    return weights_of(
        keras.Sequential([
            keras.Input((2, 3)),
            layers.Dense(4, "tanh", kernel_regularizer="l2"),
            layers.Dense(2),
        ])
    )  # fmt: skip


def _micro_batches() -> list[dict[str, Any]]:
    found = []
    for count in (5, 1):
        mask = RNG.random((count, 2)) < 0.5
        mask[0, 0] = True
        found.append({
            "x": RNG.normal(size=(count, 2, 3)), "y": RNG.normal(size=(count, 2, 2)),
            "mask": mask, "weight": np.round(2 * RNG.random((count, 2)), 2),
        })  # fmt: skip
    return found


def _loss(reduction: str, use_mask: bool, use_weight: bool) -> Any:
    def loss(model: Any, x: Any, y: Any, mask: Any, weight: Any) -> Any:
        prediction = masked(model(x, training=True), mask if use_mask else None)
        mean = keras.losses.MeanSquaredError(reduction=reduction)
        return mean(y, prediction, weight if use_weight else None)

    return loss


def _joined(batches: list[dict[str, Any]]) -> dict[str, Any]:
    return {name: np.concatenate([batch[name] for batch in batches]) for name in batches[0]}


def _weights(figures: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in figures.items() if name.startswith("model")}


def _accumulated(make: Any, loss: Any, batches: list[dict[str, Any]], sizes: Any) -> Any:
    """The weights after the micro-batches; their sizes may differ from step to step."""
    if sizes[0] is None:
        return _weights(trained(make, loss, batches, None))
    return _weights(trained(make, loss, batches, sizes))


def _sgd(steps: int | None) -> Any:
    return optimizers.SGD(0.1, momentum=0.9, clipnorm=0.05, gradient_accumulation_steps=steps)


def _scaled(steps: int | None) -> Any:
    return optimizers.LossScaleOptimizer(_sgd(steps), initial_scale=8.0)


def _several(steps: int | None) -> Any:
    chosen = optimizers.OptimizerMap(_sgd(steps))
    chosen[".*bias"] = optimizers.Adam(0.1, gradient_accumulation_steps=steps)
    return optimizers.MultiOptimizer(chosen)


@pytest.mark.parametrize("sizes", SHARES)
@pytest.mark.parametrize("use_weight", [False, True])
@pytest.mark.parametrize("use_mask", [False, True])
@pytest.mark.parametrize("reduction", ["sum_over_batch_size", "mean_with_sample_weight"])
def test_micro_batches_count_as_much_as_their_means_are_divided_by(
    float64: None, reduction: str, use_mask: bool, use_weight: bool, sizes: Any
) -> None:
    batches, loss = _micro_batches(), _loss(reduction, use_mask, use_weight)
    wanted = _weights(trained(lambda: (_model(), _sgd(None)), loss, [_joined(batches)], None))
    found = _accumulated(lambda: (_model(), _sgd(2)), loss, batches, sizes)
    assert_near(found, wanted)


@pytest.mark.parametrize("sizes", SHARES)
@pytest.mark.parametrize("make", [_scaled, _several])
def test_optimizers_of_optimizers_accumulate(float64: None, make: Any, sizes: Any) -> None:
    batches, loss = _micro_batches(), _loss("sum_over_batch_size", True, True)
    wanted = _weights(trained(lambda: (_model(), make(None)), loss, [_joined(batches)], None))
    assert_near(_accumulated(lambda: (_model(), make(2)), loss, batches, sizes), wanted)


@pytest.mark.parametrize("replicas", [1, 2, 3])
@pytest.mark.parametrize("weighted", [False, True])
def test_fit_accumulates_uneven_batches(float64: None, replicas: int, weighted: bool) -> None:
    x, y = RNG.normal(size=(7, 2, 3)), RNG.normal(size=(7, 2, 2))
    weight = np.round(2 * RNG.random((7, 2)), 2) if weighted else None
    found = []
    for batch, steps, count in ((7, None, 1), (5, 2, replicas)):
        with tf.distribute.MirroredStrategy(replicas=count).scope():
            model = _model()
            loss = keras.losses.MeanSquaredError(reduction="mean_with_sample_weight")
            model.compile(_sgd(steps), loss)
        model.fit(x, y, batch, epochs=2, sample_weight=weight, shuffle=False, verbose=0)
        found.append({str(i): v.numpy() for i, v in enumerate(model.variables)})
    assert_near(found[1], found[0])


def test_gradients_without_a_loss_of_keras_are_averaged(float64: None) -> None:
    variable = keras.Variable(np.zeros(2))
    optimizer = optimizers.SGD(1.0, gradient_accumulation_steps=2)
    for gradient in ([1.0, 2.0], [3.0, 6.0]):
        optimizer.apply_gradients([(tf.constant(gradient, "float64"), variable)])
    np.testing.assert_array_equal(variable.numpy(), [-2.0, -4.0])


def test_a_checkpoint_between_micro_batches_keeps_what_they_count(
    float64: None, tmp_path: Any
) -> None:
    batches, loss = _micro_batches(), _loss("sum_over_batch_size", False, False)

    def step(model: Any, optimizer: Any, batch: dict[str, Any]) -> None:
        with tf.GradientTape() as tape:
            value = loss(model, **{name: tf.constant(array) for name, array in batch.items()})
        weights = model.trainable_variables
        gradients = tape.gradient(value, weights)
        optimizer.apply_gradients(zip(gradients, weights, strict=True))

    model, optimizer = _model(), _sgd(2)
    step(model, optimizer, batches[0])
    tf.train.Checkpoint(m=model, o=optimizer).write(str(tmp_path / "c"))
    step(model, optimizer, batches[1])
    again, other = _model(), _sgd(2)
    tf.train.Checkpoint(m=again, o=other).restore(str(tmp_path / "c"))
    step(again, other, batches[1])
    for a, b in zip(again.variables, model.variables, strict=True):
        np.testing.assert_array_equal(a.numpy(), b.numpy())


def _two_outputs() -> Any:
    inputs = keras.Input((3,))
    outputs = {"a": layers.Dense(2, name="a")(inputs), "b": layers.Dense(1, name="b")(inputs)}
    return weights_of(keras.Model(inputs, outputs))


@pytest.mark.parametrize("replicas", [1, 2, 3])
def test_several_losses_count_examples(float64: None, replicas: int) -> None:
    x, y = RNG.normal(size=(7, 3)), {"a": RNG.normal(size=(7, 2)), "b": RNG.normal(size=(7, 1))}
    found = []
    for batch, steps, count in ((7, None, 1), (5, 2, replicas)):
        with tf.distribute.MirroredStrategy(replicas=count).scope():
            model = _two_outputs()
            model.compile(_sgd(steps), {"a": "mse", "b": "mae"})
        model.fit(x, y, batch, epochs=2, shuffle=False, verbose=0)
        found.append({str(i): v.numpy() for i, v in enumerate(model.variables)})
    assert_near(found[1], found[0])


@pytest.mark.parametrize(
    "loss", ["dice", lambda y, p: keras.ops.mean(keras.ops.square(y - p)), "circle"]
)
def test_any_loss_accumulates_as_on_one_device(float64: None, loss: Any) -> None:
    x, y = RNG.normal(size=(7, 2, 3)), np.abs(RNG.normal(size=(7, 2, 2)))
    if loss == "circle":
        x, y = x[:, 0], np.arange(7) % 2
    found = []
    for replicas in (1, 2, 3):
        with tf.distribute.MirroredStrategy(replicas=replicas).scope():
            parts = [keras.Input(x.shape[1:]), layers.Dense(2), layers.UnitNormalization()]
            model = weights_of(keras.Sequential(parts))
            model.compile(_sgd(2), loss)
        model.fit(x, y, 5, epochs=2, shuffle=False, verbose=0)
        found.append({str(i): v.numpy() for i, v in enumerate(model.variables)})
    for figures in found[1:]:
        assert_near(figures, found[0])
