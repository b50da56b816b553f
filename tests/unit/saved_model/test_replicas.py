"""Loaded models under strategies: the bits of the original for any number of replicas."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import samegrad as tf

ROWS, WIDTH = 13, 5
INPUTS = np.random.default_rng(1).normal(size=(ROWS, WIDTH)).astype(np.float32)
TARGETS = np.random.default_rng(2).normal(size=(ROWS, 1)).astype(np.float32)


class Net(tf.Module):
    """Two layers with dropout, and a loop over the second one."""

    def __init__(self) -> None:
        super().__init__()
        normal = np.random.default_rng(0).normal
        self.first = tf.Variable(normal(size=(WIDTH, 4)).astype(np.float32), name="first")
        self.second = tf.Variable(normal(size=(4, 4)).astype(np.float32), name="second")
        self.last = tf.Variable(normal(size=(4, 1)).astype(np.float32), name="last")

    @tf.function(
        input_signature=[tf.TensorSpec([None, WIDTH], tf.float32), tf.TensorSpec([], tf.bool)]
    )
    def __call__(self, x: Any, training: Any) -> Any:
        hidden = tf.nn.relu(x @ self.first)
        if training:
            hidden = tf.nn.dropout(hidden, 0.5)
        rounds = 0
        while rounds < 2 and tf.reduce_sum(self.second) < 1e6:
            hidden = tf.tanh(hidden @ self.second)
            rounds += 1
        return hidden @ self.last


def train(model: Any, strategy: Any, steps: int, training: bool = False) -> None:
    """Steps of gradient descent on one global batch."""
    data = tf.data.Dataset.from_tensor_slices((INPUTS, TARGETS)).batch(ROWS).repeat(steps)
    variables = [model.first, model.second, model.last]

    def step(batch: Any) -> None:
        x, y = batch
        with tf.GradientTape() as tape:
            losses = tf.reduce_sum((model(x, tf.constant(training)) - y) ** 2, axis=1)
            loss = tf.nn.compute_average_loss(losses)
        gradients = tape.gradient(loss, variables)
        context = tf.distribute.get_replica_context()
        for variable, gradient in zip(variables, gradients, strict=True):
            variable.assign_sub(0.1 * context.all_reduce("sum", gradient))

    run = tf.function(lambda batch: strategy.run(step, args=(batch,)))
    for batch in strategy.experimental_distribute_dataset(data):
        run(batch)


def weights(model: Any) -> list[bytes]:
    return [v.numpy().tobytes() for v in (model.first, model.second, model.last)]


def strategy_of(replicas: int) -> Any:
    return tf.distribute.MirroredStrategy(replicas=replicas)


def saved(folder: Path, replicas: int, steps: int) -> Any:
    """A net that was trained under a strategy, and saved."""
    strategy = strategy_of(replicas)
    with strategy.scope():
        net = Net()
    train(net, strategy, steps)
    tf.saved_model.save(net, folder)
    return net, strategy


@pytest.mark.parametrize("replicas", [1, 2, 3, 8])
@pytest.mark.parametrize("training", [False, True])
def test_training_goes_on_with_the_bits_of_the_original(
    tmp_path: Path, replicas: int, training: bool
) -> None:
    net, strategy = saved(tmp_path / "net", 2, 2)
    strategy_of_loaded = strategy_of(replicas)
    with strategy_of_loaded.scope():
        loaded = tf.saved_model.load(tmp_path / "net")
    assert weights(loaded) == weights(net)
    tf.random.set_seed(3)
    train(net, strategy, 3, training)
    tf.random.set_seed(3)
    train(loaded, strategy_of_loaded, 3, training)
    assert weights(loaded) == weights(net)


def test_a_model_is_loaded_without_scope(tmp_path: Path) -> None:
    net, _ = saved(tmp_path / "net", 2, 1)
    loaded = tf.saved_model.load(tmp_path / "net")
    x = tf.constant(INPUTS)
    found = loaded(x, tf.constant(False)).numpy()
    assert found.tobytes() == net(x, tf.constant(False)).numpy().tobytes()


def test_a_model_saved_inside_the_scope_is_one_of_one_replica(tmp_path: Path) -> None:
    strategy = strategy_of(4)
    with strategy.scope():
        net = Net()
        net(tf.constant(INPUTS), tf.constant(False))
        tf.saved_model.save(net, tmp_path / "net")
    loaded = tf.saved_model.load(tmp_path / "net")
    found = loaded(tf.constant(INPUTS), tf.constant(False)).numpy()
    assert found.tobytes() == net(tf.constant(INPUTS), tf.constant(False)).numpy().tobytes()


def test_a_call_in_the_scope_and_outside_of_run_is_one_of_one_device(tmp_path: Path) -> None:
    net, strategy = saved(tmp_path / "net", 2, 1)
    x, training = tf.constant(INPUTS), tf.constant(False)
    with strategy.scope():
        loaded = tf.saved_model.load(tmp_path / "net")
        assert loaded(x, training).numpy().tobytes() == net(x, training).numpy().tobytes()


def test_functions_that_run_eagerly_are_traced_all_the_same(tmp_path: Path) -> None:
    net, strategy = saved(tmp_path / "net", 2, 1)
    wanted = net(tf.constant(INPUTS), tf.constant(False)).numpy().tobytes()
    with strategy.scope():
        loaded = tf.saved_model.load(tmp_path / "net")
    tf.config.run_functions_eagerly(True)
    try:
        assert loaded(tf.constant(INPUTS), tf.constant(False)).numpy().tobytes() == wanted
        train(loaded, strategy, 1)
    finally:
        tf.config.run_functions_eagerly(False)
    train(net, strategy, 1)
    assert weights(loaded) == weights(net)


def test_a_loaded_function_prepares_data(tmp_path: Path) -> None:
    module = tf.Module()
    module.f = tf.function(lambda x: x * 2.0 + 1.0, input_signature=[tf.TensorSpec([])])
    tf.saved_model.save(module, tmp_path / "m")
    loaded = tf.saved_model.load(tmp_path / "m")
    data = tf.data.Dataset.from_tensor_slices(INPUTS[:, 0])
    found = [float(x) for x in data.map(loaded.f)]
    assert found == [float(x) for x in data.map(module.f)]


def test_a_variable_of_another_strategy_is_refused(tmp_path: Path) -> None:
    saved(tmp_path / "net", 2, 1)
    with strategy_of(2).scope():
        loaded = tf.saved_model.load(tmp_path / "net")
    other = strategy_of(4)
    with pytest.raises(RuntimeError, match="belongs to a strategy of 2 replicas"):
        other.run(lambda: loaded(tf.constant(INPUTS), tf.constant(False)))


def test_a_model_is_saved_as_one_step_left_it(tmp_path: Path) -> None:
    """Another thread trains on: all variables are of the same step."""
    module = tf.Module()
    module.many = [tf.Variable(np.zeros(1000, np.float32)) for _ in range(20)]

    @tf.function
    def step() -> None:
        for variable in module.many:
            variable.assign_add(tf.ones([1000]))

    step()
    over = threading.Event()

    def train_on() -> None:
        while not over.is_set():
            step()

    thread = threading.Thread(target=train_on)
    thread.start()
    try:
        for _ in range(20):
            tf.saved_model.save(module, tmp_path / "m")
            loaded = tf.saved_model.load(tmp_path / "m")
            assert len({v.numpy().tobytes() for v in loaded.many}) == 1
    finally:
        over.set()
        thread.join()


def test_draws_follow_those_of_the_program_outside(tmp_path: Path) -> None:
    module = tf.Module()
    module.draw = tf.function(lambda: (tf.random.normal([3]), tf.random.uniform([2])))
    module.draw()
    tf.saved_model.save(module, tmp_path / "m")
    loaded = tf.saved_model.load(tmp_path / "m")

    def both(model: Any) -> Any:
        @tf.function
        def run() -> Any:
            return tf.random.normal([2]), model.draw(), tf.random.normal([2]), model.draw()

        tf.random.set_seed(5)
        return [tf.nest.map_structure(lambda t: t.numpy().tobytes(), run()) for _ in range(2)]

    assert both(loaded) == both(module)
