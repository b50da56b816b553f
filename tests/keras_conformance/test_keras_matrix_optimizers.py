"""Every optimizer of Keras, with what it does to gradients: the updates of one device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from keras_programs import keras
from matrix_programs import (
    SHARES,
    assert_finite,
    assert_near,
    public_classes,
    total,
    trained,
    weights_of,
)
from training_cases import OPTIMIZER_VARIANTS, OPTIMIZERS

layers, optimizers = keras.layers, keras.optimizers

LEFT_OUT = {
    "Optimizer": "it is the base class",
    "OptimizerMap": "it only chooses optimizers; MultiOptimizer is given one",
    "LossScaleOptimizer": "it wraps another one: a test of its own",
    "MultiOptimizer": "it wraps others: a test of its own",
}


def _model() -> Any:
    made = keras.Sequential([
        keras.Input((3,)),
        layers.Dense(4, activation="tanh", kernel_regularizer="l2"),
        layers.Dense(2, kernel_constraint="unit_norm"),
    ])  # fmt: skip
    return weights_of(made)


def _loss(model: Any, x: Any, y: Any, weight: Any) -> Any:
    loss = keras.losses.MeanSquaredError(reduction="mean_with_sample_weight")
    return loss(y, model(x, training=True), weight)


def _batches(count: int, steps: int = 3) -> list[dict[str, Any]]:
    rng = np.random.default_rng(5)
    return [
        {"x": rng.normal(size=(count, 3)), "y": 3 * rng.normal(size=(count, 2)),
         "weight": np.round(2 * rng.random(count), 2)}
        for _ in range(steps)
    ]  # fmt: skip


def _check(make: Callable[[], Any], shares: Any = SHARES, *, traced: bool = True) -> None:
    def both() -> tuple[Any, Any]:
        return _model(), make()

    for sizes in shares:
        batches = _batches(total(sizes))
        wanted = trained(both, _loss, batches, None)
        assert_finite(wanted, sizes)
        assert_near(trained(both, _loss, batches, sizes, traced=traced), wanted, sizes)


def test_every_optimizer_of_keras_is_in_the_table() -> None:
    assert {name for name, _ in OPTIMIZERS} | LEFT_OUT.keys() == public_classes(optimizers)


@pytest.mark.parametrize("variant", OPTIMIZER_VARIANTS, ids=lambda v: "-".join(v) or "plain")
@pytest.mark.parametrize(("name", "arguments"), OPTIMIZERS)
def test_an_optimizer_updates_as_on_one_device(
    float64: None, name: str, arguments: Any, variant: Any
) -> None:
    _check(lambda: getattr(optimizers, name)(**{**arguments, **variant}))


@pytest.mark.parametrize("name", ["SGD", "Adam"])
def test_eager_steps_update_as_on_one_device(float64: None, name: str) -> None:
    _check(lambda: getattr(optimizers, name)(0.1, clipnorm=0.2), [[3, 2]], traced=False)


def _several() -> Any:
    chosen = optimizers.OptimizerMap(optimizers.SGD(0.1, momentum=0.9))
    chosen[".*bias"] = optimizers.Adam(0.1, clipvalue=0.05)
    return optimizers.MultiOptimizer(chosen)


@pytest.mark.parametrize(
    "make",
    [
        _several,
        lambda: optimizers.LossScaleOptimizer(
            optimizers.Adam(0.1, global_clipnorm=0.3), initial_scale=8.0, dynamic_growth_steps=2
        ),
        lambda: optimizers.LossScaleOptimizer(
            optimizers.SGD(0.1, gradient_accumulation_steps=2), initial_scale=8.0
        ),
        lambda: optimizers.SGD(optimizers.schedules.ExponentialDecay(0.1, 2, 0.5)),
    ],
)
def test_optimizers_of_optimizers_update_as_on_one_device(float64: None, make: Any) -> None:
    _check(make)
