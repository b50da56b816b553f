"""Every regularizer and every normalization of Keras on shares of a batch: one device's figures."""

from __future__ import annotations

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

layers, ops, regularizers = keras.layers, keras.ops, keras.regularizers

REGULARIZERS: list[tuple[str, dict[str, Any]]] = [
    ("L1", {"l1": 0.02}),
    ("L2", {"l2": 0.03}),
    ("L1L2", {"l1": 0.02, "l2": 0.03}),
    ("OrthogonalRegularizer", {"factor": 0.05, "mode": "columns"}),
    ("OrthogonalRegularizer", {"factor": 0.05, "mode": "rows"}),
]
NORMALIZATIONS: list[tuple[str, dict[str, Any]]] = [
    ("BatchNormalization", {"momentum": 0.7}),
    ("BatchNormalization", {"center": False, "scale": False, "epsilon": 0.1}),
    ("BatchNormalization", {"synchronized": True}),
    ("BatchNormalization", {"renorm": True, "renorm_momentum": 0.6, "momentum": 0.5}),
    ("GroupNormalization", {"groups": 2}),
    ("GroupNormalization", {"groups": -1}),
    ("LayerNormalization", {}),
    ("RMSNormalization", {}),
    ("SpectralNormalization", {"power_iterations": 2}),
    ("UnitNormalization", {}),
    ("Normalization", {"mean": [0.1, 0.2, 0.3, 0.4], "variance": [1.0, 2.0, 3.0, 4.0]}),
]


def _reg(name: str, arguments: dict[str, Any]) -> Any:
    made = getattr(regularizers, name)(**arguments)
    if name == "OrthogonalRegularizer":
        made.factor = ops.cast(made.factor, "float64")  # Keras makes it float32 whatever floatx is
    return made


def _batches(count: int, steps: int = 2) -> list[dict[str, Any]]:
    """Sequences of three steps, a mask and weights for each step."""
    rng = np.random.default_rng(5)
    found = []
    for _ in range(steps):
        mask = rng.random((count, 3)) < 0.6
        mask[0, 0] = True
        found.append({
            "x": rng.normal(size=(count, 3, 4)), "y": rng.normal(size=(count, 3, 2)),
            "mask": mask, "weight": np.round(2 * rng.random((count, 3)), 2),
        })  # fmt: skip
    return found


def _loss(use_mask: bool, use_weight: bool) -> Any:
    def loss(model: Any, x: Any, y: Any, mask: Any, weight: Any) -> Any:
        # Where the mask is false the inputs are zeros, which a Masking layer leaves out.
        seen = ops.where(ops.expand_dims(mask, -1), x, 0.0) if use_mask else x
        mean = keras.losses.MeanSquaredError()
        return mean(y, model(seen, training=True), weight if use_weight else None)

    return loss


def _check(make_layers: Any, shares: Any = SHARES, *, traced: bool = True) -> None:
    for masked in (False, True):
        inner = [layers.Masking] if masked else []

        def make(inner: Any = inner) -> tuple[Any, Any]:
            parts = [keras.Input((3, 4)), *(kind() for kind in inner), *make_layers()]
            return weights_of(keras.Sequential(parts)), keras.optimizers.SGD(0.1, momentum=0.9)

        for weighted in (False, True):
            for sizes in shares:
                loss, batches = _loss(masked, weighted), _batches(total(sizes))
                wanted = trained(make, loss, batches, None)
                who = (masked, weighted, sizes)
                assert_finite(wanted, who)
                assert_near(trained(make, loss, batches, sizes, traced=traced), wanted, who)


def test_every_regularizer_of_keras_is_in_the_table() -> None:
    classes = {getattr(regularizers, name) for name in public_classes(regularizers)}
    tested = {getattr(regularizers, name) for name, _ in REGULARIZERS}
    assert classes == tested | {regularizers.Regularizer}  # the base class


def test_every_normalization_of_keras_is_in_the_table() -> None:
    found = {name for name in public_classes(layers) if name.endswith("Normalization")}
    assert found == {name for name, _ in NORMALIZATIONS}


@pytest.mark.parametrize(("name", "arguments"), REGULARIZERS)
def test_a_penalty_of_weights_counts_once(float64: None, name: str, arguments: Any) -> None:
    def make() -> list[Any]:
        bias = None if name == "OrthogonalRegularizer" else _reg(name, arguments)
        return [
            layers.Dense(3, kernel_regularizer=_reg(name, arguments), bias_regularizer=bias),
            layers.LayerNormalization(gamma_regularizer=bias),
            layers.Dense(2),
        ]

    _check(make)


@pytest.mark.parametrize(("name", "arguments"), REGULARIZERS[:3])
def test_a_penalty_of_outputs_is_that_of_the_batch(
    float64: None, name: str, arguments: Any
) -> None:
    def make() -> list[Any]:
        return [
            layers.Dense(3, activity_regularizer=_reg(name, arguments)),
            layers.BatchNormalization(),
            layers.ActivityRegularization(l1=0.01, l2=0.02),
            layers.Dense(2, activation="tanh", activity_regularizer=_reg(name, arguments)),
        ]

    _check(make)


@pytest.mark.filterwarnings("ignore:Layer .* does not support masking")
@pytest.mark.parametrize(("name", "arguments"), NORMALIZATIONS)
def test_a_normalization_is_that_of_the_batch(float64: None, name: str, arguments: Any) -> None:
    def make() -> list[Any]:
        kind = getattr(layers, name)
        first = layers.Dense(4)
        made = [kind(first, **arguments)] if name == "SpectralNormalization" else [
            first, kind(**arguments)
        ]  # fmt: skip
        return [*made, layers.Dense(2)]

    _check(make)


def test_eager_steps_normalize_and_penalize_as_on_one_device(float64: None) -> None:
    def make() -> list[Any]:
        return [layers.BatchNormalization(), layers.Dense(2, activity_regularizer="l2")]

    _check(make, [[3, 2]], traced=False)
