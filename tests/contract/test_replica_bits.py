"""One model, any number of replicas and threads, bitwise identical to one device."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import samegrad as tf
from samegrad import _core
from samegrad.testing import assert_same_bits

STEPS, BATCH, EXAMPLES = 50, 40, 200


@pytest.fixture(autouse=True)
def _settings_as_before() -> Iterator[None]:
    yield
    tf.config.run_functions_eagerly(False)
    tf.config.threading.set_intra_op_parallelism_threads(0)


def data(dtype: str) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    images = rng.normal(size=(EXAMPLES, 12, 12, 1)).astype(dtype)
    return images, rng.integers(0, 5, EXAMPLES)


# The weights and the loss of each step.
Weights = tuple[list[np.ndarray], list[float]]


def network(dropout: bool) -> Any:
    layers = tf.keras.layers
    model = tf.keras.Sequential(
        [
            layers.Conv2D(8, 3, activation="relu"),
            layers.MaxPooling2D(),
            layers.Flatten(),
            *([layers.Dropout(0.3)] if dropout else []),
            layers.Dense(16, activation="relu"),
            layers.Dense(5),
        ]
    )
    model.build((None, 12, 12, 1))
    return model


def train(replicas: int, batch: int = BATCH, dtype: str = "float32",
          dropout: bool = False, steps: int = STEPS) -> Weights:  # fmt: skip
    tf.random.set_seed(3)
    compute_in(dtype)
    try:
        strategy = tf.distribute.MirroredStrategy(replicas=replicas)
        dataset = tf.data.Dataset.from_tensor_slices(data(dtype)).batch(batch).repeat()
        with strategy.scope():
            model = network(dropout)
            optimizer = tf.keras.optimizers.Adam(1e-2)
            loss_object = tf.keras.losses.SparseCategoricalCrossentropy(
                from_logits=True, reduction="none"
            )

        def step(inputs: tuple[tf.Tensor, tf.Tensor]) -> tf.Tensor:
            images, labels = inputs
            with tf.GradientTape() as tape:
                losses = loss_object(labels, model(images, training=True))
                loss = tf.nn.compute_average_loss(losses)
            gradients = tape.gradient(loss, model.trainable_variables)
            optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
            return loss

        @tf.function
        def distributed(inputs: tuple[tf.Tensor, tf.Tensor]) -> tf.Tensor:
            return strategy.reduce("SUM", strategy.run(step, args=(inputs,)), axis=None)

        batches = iter(strategy.experimental_distribute_dataset(dataset))
        losses = [float(distributed(next(batches))) for _ in range(steps)]
        return [v.numpy() for v in model.trainable_variables], losses
    finally:
        compute_in("float32")


def compute_in(dtype: str) -> None:
    """Layers, losses and optimizers compute in this dtype."""
    tf.keras.config.set_floatx(dtype)
    tf.keras.config.set_dtype_policy(dtype)


@pytest.mark.parametrize("dropout", [False, True])
@pytest.mark.parametrize("replicas", [2, 3, 4, 8])
def test_replicas_give_the_bits_of_one_device(replicas: int, dropout: bool) -> None:
    assert_same_bits(train(1, dropout=dropout), train(replicas, dropout=dropout))


def train_one_operation_at_a_time(steps: int) -> Weights:
    """The same training without a strategy, a trace or a pass: each operation runs when written."""
    tf.random.set_seed(3)
    dataset = tf.data.Dataset.from_tensor_slices(data("float32")).batch(BATCH).repeat()
    model = network(dropout=False)
    optimizer = tf.keras.optimizers.Adam(1e-2)
    loss_object = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True, reduction="none")
    found = []
    for images, labels in dataset.take(steps):
        with tf.GradientTape() as tape:
            loss = tf.nn.compute_average_loss(loss_object(labels, model(images, training=True)))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        found.append(float(loss))
    return [v.numpy() for v in model.trainable_variables], found


@pytest.mark.parametrize("replicas", [1, 2])
@pytest.mark.parametrize("dropout", [False, True])
def test_functions_run_eagerly_give_the_same_bits(replicas: int, dropout: bool) -> None:
    expected = train(replicas, dropout=dropout, steps=10)
    tf.config.run_functions_eagerly(True)
    assert_same_bits(expected, train(replicas, dropout=dropout, steps=10))


def test_operations_one_at_a_time_give_the_bits_of_the_compiled_step() -> None:
    assert_same_bits(train(4, steps=10), train_one_operation_at_a_time(10))


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_threads_change_no_bit(threads: int) -> None:
    expected = train(1)
    tf.config.threading.set_intra_op_parallelism_threads(threads)
    assert_same_bits(expected, train(2))
    assert_same_bits(expected, train(1))


@pytest.mark.parametrize("batch", [1, 3, 4, 7, 13, 16, 21, 37, 97])
def test_a_batch_of_any_size_gives_the_bits_of_one_device(batch: int) -> None:
    expected = train(1, batch=batch, steps=20, dropout=True)
    for replicas in (2, 3, 4, 5, 8):
        assert_same_bits(expected, train(replicas, batch=batch, steps=20, dropout=True))


def test_three_replicas_give_the_bits_of_one_device_in_float64() -> None:
    assert_same_bits(train(1, dtype="float64"), train(3, dtype="float64"))


PASSES = [name for name, option in vars(_core.PlanOptions).items() if isinstance(option, property)]
assert len(PASSES) > 15


@pytest.mark.parametrize("name", PASSES)
def test_a_pass_switched_off_changes_no_bit(name: str) -> None:
    from samegrad._function import trace as _trace

    expected = train(2)
    setattr(_trace.OPTIONS, name, False)
    try:
        assert_same_bits(expected, train(2))
    finally:
        setattr(_trace.OPTIONS, name, True)


def train_on_large_images(inner_loops: bool) -> tuple[list[np.ndarray], str]:
    """Some values are larger than what a tile of examples keeps in cache; and the plan."""
    from samegrad._function import trace as _trace

    rng = np.random.default_rng(2)
    images = rng.normal(size=(7, 40, 40, 2)).astype(np.float32)
    strategy = tf.distribute.MirroredStrategy(replicas=2)
    with strategy.scope():
        filters = tf.Variable(rng.normal(size=(3, 3, 2, 8)).astype(np.float32))
        scale = tf.Variable(rng.normal(size=8).astype(np.float32))

    def step(images: tf.Tensor) -> tf.Tensor:
        with tf.GradientTape() as tape:
            y = tf.nn.relu(tf.nn.conv2d(images, filters, strides=1, padding="VALID")) * scale
            peaks = tf.reduce_max(tf.nn.softmax(y), axis=[1, 2])
            loss = tf.nn.compute_average_loss(tf.reduce_mean(peaks * peaks, axis=1))
        variables = [filters, scale]
        for v, g in zip(variables, tape.gradient(loss, variables), strict=True):
            v.assign_sub(tf.distribute.get_replica_context().all_reduce("SUM", g))
        return loss

    (batch,) = strategy.experimental_distribute_dataset(
        tf.data.Dataset.from_tensor_slices(images).batch(7)
    )
    _trace.OPTIONS.inner_loops = inner_loops
    try:
        losses = [strategy.run(step, args=(batch,)) for _ in range(3)]
        plan = str(strategy.explain(step, args=(batch,)))
    finally:
        _trace.OPTIONS.inner_loops = True
    shares = [share.numpy() for loss in losses for share in loss.values]
    return [filters.numpy(), scale.numpy(), *shares], plan


def test_inner_loops_are_entered_and_change_no_bit() -> None:
    found, plan = train_on_large_images(inner_loops=True)
    expected, other = train_on_large_images(inner_loops=False)
    assert "one example at a time" in plan
    assert "one example at a time" not in other
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_array_equal(a, b)


def table_after(replicas: int, deferred: bool, steps: int = 5) -> np.ndarray:
    """A big table whose rows are looked up by sentences, some words occurring often."""
    from samegrad._function import trace as _trace

    rng = np.random.default_rng(1)
    words = np.minimum(rng.geometric(0.01, size=(BATCH, 7)) - 1, 2999).astype(np.int32)
    aims = rng.normal(size=(BATCH, 7, 8)).astype(np.float32)
    strategy = tf.distribute.MirroredStrategy(replicas=replicas)
    with strategy.scope():
        table = tf.Variable(rng.normal(size=(3000, 8)).astype(np.float32))
        optimizer = tf.keras.optimizers.SGD(0.5)

    def step(words: tf.Tensor, aims: tf.Tensor) -> None:
        with tf.GradientTape() as tape:
            errors = tf.square(tf.gather(table, words) - aims)
            loss = tf.nn.compute_average_loss(tf.reduce_sum(errors, axis=[1, 2]))
        optimizer.apply_gradients([(tape.gradient(loss, table), table)])

    data = tf.data.Dataset.from_tensor_slices((words, aims)).batch(BATCH).repeat(steps)
    _trace.OPTIONS.defer_products = deferred
    try:
        for batch in strategy.experimental_distribute_dataset(data):
            strategy.run(step, args=batch)
    finally:
        _trace.OPTIONS.defer_products = True
    return table.numpy()


def test_the_rows_of_a_big_table_have_the_bits_of_one_device() -> None:
    expected = table_after(1, deferred=True)
    for replicas, deferred in [(1, False), (2, True), (2, False), (4, True), (8, True)]:
        np.testing.assert_array_equal(table_after(replicas, deferred), expected)
