"""Functions that learn from their strategy how many replicas run."""

import pytest

import samegrad as tf
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
