"""Functions that learn from their strategy how many replicas run."""

import pytest

import samegrad as tf
from samegrad._trace import TracedProgram
from samegrad.distribute import MirroredStrategy, get_replica_context


def total(strategy, value):
    return strategy.run(lambda: get_replica_context().all_reduce("sum", value))


def test_a_function_called_outside_the_scope_runs_all_replicas():
    strategy = MirroredStrategy(replicas=4)
    step = tf.function(lambda value: total(strategy, value))
    assert [float(part) for part in step(tf.constant(2.0)).values] == [8.0] * 4


def test_a_function_runs_one_strategy():
    two, three = MirroredStrategy(replicas=2), MirroredStrategy(replicas=3)

    @tf.function
    def step(value):
        return total(two, value), total(three, value)

    with pytest.raises(RuntimeError, match="got 3 replicas where 2 run already; use two functions"):
        step(tf.constant(1.0))


def traced_on(examples, fn):
    strategy = MirroredStrategy(replicas=2)
    data = tf.data.Dataset.from_tensor_slices(tf.zeros([examples, 3])).batch(examples)
    (batch,) = strategy.experimental_distribute_dataset(data)
    return TracedProgram(lambda x: strategy.run(fn, args=(x,)), (batch,), {}, replicas=2)


def test_traces_that_differ_in_the_number_of_examples_are_compiled_once():
    four, six = (traced_on(examples, lambda x: tf.reduce_sum(x * 2.0)) for examples in (4, 6))
    assert four._step is six._step


def test_traces_that_looked_at_the_number_of_examples_are_compiled_apart():
    four, six = (traced_on(n, lambda x: tf.reduce_sum(x) / float(len(x))) for n in (4, 6))
    assert four._step is not six._step
