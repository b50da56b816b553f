"""Functions that know of replicas: a loaded one has the bits of the original, or names the line."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from layer_cases import CASES, class_of
from loss_cases import (
    COMPARES_ROWS,
    LOSS_ARGUMENTS,
    METRIC_ARGUMENTS,
    metric_inputs,
    outputs_of,
    predicted,
    truth,
)
from public_classes import public_classes

import samegrad as tf

keras = tf.keras
X = np.random.default_rng(0).normal(size=(7, 4)).astype(np.float32)
DRAW_OR_NORMALIZE = r"Dropout|Noise|Batch|Spectr|Mix(Up)?$|Random(Crop|Flip|Rot)|Equal|a state kept"
# Made outside of a strategy's scope: in it, each replica draws other numbers than a saved one.
DRAWS = tf.random.Generator.from_seed(1)
# The second one is that of variables that metrics assign what they counted.
REFUSED = "is that of one replica, as it was saved with|is one variable for all replicas"


class Parts(tf.Module):
    """Variables, layers and an optimizer that functions use."""

    def __init__(self) -> None:
        super().__init__()
        keras.utils.set_random_seed(1)
        self.w = tf.Variable([1.0, 2.0, 3.0, 4.0])
        self.counts = {
            rule.name: tf.Variable(tf.zeros(4), aggregation=rule)
            for rule in (tf.VariableAggregation.SUM, tf.VariableAggregation.MEAN,
                         tf.VariableAggregation.ONLY_FIRST_REPLICA)
        }  # fmt: skip
        self.norm = keras.layers.BatchNormalization()
        self.norm.build((None, 4))
        self.penalized = keras.layers.Dense(2, activity_regularizer="l2")
        self.penalized.build((None, 4))
        self.optimizer = keras.optimizers.SGD(0.1)
        self.optimizer.build([self.w])
        self.mean = keras.metrics.Mean()
        self.draws = DRAWS
        self.draws.reset_from_seed(1)


def context() -> Any:
    return tf.distribute.get_replica_context()


def step(parts: Parts, x: Any) -> Any:
    with tf.GradientTape() as tape:
        loss = tf.nn.compute_average_loss(tf.reduce_sum(parts.w * x, axis=1) ** 2)
    parts.optimizer.apply_gradients([(tape.gradient(loss, parts.w), parts.w)])
    return loss, parts.w + 0.0


def of_scalar(parts: Parts, x: Any) -> Any:
    parts.mean.update_state(tf.reduce_mean(x))
    return parts.mean.result()


def of_examples(parts: Parts, x: Any) -> Any:
    parts.mean.update_state(tf.reduce_mean(x, axis=1))
    return parts.mean.result()


def assigned(name: str) -> Any:
    return lambda parts, x: parts.counts[name].assign(tf.reduce_sum(x, axis=0)) + 0.0


def penalty(parts: Parts, x: Any) -> Any:
    parts.penalized(x)
    return tf.nn.scale_regularization_loss(parts.penalized.losses)


def total(x: Any) -> Any:
    return tf.reduce_sum(x)


def gradient(parts: Parts, x: Any) -> Any:
    with tf.GradientTape() as tape:
        value = context().all_reduce("sum", total(tf.tanh(parts.w * x)))
    return context().all_reduce("sum", tape.gradient(value, parts.w))


TRUE = {
    "average": lambda p, x: tf.nn.compute_average_loss(tf.reduce_sum(x, 1)),
    "weighted": lambda p, x: tf.nn.compute_weighted_mean_loss(tf.reduce_sum(x, 1), x[:, 0] ** 2),
    "regularization": lambda p, x: tf.nn.scale_regularization_loss(tf.reduce_sum(p.w)),
    "sum": lambda p, x: context().all_reduce("sum", total(x)),
    "mean": lambda p, x: context().all_reduce("mean", {"a": total(x), "b": total(p.w)}),
    "gradient": gradient,
    "branch": lambda p, x: tf.cond(
        tf.reduce_sum(p.w) > 0, lambda: context().all_reduce("sum", total(x)), lambda: 0.0
    ),
    "assign SUM": assigned("SUM"),
    "assign MEAN": assigned("MEAN"),
    "assign FIRST": assigned("ONLY_FIRST_REPLICA"),
    "moving averages": lambda p, x: (p.norm(x, training=True), p.norm.moving_mean + 0.0),
    "optimizer": step,
    "metric of examples": of_examples,
    "draw": lambda p, x: tf.random.normal([3]),
    "local mean": lambda p, x: tf.reduce_mean(x),
    "unused penalty": lambda p, x: p.penalized(x),
}  # fmt: skip
OF_ONE_REPLICA = {
    "strategy's number": lambda p, x: total(x) / tf.distribute.get_strategy().num_replicas_in_sync,
    "context's number": lambda p, x: total(x) / context().num_replicas_in_sync,
    "number of the replica": lambda p, x: total(x) + float(context().replica_id_in_sync_group),
    "gather": lambda p, x: context().all_gather(tf.reduce_sum(x, 0, keepdims=True), axis=0),
    "merge": lambda p, x: context().merge_call(
        lambda s, value: s.reduce("MEAN", value, axis=None), args=(total(x),)
    ),
    "has_strategy": lambda p, x: total(x) + 0.0 * float(tf.distribute.has_strategy()),
    "metric of a scalar": of_scalar,
    "used penalty": penalty,
    "loss of a scalar": lambda p, x: keras.losses.MeanSquaredError()(
        tf.reduce_sum(x, axis=0), tf.reduce_sum(x**2, axis=0)
    ),
    "generator": lambda p, x: p.draws.normal([3]),
    "sparse gradient": lambda p, x: (
        context().all_reduce("sum", tf.IndexedSlices(x[:1], tf.constant([0]), (3, 4))).values
    ),
}


def original(parts: Any, call: Any, inputs: Any) -> Any:
    """Return an object whose `call` takes arrays like the inputs."""
    specs = [tf.TensorSpec([None, *x.shape[1:]], x.dtype) for x in inputs]
    parts.call = tf.function(lambda *given: call(parts, *given), input_signature=specs)
    return parts


def bits(make: Callable[[], Any], inputs: Any, replicas: int) -> list[bytes]:
    """Return the bits of what all replicas return."""
    strategy = tf.distribute.MirroredStrategy(replicas=replicas)
    with strategy.scope():
        model = make()
    tf.random.set_seed(3)
    data = tf.data.Dataset.from_tensor_slices(tuple(inputs)).batch(len(inputs[0]))
    batch = next(iter(strategy.experimental_distribute_dataset(data)))
    found = tf.function(lambda given: strategy.run(model.call, args=given))(batch)
    parts = [strategy.experimental_local_results(leaf) for leaf in tf.nest.flatten(found)]
    return [tf.convert_to_tensor(part).numpy().tobytes() for one in parts for part in one]


def compare(make: Callable[[], Any], inputs: Any, folder: Path) -> str | None:
    """Check the bits of a loaded function; the message where three replicas are refused."""
    tf.saved_model.save(make(), folder)

    def load() -> Any:
        return tf.saved_model.load(folder)

    assert bits(load, inputs, 1) == bits(make, inputs, 1)
    try:
        found = bits(load, inputs, 3)
    except RuntimeError as error:
        if not re.search(REFUSED, str(error)):
            raise
        return str(error)
    assert found == bits(make, inputs, 3)
    return None


@pytest.mark.parametrize("name", TRUE)
def test_a_loaded_function_reduces_over_the_replicas(tmp_path: Path, name: str) -> None:
    assert compare(lambda: original(Parts(), TRUE[name], [X]), [X], tmp_path / "m") is None


@pytest.mark.parametrize("name", OF_ONE_REPLICA)
def test_a_function_of_one_replica_names_its_line(tmp_path: Path, name: str) -> None:
    call = OF_ONE_REPLICA[name]
    error = compare(lambda: original(Parts(), call, [X]), [X], tmp_path / "m")
    assert error is not None and "(test_saved_on_replicas.py:" in error


LOSSES = public_classes(keras.losses, keras.losses.Loss)
METRICS = set(public_classes(keras.metrics, keras.metrics.Metric)) - {"MeanTensor"}


@pytest.mark.parametrize("name", LOSSES)
def test_a_loaded_loss_has_one_denominator_or_is_refused(tmp_path: Path, name: str) -> None:
    def losses(parts: Any, labels: Any, numbers: Any, weights: Any) -> Any:
        return [
            getattr(keras.losses, name)(reduction=rule, **LOSS_ARGUMENTS.get(name, {}))(
                labels, predicted(name, numbers), sample_weight=weights
            )
            for rule in ("sum_over_batch_size", "sum", "mean_with_sample_weight")
        ]

    rng, labels = np.random.default_rng(1), truth(name)
    numbers = rng.normal(size=(len(labels), outputs_of(name))).astype(np.float32)
    inputs = [labels, numbers, rng.uniform(size=len(labels)).astype(np.float32)]
    refused = compare(lambda: original(tf.Module(), losses, inputs), inputs, tmp_path / "m")
    assert (refused is not None) == (name in COMPARES_ROWS)


@pytest.mark.parametrize("name", sorted(METRICS))
def test_a_loaded_metric_counts_all_examples_or_is_refused(tmp_path: Path, name: str) -> None:
    def make() -> Any:
        parts = tf.Module()
        parts.metric = getattr(keras.metrics, name)(**METRIC_ARGUMENTS.get(name, {}))
        return original(parts, update, inputs)

    def update(parts: Any, *given: Any) -> Any:
        parts.metric.update_state(*given)
        return parts.metric.result()

    inputs = metric_inputs(name)
    refused = compare(make, inputs, tmp_path / "m")
    assert refused is None or not issubclass(getattr(keras.metrics, name), keras.metrics.Mean)


@pytest.mark.parametrize("name", [name for name in CASES if re.search(DRAW_OR_NORMALIZE, name)])
def test_a_layer_loaded_for_training_keeps_its_bits_or_is_refused(
    tmp_path: Path, name: str
) -> None:
    case = CASES[name]

    def make() -> Any:
        parts = tf.Module()
        keras.utils.set_random_seed(5)
        parts.layer = class_of(name)(**case.made())
        parts.layer(*case.enter(*map(tf.constant, case.inputs)), **case.options)
        return original(parts, call, case.inputs)

    def call(parts: Any, *given: Any) -> Any:
        options = {"training": True} if parts.layer._call_has_training_arg else {}
        return tf.nest.flatten(parts.layer(*case.enter(*given), **case.options, **options))

    refused = compare(make, case.inputs, tmp_path / "m")
    assert (refused is not None) == (name in ("CutMix", "MelSpectrogram", "MixUp"))
