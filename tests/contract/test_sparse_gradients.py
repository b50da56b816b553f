"""Gradients of gathers stay rows whatever reads them: other gradients, norms, any optimizer."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from plans import steps_of
from sparse_training import (  # noqa: F401
    ALL_ROWS,
    REDUCED,
    SPARSE,
    Loss,
    assert_sparse_as_dense,
    many_times,
    numbers,
    settings_as_before,
    squares,
    train,
)

import samegrad as tf
from samegrad._function import trace as _trace
from samegrad.testing import assert_same_bits

ROWS, WIDTH = 1200, 17  # more than are reduced in one go
Make = Callable[[], Any]


def table(rows: int = ROWS, width: int = WIDTH) -> np.ndarray:
    return np.random.default_rng(0).normal(size=(rows, width)).astype(np.float32)


def twice(variable: Any, ids: Any) -> Any:
    return squares(variable, ids) + 0.5 * squares(variable, (ids * 7 + 1) % ROWS)


def tied(variable: Any, ids: Any) -> Any:
    rows = tf.gather(variable, ids)
    return tf.reduce_sum(tf.tanh(tf.matmul(rows, variable, transpose_b=True)), axis=1)


def regularized(variable: Any, ids: Any) -> Any:
    return squares(variable, ids) + 0.01 * tf.reduce_sum(tf.square(variable))


def sgd(**options: Any) -> Make:
    return lambda: tf.keras.optimizers.SGD(0.1, **options)


def lazy(**options: Any) -> Make:
    return lambda: tf.keras.optimizers.LazyAdam(0.1, **options)


def assert_no_dense_gradient(plan: str) -> None:
    """No step by itself makes the gradient of a gather or adds up that of the replicas."""
    for title in ("once", "block by block", "all-reduce"):
        assert not any("segment_sum" in step for step in steps_of(plan, title))


# ---- a table that is used twice ----


class Translator:
    """An encoder and a decoder that share a layer of embeddings."""

    def __init__(self, make: Make, replicas: int) -> None:
        self.strategy = tf.distribute.MirroredStrategy(replicas=replicas)
        with self.strategy.scope():
            self.embedding = tf.keras.layers.Embedding(ROWS, WIDTH)
            self.embedding.build((None,))
            self.embedding.embeddings.assign(table())
            self.optimizer = make()

        def step(source: Any, target: Any) -> None:
            with tf.GradientTape() as tape:
                read = tf.reduce_sum(self.embedding(source), axis=1)
                said = tf.reduce_mean(self.embedding(target), axis=1)
                loss = tf.nn.compute_average_loss(tf.reduce_sum(read * said, axis=1))
            weights = self.embedding.trainable_variables
            gradients = tape.gradient(loss, weights)
            self.optimizer.apply_gradients(zip(gradients, weights, strict=True))

        self.step = tf.function(lambda batch: self.strategy.run(step, args=batch))

    def train(self, examples: int = 32) -> tuple[list[np.ndarray], str]:
        rng = np.random.default_rng(1)
        columns = (rng.integers(0, ROWS, (examples, 5)), rng.integers(0, 9, (examples, 8)))
        data = tf.data.Dataset.from_tensor_slices(columns).batch(examples).repeat(3)
        for batch in self.strategy.experimental_distribute_dataset(data):
            self.step(batch)
        plan = "" if tf.config.functions_run_eagerly() else str(self.step.explain(batch))
        return [v.numpy() for v in [self.embedding.embeddings, *self.optimizer.variables]], plan


@pytest.mark.parametrize(
    ("make", "titles"),
    [
        (sgd(), [SPARSE]),
        (lazy(), [SPARSE]),
        (sgd(global_clipnorm=0.01), [REDUCED, SPARSE]),
        (lazy(clipnorm=0.01), [REDUCED, SPARSE]),
        (lambda: tf.keras.optimizers.Adam(0.1, global_clipnorm=0.01), [REDUCED, ALL_ROWS]),
    ],
    ids=["sgd", "lazy adam", "clipped sgd", "clipped lazy adam", "clipped adam"],
)
def test_a_layer_that_two_inputs_share_has_a_sparse_gradient(make: Make, titles: list[str]) -> None:
    expected = None
    for replicas in (1, 2, 3):
        found, plan = Translator(make, replicas).train()
        for title in titles:
            (step,) = steps_of(plan, title)
            assert step.count("segment_sum") == 2
        assert_no_dense_gradient(plan)
        expected = expected or found
        assert_same_bits(found, expected)
    _trace.OPTIONS.sparse_rows = False
    assert_same_bits(Translator(make, 2).train()[0], expected)
    tf.config.run_functions_eagerly(True)
    assert_same_bits(Translator(make, 2).train()[0], expected)


# ---- norms ----


@pytest.mark.parametrize("replicas", [1, 2, 3, 4])
@pytest.mark.parametrize("limit", [0.01, 1e6], ids=["clips", "does not clip"])
@pytest.mark.parametrize("clip", ["clipnorm", "global_clipnorm"])
@pytest.mark.parametrize("make", [sgd, lazy])
def test_the_norm_is_that_of_the_rows(make: Any, clip: str, limit: float, replicas: int) -> None:
    assert_sparse_as_dense(
        REDUCED, SPARSE, make=make(**{clip: limit}), replicas=replicas, table=table()
    )


@pytest.mark.parametrize("shape", [(20_000, 1), (40_000,), (3000, 7), (500, 1024), (40, 3000)])
@pytest.mark.parametrize("replicas", [1, 4])
def test_rows_of_any_length_lie_in_their_blocks(shape: Any, replicas: int) -> None:
    def loss(variable: Any, ids: Any) -> Any:
        rows = tf.gather(variable, ids)
        return tf.reduce_sum(tf.reshape(rows * rows, [-1, max(1, int(np.prod(shape[1:])))]), axis=1)

    values = np.random.default_rng(2).normal(size=shape).astype(np.float32)
    ids = many_times(60, shape[0])
    ids[:2] = 0, shape[0] - 1
    assert_sparse_as_dense(
        REDUCED,
        SPARSE,
        make=sgd(global_clipnorm=0.5),
        loss=loss,
        table=values,
        ids=ids,
        replicas=replicas,
    )


@pytest.mark.parametrize("examples", [1, 2, 3, 13, 1000])
def test_the_norm_of_uneven_and_empty_shares(examples: int) -> None:
    for replicas in (1, 3, 8):
        assert_sparse_as_dense(
            REDUCED,
            SPARSE,
            make=sgd(clipnorm=0.1),
            ids=many_times(examples),
            table=table(),
            replicas=replicas,
        )


@pytest.mark.parametrize("threads", [1, 2, 3, 7])
def test_threads_change_no_bit(threads: int) -> None:
    values = table(9000, 64)
    ids = many_times(5000, 9000)

    def clipped() -> list[np.ndarray]:
        return train(2, ids, make=sgd(global_clipnorm=0.1), table=values)[0]

    def moved() -> list[np.ndarray]:
        return train(2, ids, make=lambda: tf.keras.optimizers.Adam(0.1), table=values)[0]

    expected = clipped() + moved()
    tf.config.threading.set_intra_op_parallelism_threads(threads)
    assert_same_bits(clipped() + moved(), expected)


@pytest.mark.parametrize("bad", [np.nan, np.inf, 3e38])
@pytest.mark.parametrize("replicas", [1, 2])
def test_a_norm_that_is_no_number_reaches_every_row(bad: float, replicas: int) -> None:
    def loss(variable: Any, ids: Any) -> Any:
        return tf.reduce_sum(tf.gather(variable, ids), axis=1) * bad

    found = assert_sparse_as_dense(
        REDUCED, make=sgd(global_clipnorm=1.0), table=table(), loss=loss, replicas=replicas, steps=1
    )
    assert np.isnan(found[0]).all()


def test_a_table_with_everything_in_it() -> None:
    for replicas in (1, 4):
        values = numbers(rows=ROWS)
        assert_sparse_as_dense(
            REDUCED, SPARSE, make=sgd(clipnorm=0.1), table=values, replicas=replicas
        )


def functional(kind: str) -> tuple[np.ndarray, str]:
    """Clipping in the program's own words; the table and the plan."""
    variable, other = tf.Variable(table()), tf.Variable([1.0, 2.0])

    @tf.function
    def step(ids: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(squares(variable, ids)) * tf.reduce_sum(other)
        gradients = tape.gradient(loss, [variable, other])
        if kind == "global":
            gradients, length = tf.clip_by_global_norm(gradients, 0.5)
        elif kind == "one":
            gradients = [tf.clip_by_norm(g, 0.5) for g in gradients]
            length = tf.norm(gradients[0])
        else:
            length = tf.reduce_max(tf.abs(gradients[0])) + tf.reduce_min(gradients[0])
            gradients = [g / length for g in gradients]
        variable.assign_sub(0.1 * gradients[0])
        other.assign_sub(0.1 * gradients[1])
        return length

    ids = tf.constant(many_times())
    lengths = [np.asarray(step(ids)) for _ in range(3)]
    return np.append(variable.numpy(), lengths), str(step.explain(ids))


@pytest.mark.parametrize("kind", ["global", "one", "extremes"])
def test_functions_of_norms_see_rows(kind: str) -> None:
    found, plan = functional(kind)
    assert steps_of(plan, REDUCED) and steps_of(plan, SPARSE)
    assert_no_dense_gradient(plan)
    _trace.OPTIONS.sparse_rows = False
    assert_same_bits([found], [functional(kind)[0]])


def test_no_examples_have_no_norm() -> None:
    variable = tf.Variable(table())

    @tf.function
    def step(ids: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(squares(variable, ids))
        (clipped,), length = tf.clip_by_global_norm([tape.gradient(loss, variable)], 0.5)
        variable.assign_sub(clipped)
        return length

    empty = tf.constant(np.zeros(0, np.int64))
    assert float(step(empty)) == 0.0
    assert steps_of(str(step.explain(empty)), REDUCED)
    np.testing.assert_array_equal(variable, table())


# ---- optimizers that move every row ----

DENSE_OPTIMIZERS: dict[str, Make] = {
    "momentum": sgd(momentum=0.9),
    "nesterov": sgd(momentum=0.9, nesterov=True),
    "decayed sgd": sgd(weight_decay=0.01),
    "averaged sgd": sgd(use_ema=True),
    "adam": lambda: tf.keras.optimizers.Adam(0.1),
    "amsgrad": lambda: tf.keras.optimizers.Adam(0.1, amsgrad=True),
    "clipped adam": lambda: tf.keras.optimizers.Adam(0.1, global_clipnorm=0.1),
    "adamw": lambda: tf.keras.optimizers.AdamW(0.1),
    "nadam": lambda: tf.keras.optimizers.Nadam(0.1),
    "adamax": lambda: tf.keras.optimizers.Adamax(0.1),
    "rmsprop": lambda: tf.keras.optimizers.RMSprop(0.1),
    "centered rmsprop": lambda: tf.keras.optimizers.RMSprop(0.1, momentum=0.9, centered=True),
    "adagrad": lambda: tf.keras.optimizers.Adagrad(0.1),
    "adadelta": lambda: tf.keras.optimizers.Adadelta(0.1),
    "ftrl": lambda: tf.keras.optimizers.Ftrl(0.1),
    "lion": lambda: tf.keras.optimizers.Lion(0.1),
    "lamb": lambda: tf.keras.optimizers.Lamb(0.1),
}


@pytest.mark.parametrize("replicas", [1, 2, 3])
@pytest.mark.parametrize("name", DENSE_OPTIMIZERS)
def test_optimizers_that_move_every_row_read_a_sparse_gradient(name: str, replicas: int) -> None:
    make = DENSE_OPTIMIZERS[name]
    found = assert_sparse_as_dense(
        ALL_ROWS, make=make, loss=twice, table=table(), replicas=replicas
    )
    again, plan = train(make=make, loss=twice, table=table())
    assert_no_dense_gradient(plan)
    if name != "lamb":  # which asks for the norm of the table itself
        assert not any(f"({ROWS}, {WIDTH})" in step for step in steps_of(plan, "once"))
    assert_same_bits(found, again)
    tf.config.run_functions_eagerly(True)
    assert_same_bits(train(replicas, make=make, loss=twice, table=table())[0], found)


# ---- gradients of all rows ----


@pytest.mark.parametrize("replicas", [1, 2, 3])
@pytest.mark.parametrize("loss", [tied, regularized])
@pytest.mark.parametrize("name", ["sgd", "adam", "clipped adam"])
def test_rows_are_added_into_a_dense_gradient(loss: Loss, name: str, replicas: int) -> None:
    makes = {"sgd": sgd(), **DENSE_OPTIMIZERS}
    titles = [ALL_ROWS] + [REDUCED] * ("clipped" in name)
    assert_sparse_as_dense(*titles, make=makes[name], loss=loss, table=table(), replicas=replicas)
    _, plan = train(replicas, make=makes[name], loss=loss, table=table())
    assert_no_dense_gradient(plan)


# ---- memory and time ----

PROGRAM = """
import resource, sys, time
import numpy as np
import samegrad as tf
kind, rows = sys.argv[1], int(sys.argv[2])
strategy = tf.distribute.MirroredStrategy(replicas=4)
with strategy.scope():
    table = tf.Variable(tf.zeros([rows, 64]))
    optimizer = {
        "sgd": lambda: tf.keras.optimizers.SGD(0.1, global_clipnorm=0.5),
        "lazy": lambda: tf.keras.optimizers.LazyAdam(0.1, global_clipnorm=0.5),
        "adam": lambda: tf.keras.optimizers.Adam(0.1, global_clipnorm=0.5),
        "tied": lambda: tf.keras.optimizers.Adam(0.1, global_clipnorm=0.5),
    }[kind]()

def step(ids):
    with tf.GradientTape() as tape:
        a, b = tf.gather(table, ids), tf.gather(table, (ids * 7 + 1) % rows)
        losses = tf.reduce_sum((a + 1) * (b + 2), axis=1)
        if kind == "tied":
            losses += tf.reduce_sum(tf.matmul(a, table, transpose_b=True), axis=1)
        loss = tf.nn.compute_average_loss(losses)
    optimizer.apply_gradients([(tape.gradient(loss, table), table)])

run = tf.function(lambda batch: strategy.run(step, args=(batch,)))
data = tf.data.Dataset.from_tensor_slices(np.arange(16)).batch(16)
(batch,) = strategy.experimental_distribute_dataset(data)
optimizer.build([table])
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
run(batch)
least = 1e9
for _ in range(20):
    start = time.perf_counter()
    run(batch)
    least = min(least, time.perf_counter() - start)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before, least)
"""


def measured(kind: str, rows: int) -> tuple[int, float]:
    """What steps take: KiB more than there were, seconds of the fastest."""
    command = [sys.executable, "-c", PROGRAM, kind, str(rows)]
    out = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    return int(out[0]), float(out[1])


@pytest.mark.parametrize("kind", ["sgd", "lazy"])
def test_clipped_steps_of_a_table_that_is_used_twice_take_what_they_touch(kind: str) -> None:
    (_, small), (more, large) = measured(kind, 4_000), measured(kind, 400_000)
    assert more < 0.2 * 400_000 * 64 * 4 / 1024
    assert large < 4 * small + 1e-3  # 100 times the rows; the logarithm of it, and noise


@pytest.mark.parametrize(("kind", "tables"), [("adam", 0.3), ("tied", 1.5)])
def test_no_replica_has_a_dense_gradient(kind: str, tables: float) -> None:
    """Four replicas, each of which would have two."""
    more, _ = measured(kind, 200_000)
    assert more < tables * 200_000 * 64 * 4 / 1024
