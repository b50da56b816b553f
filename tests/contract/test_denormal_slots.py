"""Optimizers store zeros in place of denormal numbers, and update weights by none.

A slot that holds denormal numbers is, after a step, what a slot with zeros there is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from public_classes import public_classes
from test_every_optimizer import make

import samegrad as tf

optimizers = tf.keras.optimizers
NAMES = public_classes(optimizers, optimizers.Optimizer)
SHAPE = (512, 64)  # larger than a cache of the first level: gradients are made block by block
MOVED = (3, 77)  # rows with a gradient, in their last column
WITH_MOMENTUM = ("SGD", "RMSprop", "LossScaleOptimizer")
READ_FIRST = ("Ftrl", "Lion")  # a slot that is not yet updated decides about the update of a weight
TINY = np.finfo(np.float32).tiny


def _given(w: Any, rows: Any) -> Any:
    gradient = np.zeros(SHAPE, np.float32)
    gradient[list(MOVED), -1] = 1e-3
    return tf.constant(gradient) / tf.cast(
        tf.distribute.get_replica_context().num_replicas_in_sync, "float32"
    )


def _last_column() -> Any:
    return tf.constant(np.eye(SHAPE[1], dtype=np.float32)[-1] * 1e-3)


def _of_product(w: Any, rows: Any) -> Any:
    with tf.GradientTape() as tape:
        product = tf.matmul(tf.one_hot(rows, SHAPE[0]), w)
        loss = tf.nn.compute_average_loss(tf.reduce_sum(product * _last_column(), axis=1))
    return tape.gradient(loss, w)


def _of_rows(w: Any, rows: Any) -> Any:
    with tf.GradientTape() as tape:
        table = tf.gather(w, rows)
        loss = tf.nn.compute_average_loss(tf.reduce_sum(table * _last_column(), axis=1))
    return tape.gradient(loss, w)


KINDS: dict[str, Callable[[Any, Any], Any]] = {
    "given": _given, "dense": _of_product, "sparse": _of_rows
}  # fmt: skip


def slots_of(optimizer: Any) -> list[Any]:
    """Return the slots of floats, without the learning rate and the scale of losses."""
    kept = ("learning_rate", "dynamic_scale")
    return [v for v in optimizer.variables if "float" in v.dtype and not v.path.endswith(kept)]


def seeds(shape: tuple[int, ...], denormal: float) -> np.ndarray[Any, Any]:
    """Denormal numbers of both signs, but for every third one and the last column."""
    values = np.resize([denormal, -denormal, 0.25], shape).astype(np.float32)
    values[..., -1] = 0.25
    return values


def step(
    name: str, kind: str, replicas: int, denormal: float, **options: Any
) -> tuple[list[Any], list[Any]]:
    """The slots before and after a step, and the weights."""
    strategy = tf.distribute.MirroredStrategy(replicas=replicas)
    with strategy.scope():
        w = tf.keras.Variable(np.full(SHAPE, 0.5, np.float32), name="b")
        optimizer = make(name, **{"learning_rate": 0.1, **options})
        optimizer.build([w])
    slots = slots_of(optimizer)
    for slot in slots:
        slot.assign(seeds(tuple(slot.shape), denormal) if len(slot.shape) else 0.5)
    before = [slot.numpy() for slot in slots]

    def update(rows: Any) -> None:
        gradient = KINDS[kind](w, rows)
        optimizer.apply_gradients([(optimizer.scale_loss(gradient), w)])

    run = tf.function(lambda rows: strategy.run(update, args=(rows,)))
    dataset = tf.data.Dataset.from_tensor_slices(np.array(MOVED * 3)).batch(len(MOVED) * 3)
    for rows in strategy.experimental_distribute_dataset(dataset):
        run(rows)
    return before, [value.numpy() for value in (*slots, w)]


def denormals_in(value: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    size = np.abs(value)
    return (size > 0) & (size < TINY)


@pytest.mark.parametrize("replicas", [1, 3])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", NAMES)
def test_slots_become_zeros_where_they_would_be_denormal(
    name: str, kind: str, replicas: int
) -> None:
    options = {"momentum": 0.9} if name in WITH_MOMENTUM else {}
    before, found = step(name, kind, replicas, 1e-40, **options)
    _, expected = step(name, kind, replicas, 0.0, **options)
    assert before
    ordinary = ~denormals_in(seeds(SHAPE, 1e-40))
    for slot, after, zeros in zip([*before, None], found, expected, strict=True):
        same = ordinary if name in READ_FIRST else np.array(True)
        if name == "LazyAdam" and slot is not None:  # other rows stay as they are
            same = np.isin(np.arange(SHAPE[0]), MOVED)[:, None]
            np.testing.assert_array_equal(np.where(same, 0, after), np.where(same, 0, slot))
        np.testing.assert_array_equal(np.where(same, after, 0), np.where(same, zeros, 0))
        # A product that Adafactor divides by: zero would make NaN of a weight.
        if not (name == "Adafactor" and after.shape == SHAPE):
            assert not denormals_in(np.where(same | (name in READ_FIRST), after, 0)).any()


@pytest.mark.parametrize("name", ["Adam", "RMSprop"])
def test_averages_of_weights_become_zeros(name: str) -> None:
    w = tf.keras.Variable(np.zeros((2, 3), np.float32))
    optimizer = make(name, learning_rate=0.1, use_ema=True)
    optimizer.build([w])
    optimizer.iterations.assign(3)
    average = next(slot for slot in optimizer.variables if slot.path.endswith("average"))
    average.assign(np.full((2, 3), TINY, np.float32))
    optimizer.apply([tf.zeros((2, 3))], [w])
    np.testing.assert_array_equal(average.numpy(), 0)


CASES: list[tuple[Any, dict[str, Any]]] = [
    (optimizers.Adam, {"amsgrad": True}),
    (optimizers.SGD, {}),
    (optimizers.SGD, {"momentum": 0.9}),
    (optimizers.SGD, {"momentum": 0.9, "nesterov": True}),
    (optimizers.LazyAdam, {}),
]


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "float16"])
@pytest.mark.parametrize(("cls", "options"), CASES)
def test_weights_keep_denormal_numbers_and_get_no_denormal_update(
    cls: Any, options: dict[str, Any], dtype: str
) -> None:
    least = float(np.finfo("float64" if dtype == "float64" else "float32").tiny)
    small = np.array([least / 4, -least / 4, least * 2])
    w = tf.keras.Variable(small, dtype=dtype)
    optimizer = cls(1.0, **options)
    optimizer.build([w])
    before = tf.convert_to_tensor(w).numpy()
    optimizer.apply([tf.cast(tf.constant(small / 4), dtype)], [w])
    np.testing.assert_array_equal(tf.convert_to_tensor(w).numpy(), before)
    if dtype == "float16":  # 2**-24 is an ordinary number of float32
        w.assign([1.0, 1.0, 2.0**-20])
        optimizer.apply([tf.constant([0.0, 0.0, 2.0**-24], dtype)], [w])
        assert cls is not optimizers.SGD or float(w[2]) != 2.0**-20


def test_gradients_that_are_accumulated_keep_denormal_numbers() -> None:
    w = tf.keras.Variable(np.ones(2, np.float32))
    optimizer = optimizers.SGD(1.0, gradient_accumulation_steps=2)
    optimizer.apply([tf.constant([TINY / 2, 1.0])], [w])
    held = next(v for v in optimizer.variables if v.path.endswith("gradient_accumulator"))
    np.testing.assert_array_equal(held.numpy(), [TINY / 2, 1.0])
    optimizer.apply([tf.constant([TINY / 2, 0.0])], [w])
    np.testing.assert_array_equal(w.numpy(), [1.0, 0.5])


def test_not_a_number_infinity_and_zero_keep_their_bits() -> None:
    values = np.array([0.0, -0.0, TINY, -TINY, np.inf, -np.inf, np.nan, 3.0], np.float32)
    slot = tf.keras.Variable(np.zeros(8, np.float32))
    optimizer = optimizers.SGD(1.0)
    optimizer.assign(slot, values)
    assert slot.numpy().tobytes() == values.tobytes()
    optimizer.assign(slot, [TINY / 2, -TINY / 2, -1e-45, 1e-45, 1.0, 1.0, 1.0, 1.0])
    np.testing.assert_array_equal(np.signbit(slot.numpy()[:4]), [False, True, True, False])
    np.testing.assert_array_equal(slot.numpy(), [0, 0, 0, 0, 1, 1, 1, 1])


def test_an_optimizer_of_the_user_stores_zeros_in_its_own_slots() -> None:
    class Momentum(optimizers.Optimizer):  # type: ignore[misc]
        def build(self, variables: Any) -> None:
            super().build(variables)
            self.means = [tf.Variable(tf.fill(v.shape, TINY)) for v in variables]

        def update_step(self, gradient: Any, variable: Any, learning_rate: Any) -> None:
            mean = self.means[self._get_variable_index(variable)]
            self.assign_sub(mean, mean * 0.5)
            self.assign_add(variable, mean)

    w = tf.Variable([TINY / 2, 1.0])
    optimizer = Momentum(0.1)
    optimizer.apply_gradients([(tf.zeros(2), w)])
    np.testing.assert_array_equal(optimizer.means[0], [0, 0])
    np.testing.assert_array_equal(w, np.array([TINY / 2, 1.0], np.float32))
