"""Keras's optimizers with variables of samegrad, and with others than before."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from keras_programs import keras

import samegrad as tf

MAKERS = [
    lambda: keras.optimizers.SGD(0.1, momentum=0.9),
    lambda: keras.optimizers.Adam(0.1, amsgrad=True),
    lambda: keras.optimizers.Nadam(0.1),
    lambda: keras.optimizers.Adafactor(0.1),
    lambda: keras.optimizers.LossScaleOptimizer(keras.optimizers.Adam(0.1), initial_scale=4.0),
]


def _steps(optimizer: Any, variables: list[Any], count: int = 3) -> None:
    for step in range(1, count + 1):
        gradients = [tf.fill(v.shape, 0.5 * step) for v in variables]
        optimizer.apply_gradients(zip(gradients, variables, strict=True))


@pytest.mark.parametrize("make", MAKERS)
def test_variables_of_samegrad_are_trained_as_those_of_keras(make: Any) -> None:
    start = np.arange(6, dtype=np.float32).reshape(2, 3)
    own, of_keras = tf.Variable(start), keras.Variable(start)
    _steps(make(), [own])
    _steps(make(), [of_keras])
    np.testing.assert_array_equal(own.numpy(), of_keras.numpy())
    assert not np.array_equal(own.numpy(), start)


@pytest.mark.parametrize("make", MAKERS)
def test_other_variables_get_slots_and_the_first_keep_theirs(make: Any) -> None:
    start = np.ones((2, 3), np.float32)
    first, second, alone = (keras.Variable(start) for _ in range(3))
    optimizer, reference = make(), make()
    _steps(optimizer, [first])
    _steps(reference, [alone])
    _steps(optimizer, [second], 1)
    reference._iterations.assign_add(1)
    if hasattr(reference, "inner_optimizer"):
        reference.inner_optimizer._iterations.assign_add(1)
    held = len(optimizer.variables)
    _steps(optimizer, [first, second], 1)
    _steps(reference, [alone], 1)
    assert len(optimizer.variables) == held
    if "nadam" not in optimizer.name:  # its product of decays counts every step
        np.testing.assert_array_equal(first.numpy(), alone.numpy())
    assert not np.array_equal(second.numpy(), first.numpy())


def test_gradients_are_not_applied_in_cross_replica_context() -> None:
    strategy = tf.distribute.MirroredStrategy(replicas=2)
    with strategy.scope():
        variable, optimizer = keras.Variable([1.0]), keras.optimizers.SGD(0.1)
        with pytest.raises(RuntimeError, match="cross-replica context"):
            optimizer.apply_gradients([(tf.constant([1.0]), variable)])
