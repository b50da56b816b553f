"""Every regularizer and every normalization of Keras on shares of a batch: one device's figures."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from keras_programs import keras, shared
from matrix_programs import (
    SHARES,
    assert_finite,
    assert_near,
    public_classes,
    total,
    trained,
    weights_of,
)

import samegrad as tf

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


USER_PENALTIES = {
    "mean": lambda x: 0.1 * ops.mean(ops.square(x)),
    "sum": lambda x: 0.1 * ops.sum(ops.square(x)),
    "norm": lambda x: 0.1 * ops.sqrt(ops.sum(ops.square(x)) + 1.0),
    "constant": lambda x: ops.cast(0.1, x.dtype),
}


@pytest.mark.parametrize("name", USER_PENALTIES)
def test_a_users_penalty_of_outputs_is_that_of_the_batch(float64: None, name: str) -> None:
    def make() -> list[Any]:
        penalty = USER_PENALTIES[name]
        return [
            layers.Dense(3, activity_regularizer=penalty),
            layers.BatchNormalization(activity_regularizer=penalty),
            layers.Dense(2),
        ]

    _check(make)


@pytest.mark.parametrize(
    "penalty",
    [lambda x: ops.max(x), "orthogonal_regularizer"],
)
def test_a_penalty_of_what_one_replica_sees_is_refused(penalty: Any) -> None:
    model = keras.Sequential([keras.Input((4,)), layers.Dense(3, activity_regularizer=penalty)])
    if penalty == "orthogonal_regularizer":
        model.layers[-1].activity_regularizer.mode = "columns"
    strategy = tf.distribute.MirroredStrategy(replicas=2)
    with pytest.raises(ValueError, match=r"\[activity_regularizer\].*sum or the mean over all"):
        strategy.run(lambda x: model(x), (shared(np.ones((5, 4), "float32"), [3, 2]),))


class AddsLosses(layers.Layer):  # type: ignore[misc,name-defined]
    """A layer that adds means and sums over the examples, and a loss of its weights.

    Args:
        rows: Whether it adds a loss for each example.
    """

    supports_masking = True

    def __init__(self, rows: bool = False) -> None:
        super().__init__()
        self._rows = rows

    def build(self, shape: Any) -> None:
        """A factor for each input."""
        self.factor = self.add_weight(shape=(shape[-1],), initializer="ones")

    def call(self, x: Any) -> Any:
        """The inputs, times the factors."""
        self.add_loss(0.1 * ops.mean(ops.abs(x)))
        self.add_loss(0.01 * ops.sum(ops.square(x * self.factor)))
        self.add_loss([0.1 * ops.sum(ops.square(self.factor))])
        if self._rows:
            self.add_loss(0.1 * ops.square(x[..., 0]))
        return x * self.factor


def test_losses_that_layers_add_are_those_of_the_batch(float64: None) -> None:
    _check(lambda: [layers.Dense(3), AddsLosses(), layers.Dense(2)])


def test_an_added_loss_of_what_one_replica_sees_is_refused() -> None:
    class Adds(layers.Layer):  # type: ignore[misc,name-defined]
        def call(self, x: Any) -> Any:
            self.add_loss(ops.max(x))
            return x

    strategy, layer = tf.distribute.MirroredStrategy(replicas=2), Adds()
    with pytest.raises(ValueError, match=r"\[add_loss\].*sum or the mean over all"):
        strategy.run(lambda x: layer(x), (shared(np.ones((5, 4), "float32"), [3, 2]),))


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
