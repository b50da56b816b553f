"""fit, evaluate and train_on_batch on several replicas: the figures of one device."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import test_keras_matrix_metrics as metrics_table
import test_keras_matrix_optimizers as optimizers_table
from keras_programs import keras
from matrix_programs import assert_finite, assert_near, states, weights_of
from test_keras_matrix_layers import AddsLosses
from training_cases import LOSSES, OPTIMIZERS

import samegrad as tf

layers, ops = keras.layers, keras.ops
REPLICAS = [2, 4]
# Batches of 8 and 5 examples: on two replicas 4+4 and 3+2, on four 2+2+2+2 and 2+1+1+1.
EXAMPLES, BATCH = 13, 8
RNG = np.random.default_rng(9)
X = RNG.normal(size=(EXAMPLES, 4))
WEIGHTS = np.round(2 * RNG.random(EXAMPLES), 2)


def _dense(activation: str = "linear") -> Any:
    return weights_of(keras.Sequential([keras.Input((4,)), layers.Dense(3, activation)]))


def _sequences() -> Any:
    """A masked embedding with penalties: (n, 3) to (n, 3, 2)."""
    return weights_of(
        keras.Sequential([
            keras.Input((3,), dtype="int32"),
            layers.Embedding(5, 4, mask_zero=True, embeddings_regularizer="l2"),
            layers.Dense(3, activity_regularizer="l2"),
            layers.BatchNormalization(),
            layers.Dense(2, kernel_regularizer="l1"),
        ])
    )  # fmt: skip


def _figures(
    make_model: Any, compiled: Any, data: tuple[Any, ...], replicas: int, **given: Any
) -> dict[str, Any]:
    """What two epochs of fit, an evaluation and steps on one batch show and leave behind."""
    keras.utils.set_random_seed(3)
    strategy = tf.distribute.MirroredStrategy(replicas=replicas)
    with strategy.scope():
        model = make_model()
        model.compile(**compiled())
    x, y, *weights = data
    weight = weights[0] if weights else None
    history = model.fit(
        x, y, sample_weight=weight, batch_size=BATCH, epochs=2, shuffle=False, verbose=0, **given
    )
    found: dict[str, Any] = {f"fit {k}": np.asarray(v) for k, v in history.history.items()}
    parts = {"sample_weight": weight, "batch_size": BATCH, "verbose": 0, "return_dict": True}
    found |= {f"evaluate {k}": np.asarray(v) for k, v in model.evaluate(x, y, **parts).items()}
    for count in (1, 5):
        few = keras.tree.map_structure(lambda a, n=count: None if a is None else a[:n], [x, y])
        w = keras.tree.map_structure(lambda a, n=count: None if a is None else a[:n], weight)
        for name in ("test_on_batch", "train_on_batch"):
            logs = getattr(model, name)(*few, sample_weight=w, return_dict=True)
            found |= {f"{name} {count} {k}": np.asarray(v) for k, v in logs.items()}
    return found | states(model=model, optimizer=model.optimizer)


def _check(make_model: Any, compiled: Any, data: tuple[Any, ...], **given: Any) -> None:
    wanted = _figures(make_model, compiled, data, 1, **given)
    whole = {name: value for name, value in wanted.items() if "R2Score" not in name}
    assert_finite(whole)  # of one example it is NaN
    for replicas in REPLICAS:
        assert_near(_figures(make_model, compiled, data, replicas, **given), wanted, replicas)


def _targets(kind: str) -> Any:
    return metrics_table._values(kind, (EXAMPLES,), np.random.default_rng(4))


ACTIVATIONS = {
    "real": "linear",
    "unit": "sigmoid",
    "positive": "softplus",
    "classes": "softmax",
    "direction": "unit_norm",
}


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("name", "head", "targets", "arguments"), LOSSES)
def test_fit_with_any_loss(
    float64: None, name: str, head: str, targets: str, arguments: Any, weighted: bool
) -> None:
    if name == "CTC":
        return  # its targets have no fixed place in this model
    activation = ACTIVATIONS[head]
    head_layer = activation if activation != "unit_norm" else (lambda z: ops.normalize(z, axis=-1))

    def compiled() -> dict[str, Any]:
        loss = getattr(keras.losses, name)(**arguments)
        return {"optimizer": keras.optimizers.SGD(0.05), "loss": loss}

    data = (X, _targets(targets), WEIGHTS) if weighted else (X, _targets(targets))
    _check(lambda: _dense(head_layer), compiled, data)


OUTPUTS = {"units": "sigmoid", "unit": "sigmoid", "chances": "softmax", "reals": "linear"}


@pytest.mark.parametrize(
    ("y", "p"),
    sorted({(y, p) for _, y, p, _ in metrics_table.CASES if p in OUTPUTS and y != "none"}),
)
def test_fit_with_any_metric(float64: None, y: str, p: str) -> None:
    cases = [(name, arguments) for name, a, b, arguments in metrics_table.CASES if (a, b) == (y, p)]

    def made() -> list[Any]:
        return [
            getattr(keras.metrics, name)(**arguments, name=f"{name}{i}")
            for i, (name, arguments) in enumerate(cases)
        ]

    def compiled() -> dict[str, Any]:
        loss = "sparse_categorical_crossentropy" if y == "labels" else "mse"
        return {"optimizer": "sgd", "loss": loss, "metrics": made(), "weighted_metrics": made()}

    def model() -> Any:
        units = 1 if p == "unit" else 3
        return weights_of(keras.Sequential([keras.Input((4,)), layers.Dense(units, OUTPUTS[p])]))

    _check(model, compiled, (X, _targets(y), WEIGHTS))


@pytest.mark.parametrize(("name", "arguments"), OPTIMIZERS)
def test_fit_with_any_optimizer(float64: None, name: str, arguments: Any) -> None:
    def compiled() -> dict[str, Any]:
        made = getattr(keras.optimizers, name)(**arguments, global_clipnorm=0.3, use_ema=True)
        return {"optimizer": made, "loss": "mse", "metrics": ["mae"]}

    y = np.random.default_rng(4).normal(size=(EXAMPLES, 2))
    _check(optimizers_table._model, compiled, (X[:, :3], y, WEIGHTS))


TOKENS = np.random.default_rng(6).integers(0, 5, (EXAMPLES, 3))
TOKENS[:, 0] = 1  # no example is masked as a whole
STEPS = np.random.default_rng(7).normal(size=(EXAMPLES, 3, 2))


def _sgd(**more: Any) -> Any:
    return lambda: {
        "optimizer": keras.optimizers.SGD(0.05, momentum=0.9),
        "loss": "mse",
        "metrics": ["mae"],
        "weighted_metrics": ["mse", keras.metrics.MeanAbsoluteError(name="again")],
        **more,
    }


@pytest.mark.parametrize("shape", [(EXAMPLES, 1), (EXAMPLES, 3), None])
@pytest.mark.parametrize("more", [{}, {"run_eagerly": True}, {"steps_per_execution": 2}])
def test_fit_with_masks_weights_and_penalties(float64: None, shape: Any, more: Any) -> None:
    weights = () if shape is None else (np.round(2 * RNG.random(shape), 2),)
    _check(_sequences, _sgd(**more), (TOKENS, STEPS, *weights))


def test_fit_with_a_mean_over_the_weights(float64: None) -> None:
    loss = keras.losses.MeanSquaredError(reduction="mean_with_sample_weight")
    _check(_sequences, _sgd(loss=loss), (TOKENS, STEPS, np.round(RNG.random((EXAMPLES, 3)), 2)))


def test_fit_with_class_weights(float64: None) -> None:
    loss = "sparse_categorical_crossentropy"
    compiled = _sgd(loss=loss, metrics=["accuracy"], weighted_metrics=[loss])
    weights = {"class_weight": {0: 0.5, 1: 2.0, 2: 0.25}}
    _check(lambda: _dense("softmax"), compiled, (X, _targets("labels")), **weights)


def _two_outputs() -> Any:
    inputs = keras.Input((4,))
    hidden = layers.Dense(3, "tanh", activity_regularizer="l1")(inputs)
    outputs = {
        "a": layers.Dense(2, name="a")(hidden),
        "b": layers.Dense(1, "sigmoid", name="b")(hidden),
    }
    return weights_of(keras.Model(inputs, outputs))


def test_fit_with_several_outputs(float64: None) -> None:
    def compiled() -> dict[str, Any]:
        return {
            "optimizer": keras.optimizers.Adam(0.05),
            "loss": {"a": "mse", "b": keras.losses.BinaryCrossentropy()},
            "loss_weights": {"a": 0.3, "b": 2.0},
            "metrics": {
                "a": ["mae"],
                "b": ["accuracy", keras.metrics.AUC(num_thresholds=5, name="auc")],
            },
            "weighted_metrics": {"a": ["mse"], "b": [keras.metrics.Recall(name="r")]},
        }

    y = {"a": RNG.normal(size=(EXAMPLES, 2)), "b": (RNG.random((EXAMPLES, 1)) > 0.5) * 1.0}
    weights = {"a": WEIGHTS, "b": WEIGHTS[::-1].copy()}
    _check(_two_outputs, compiled, (X, y))
    _check(_two_outputs, compiled, (X, y, weights))


def _adding() -> Any:
    return weights_of(keras.Sequential([keras.Input((4,)), layers.Dense(3), AddsLosses(rows=True)]))


def test_fit_with_losses_that_layers_add(float64: None) -> None:
    _check(_adding, _sgd(), (X, _targets("reals"), WEIGHTS))


def _penalized(y: Any, p: Any) -> Any:
    return ops.mean(ops.square(y - p))


def test_fit_with_a_users_mean_of_everything(float64: None) -> None:
    _check(_dense, _sgd(loss=_penalized), (X, _targets("reals")))
    _check(_dense, _sgd(metrics=[_penalized]), (X, _targets("reals")))


def test_a_metric_of_one_replica_alone_is_refused(float64: None) -> None:
    def largest(y: Any, p: Any) -> Any:
        return ops.max(ops.abs(y - p))

    with pytest.raises(ValueError, match=r"\[largest\].* one value per example"):
        _figures(_dense, _sgd(metrics=[largest]), (X, _targets("reals")), 2)


class _Measures(layers.Layer):  # type: ignore[misc,name-defined]
    """A layer with metrics of what it sees."""

    def __init__(self) -> None:
        super().__init__()
        self.values = keras.metrics.Mean(name="values")
        self.squares = keras.metrics.Mean(name="squares")

    def call(self, x: Any) -> Any:
        """The inputs."""
        self.values.update_state(x)
        self.squares.update_state(ops.mean(ops.square(x)))
        return x


def test_fit_with_metrics_inside_of_layers(float64: None) -> None:
    def model() -> Any:
        return weights_of(keras.Sequential([keras.Input((4,)), layers.Dense(3), _Measures()]))

    _check(model, _sgd(), (X, _targets("reals")))


@pytest.mark.parametrize("reduction", ["sum", None])
def test_fit_with_other_reductions(float64: None, reduction: Any) -> None:
    loss = keras.losses.MeanSquaredError(reduction=reduction)
    _check(_dense, _sgd(loss=loss), (X, _targets("reals"), WEIGHTS))


def test_fit_with_weights_of_a_users_mean(float64: None) -> None:
    _check(_dense, _sgd(loss=_penalized), (X, _targets("reals"), WEIGHTS))


def test_fit_of_datasets_with_validation(float64: None) -> None:
    y = _targets("reals")
    found = []
    for replicas in (1, 2, 3):
        strategy = tf.distribute.MirroredStrategy(replicas=replicas)
        with strategy.scope():
            model = _dense()
            model.compile(**_sgd(steps_per_execution=2)())
        data = tf.data.Dataset.from_tensor_slices((X, y, WEIGHTS)).batch(
            5
        )  # 5, 5 and 3: one execution has a single step
        history = model.fit(data, epochs=2, verbose=0, validation_data=data).history
        more = model.fit(X, y, 5, validation_split=0.4, shuffle=False, verbose=0).history
        figures = {f"{i} {k}": np.asarray(v) for i, h in enumerate((history, more))
                   for k, v in h.items()}  # fmt: skip
        found.append(figures | states(model=model))
    for figures in found[1:]:
        assert_near(figures, found[0])


def test_a_batch_with_class_weights(float64: None) -> None:
    y = _targets("labels")
    found = []
    for replicas in (1, 2, 3):
        with tf.distribute.MirroredStrategy(replicas=replicas).scope():
            model = _dense("softmax")
            loss = "sparse_categorical_crossentropy"
            model.compile("sgd", loss, weighted_metrics=["accuracy"])
        weights = {0: 0.5, 1: 2.0, 2: 0.25}
        logs = [model.train_on_batch(X[:5], y[:5], class_weight=weights) for _ in range(3)]
        found.append({"logs": np.asarray(logs), **states(model=model)})
    for figures in found[1:]:
        assert_near(figures, found[0])


@pytest.mark.parametrize("policy", ["mixed_float16", "mixed_bfloat16"])
def test_penalties_of_16_bits_are_added_to_losses_of_32(policy: str) -> None:
    keras.config.set_dtype_policy(policy)
    try:
        found = []
        for replicas in (1, 2):
            with tf.distribute.MirroredStrategy(replicas=replicas).scope():
                model = weights_of(
                    keras.Sequential(
                        [keras.Input((4,)), layers.Dense(3, activity_regularizer="l2")]
                    )
                )
                model.compile("adam", "mse")
            history = model.fit(X, _targets("reals"), BATCH, verbose=0, shuffle=False).history
            found.append(history["loss"][0])
    finally:
        keras.config.set_dtype_policy("float32")
    assert found[1] == pytest.approx(found[0], rel=1e-2)
