"""Programs as users write them give TensorFlow's figures, on one device and over replicas."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from keras_user_programs import PROGRAMS

import samegrad as tf
from samegrad.errors import LossNormalizationWarning

GOLDEN = json.loads(Path(__file__).with_name("keras_user_programs.json").read_text("utf-8"))
# What each replica has of its own cannot be added to a variable of all: TensorFlow refuses it.
REFUSED = {"accumulated_by_hand"}
# One averages local means, right for its equal batches; of the other the check cannot follow the
# state, which has an entry for each example.
DEPENDENT = {"running_sum_layer", "stateful_lstm"}
# The losses of single outputs, whose epoch TensorFlow weighs by batches and samegrad by examples.
WEIGHTS = {"multi_output": {"score": 0.5, "kind": 2.0}, "own_losses": {"kind": 1.0, "size": 1.0}}


def _compared(name: str, replicas: int) -> None:
    strategy = tf.distribute.get_strategy()
    if replicas > 1:
        strategy = tf.distribute.MirroredStrategy(replicas=replicas)
    with tf.config.replica_dependence_check("off" if name in DEPENDENT else "error"):
        found, expected = PROGRAMS[name](tf, strategy), dict(GOLDEN[name])
    parts = WEIGHTS.get(name, {})
    if parts:
        total = sum(w * np.asarray(found[f"{part}_loss"]) for part, w in parts.items())
        np.testing.assert_allclose(total, found["loss"], rtol=1e-5)
    assert found.keys() == expected.keys()
    for key in expected.keys() - {f"{part}_loss" for part in parts}:
        np.testing.assert_allclose(
            found[key], expected[key], rtol=1e-5, atol=1e-6, err_msg=f"{name}: {key}"
        )


def test_there_is_a_figure_of_tensorflow_for_each_program() -> None:
    assert len(PROGRAMS) >= 25 and GOLDEN.keys() == PROGRAMS.keys()


@pytest.mark.filterwarnings("error::samegrad.errors.LossNormalizationWarning")
@pytest.mark.parametrize("replicas", [1, 2, 3])
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_gives_the_figures_of_tensorflow(name: str, replicas: int) -> None:
    if name in REFUSED and replicas > 1:
        with pytest.raises(RuntimeError, match=r"one variable for all replicas.*reduce it first"):
            _compared(name, replicas)
        return
    _compared(name, replicas)


@pytest.mark.parametrize("replicas", [2, 3])
def test_a_mean_that_a_program_takes_by_hand_is_warned_of(replicas: int) -> None:
    keras: Any = tf.keras

    class Own(keras.Model):  # type: ignore[misc,name-defined]
        def train_step(self, data: Any) -> Any:
            x, y = data
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(tf.square(self(x) - y))
            grads = tape.gradient(loss, self.trainable_variables)
            self.optimizer.apply_gradients(zip(grads, self.trainable_variables, strict=True))
            return {}

    with tf.distribute.MirroredStrategy(replicas=replicas).scope():
        inputs = keras.Input((2,))
        model = Own(inputs, keras.layers.Dense(1)(inputs))
        model.compile("sgd")
    with pytest.warns(LossNormalizationWarning, match="every replica|each replica"):
        model.fit(np.ones((5, 2)), np.ones((5, 1)), batch_size=5, verbose=0)
