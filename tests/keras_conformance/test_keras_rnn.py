"""keras.backend.rnn: states carried over time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import samegrad as tf
from samegrad._keras.rnn import rnn

RNG = np.random.default_rng(0)
X = RNG.normal(size=(5, 6, 3))
MASK = RNG.uniform(size=(5, 6)) > 0.4
W, U = RNG.normal(size=(3, 4)), 0.3 * RNG.normal(size=(4, 4))
OPTIONS = [
    {},
    {"go_backwards": True},
    {"mask": True},
    {"mask": True, "zero_output_for_mask": True},
    {"mask": True, "go_backwards": True},
    {"return_all_outputs": False},
    {"mask": True, "return_all_outputs": False},
]


def _step(x: Any, states: Any) -> Any:
    h = tf.tanh(tf.matmul(x, W) + tf.matmul(states[0], U))
    return h, [h]


def _run(options: dict[str, Any], x: Any, mask: Any, unroll: bool = False) -> Any:
    given = {**options, "mask": mask if options.get("mask") else None, "unroll": unroll}
    with tf.GradientTape() as tape:
        tape.watch(x)
        last, outputs, states = rnn(_step, x, [tf.zeros((x.shape[0], 4), "float64")], **given)
        loss = tf.reduce_sum(last * last) + tf.reduce_sum(outputs * 0.3) + tf.reduce_sum(states[0])
    return last, outputs, states[0], tape.gradient(loss, x)


def _reference(options: dict[str, Any]) -> Any:
    h = output = np.zeros((5, 4))
    outputs = []
    for t in range(5, -1, -1) if options.get("go_backwards") else range(6):
        new = np.tanh(X[:, t] @ W + h @ U)
        kept = MASK[:, t, None] if options.get("mask") else np.ones((5, 1), bool)
        output = np.where(kept, new, 0 if options.get("zero_output_for_mask") else output)
        h = np.where(kept, new, h)
        outputs.append(output)
    every = np.stack(outputs, 1) if options.get("return_all_outputs", True) else output[:, None]
    return output, every, h


@pytest.mark.parametrize("options", OPTIONS)
def test_the_loop_is_the_steps_one_after_the_other(options: dict[str, Any]) -> None:
    eager = _run(options, tf.constant(X), tf.constant(MASK))
    for found, wanted in zip(eager, _reference(options), strict=False):
        np.testing.assert_allclose(found, wanted, rtol=1e-12)
    signature = [tf.TensorSpec((None, 6, 3), "float64"), tf.TensorSpec((None, 6), "bool")]
    for unroll in (False, True):
        run = tf.function(lambda x, m, u=unroll: _run(options, x, m, u), input_signature=signature)
        for rows in (5, 2):
            traced = run(X[:rows], MASK[:rows])
            for found, wanted in zip(traced, eager, strict=True):
                np.testing.assert_allclose(found, wanted.numpy()[:rows], rtol=1e-10, atol=1e-12)


def test_the_program_does_not_grow_with_the_steps() -> None:
    sizes = []
    for steps in (3, 60):
        traces = []

        def step(x: Any, states: Any, seen: list[Any] = traces) -> Any:
            seen.append(None)
            return _step(x, states)

        run = tf.function(lambda x, s=step: rnn(s, x, [tf.zeros((2, 4), "float64")])[0])
        run(tf.ones((2, steps, 3), "float64"))
        sizes.append(len(traces))
    assert sizes[0] == sizes[1]


def test_inputs_and_states_may_be_structures_and_time_may_come_first() -> None:
    def step(x: Any, states: Any) -> Any:
        total = states[0] + x["a"] + states[2]
        return {"sum": total, "both": total * x["b"]}, [total, states[1] + 1.0]

    inputs = {"a": X, "b": 2 * X}
    states = [tf.zeros((5, 3), "float64"), tf.zeros((5, 1), "float64")]
    constant = tf.constant(0.5, "float64")
    last, outputs, final = rnn(step, inputs, states, constants=[constant])
    sums = np.cumsum(X + 0.5, 1)
    np.testing.assert_allclose(outputs["both"], sums * 2 * X)
    np.testing.assert_allclose(last["sum"], sums[:, -1])
    assert float(final[1][0, 0]) == 6.0
    turned = {name: np.swapaxes(x, 0, 1) for name, x in inputs.items()}
    by_time = rnn(step, turned, states, constants=[constant], time_major=True)[1]
    np.testing.assert_allclose(by_time["sum"], np.swapaxes(sums, 0, 1))


def test_lengths_are_a_mask() -> None:
    lengths = tf.constant([6, 3, 1, 2, 5])
    states = [tf.zeros((5, 4), "float64")]
    found = rnn(_step, X, states, input_length=lengths)
    inside = np.arange(6) < lengths.numpy()[:, None]
    wanted = rnn(_step, X, states, mask=inside)
    np.testing.assert_array_equal(found[1], wanted[1])
