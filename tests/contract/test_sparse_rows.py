"""Gradients of gathers: a step touches the rows that examples name; the bits are those of all."""

from __future__ import annotations

import itertools
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from plans import steps_of
from sparse_training import (  # noqa: F401
    EXAMPLES,
    ROWS,
    SPARSE,
    WIDTH,
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


@pytest.mark.parametrize("replicas", [1, 2, 3, 4, 8])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_sparse_step_has_the_bits_of_a_dense_one(replicas: int, dtype: str) -> None:
    assert_sparse_as_dense(replicas=replicas, table=numbers(dtype=dtype))


@pytest.mark.parametrize("replicas", [2, 3, 8])
def test_replicas_have_the_bits_of_one_device(replicas: int) -> None:
    expected, _ = train()
    assert_same_bits(train(replicas)[0], expected)


@pytest.mark.parametrize("kind", ["int32", "int64"])
@pytest.mark.parametrize("per_example", [(3,), (2, 4), (150,)])
@pytest.mark.parametrize("replicas", [1, 4])
def test_examples_may_name_many_rows(replicas: int, per_example: Any, kind: str) -> None:
    ids = many_times(EXAMPLES * int(np.prod(per_example))).reshape(EXAMPLES, *per_example)
    assert_sparse_as_dense(replicas=replicas, ids=ids.astype(kind))


@pytest.mark.parametrize("replicas", [1, 2, 3, 8])
@pytest.mark.parametrize("examples", [1, 2, 3, 13, 97])
def test_uneven_small_and_empty_shares(replicas: int, examples: int) -> None:
    assert_sparse_as_dense(replicas=replicas, ids=many_times(examples))


@pytest.mark.parametrize("replicas", [1, 4])
def test_all_examples_may_name_one_row(replicas: int) -> None:
    table = assert_sparse_as_dense(replicas=replicas, ids=np.full(EXAMPLES, 8))[0]
    changed = (table != numbers()) & ~np.isnan(table)
    assert changed.any(axis=1).nonzero()[0].tolist() == [8]


def test_rows_that_nobody_names_keep_their_bits() -> None:
    ids = many_times()
    before, after = numbers(), assert_sparse_as_dense(ids=ids)[0]
    others = np.setdiff1d(np.arange(ROWS), ids)
    assert before[others].tobytes() == after[others].tobytes()
    assert before.tobytes() != after.tobytes()


def test_no_examples_at_all_change_nothing() -> None:
    variable = tf.Variable(numbers())
    optimizer = tf.keras.optimizers.SGD(0.1)

    @tf.function
    def step(ids: Any) -> None:
        with tf.GradientTape() as tape:
            total = tf.reduce_sum(squares(variable, ids))
        optimizer.apply_gradients([(tape.gradient(total, variable), variable)])

    empty = tf.constant(np.zeros(0, np.int64))
    step(empty)
    assert SPARSE in str(step.explain(empty))
    assert variable.numpy().tobytes() == numbers().tobytes()


@pytest.mark.parametrize("rank", [1, 3])
def test_rows_may_be_numbers_or_matrices(rank: int) -> None:
    shape = {1: (20_000,), 3: (900, 3, 7)}[rank]
    table = np.random.default_rng(0).normal(size=shape).astype(np.float32)

    def loss(table: Any, ids: Any) -> Any:
        rows = tf.gather(table, ids)
        return tf.reduce_sum(tf.reshape(rows * rows, [-1, max(1, int(np.prod(shape[1:])))]), axis=1)

    assert_sparse_as_dense(table=table, loss=loss, replicas=2)


def test_a_table_that_is_looked_up_twice_is_updated_once() -> None:
    def loss(table: Any, ids: Any) -> Any:
        return squares(table, ids) + 0.5 * squares(table, (ids * 7 + 1) % ROWS)

    for replicas in (1, 2, 3):
        found, plan = train(replicas, loss=loss)
        assert plan.count(SPARSE) == 1
        assert_same_bits(found, assert_sparse_as_dense(replicas=replicas, loss=loss))


def test_arrays_without_examples_are_looked_up_too() -> None:
    def train_plain() -> tuple[np.ndarray, str]:
        variable, optimizer = tf.Variable(numbers()), tf.keras.optimizers.SGD(0.1)

        @tf.function
        def step(ids: Any) -> None:
            with tf.GradientTape() as tape:
                total = tf.reduce_sum(squares(variable, ids))
            optimizer.apply_gradients([(tape.gradient(total, variable), variable)])

        ids = tf.constant(many_times())
        step(ids)
        return variable.numpy(), str(step.explain(ids))

    found, plan = train_plain()
    assert SPARSE in plan
    _trace.OPTIONS.sparse_rows = False
    assert_same_bits([found], [train_plain()[0]])


small = np.random.default_rng(0).normal(size=(ROWS, WIDTH)).astype(np.float32)


def test_a_gradient_that_is_cut_by_value_is_sparse_where_zero_stays_zero() -> None:
    assert_sparse_as_dense(make=lambda: tf.keras.optimizers.SGD(0.1, clipvalue=0.2), table=small)


def with_rate(kind: Any, rate: float) -> Callable[[], Any]:
    """Optimizers refuse some rates, variables take all."""

    def make() -> Any:
        optimizer = kind(0.1)
        optimizer.learning_rate.assign(rate)
        return optimizer

    return make


def lazy(**options: Any) -> Callable[[], Any]:
    return lambda: tf.keras.optimizers.LazyAdam(0.1, **options)


@pytest.mark.parametrize("replicas", [1, 2, 3, 4, 8])
@pytest.mark.parametrize("options", [{}, {"amsgrad": True}], ids=str)
def test_lazy_adam_is_sparse(options: dict[str, Any], replicas: int) -> None:
    assert_sparse_as_dense(make=lazy(**options), replicas=replicas)


@pytest.mark.parametrize("replicas", [2, 3, 8])
def test_lazy_adam_has_the_bits_of_one_device(replicas: int) -> None:
    expected, _ = train(make=lazy())
    assert_same_bits(train(replicas, make=lazy())[0], expected)


@pytest.mark.parametrize("rate", [np.nan, np.inf, -0.1, 0.0])
def test_lazy_adam_is_sparse_at_any_rate(rate: float) -> None:
    ids = many_times()
    table = assert_sparse_as_dense(make=with_rate(tf.keras.optimizers.LazyAdam, rate), ids=ids)[0]
    others = np.setdiff1d(np.arange(ROWS), ids)
    assert numbers()[others].tobytes() == table[others].tobytes()


def test_lazy_adam_of_a_table_that_is_looked_up_twice() -> None:
    def loss(table: Any, ids: Any) -> Any:
        return squares(table, ids) + 0.5 * squares(table, (ids * 7 + 1) % ROWS)

    for replicas in (1, 4):
        assert_sparse_as_dense(make=lazy(), loss=loss, replicas=replicas)


@pytest.mark.parametrize("rate", [np.nan, np.inf, -np.inf, -0.1, -0.0, 0.0, 1e-45, 3e38])
@pytest.mark.parametrize("replicas", [1, 2])
def test_any_learning_rate_has_the_bits_of_a_dense_step(rate: float, replicas: int) -> None:
    make = with_rate(tf.keras.optimizers.SGD, rate)
    assert_sparse_as_dense(make=make, replicas=replicas, steps=2)


def test_a_rate_that_changes_from_step_to_step() -> None:
    def schedule() -> Any:
        rates = tf.constant(np.array([0.1, -0.1, np.inf, 0.1], np.float32))
        return tf.keras.optimizers.SGD(make_rate(rates))

    def make_rate(rates: Any) -> Any:
        class Rates(tf.keras.optimizers.schedules.LearningRateSchedule):
            def __call__(self, step: Any) -> Any:
                return tf.gather(rates, step)

            def get_config(self) -> dict[str, Any]:
                return {}

        return Rates()

    assert_sparse_as_dense(make=schedule, steps=4, table=small)


@pytest.mark.parametrize("bad", [-1, ROWS, 10**9])
@pytest.mark.parametrize("replicas", [1, 4])
def test_a_row_that_is_not_there_changes_nothing(bad: int, replicas: int) -> None:
    strategy = tf.distribute.MirroredStrategy(replicas=replicas)
    with strategy.scope():
        first, second = tf.Variable(small), tf.Variable(small)
        optimizer = tf.keras.optimizers.SGD(0.1)

    @tf.function
    def train_step(batch: Any) -> None:
        def step(a: Any, b: Any) -> None:
            with tf.GradientTape() as tape:
                total = tf.nn.compute_average_loss(squares(first, a) + squares(second, b))
            variables = [first, second]
            gradients = tape.gradient(total, variables)
            optimizer.apply_gradients(zip(gradients, variables, strict=True))

        strategy.run(step, args=batch)

    ids = many_times()
    wrong = ids.copy()
    wrong[EXAMPLES - 2] = bad
    for columns in ((ids, wrong), (wrong, ids)):
        data = tf.data.Dataset.from_tensor_slices(columns).batch(EXAMPLES)
        (batch,) = strategy.experimental_distribute_dataset(data)
        with pytest.raises(tf.errors.InvalidArgumentError, match="indices must lie in"):
            train_step(batch)
        assert first.numpy().tobytes() == second.numpy().tobytes() == small.tobytes()
        assert int(optimizer.iterations.numpy()) == 0
    assert str(train_step.explain(batch)).count(SPARSE) == 2


def test_who_reads_the_table_after_the_step_has_what_was_there_before() -> None:
    variable, optimizer = tf.Variable(small), tf.keras.optimizers.SGD(0.1)

    @tf.function
    def step(ids: Any) -> Any:
        before = variable.read_value() + 0.0
        with tf.GradientTape() as tape:
            total = tf.reduce_sum(squares(variable, ids))
        optimizer.apply_gradients([(tape.gradient(total, variable), variable)])
        return before, variable.read_value()

    ids = tf.constant(many_times())
    kept = variable.read_value()
    before, after = step(ids)
    assert SPARSE in str(step.explain(ids))
    np.testing.assert_array_equal(before, small)
    np.testing.assert_array_equal(kept, small)
    np.testing.assert_array_equal(after, variable)
    assert (variable.numpy() != small).any()


@pytest.mark.parametrize("threads", [1, 2, 3, 7])
def test_threads_change_no_bit(threads: int) -> None:
    table = np.random.default_rng(0).normal(size=(9000, 64)).astype(np.float32)
    ids = many_times(5000, 9000)
    expected, plan = train(2, ids, table=table)
    assert SPARSE in plan
    tf.config.threading.set_intra_op_parallelism_threads(threads)
    assert_same_bits(train(2, ids, table=table)[0], expected)


def test_eager_steps_have_the_same_bits() -> None:
    expected, _ = train(2)
    tf.config.run_functions_eagerly(True)
    assert_same_bits(train(2)[0], expected)


def test_the_sum_of_a_row_is_that_of_the_tree() -> None:
    table = np.zeros((2000, 8), np.float32)
    values = np.random.default_rng(3).normal(size=(13, 8)).astype(np.float32)

    def tree(x: np.ndarray) -> np.ndarray:
        if len(x) <= 4:
            return np.asarray(list(itertools.accumulate(x))[-1])
        middle = (len(x) + 1) // 2
        return tree(x[:middle]) + tree(x[middle:])

    variable, optimizer = tf.Variable(table), tf.keras.optimizers.SGD(1.0)

    @tf.function
    def step(ids: Any, x: Any) -> None:
        with tf.GradientTape() as tape:
            total = tf.reduce_sum(tf.gather(variable, ids) * x)
        optimizer.apply_gradients([(tape.gradient(total, variable), variable)])

    (batch,) = tf.data.Dataset.from_tensor_slices((np.full(13, 1234), values)).batch(13)
    step(*batch)
    assert SPARSE in str(step.explain(*batch))
    np.testing.assert_array_equal(variable.numpy()[1234], -tree(values))


@pytest.mark.parametrize("replicas", [1, 4])
def test_the_plan_says_which_gradient_is_sparse(replicas: int) -> None:
    _, plan = train(replicas)
    (step,) = steps_of(plan, SPARSE)
    assert "segment_sum" in step and "sub" in step
    assert ("all_reduce" in step) == (replicas > 1)
    assert len(steps_of(plan, "rows that have a gradient")) == 1


PEAK = """
import resource, sys
import numpy as np
import samegrad as tf
table, optimizer = tf.Variable(tf.zeros([int(sys.argv[1]), 64])), tf.keras.optimizers.SGD(0.1)

@tf.function
def step(ids):
    with tf.GradientTape() as tape:
        total = tf.reduce_sum(tf.gather(table, ids))
    optimizer.apply_gradients([(tape.gradient(total, table), table)])

ids = tf.constant(np.arange(100))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for _ in range(3):
    step(ids)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


def test_a_step_needs_no_memory_of_the_size_of_the_table() -> None:
    def more(rows: int) -> int:
        command = [sys.executable, "-c", PEAK, str(rows)]
        return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)

    table = 400_000 * 64 * 4 // 1024  # KiB
    assert more(400_000) < 0.2 * table
