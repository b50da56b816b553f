"""Modules find the variables that they own, and checkpoints follow them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import samegrad as tf


class Dense(tf.Module):
    """A dense layer whose bias is not trained."""

    def __init__(self, rows: int, columns: int, name: str | None = None) -> None:
        super().__init__(name=name)
        self.units = columns
        self.w = tf.Variable(np.full((rows, columns), 0.5, np.float32), name="w")
        self.b = tf.Variable(np.zeros(columns, np.float32), name="b", trainable=False)

    def __call__(self, x: Any) -> Any:
        return x @ self.w + self.b


class Several(tf.Module):
    """Modules in lists, dicts and tuples, one of them twice."""

    def __init__(self) -> None:
        super().__init__()
        self.z = [Dense(2, 3), Dense(3, 4)]
        self.d = {"k": Dense(1, 1, "kk"), "t": (Dense(1, 1), "text", 7)}
        self.a = tf.Variable(1.0, name="a")
        self.same = self.z[0]


def test_variables_are_in_tensorflows_order_and_each_once() -> None:
    module = Several()
    # As TensorFlow 2.21 prints them.
    assert [v.name for v in module.variables] == ["a:0", *["b:0", "w:0"] * 4]
    assert [v.name for v in module.trainable_variables] == ["a:0", *["w:0"] * 4]
    assert [v.name for v in module.non_trainable_variables] == ["b:0"] * 4
    assert [m.name for m in module.submodules] == ["kk", "dense", "dense", "dense"]


@pytest.mark.parametrize(
    ("kind", "name"),
    [("MyLongName2D", "my_long_name2_d"), ("MLP", "mlp"), ("HTTPServer", "http_server")],
)
def test_a_class_gives_its_name_in_snake_case(kind: str, name: str) -> None:
    assert type(kind, (tf.Module,), {})().name == name


def test_no_identifier_is_no_name() -> None:
    with pytest.raises(ValueError, match=r"\[Module\].*identifier: got 'a b'"):
        tf.Module(name="a b")


def test_a_module_that_was_not_initialized_says_so() -> None:
    class Bad(tf.Module):
        def __init__(self) -> None:
            self.x = tf.Variable(1.0)

    assert len(Bad().variables) == 1
    with pytest.raises(AttributeError, match=r"\[Bad\].*super\(\).__init__"):
        _ = Bad().name


def test_layers_of_keras_belong_to_the_module() -> None:
    module = tf.Module()
    module.layer = tf.keras.layers.BatchNormalization()  # type: ignore[attr-defined]
    module.layer.build((None, 3))  # type: ignore[attr-defined]
    assert len(module.variables) == 4
    assert len(module.trainable_variables) == 2


def test_a_checkpoint_of_a_module_comes_back_to_the_bit(tmp_path: Path) -> None:
    module, other = Several(), Several()
    for i, variable in enumerate(module.variables):
        variable.assign(variable * 0.0 + i)
    path = tf.train.Checkpoint(module=module).save(str(tmp_path / "ckpt"))
    tf.train.Checkpoint(module=other).restore(path).assert_consumed()
    tf.train.Checkpoint(module=other).restore(path).assert_consumed()
    for a, b in zip(module.variables, other.variables, strict=True):
        np.testing.assert_array_equal(a.numpy(), b.numpy())


def test_variables_made_after_the_restore_get_their_values(tmp_path: Path) -> None:
    class Lazy(tf.Module):
        def __init__(self) -> None:
            super().__init__()
            self.w: Any = None

        def __call__(self, x: Any) -> Any:
            if self.w is None:
                self.w = tf.Variable(np.zeros(2, np.float32))
            return x * self.w

    first = Lazy()
    first(1.0)
    first.w.assign([3.0, 4.0])
    path = tf.train.Checkpoint(lazy=first).save(str(tmp_path / "ckpt"))
    second = Lazy()
    tf.train.Checkpoint(lazy=second).restore(path)
    np.testing.assert_array_equal(second(1.0), [3.0, 4.0])


def test_a_module_trains_on_replicas_as_on_one_device() -> None:
    def trained(replicas: int) -> list[Any]:
        strategy = tf.distribute.MirroredStrategy(replicas=replicas)
        with strategy.scope():
            module = Several()
            optimizer = tf.keras.optimizers.SGD(0.1)

        @tf.function
        def train(x: Any) -> Any:
            def step(x: Any) -> Any:
                with tf.GradientTape() as tape:
                    y = module.z[1](module.z[0](x)) * module.a
                    loss = tf.nn.compute_average_loss(tf.reduce_sum(y * y, axis=-1))
                weights = [module.a, module.z[0].w, module.z[1].w]
                optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights, strict=True))

            strategy.run(step, (x,))

        x = np.random.default_rng(0).normal(size=(8, 2)).astype(np.float32)
        data = tf.data.Dataset.from_tensor_slices(x).batch(8)
        for batch in strategy.experimental_distribute_dataset(data):
            train(batch)
        return [v.numpy().tobytes() for v in module.variables]

    assert trained(1) == trained(2)
