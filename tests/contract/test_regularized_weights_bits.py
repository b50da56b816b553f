"""Weight regularizers: bitwise identical to one device, for any number of replicas."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import samegrad as tf
from samegrad.testing import assert_same_bits

Loss = Callable[[Any], Any]
Program = Callable[[], tuple[list[Any], Loss]]
Result = tuple[list[np.ndarray], list[float]]
EXAMPLES, WIDTH, HIDDEN = 96, 7, 13
layers, regularizers = tf.keras.layers, tf.keras.regularizers


@pytest.fixture(autouse=True)
def _settings_as_before() -> Iterator[None]:
    yield
    tf.config.run_functions_eagerly(False)


def data() -> np.ndarray:
    rng = np.random.default_rng(7)
    rows = rng.normal(size=(EXAMPLES, WIDTH)) * np.exp(rng.normal(size=(EXAMPLES, 1)))
    return rows.astype(np.float32)


def weight(*shape: int, seed: int = 0, dtype: str = "float32") -> Any:
    numbers = np.random.default_rng(seed).normal(size=shape) * 0.3
    return tf.Variable(numbers.astype(dtype))


def fit(rows: Any, w: Any) -> Any:
    return tf.nn.compute_average_loss(tf.reduce_sum(tf.tanh(rows @ w) ** 2, axis=1))


scaled = tf.nn.scale_regularization_loss


def network(regularizer: Any) -> Program:
    def program() -> tuple[list[Any], Loss]:
        tf.random.set_seed(3)
        model = tf.keras.Sequential(
            [
                layers.Dense(HIDDEN, activation="tanh", kernel_regularizer=regularizer),
                layers.Dense(1, kernel_regularizer=regularizer, bias_regularizer=regularizer),
            ]
        )
        model.build((None, WIDTH))

        def loss(rows: Any) -> Any:
            return tf.nn.compute_average_loss(
                tf.squeeze(model(rows), axis=1) ** 2
            ) + tf.nn.scale_regularization_loss(model.losses)

        return model.trainable_variables, loss

    return program


def multiplied() -> tuple[list[Any], Loss]:
    w = weight(WIDTH, HIDDEN)
    return [w], lambda rows: (fit(rows, w) + scaled(0.01 * tf.reduce_sum(w * w))) * 1024.0 * 0.3


def used_twice() -> tuple[list[Any], Loss]:
    w = weight(WIDTH, HIDDEN)

    def loss(rows: Any) -> Any:
        decoded = tf.matmul(tf.tanh(rows @ w), w, transpose_b=True)
        errors = tf.nn.compute_average_loss(tf.reduce_sum((decoded - rows) ** 2, axis=1))
        penalties = [0.01 * tf.reduce_sum(w * w), 0.003 * tf.reduce_sum(tf.abs(w))]
        return errors + scaled(penalties) - scaled(0.1 * tf.reduce_sum(tf.sin(w[1:, ::2])))

    return [w], loss


def without_data() -> tuple[list[Any], Loss]:
    w, lonely = weight(WIDTH, HIDDEN), weight(HIDDEN, seed=1)
    return [w, lonely], lambda rows: fit(rows, w) + scaled(0.1 * tf.reduce_sum(lonely**4))


def normalized() -> tuple[list[Any], Loss]:
    # Spectral and orthogonal penalties, through products, reshapes and choices.
    w = weight(WIDTH, HIDDEN)

    def loss(rows: Any) -> Any:
        gram = tf.matmul(w, w, transpose_b=True) - tf.eye(WIDTH)
        long = tf.reduce_max(tf.abs(tf.reshape(w, [-1]))) * 0.1
        flat = tf.where(tf.transpose(w) > 0.1, tf.transpose(w), tf.zeros((HIDDEN, WIDTH)))
        return fit(rows, w) + scaled([0.1 * tf.norm(gram), long, 0.2 * tf.reduce_mean(flat)])

    return [w], loss


def proximal() -> tuple[list[Any], Loss]:
    # A loss of Keras between weights and what they were.
    w, before = weight(WIDTH, HIDDEN), weight(WIDTH, HIDDEN, seed=4)
    distance = tf.keras.losses.MeanSquaredError(reduction="sum")
    return [w], lambda rows: fit(rows, w) + scaled(0.3 * distance(before, w))


def beside_activities() -> tuple[list[Any], Loss]:
    w = weight(WIDTH, HIDDEN)

    def loss(rows: Any) -> Any:
        activity = 1e-3 * tf.reduce_sum(tf.abs(rows @ w))
        return fit(rows, w) + scaled([activity, 0.01 * tf.reduce_sum(w * w), 0.5])

    return [w], loss


def of_second_order() -> tuple[list[Any], Loss]:
    w = weight(WIDTH, HIDDEN)

    def loss(rows: Any) -> Any:
        with tf.GradientTape() as tape:
            penalty = scaled(0.1 * tf.reduce_sum(tf.sin(w * w)))
        slope = tape.gradient(penalty, w)
        return fit(rows, w) + tf.reduce_sum(slope * tf.cos(w))

    return [w], loss


def in_branches() -> tuple[list[Any], Loss]:
    w = weight(WIDTH, HIDDEN)

    def loss(rows: Any) -> Any:
        penalty = tf.cond(
            tf.reduce_sum(w) > 0.0,
            lambda: scaled(0.01 * tf.reduce_sum(w * w)),
            lambda: scaled(0.02 * tf.reduce_sum(tf.abs(w))) + fit(rows, w * 0.5),
        )
        _, total = tf.while_loop(
            lambda i, total: i < 3,
            lambda i, total: (i + 1, total * 0.5 + scaled(0.01 * tf.reduce_sum(w**4))),
            (tf.constant(0), fit(rows, w)),
        )
        return total + penalty

    return [w], loss


def of_16_bits() -> tuple[list[Any], Loss]:
    w = weight(WIDTH, HIDDEN)

    def loss(rows: Any) -> Any:
        low = tf.cast(w, tf.bfloat16)
        return fit(rows, w) + tf.cast(scaled(tf.reduce_sum(low * low)), tf.float32)

    return [w], loss


PROGRAMS: dict[str, Program] = {
    "l1": network(regularizers.L1(0.01)),
    "l2": network(regularizers.L2(0.01)),
    "l1_l2": network(regularizers.L1L2(0.01, 0.02)),
    **{
        p.__name__: p
        for p in [
            multiplied, used_twice, without_data, normalized, proximal, beside_activities,
            of_second_order, in_branches, of_16_bits,
        ]
    },
}  # fmt: skip
# Losses of a replica's own examples are divided by the number of replicas.
SAME_LOSS = [name for name in PROGRAMS if name != "beside_activities"]
# A loss of Keras is a share before it is multiplied: thirds are rounded on each replica.
SAME_LOSS_IN_THIRDS = [name for name in SAME_LOSS if name != "proximal"]


def sgd() -> Any:
    return tf.keras.optimizers.SGD(1e-2, momentum=0.9)


def clipped() -> Any:
    return tf.keras.optimizers.Adam(1e-2, global_clipnorm=0.1)


def train(
    program: Program,
    replicas: int,
    batch: int = 48,
    optimizer: Callable[[], Any] = sgd,
    traced: bool = True,
    steps: int = 4,
) -> Result:
    strategy = tf.distribute.MirroredStrategy(replicas=replicas)
    with strategy.scope():
        variables, loss_of = program()
        chosen = optimizer()

    def step(rows: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = loss_of(rows)
        chosen.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))
        return loss

    def distributed(rows: Any) -> Any:
        return strategy.reduce("SUM", strategy.run(step, args=(rows,)), axis=None)

    run = tf.function(distributed) if traced else distributed
    dataset = tf.data.Dataset.from_tensor_slices(data()).batch(batch).repeat()
    batches = iter(strategy.experimental_distribute_dataset(dataset))
    losses = [float(run(next(batches))) for _ in range(steps)]
    assert all(np.isfinite(losses)) and len(set(losses)) == steps
    return [v.numpy() for v in variables], losses


@pytest.mark.parametrize("name", SAME_LOSS)
def test_replicas_give_the_bits_of_one_device(name: str) -> None:
    one = train(PROGRAMS[name], 1)
    for replicas in (2, 3, 8):
        assert_same_bits(one, train(PROGRAMS[name], replicas))


@pytest.mark.parametrize("name", SAME_LOSS_IN_THIRDS)
@pytest.mark.parametrize("batch", [48, 24, 12])
def test_three_replicas_do(name: str, batch: int) -> None:
    assert_same_bits(train(PROGRAMS[name], 1, batch), train(PROGRAMS[name], 3, batch))


@pytest.mark.parametrize("name", SAME_LOSS)
def test_uneven_and_empty_shares_do(name: str) -> None:
    for batch in (7, 37):
        one = train(PROGRAMS[name], 1, batch)
        for replicas in (2, 3, 4, 5, 6):
            assert_same_bits(one, train(PROGRAMS[name], replicas, batch))
    one = train(PROGRAMS[name], 1, batch=2)
    assert_same_bits(one, train(PROGRAMS[name], 4, batch=2))


@pytest.mark.parametrize("name", SAME_LOSS)
def test_limits_by_the_norm_of_the_summed_gradient_do(name: str) -> None:
    one = train(PROGRAMS[name], 1, optimizer=clipped)
    for replicas in (3, 4):
        assert_same_bits(one, train(PROGRAMS[name], replicas, optimizer=clipped))


@pytest.mark.parametrize("name", PROGRAMS)
def test_runs_outside_a_function_give_the_bits_of_those_in_one(name: str) -> None:
    for replicas in (1, 3):
        expected = train(PROGRAMS[name], replicas)
        found = train(PROGRAMS[name], replicas, traced=False)
        if name == "in_branches":  # parts that leave a loop as parts are summed by reduce outside
            np.testing.assert_allclose(found[1], expected[1], rtol=1e-6)
            found = (found[0], expected[1])
        assert_same_bits(expected, found)


@pytest.mark.parametrize("name", SAME_LOSS)
def test_explain_says_that_they_do(name: str) -> None:
    strategy = tf.distribute.MirroredStrategy(replicas=4)
    with strategy.scope():
        variables, loss_of = PROGRAMS[name]()
        optimizer = sgd()

    def step(rows: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = loss_of(rows)
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))
        return tf.distribute.get_replica_context().all_reduce("sum", loss)

    dataset = tf.data.Dataset.from_tensor_slices(data()).batch(48)
    batch = next(iter(strategy.experimental_distribute_dataset(dataset)))
    plan = strategy.explain(step, args=(batch,))
    assert plan.bitwise, plan.reasons
    assert "replica_share" not in str(plan)
