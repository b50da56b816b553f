"""Every public name of tf.keras, today's and older ones: it is there, or says what to use."""

from __future__ import annotations

import contextlib
import lzma
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from keras_programs import keras
from record_keras_older import LOCAL, SIZES, kernel, values

import samegrad as tf
from samegrad._keras.older.refusals import REASONS, reason_of
from samegrad.keras import layers

HERE = Path(__file__).parent
NAMES = [
    line.split()
    for line in lzma.decompress((HERE / "keras_names.txt.xz").read_bytes()).decode().splitlines()
]
# Those of Keras 2 that are refused, with their reasons in `refusals`: may only shrink.
REFUSED = (HERE / "keras_names_refused.txt").read_text(encoding="utf-8").split()


def _found(name: str) -> Any:
    value: Any = tf.keras
    for part in name.split("."):
        value = getattr(value, part)
    return value


def test_every_name_of_today_is_there() -> None:
    now = [name for kind, name in NAMES if kind == "now"]
    assert len(now) > 1600
    missing = []
    for name in now:
        try:
            _found(name)
        except AttributeError as error:
            missing.append(str(error))
    assert not missing


def test_every_older_name_is_there_or_refused_with_what_to_use() -> None:
    older = [name for kind, name in NAMES if kind == "older"]
    assert len(older) > 100
    refused = {}
    for name in older:
        try:
            _found(name)
        except AttributeError as error:
            refused[name] = str(error)
    assert list(refused) == REFUSED
    for text in refused.values():
        assert any(f": {reason}." in text for reason in REASONS.values()), text


@pytest.mark.parametrize(
    ("name", "instead"),
    [
        ("layers.CuDNNLSTM", "without CuDNN"),
        ("utils.multi_gpu_model", "MirroredStrategy"),
        ("utils.np_utils", "to_categorical"),
        ("layers.core.Dense", "public module"),
        ("engine.base_layer", "public module"),
        ("__internal__.models", "private"),
    ],
)
def test_names_that_were_never_public_are_refused_with_what_to_use(name: str, instead: str) -> None:
    with pytest.raises(AttributeError, match=instead):
        _found(name)


def test_the_version_is_that_of_keras() -> None:
    assert tf.keras.__version__ == keras.__version__
    assert reason_of("layers.Dense") is None


# What computes.


@pytest.fixture(scope="module")
def golden() -> Any:
    return np.load(HERE / "keras_older.npz")


@pytest.mark.parametrize("size", SIZES)
def test_a_radial_constraint_makes_rings_as_tensorflow(golden: Any, size: int) -> None:
    for made in (tf.keras.constraints.RadialConstraint(), tf.keras.constraints.radial_constraint()):
        found = np.asarray(made(tf.constant(kernel(size))))
        np.testing.assert_array_equal(found, golden[f"radial_{size}"])
    with pytest.raises(ValueError, match="size, size, channels"):
        tf.keras.constraints.RadialConstraint()(tf.zeros((2, 3, 1, 1)))


def _local(name: str) -> Any:
    kind, shape, arguments = LOCAL[name]
    layer = getattr(layers, kind)(**arguments)
    layer.build(shape)
    layer.set_weights([values(w.shape, i + 1) for i, w in enumerate(layer.weights)])
    return layer, values(shape, 0)


@pytest.mark.parametrize("name", LOCAL)
def test_a_locally_connected_layer_computes_as_tensorflow(golden: Any, name: str) -> None:
    layer, inputs = _local(name)
    x = tf.constant(inputs)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = layer(x)
        loss = tf.reduce_sum(y * y)
    np.testing.assert_allclose(y, golden[f"{name}_output"], rtol=1e-5, atol=1e-5)
    assert tuple(y.shape) == layer.compute_output_shape(inputs.shape)
    for i, gradient in enumerate(tape.gradient(loss, [x, *layer.weights])):
        expected = golden[f"{name}_gradient_{i}"]
        np.testing.assert_allclose(gradient, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", LOCAL)
@pytest.mark.parametrize("replicas", [2, 3])
def test_a_locally_connected_layer_learns_as_on_one_device(name: str, replicas: int) -> None:
    def learned(count: int) -> Any:
        with tf.distribute.MirroredStrategy(replicas=count).scope():
            layer, inputs = _local(name)
            model = keras.Sequential([keras.Input(inputs.shape[1:]), layer, layers.Flatten()])
            model.compile("sgd", "mse")
        x = values((5, *inputs.shape[1:]), 7)
        model.fit(x, np.zeros((5, model.output_shape[-1])), batch_size=5, epochs=2, verbose=0)
        return model

    for found, expected in zip(
        learned(replicas).get_weights(), learned(1).get_weights(), strict=True
    ):
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_a_locally_connected_layer_is_saved_and_refuses_what_it_cannot(tmp_path: Path) -> None:
    layer, inputs = _local("two_strided")
    model = keras.Sequential([keras.Input(inputs.shape[1:]), layer])
    again = keras.models.clone_model(model)
    assert again.layers[0].get_config() == layer.get_config()
    with pytest.raises(ValueError, match="put a ZeroPadding layer"):
        layers.LocallyConnected1D(2, 3, padding="same")
    with pytest.raises(ValueError, match="not below those of the kernel"):
        layers.LocallyConnected1D(2, 3)(np.ones((1, 2, 1), "float32"))


class Sum(layers.AbstractRNNCell):  # type: ignore[misc]
    """Adds up."""

    @property
    def state_size(self) -> int:
        """Three numbers."""
        return 3

    @property
    def output_size(self) -> int:
        """Three numbers."""
        return 3

    def call(self, inputs: Any, states: Any) -> Any:
        """The sum until now, twice."""
        total = states[0] + inputs
        return total, [total]


def test_a_cell_of_an_older_program_runs() -> None:
    x = values((5, 4, 3), 0)
    found = layers.RNN(Sum(), return_sequences=True)(x)
    np.testing.assert_allclose(found, np.cumsum(x, axis=1), rtol=1e-5, atol=1e-5)
    for name in ("state_size", "output_size"):
        with pytest.raises(NotImplementedError, match=f"{name}: got none"):
            getattr(layers.AbstractRNNCell(), name)


@pytest.mark.parametrize(
    ("place", "name"),
    [
        ("experimental", "CosineDecay"),
        ("callbacks.experimental", "BackupAndRestore"),
        ("layers.experimental", "SyncBatchNormalization"),
        ("layers.experimental.preprocessing", "RandomHeight"),
    ],
)
def test_older_places_have_classes_of_today(place: str, name: str) -> None:
    found = _found(f"{place}.{name}")
    assert isinstance(found, type) and found.__name__ == name


def test_ordered_classes() -> None:
    to_ordinal = tf.keras.utils.to_ordinal
    np.testing.assert_array_equal(to_ordinal([[0], [2], [1]]), [[0, 0], [1, 1], [1, 0]])
    assert to_ordinal([], 4).shape == (0, 3) and to_ordinal(1, 3, "int8").dtype == np.int8


def test_a_model_is_made_of_its_description() -> None:
    model = keras.Sequential([keras.Input((2,)), layers.Dense(3)])
    made = tf.keras.models.model_from_config(keras.saving.serialize_keras_object(model))
    assert made.output_shape == (None, 3)
    with pytest.raises(ValueError, match="serialize_keras_object"):
        tf.keras.models.model_from_config([1])


# Methods of models.


def _model(units: int = 2) -> Any:
    keras.utils.set_random_seed(0)
    model = keras.Sequential([keras.Input((3,)), layers.Dense(units, activation="sigmoid")])
    model.compile("sgd", "mse")
    return model


def _batches(x: Any, y: Any) -> Any:
    while True:
        for i in range(0, 6, 3):
            yield x[i : i + 3], y[i : i + 3]


def test_generators_have_methods_of_their_own() -> None:
    x, y = values((6, 3), 0), values((6, 2), 1)
    model, other = _model(), _model()
    model.fit_generator(_batches(x, y), 2, 2, verbose=0, workers=4, use_multiprocessing=True)
    other.fit(x, y, batch_size=3, epochs=2, shuffle=False, verbose=0)
    np.testing.assert_array_equal(model.get_weights()[0], other.get_weights()[0])
    assert model.evaluate_generator(_batches(x, y), 2) == pytest.approx(
        other.evaluate(x, y, batch_size=3, verbose=0)
    )
    found = model.predict_generator(_batches(x, y), 2, max_queue_size=3)
    np.testing.assert_array_equal(found, other.predict(x, batch_size=3, verbose=0))
    with pytest.raises(TypeError, match="epochs is needed once"):
        model.fit_generator(_batches(x, y), 2, 2, epochs=3)


def test_reading_threads_of_older_programs_are_not_used_and_the_program_is_told() -> None:
    x, y = np.ones((4, 3), "float32"), np.ones((4, 1), "float32")
    found = []
    for older in ({}, {"workers": 4, "use_multiprocessing": False, "max_queue_size": 10}):
        tf.keras.utils.set_random_seed(0)
        model = keras.Sequential([keras.Input((3,)), layers.Dense(1)])
        model.compile("sgd", "mse")
        for who, data in (("fit", (x, y)), ("evaluate", (x, y)), ("predict", (x,))):
            told = rf"\[{who}\] .*max_queue_size=10, workers=4, use_multiprocessing=False, not used"
            with pytest.warns(match=told) if older else contextlib.nullcontext():
                getattr(model, who)(*data, verbose=0, **older)
        found.append([v.numpy().tobytes() for v in model.variables])
    assert found[0] == found[1]
    with pytest.raises(TypeError, match="worker"):
        model.fit(x, y, worker=4)


@pytest.mark.parametrize("units", [1, 2])
def test_classes_are_predicted(units: int) -> None:
    model, x = _model(units), values((6, 3), 0)
    shares = model.predict_proba(x)
    np.testing.assert_array_equal(shares, model.predict(x, verbose=0))
    expected = shares.argmax(-1) if units > 1 else (shares > 0.5).astype(int)
    np.testing.assert_array_equal(model.predict_classes(x), expected)


def test_states_of_a_model_are_reset() -> None:
    model = keras.Sequential([keras.Input(batch_shape=(2, 3, 1)), layers.LSTM(2, stateful=True)])
    x = values((2, 3, 1), 0)
    first = model.predict(x, verbose=0)
    assert (model.predict(x, verbose=0) != first).any()
    model.reset_states()
    np.testing.assert_array_equal(model.predict(x, verbose=0), first)


def test_yaml_is_refused() -> None:
    with pytest.raises(RuntimeError, match="to_json"):
        _model().to_yaml()
