"""Functions that learn from their strategy how many replicas run."""

import pytest

import samegrad as tf
from samegrad._function.trace import TracedProgram
from samegrad._tensor.per_replica import PerReplica
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
    assert four._step.compiled == six._step.compiled


def test_traces_that_looked_at_the_number_of_examples_are_compiled_apart():
    four, six = (traced_on(n, lambda x: tf.reduce_sum(x) / float(len(x))) for n in (4, 6))
    assert four._step.compiled != six._step.compiled


def parts(*sizes):
    return PerReplica([tf.ones([size])._as_examples(0, 1) for size in sizes])


def test_arguments_need_not_keep_equal_numbers_of_examples():
    strategy = MirroredStrategy(replicas=2)

    def shares(a, b):
        return tf.reduce_sum(a) + 10.0 * tf.reduce_sum(b)

    @tf.function
    def step(a, b):
        return strategy.reduce("SUM", strategy.run(shares, (a, b)), axis=None)

    for a, b in [((2, 2), (2, 2)), ((2, 2), (2, 3)), ((4, 1), (2, 3)), ((3, 1), (3, 1))]:
        assert float(step(parts(*a), parts(*b))) == sum(a) + 10 * sum(b)
        bare = strategy.run(shares, (parts(*a), parts(*b)))
        assert float(strategy.reduce("SUM", bare, axis=None)) == sum(a) + 10 * sum(b)


def test_arguments_with_as_many_examples_as_ever_are_traced_once():
    strategy, traced = MirroredStrategy(replicas=2), []

    @tf.function
    def step(a, b):
        traced.append(1)
        return strategy.run(lambda a, b: tf.reduce_sum(a + b), (a, b))

    for sizes in [(2, 2), (5, 4), (1, 0)]:
        step(parts(*sizes), parts(*sizes))
    assert len(traced) == 1
