"""Layers, models, losses and metrics as programs for TensorFlow 2.4 to 2.15 spell them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from keras_programs import keras

import samegrad as tf
from samegrad.keras import losses
from samegrad.keras.losses import Reduction

layers = keras.layers
ONES = np.ones((2, 3), "float32")


@pytest.mark.parametrize(
    "arguments", [{"batch_input_shape": (None, 3)}, {"input_shape": (3,)}, {"input_dim": 3}]
)
@pytest.mark.filterwarnings("ignore:Do not pass an")
def test_the_first_layer_may_say_what_comes_in(arguments: Any) -> None:
    model = keras.Sequential([layers.Dense(2, **arguments)])
    assert [tuple(w.shape) for w in model.weights] == [(3, 2), (2,)]
    assert model.input_shape == (None, 3)


def test_layers_begin_with_the_weights_that_are_given() -> None:
    kernel, bias = np.full((3, 2), 2.0), np.array([1.0, -1.0])
    layer = layers.Dense(2, weights=[kernel, bias])
    np.testing.assert_array_equal(layer(ONES).numpy(), [[7.0, 5.0]] * 2)
    wrong = layers.Dense(2, weights=[kernel])
    with pytest.raises(ValueError, match="expecting 2 weights"):
        wrong(ONES)
    assert wrong.weights == []


class Scale(layers.Layer):  # type: ignore[misc,name-defined]
    """Names its weight first."""

    def build(self, input_shape: Any) -> None:
        """One weight for each feature."""
        self.kernel = self.add_weight("kernel", [int(input_shape[-1])], None, "ones")
        self.bias = self.add_weight("bias", shape=(), initializer="zeros", trainable=False)

    def call(self, inputs: Any, training: Any = None) -> Any:
        """The input times the weight, twice in training."""
        return inputs * self.kernel * (2.0 if training else 1.0) + self.bias


def test_weights_may_be_named_first() -> None:
    layer = Scale()
    np.testing.assert_array_equal(layer(ONES).numpy(), ONES)
    assert [w.name for w in layer.weights] == ["kernel", "bias"]
    assert [w.name for w in layer.trainable_weights] == ["kernel"]
    with pytest.raises(TypeError, match="shape is needed once"):
        layers.Layer().add_weight("w", (1,), shape=(2,))


@pytest.fixture
def phase() -> Iterator[None]:
    """No learning phase is set afterwards."""
    yield
    from samegrad._keras.older import layers as older

    older._standing[0] = None


def test_the_learning_phase_decides_for_layers_that_are_not_told(phase: None) -> None:
    backend, layer = tf.keras.backend, Scale()
    assert backend.learning_phase() == 0
    with backend.learning_phase_scope(1):
        assert float(layer(ONES)[0, 0]) == 2.0
        assert float(layer(ONES, training=False)[0, 0]) == 1.0
        assert float(keras.Sequential([layer])(ONES, training=False)[0, 0]) == 1.0
    assert float(layer(ONES)[0, 0]) == 1.0
    backend.set_learning_phase(1)
    assert (backend.learning_phase(), float(layer(ONES)[0, 0])) == (1, 2.0)
    with pytest.raises(ValueError, match="0 or 1"):
        backend.set_learning_phase(2)


def test_a_metric_may_name_its_weight_first() -> None:
    class Own(keras.metrics.Metric):  # type: ignore[misc,name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.plain = self.add_weight("plain")
            self.shaped = self.add_weight("shaped", shape=(2,), initializer="ones")
            self.made = self.add_weight("made", (2,))

    metric = Own()
    assert [v.name for v in metric.variables] == ["plain", "shaped", "made"]
    assert [tuple(v.shape) for v in metric.variables] == [(), (2,), (2,)]
    metric.reset_states()
    assert not metric.shaped.numpy().any()


def test_a_mean_of_relative_errors() -> None:
    metric = tf.keras.metrics.MeanRelativeError(normalizer=[1.0, 2.0, 0.0])
    metric.update_state([[1.0, 3.0, 5.0]], [[2.0, 1.0, 1.0]])
    assert float(metric.result()) == pytest.approx(2 / 3)
    again = type(metric).from_config(metric.get_config())
    assert float(again([[1.0, 3.0, 5.0]], [[2.0, 1.0, 1.0]])) == pytest.approx(2 / 3)


def test_a_mean_of_tensors() -> None:
    metric = tf.keras.metrics.MeanTensor()
    with pytest.raises(ValueError, match="no shape yet"):
        metric.result()
    metric.update_state([0.0, 1.0])
    metric.update_state([3.0, 2.0], sample_weight=[0.5, 1.0])
    np.testing.assert_allclose(metric.result().numpy(), [1.0, 1.5])
    with pytest.raises(ValueError, match="one shape"):
        metric.update_state([1.0, 2.0, 3.0])
    metric.reset_states()
    np.testing.assert_array_equal(metric.result().numpy(), [0.0, 0.0])


def test_reductions_have_their_older_names() -> None:
    truth, guess = np.float32([[0.0], [2.0]]), np.float32([[1.0], [4.0]])
    found = {
        name: losses.MeanSquaredError(reduction=getattr(Reduction, name))(truth, guess).numpy()
        for name in ("AUTO", "NONE", "SUM", "SUM_OVER_BATCH_SIZE")
    }
    assert (found["AUTO"], found["SUM"], found["SUM_OVER_BATCH_SIZE"]) == (2.5, 5.0, 2.5)
    np.testing.assert_array_equal(found["NONE"], [1.0, 4.0])


def test_labels_and_predictions_may_be_lists() -> None:
    assert float(losses.MeanSquaredError()([[0.0, 1.0]], [[1.0, 1.0]])) == 0.5
    assert float(keras.metrics.MeanAbsoluteError()([[0], [2]], [[1.0], [2.0]])) == 0.5
    assert losses.MeanSquaredError(dtype="float64")([[0.1]], [[0.0]]).dtype == tf.float64


@pytest.mark.parametrize("name", ["huber_loss", "kl_divergence", "log_cosh", "mean_squared_error"])
def test_losses_have_their_older_names(name: str) -> None:
    rng = np.random.default_rng(0)
    truth, guess = rng.random((2, 3)), rng.random((2, 3))
    assert np.isfinite(getattr(losses, name)(truth, guess).numpy()).all()


def test_preprocessing_layers_have_their_older_places() -> None:
    older = tf.keras.layers.experimental.preprocessing
    for name in ("CenterCrop", "Normalization", "RandomFlip", "Rescaling", "Resizing"):
        assert getattr(older, name) is getattr(keras.layers, name)
    assert tf.keras.layers.experimental.RandomRotation is keras.layers.RandomRotation


def test_policies_have_their_older_places() -> None:
    older = tf.keras.mixed_precision.experimental
    before = older.global_policy()
    try:
        older.set_policy(older.Policy("mixed_bfloat16"))
        assert older.global_policy().name == "mixed_bfloat16"
    finally:
        older.set_policy(before)


def test_classes_are_registered_for_saving() -> None:
    @tf.keras.saving.register_keras_serializable("older")
    class Mine(layers.Dense):  # type: ignore[misc,name-defined]
        pass

    assert tf.keras.utils.get_registered_object("older>Mine") is Mine


class Pair(keras.Model):  # type: ignore[misc,name-defined]
    """Made of layers without a build."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = layers.Dense(2)
        self.offset = tf.Variable([1.0, 1.0])

    def call(self, inputs: Any) -> Any:
        """A dense layer and an offset."""
        return self.inner(inputs) + self.offset


def test_a_model_without_build_is_built_by_its_shape() -> None:
    model = Pair()
    model.build((None, 3))
    assert [w.name for w in model.weights] == ["offset", "kernel", "bias"]
    assert len(model.trainable_variables) == 3


@pytest.mark.parametrize("replicas", [1, 2])
def test_fit_trains_variables_in_attributes(replicas: int) -> None:
    with tf.distribute.MirroredStrategy(replicas=replicas).scope():
        model = Pair()
        model.compile("sgd", "mse")
    model.fit(np.ones((4, 3)), np.zeros((4, 2)), epochs=1, verbose=0)
    assert (model.offset.numpy() != 1.0).all()
