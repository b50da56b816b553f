"""Gradients flow through Python's control flow in a step, as they do through plain Python."""

import numpy as np
import pytest
from autograph_programs import (
    early_return,
    elif_chain,
    for_enumerate,
    for_range,
    for_rows,
    for_with_break_and_continue,
    if_else,
    nested_loops,
    numbers_change_their_type,
    python_list_with_a_break_that_depends_on_a_tensor,
    recursion,
    return_in_a_loop,
    return_in_nested_loops,
    ternary,
    while_true,
    while_with_break,
    while_with_continue,
)

import samegrad as tf

PROGRAMS = [
    early_return, elif_chain, for_enumerate, for_range, for_rows, for_with_break_and_continue,
    if_else, nested_loops, numbers_change_their_type,
    python_list_with_a_break_that_depends_on_a_tensor, recursion, return_in_a_loop,
    return_in_nested_loops, ternary, while_true, while_with_break, while_with_continue,
]  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_gradients_are_those_of_plain_python(program):
    def gradient(x, n):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = program(x, n)
        return tape.gradient(y, x, unconnected_gradients="zero")

    step = tf.function(gradient)
    for x in (-3.0, 0.5, 4.0):
        for n in (1, 3, 5):
            arguments = tf.constant(x), tf.constant(n)
            np.testing.assert_allclose(step(*arguments), gradient(*arguments), rtol=1e-5)


def test_a_model_with_a_branch_and_a_loop_trains_as_plain_python():
    def train(function):
        weight = tf.Variable([1.0, -1.0])

        @function
        def step(x, n):
            with tf.GradientTape() as tape:
                h = x
                for _ in tf.range(n):
                    h = h * weight
                    if tf.reduce_sum(h) > 2.0:
                        h = h / 2.0
                loss = tf.reduce_sum((h - 1.0) ** 2)
            weight.assign_sub(0.01 * tape.gradient(loss, weight))
            return loss

        losses = [float(step(tf.constant([1.0, 2.0 + i]), tf.constant(i))) for i in range(1, 5)]
        return losses, weight.numpy().tolist()

    assert train(tf.function) == train(lambda function: function)


def test_the_tape_may_lie_inside_the_loop():
    variable = tf.Variable(4.0)

    @tf.function
    def minimise(steps):
        loss = variable * 0.0
        for _ in tf.range(steps):
            with tf.GradientTape() as tape:
                loss = (variable - 1.0) ** 2
            variable.assign_sub(0.25 * tape.gradient(loss, variable))
        return loss

    assert float(minimise(tf.constant(3))) == (3 / 4) ** 2
    assert float(variable.numpy()) == 1 + 3 / 8


def test_replicas_decide_for_themselves():
    strategy = tf.distribute.MirroredStrategy(replicas=3)

    @tf.function
    def step(limit):
        def replica_fn(limit):
            me = tf.distribute.get_replica_context().replica_id_in_sync_group
            total = 0
            while total < me * 10:
                total += 4
                if total > limit:
                    break
            return total if me != 1 else -total

        return strategy.run(replica_fn, (limit,))

    results = strategy.experimental_local_results(step(tf.constant(15)))
    assert [int(r) for r in results] == [0, -12, 16]


def test_layers_losses_and_metrics_of_the_program_decide_by_tensors():
    class Clipped(tf.keras.layers.Layer):
        def call(self, x):
            if tf.reduce_max(x) > 1.0:
                return x / tf.reduce_max(x)
            return x

    class Absolute(tf.keras.losses.Loss):
        def call(self, y_true, y_pred):
            error = tf.reduce_mean(tf.abs(y_pred - y_true), axis=-1)
            if tf.reduce_sum(error) > 1.0:
                error = error * 10.0
            return error

    layer, loss = Clipped(), Absolute(reduction="sum")

    @tf.function
    def step(x):
        return loss(tf.zeros_like(x), layer(x))

    np.testing.assert_allclose(step(tf.constant([[0.5, 0.5]])), 0.5)
    np.testing.assert_allclose(step(tf.constant([[4.0, 2.0], [1.0, 1.0]])), 0.75 + 0.25)
    np.testing.assert_allclose(step(tf.constant([[4.0, 4.0], [4.0, 4.0]])), 20.0)
