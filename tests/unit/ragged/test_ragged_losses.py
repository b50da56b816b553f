"""Keras's losses and metrics of ragged tensors: TensorFlow's answers, on any number of replicas."""

from __future__ import annotations

import json
import pathlib
import re

import numpy as np
import pytest
import ragged_losses as programs

import samegrad as tf
from samegrad import keras

RECORDED = json.loads(pathlib.Path(__file__).with_name("tensorflow_ragged_losses.json").read_text())
ANSWERED = [case for case, value in RECORDED["losses"].items() if value != programs.REFUSED]
MEASURED = [case for case, value in RECORDED["metrics"].items() if value != programs.REFUSED]
REFUSED = [
    (kind, case)
    for kind in ("losses", "metrics")
    for case, value in RECORDED[kind].items()
    if value == programs.REFUSED
]
# TensorFlow refuses them; here they are what the dense loss is of each row.
BY_ROWS = {"BinaryCrossentropy", "BinaryFocalCrossentropy", "CategoricalCrossentropy"}
ASKED_FOR = (
    "MeanSquaredError", "MeanAbsoluteError", "MeanAbsolutePercentageError",
    "MeanSquaredLogarithmicError", "Huber", "LogCosh", "Poisson", "Hinge",
)  # fmt: skip
CLEAR = r"to_tensor|\bshapes?\b"


def assert_close(found, expected):
    if isinstance(expected, list):
        assert isinstance(found, list) and len(found) == len(expected), (found, expected)
        for one, other in zip(found, expected, strict=True):
            assert_close(one, other)
    else:
        assert found == pytest.approx(expected, rel=3e-6, abs=1e-6, nan_ok=True)


def strategy_of(replicas):
    """A strategy, and a batch of 3 examples: two replicas have 2 and 1."""
    strategy = tf.distribute.MirroredStrategy(replicas=replicas)
    batches = tf.data.Dataset.from_tensor_slices(np.ones((3, 1), "float32")).batch(3)
    return strategy, next(iter(strategy.experimental_distribute_dataset(batches)))


def test_recorded_answers_are_of_all_losses():
    assert {f"{name} sum vectors" for name in ASKED_FOR} <= set(ANSWERED)
    assert len(ANSWERED) + len(MEASURED) > 160 and len(REFUSED) > 100


@pytest.mark.parametrize("case", ANSWERED)
def test_ragged_loss_is_that_of_tensorflow(case):
    assert_close(programs.plain(programs.loss(tf, keras, case)), RECORDED["losses"][case])


@pytest.mark.parametrize("case", MEASURED)
def test_ragged_metric_is_that_of_tensorflow(case):
    assert_close(programs.plain(programs.metric(tf, keras, case)), RECORDED["metrics"][case])


@pytest.mark.filterwarnings("ignore:In loss categorical")
@pytest.mark.parametrize("name", sorted({case.split()[0] for case in ANSWERED} | BY_ROWS))
def test_ragged_loss_is_the_dense_loss_of_each_row(name):
    loss = getattr(keras.losses, name)(reduction="none")
    found = programs.loss(tf, keras, f"{name} none vectors")
    if not found.shape:
        pytest.skip("one loss for all examples")
    rows = zip(programs.LABELS["vectors"], programs.PREDICTIONS["vectors"], strict=True)
    expected = [float(loss(tf.constant([a]), tf.constant([b]))[0]) for a, b in rows]
    assert_close(programs.plain(found), expected)


@pytest.mark.filterwarnings("ignore:You are passing weight as")
@pytest.mark.parametrize(("kind", "case"), REFUSED)
def test_loss_that_tensorflow_refuses_is_finite_or_names_the_reason(kind, case):
    function = programs.loss if kind == "losses" else programs.metric
    said, found = "", np.nan
    try:
        found = function(tf, keras, case)
    except (TypeError, ValueError, NotImplementedError) as error:
        said = str(error)
    assert (
        re.search(CLEAR, said) or np.isfinite(np.array(getattr(found, "flat_values", found))).all()
    )


@pytest.mark.parametrize("traced", [False, True])
@pytest.mark.parametrize("replicas", [1, 2])
@pytest.mark.parametrize("case", [case for case in ANSWERED if " none " not in case])
def test_ragged_loss_and_gradient_are_those_of_one_device(case, replicas, traced):
    strategy, batch = strategy_of(replicas)
    with strategy.scope():
        scale = tf.Variable(1.0)

    def step(_):
        with tf.GradientTape() as tape:
            loss = programs.loss(tf, keras, case, scale)
        return loss, tape.gradient(loss, scale)

    def program():
        return [
            strategy.reduce("SUM", value, axis=None) for value in strategy.run(step, args=(batch,))
        ]

    found = [float(value) for value in (tf.function(program) if traced else program)()]
    expected = [float(value) for value in step(None)]
    assert found == pytest.approx(expected, rel=1e-5, abs=1e-6)
    assert found[0] == pytest.approx(RECORDED["losses"][case], rel=3e-6, abs=1e-6)


@pytest.mark.parametrize("traced", [False, True])
@pytest.mark.parametrize("replicas", [1, 2])
@pytest.mark.parametrize("case", MEASURED)
def test_ragged_metric_is_that_of_one_device(case, replicas, traced):
    strategy, batch = strategy_of(replicas)
    with strategy.scope():
        metric = getattr(keras.metrics, case.split()[0])()

    def program():
        strategy.run(lambda _: programs.update(tf, metric, case), args=(batch,))

    (tf.function(program) if traced else program)()
    times = replicas if case.startswith("Sum ") else 1  # each replica adds, as of a dense tensor
    assert_close(float(metric.result()), RECORDED["metrics"][case] * times)
