"""The short way of a layer's call does what Keras's own does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from keras_programs import keras

import samegrad as tf
from samegrad._keras import plain_calls
from samegrad._keras.layer import Layer

layers = keras.layers


class Halved(layers.Layer):  # type: ignore[misc,name-defined]
    """Halves in training, and notes what it was told."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.told: list[Any] = []

    def call(self, x: Any, training: Any = None) -> Any:
        """Half of x in training."""
        self.told.append(training)
        return x / 2 if training else x


def model(*parts: Any) -> Any:
    made = keras.Sequential([keras.Input((3,)), *parts])
    made(np.ones((2, 3), "float32"))  # the next calls are not the first ones
    return made


@pytest.fixture
def ways(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of layers, whose calls were short ones."""
    names: list[str] = []

    def noted(layer: Any, *given: Any) -> Any:
        found = plain_calls.plain_call(layer, *given)
        if found is not plain_calls.NOT_PLAIN:
            names.append(layer.name)
        return found

    monkeypatch.setattr(Layer, "_plain_call", staticmethod(noted))
    return names


X = np.arange(6, dtype="float32").reshape(2, 3)


@pytest.mark.parametrize("training", [True, False, None])
def test_training_is_that_of_the_model(ways: list[str], training: Any) -> None:
    layer = Halved(name="halved")
    made = model(layer, layers.Dense(2, name="dense"))
    del ways[:]
    found = made(X, training=training)
    assert ways == ["halved", "dense", made.name]
    told = layer.told[-1]
    del ways[:]
    Layer._plain_call = staticmethod(lambda *_: plain_calls.NOT_PLAIN)  # type: ignore[method-assign]
    np.testing.assert_array_equal(found, made(X, training=training))
    assert layer.told[-1] is told


@pytest.mark.parametrize("name", ["dense", "norm", "drop", "own"])
@pytest.mark.parametrize("training", [True, False, None])
def test_a_layer_called_by_itself(ways: list[str], name: str, training: Any) -> None:
    made = {
        "dense": layers.Dense(2, name=name),
        "norm": layers.BatchNormalization(name=name),
        "drop": layers.Dropout(0.5, seed=1, name=name),
        "own": Halved(name=name),
    }[name]
    made(X, training=False)
    made(X, training=False)
    assert not ways  # an array is converted by Keras
    start = [variable.numpy() for variable in made.variables]
    found = made(tf.constant(X), training=training)
    assert ways == [name] and not made.losses
    after = [variable.numpy() for variable in made.variables]
    for variable, value in zip(made.variables, start, strict=True):
        variable.assign(value)
    np.testing.assert_array_equal(found, made(X, training=training))
    for variable, value in zip(made.variables, after, strict=True):
        np.testing.assert_array_equal(variable, value)


class Penalized(layers.Layer):  # type: ignore[misc,name-defined]
    """Adds its output to the loss."""

    def call(self, x: Any) -> Any:
        """The same."""
        self.add_loss(tf.reduce_sum(x))
        return x


def test_each_call_by_itself_has_its_own_losses(ways: list[str]) -> None:
    made = Penalized()
    made(X)
    for factor in (1.0, 2.0):
        made(tf.constant(X) * factor)
        assert [float(loss) for loss in made.losses] == [15.0 * factor]
    assert len(ways) == 2


def test_an_error_of_a_call_by_itself_ends_it(ways: list[str]) -> None:
    made, dense = Failing(), layers.Dense(2)
    made(X)
    dense(X)
    made.fails = True
    with pytest.raises(ValueError, match=r"told to fail[^$]*Arguments received by Failing.call"):
        made(tf.constant(X))
    made.fails = False
    del ways[:]
    assert made(tf.constant(X)).shape == (2, 3) and dense(tf.constant(X)).shape == (2, 2)
    assert len(ways) == 2
    with pytest.raises(ValueError, match="expected axis -1 of input shape to have value 3"):
        dense(tf.constant(X[:, :2]))


def test_what_needs_keras_takes_the_long_way(ways: list[str]) -> None:
    inner = keras.Sequential([keras.Input((3,)), layers.Dense(3, name="inner")])
    made = model(
        layers.Dense(3, activity_regularizer="l2", name="penalized"),
        layers.Dense(3, dtype="float64", name="wider"),
        inner,
    )
    del ways[:]
    assert float(made(X).dtype == tf.float64) == 0.0
    assert ways == ["inner", made.name]  # the inner model casts what it is given
    assert len(made.losses) == 1 and float(made.losses[0]) > 0


def test_layers_with_masks_go_the_long_way(ways: list[str]) -> None:
    made = keras.Sequential([
        keras.Input((4,), dtype="int32"), layers.Embedding(5, 3, mask_zero=True, name="embedding"),
        layers.Dense(2, name="dense"), layers.GlobalAveragePooling1D(name="pooling"),
    ])  # fmt: skip
    tokens = np.array([[1, 2, 0, 0], [3, 0, 0, 0]])
    first = made(tokens)
    del ways[:]
    np.testing.assert_array_equal(made(tokens), first)
    assert ways == [made.name]


def test_the_first_call_of_a_graph_of_layers_is_a_short_one(ways: list[str]) -> None:
    dense = layers.Dense(2, name="dense")
    made = keras.Sequential([keras.Input((3,)), dense])
    given = keras.Input((3,))
    for graph in (made, keras.Model(given, dense(given)), keras.Model([given], [dense(given)])):
        del ways[:]
        graph(tf.constant(X))
        assert ways == ["dense", graph.name]
        assert [v.path.split("/")[-2:] for v in graph.variables] == [
            ["dense", "kernel"], ["dense", "bias"],
        ]  # fmt: skip


def test_masks_that_a_graph_makes_are_those_of_its_outputs(ways: list[str]) -> None:
    tokens = tf.constant([[1, 2, 0, 0], [3, 0, 0, 0]])
    given = keras.Input((4,), dtype="int32")
    embedded = layers.Embedding(5, 3, mask_zero=True)(given)
    made = keras.Model(given, layers.Dense(2)(embedded))
    masks = [made(tokens)._keras_mask for _ in range(2)]
    assert ways.count(made.name) == 2
    for mask in masks:
        np.testing.assert_array_equal(mask, tokens.numpy() != 0)
    outer = keras.Sequential([made, layers.LSTM(2)])
    outer(tokens)
    del ways[:]
    found = outer(tokens)
    assert made.name in ways
    Layer._plain_call = staticmethod(lambda *_: plain_calls.NOT_PLAIN)  # type: ignore[method-assign]
    np.testing.assert_array_equal(found, outer(tokens))


class Twice(keras.Sequential):  # type: ignore[misc,name-defined]
    """Makes a layer in its second call."""

    def call(self, inputs: Any, training: Any = None, mask: Any = None) -> Any:
        """Through its layers twice, and through a new one."""
        once = super().call(inputs, training=training, mask=mask)
        if not hasattr(self, "late"):
            self.late = layers.Dense(3, name="late")
        return self.late(super().call(once, training=training, mask=mask))


def test_a_graph_with_a_call_of_its_own_goes_the_long_way(ways: list[str]) -> None:
    made = Twice([keras.Input((3,)), layers.Dense(3)])
    made(tf.constant(X))
    made(tf.constant(X))
    assert made.name not in ways
    assert made.late.kernel.path.endswith("late/kernel")


@pytest.mark.parametrize("shape", [(2, 4), (2, 3, 2), (3,)])
def test_a_graph_refuses_what_does_not_fit_it(ways: list[str], shape: tuple[int, ...]) -> None:
    made = keras.Sequential([keras.Input((3,)), layers.Dense(2)])
    with pytest.raises(ValueError, match="shape"):
        made(tf.ones(shape))
    assert made.name not in ways


def test_a_column_may_come_without_its_axis() -> None:
    made = keras.Sequential([keras.Input((1,)), layers.Dense(2)])
    column = tf.constant([[1.0], [2.0]])
    np.testing.assert_array_equal(made(column[:, 0]), made(column))
    flat = keras.Model(given := keras.Input(()), layers.Rescaling(2.0)(given))
    np.testing.assert_array_equal(flat(column), [2.0, 4.0])


def test_a_mixed_policy_goes_the_long_way(ways: list[str]) -> None:
    made = model(layers.Dense(2, dtype="mixed_bfloat16", name="mixed"))
    del ways[:]
    assert made(X).dtype == tf.bfloat16 and ways == [made.name]


def test_scopes_count_after_the_session_is_cleared(ways: list[str]) -> None:
    keras.utils.clear_session()  # scopes are kept in another place then
    made = model(layers.Dense(2, dtype="mixed_bfloat16"), layers.Dense(2, name="last"))
    assert made.layers[0](X).dtype == tf.bfloat16
    given = [variable.numpy() + 1 for variable in made.trainable_variables]
    found, _ = made.stateless_call(given, [], X)
    for variable, value in zip(made.trainable_variables, given, strict=True):
        variable.assign(value)
    np.testing.assert_array_equal(found, made(X))


class Failing(layers.Layer):  # type: ignore[misc,name-defined]
    """Fails when it is told to."""

    fails = False

    def call(self, x: Any) -> Any:
        """The same, or an error."""
        if self.fails:
            raise ValueError("told to fail")
        return x


@pytest.mark.parametrize("filtered", [True, False])
def test_errors_say_what_the_layer_was_given(ways: list[str], filtered: bool) -> None:
    layer = Failing()
    made = model(layer)
    layer.fails = True
    if not filtered:
        keras.config.disable_traceback_filtering()
    try:
        with pytest.raises(ValueError, match="told to fail") as caught:
            made(X)
    finally:
        keras.config.enable_traceback_filtering()
    assert ("Arguments received by Failing.call()" in str(caught.value)) == filtered
    layer.fails = False
    np.testing.assert_array_equal(made(X), X)


def test_sizes_are_checked(ways: list[str]) -> None:
    dense = layers.Dense(2, name="dense")

    class Cut(keras.Model):  # type: ignore[misc,name-defined]
        """Gives the dense layer fewer columns."""

        def __init__(self) -> None:
            super().__init__()
            self.dense = dense

        def call(self, x: Any) -> Any:
            """Of the second size."""
            return self.dense(x)

    made = Cut()
    made(X)
    made(X)
    assert set(ways) == {"dense"}
    with pytest.raises(ValueError, match="expected axis -1 of input shape to have value 3"):
        made(X[:, :2])


def test_variables_are_each_listed_once() -> None:
    shared = layers.Dense(3, name="shared")
    x = given = keras.Input((3,))
    for layer in (shared, layers.Dropout(0.5), shared, layers.BatchNormalization()):
        x = layer(x)
    made = keras.Model(given, x)
    names = [variable.path for variable in made.variables]
    assert len(names) == len(set(names)) == 7
    assert [v.path.split("/")[-1] for v in made.trainable_variables] == [
        "kernel", "bias", "gamma", "beta",
    ]  # fmt: skip
