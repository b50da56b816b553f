"""Steps of a few lines are bitwise identical to one replica for any division of the batch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import division_calls  # noqa: F401  (adds to CASES)
import division_cases  # noqa: F401
import division_models  # noqa: F401
import numpy as np
import pytest
from divided import (
    CASES,
    DIVISIONS,
    LAYOUTS,
    Divided,
    mirrored,
    results,
    shares_of,
)

import samegrad as tf
from samegrad.testing import assert_same_bits

each = pytest.mark.parametrize("name", CASES)


@pytest.fixture(autouse=True)
def _policy_as_before() -> Iterator[None]:
    yield
    tf.keras.config.set_dtype_policy("float32")


@each
def test_a_step_gives_the_bits_of_one_replica(name: str) -> None:
    case = CASES[name]
    for n in case.batches:
        expected = results(case, n, "chunks", 1, "slices")
        for i, (kind, replicas) in enumerate(DIVISIONS):
            found = results(case, n, kind, replicas, LAYOUTS[i % len(LAYOUTS)])
            place = str(shares_of(kind, replicas, n))
            assert_same_bits({place: expected}, {place: found})


@each
def test_explain_promises_the_bits_of_one_replica_without_a_condition(name: str) -> None:
    case = CASES[name]
    divided = Divided(case, case.batches[-1], "cuts", 3, "apart", mirrored)
    first, *reasons = divided.explanation()
    assert first == f"bitwise identical to one replica: {'no:' if case.cautious else 'yes'}"
    assert [reason.partition(": ")[2] for reason in reasons] == [case.cautious] * bool(
        case.cautious
    )


@pytest.mark.parametrize("replicas", [1, 2, 3, 4, 8])
def test_five_rows_of_minus_zero_have_the_sum_of_one_replica(replicas: int) -> None:
    found = results(CASES["rows_of_minus_zero"], 5, "chunks", replicas, "slices")
    assert np.signbit(found["sums[0], step 0"]).all()


# ---- loops of users ----

ROWS = np.random.default_rng(0).normal(size=(250, 6)).astype(np.float32)
LABELS = np.random.default_rng(1).integers(0, 4, 250)
REPLICAS = (2, 3, 5, 8)


def model_of(strategy: Any, **options: Any) -> Any:
    tf.keras.utils.set_random_seed(1)
    with strategy.scope():
        layers = tf.keras.layers
        model = tf.keras.Sequential(
            [layers.Dense(9, "relu"), layers.BatchNormalization(), layers.Dropout(0.3),
             layers.Dense(4, kernel_regularizer="l2")]
        )  # fmt: skip
        model.build((None, 6))
        loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        model.compile("adam", loss, weighted_metrics=["accuracy"], **options)
    return model


@pytest.mark.parametrize(
    "options", [{}, {"steps_per_execution": 3}, {"run_eagerly": True}], ids=str
)
def test_fit_evaluate_and_predict_give_the_bits_of_one_replica(options: dict[str, Any]) -> None:
    weights = np.linspace(0.2, 2.0, 250, dtype=np.float32)

    def trained(replicas: int) -> list[Any]:
        model = model_of(tf.distribute.MirroredStrategy(replicas=replicas), **options)
        history = model.fit(
            ROWS, LABELS, batch_size=64, epochs=2, verbose=0, sample_weight=weights,
            validation_split=0.1,
        ).history  # fmt: skip
        evaluated = model.evaluate(ROWS, LABELS, batch_size=37, verbose=0)
        predicted = model.predict(ROWS, batch_size=37, verbose=0)
        return [*history.values(), evaluated, predicted, *(v.numpy() for v in model.variables)]

    expected = trained(1)
    for replicas in REPLICAS:
        assert_same_bits({replicas: expected}, {replicas: trained(replicas)})


def test_batches_of_64_of_250_rows_give_the_bits_of_one_replica() -> None:
    """In a loop over a distributed dataset; the losses of `run` are reduced outside of it."""

    def trained(replicas: int) -> list[np.ndarray]:
        strategy = tf.distribute.MirroredStrategy(replicas=replicas)
        with strategy.scope():
            w = tf.Variable(np.ones((6, 4), np.float32))
        losses = []

        def step(rows: Any, labels: Any) -> Any:
            with tf.GradientTape() as tape:
                logits = tf.matmul(rows, w)
                each = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
                loss = tf.nn.compute_average_loss(each)
            gradient = tape.gradient(loss, w)
            w.assign_sub(0.1 * tf.distribute.get_replica_context().all_reduce("SUM", gradient))
            return loss, each

        data = tf.data.Dataset.from_tensor_slices((ROWS, LABELS)).batch(64).repeat(2)
        for batch in strategy.experimental_distribute_dataset(data):
            loss, each = strategy.run(step, args=batch)
            losses.append(strategy.reduce("SUM", loss, axis=None).numpy())
            losses.append(strategy.reduce("MEAN", each, axis=0).numpy())
        return [np.array(losses), w.numpy()]

    expected = trained(1)
    for replicas in (*REPLICAS, 4, 32):
        assert_same_bits({replicas: expected}, {replicas: trained(replicas)})
