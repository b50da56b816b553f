"""Variables whose declared shape leaves sizes open."""

import copy
import pickle

import numpy as np
import pytest

import samegrad as tf


def test_functions_are_compiled_until_the_size_changes():
    v, calls = tf.Variable([1.0], shape=[None]), []

    @tf.function
    def double():
        calls.append(1)
        return v * 2.0

    for _ in range(3):
        double()
    assert len(calls) == 1
    v.assign([1.0, 2.0])
    np.testing.assert_array_equal(double().numpy(), [2.0, 4.0])
    v.assign([1.0, 2.0, 3.0])
    np.testing.assert_array_equal(double().numpy(), [2.0, 4.0, 6.0])


def test_replicas_refuse_a_variable_whose_size_changed():
    strategy = tf.distribute.MirroredStrategy(replicas=2)
    v = tf.Variable([1.0], shape=[None], name="v")
    strategy.run(lambda: v * 2.0)
    v.assign([1.0, 2.0])
    with pytest.raises(RuntimeError, match=r"^\[v\] a step of replicas has fixed sizes"):
        strategy.run(lambda: v * 2.0)


def test_copies_are_open_as_well():
    v = tf.Variable([1.0], shape=[None])
    v.assign([1.0, 2.0])
    for twin in (copy.deepcopy(v), pickle.loads(pickle.dumps(v))):
        twin.assign([3.0, 4.0, 5.0])
        assert (twin.shape.as_list(), twin.numpy().size, v.numpy().size) == ([None], 3, 2)


def test_strategies_of_variables_are_those_of_their_scope():
    strategy = tf.distribute.MirroredStrategy(replicas=2)
    with strategy.scope():
        v = tf.Variable(1.0)
    assert v.distribute_strategy is strategy
    assert not hasattr(tf.Variable(1.0), "distribute_strategy")
