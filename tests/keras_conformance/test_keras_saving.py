"""Models and weights in files: today's, older ones, TensorFlow's; saves that fail."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from keras_programs import keras
from record_keras_files import INPUTS, TARGETS, goes_on, model_of

import samegrad as tf

layers = keras.layers
FILES = Path(__file__).with_name("keras_files")


def _model(loss: Any = "mse", optimizer: Any = "adam") -> Any:
    keras.utils.set_random_seed(3)
    model = keras.Sequential([
        keras.Input((4,)), layers.Dense(3, activation="relu"), layers.BatchNormalization(),
        layers.Dense(2),
    ])  # fmt: skip
    model.compile(optimizer, loss=loss, metrics=["mae"])
    return model


def _fit(model: Any, epochs: int = 1) -> Any:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(12, 4)).astype("float32"), rng.normal(size=(12, 2)).astype("float32")
    model.fit(x, y, batch_size=4, epochs=epochs, shuffle=False, verbose=0)
    return model


def _save(model: Any, path: Path) -> None:
    if path.name.startswith(("weights", "cp")):
        model.save_weights(path)
    else:
        model.save(path, zipped=False if path.name == "folder" else None)


@pytest.mark.parametrize("loss", ["mse", "mean_squared_error"])
@pytest.mark.parametrize("name", ["model.keras", "model.h5", "folder"])
def test_a_loaded_model_trains_on_with_the_same_bits(tmp_path: Path, name: str, loss: str) -> None:
    model = _fit(_model(loss), 2)
    _save(model, tmp_path / name)
    loaded = keras.models.load_model(tmp_path / name)
    assert len(loaded.optimizer.variables) == len(model.optimizer.variables) == 14
    assert tf.fingerprint(_fit(loaded).variables) == tf.fingerprint(_fit(model).variables)


@pytest.mark.parametrize("replicas", [1, 2, 3])
def test_a_loaded_model_trains_on_under_any_number_of_replicas(
    tmp_path: Path, replicas: int
) -> None:
    model = _fit(_model(), 2)
    model.save(tmp_path / "model.keras")
    with tf.distribute.MirroredStrategy(replicas=replicas).scope():
        loaded = keras.models.load_model(tmp_path / "model.keras")
    for found, expected in zip(_fit(loaded).weights, _fit(model).weights, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


@keras.saving.register_keras_serializable("tests")
class Doubled(layers.Layer):  # type: ignore[misc,name-defined]
    """A weight that its configuration says the first value of."""

    def __init__(self, first: float = 1.0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.first = first

    def build(self, input_shape: Any) -> None:
        """One weight for each feature."""
        constant = keras.initializers.Constant(self.first)
        self.scale = self.add_weight(shape=(input_shape[-1],), initializer=constant)

    def call(self, inputs: Any) -> Any:
        """Twice the input times the weight."""
        return 2.0 * inputs * self.scale

    def get_config(self) -> dict[str, Any]:
        """With the first value."""
        return {**super().get_config(), "first": self.first}


@keras.saving.register_keras_serializable("tests")
class Net(keras.Model):  # type: ignore[misc,name-defined]
    """A subclassed model with a layer of its own kind, and others in a list."""

    def __init__(self, units: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.units = units
        self.parts = [Doubled(0.5), layers.Dense(units)]

    def call(self, inputs: Any) -> Any:
        """One part after the other."""
        for part in self.parts:
            inputs = part(inputs)
        return inputs

    def get_config(self) -> dict[str, Any]:
        """With its units."""
        return {**super().get_config(), "units": self.units}


def _preprocessing() -> Any:
    normalization = layers.Normalization()
    normalization.adapt(INPUTS)
    return keras.Sequential([keras.Input((4,)), normalization, layers.Dense(2)])


def _half() -> Any:
    policy = keras.mixed_precision.Policy("mixed_bfloat16")
    return keras.Sequential([keras.Input((4,)), layers.Dense(2, dtype=policy)])


def _subclassed() -> Any:
    model = Net(2)
    model(INPUTS)
    return model


@pytest.mark.parametrize("name", ["model.keras", "folder"])
@pytest.mark.parametrize("make", [_preprocessing, _half, _subclassed])
def test_a_model_is_loaded_as_it_was(tmp_path: Path, make: Any, name: str) -> None:
    model = make()
    _save(model, tmp_path / name)
    loaded = keras.models.load_model(tmp_path / name)
    assert type(loaded) is type(model)
    assert loaded.layers[-1].compute_dtype == model.layers[-1].compute_dtype
    np.testing.assert_array_equal(
        loaded.predict(INPUTS, verbose=0), model.predict(INPUTS, verbose=0)
    )


def test_text_layers_keep_their_words(tmp_path: Path) -> None:
    words = layers.StringLookup(vocabulary=["the", "engine"])
    model = keras.Sequential([keras.Input((2,), dtype="string"), words])
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert loaded.layers[-1].get_vocabulary() == words.get_vocabulary()


# What fails leaves what was there.

SAVES = ("model.keras", "model.h5", "weights.weights.h5", "weights.h5", "folder", "ckpt/cp")


def _content(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


@contextlib.contextmanager
def small_files() -> Iterator[None]:
    """Inside, no file grows beyond 40 000 bytes, as on a full disk."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)


@pytest.mark.parametrize("name", SAVES)
def test_a_full_disk_leaves_the_older_file(tmp_path: Path, name: str) -> None:
    model = keras.Sequential([keras.Input((200,)), layers.Dense(200)])
    model.compile("adam", "mse")
    _save(model, tmp_path / name)
    before = _content(tmp_path)
    model.set_weights([weight + 1 for weight in model.get_weights()])
    other = tmp_path / f"{Path(name).parent}/{'weights' * ('w' in name)}other.keras"
    if name.startswith("w"):
        other = tmp_path / "weights_other.weights.h5"
    full = r"(?s)\[(save|checkpoint)\] cannot save .*too large"
    with small_files(), pytest.raises(OSError, match=full):
        _save(model, tmp_path / name)
    assert _content(tmp_path) == before
    with small_files(), pytest.raises(OSError, match="cannot save"):
        _save(model, other)
    assert _content(tmp_path) == before
    assert not list(tmp_path.rglob(".*"))


class Fails(layers.Layer):  # type: ignore[misc,name-defined]
    """A layer whose weights cannot be saved."""

    error: type[BaseException] = ValueError

    def save_own_variables(self, store: Any) -> None:
        """Refuses."""
        raise self.error("not today")

    def call(self, inputs: Any) -> Any:
        """The inputs."""
        return inputs


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
@pytest.mark.parametrize("name", ["model.keras", "weights.weights.h5", "folder"])
def test_a_save_that_is_interrupted_leaves_the_older_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, error: type[BaseException]
) -> None:
    _save(_model(), tmp_path / name)
    before = _content(tmp_path)
    monkeypatch.setattr(Fails, "error", error)
    model = keras.Sequential([keras.Input((4,)), layers.Dense(2), Fails()])
    with pytest.raises(error, match="not today"):
        _save(model, tmp_path / name)
    assert _content(tmp_path) == before
    assert not list(tmp_path.rglob(".*"))


@pytest.mark.parametrize("name", SAVES)
def test_saving_twice_replaces(tmp_path: Path, name: str) -> None:
    model = _model()
    _save(model, tmp_path / name)
    names = set(_content(tmp_path))
    model.set_weights([weight + 1 for weight in model.get_weights()])
    _save(model, tmp_path / name)
    if not name.startswith("ckpt"):  # whose arrays are in a file with the name of their shapes
        assert set(_content(tmp_path)) == names
    loaded = _model()
    if name in ("folder", "model.keras", "model.h5"):
        loaded = keras.models.load_model(tmp_path / name)
    else:
        loaded.load_weights(tmp_path / name)
    for found, expected in zip(loaded.get_weights(), model.get_weights(), strict=True):
        np.testing.assert_array_equal(found, expected)


def test_a_link_stays_one_and_its_file_keeps_who_may_read_it(tmp_path: Path) -> None:
    model = _model()
    (tmp_path / "deep").mkdir()
    model.save(tmp_path / "deep" / "model.keras")
    (tmp_path / "deep" / "model.keras").chmod(0o600)
    (tmp_path / "link.keras").symlink_to(tmp_path / "deep" / "model.keras")
    model.save(tmp_path / "link.keras")
    assert (tmp_path / "link.keras").is_symlink()
    assert (tmp_path / "deep" / "model.keras").stat().st_mode & 0o777 == 0o600
    assert keras.models.load_model(tmp_path / "link.keras").count_params() == model.count_params()


def test_weights_in_several_files_are_there_in_full(tmp_path: Path) -> None:
    model = keras.Sequential([keras.Input((300,)), layers.Dense(300), layers.Dense(300)])
    model.save_weights(tmp_path / "w.weights.json", max_shard_size=0.0004)
    assert len(_content(tmp_path)) > 2
    other = keras.Sequential([keras.Input((300,)), layers.Dense(300), layers.Dense(300)])
    other.load_weights(tmp_path / "w.weights.json")
    np.testing.assert_array_equal(other.get_weights()[0], model.get_weights()[0])


def test_a_folder_with_other_files_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "notes").write_text("mine")
    with pytest.raises(ValueError, match=r"absent, empty or one of a model: got .*'notes'"):
        _model().save(tmp_path, zipped=False)
    assert _content(tmp_path) == {"notes": b"mine"}


@pytest.mark.parametrize("arguments", [{}, {"save_format": None}])
def test_a_model_in_a_folder_is_exported_as_in_keras_3(
    tmp_path: Path, arguments: dict[str, Any]
) -> None:
    model, folder = _model(), tmp_path / "folder"
    with pytest.raises(ValueError, match=r"(?s)`\.keras`.*`\.h5`.*`model\.export\(filepath\)`"):
        model.save(folder, **arguments)
    assert not folder.exists()
    model.export(folder, verbose=False)
    with pytest.raises(ValueError, match=r"`keras\.layers\.TFSMLayer\(.*'serving_default'"):
        keras.models.load_model(folder)
    served = keras.layers.TFSMLayer(folder, call_endpoint="serving_default")(INPUTS)
    np.testing.assert_array_equal(served["output_0"], model(INPUTS))


def test_the_save_format_of_keras_2_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"either `\.keras` or `\.h5` extension"):
        _model().save(tmp_path / "folder", save_format="tf")


# Older programs.


def test_weights_in_checkpoints_are_found_as_the_latest(tmp_path: Path) -> None:
    model = _fit(_model())
    for number in (1, 2):
        model.save_weights(f"{tmp_path}/cp-{number:04d}.ckpt")
    latest = tf.train.latest_checkpoint(tmp_path)
    assert latest == f"{tmp_path}/cp-0002.ckpt"
    loaded = _model()
    status = loaded.load_weights(latest)
    assert tf.fingerprint(_fit(loaded).variables) == tf.fingerprint(_fit(model).variables)
    status.assert_consumed()  # the optimizer's state, too, once there is an optimizer


def test_a_checkpoint_of_weights_waits_for_a_model_that_is_not_built(tmp_path: Path) -> None:
    model = _fit(_model())
    model.save_weights(tmp_path / "cp", save_format="tf")
    strategy = tf.distribute.MirroredStrategy(replicas=3)
    with strategy.scope():
        later = keras.Sequential([
            layers.Dense(3, activation="relu"), layers.BatchNormalization(), layers.Dense(2),
        ])  # fmt: skip
        later.load_weights(tmp_path / "cp").expect_partial()
    np.testing.assert_array_equal(
        later.predict(INPUTS, verbose=0), model.predict(INPUTS, verbose=0)
    )


def test_weights_of_older_hdf5_files(tmp_path: Path) -> None:
    model = _fit(_model())
    model.save_weights(tmp_path / "new" / "w.h5")
    loaded = _model()
    loaded.load_weights(tmp_path / "new" / "w.h5")
    for found, expected in zip(loaded.get_weights(), model.get_weights(), strict=True):
        np.testing.assert_array_equal(found, expected)


def _savedmodel(folder: Path) -> Path:
    (folder / "saved_model.pb").write_bytes(b"graph")
    return folder


def _checkpoint(folder: Path) -> Path:
    (folder / "cp.index").write_bytes(b"index")
    return folder / "cp"


def test_what_cannot_be_read_or_written_says_what_to_do(tmp_path: Path) -> None:
    model = _model()
    with pytest.raises(ValueError, match=r"a SavedModel, .*model\.save\('model\.keras'\)"):
        keras.models.load_model(_savedmodel(tmp_path))
    with pytest.raises(tf.train.CorruptCheckpointError, match="the index of a checkpoint"):
        model.load_weights(_checkpoint(tmp_path))
    with pytest.raises(ValueError, match="got None, as tf.train.latest_checkpoint gives"):
        model.load_weights(tf.train.latest_checkpoint(tmp_path))
    with pytest.raises(ValueError, match="save_format is 'h5' or 'tf'"):
        model.save_weights(tmp_path / "w", save_format="zip")
    with pytest.raises(ValueError, match="once it is built"):
        keras.Sequential([layers.Dense(2)]).save_weights(tmp_path / "w")
    model.save_weights(tmp_path / "w")
    with pytest.raises(ValueError, match="by_name is for HDF5"):
        model.load_weights(tmp_path / "w", by_name=True)


# Files of TensorFlow's Keras, and ours in TensorFlow.


@pytest.mark.parametrize("name", ["tensorflow.keras", "tensorflow.h5"])
def test_a_model_of_tensorflow_predicts_and_trains_on_as_there(name: str) -> None:
    golden = np.load(FILES / "tensorflow.npz")
    model = keras.models.load_model(FILES / name)
    found = model.predict(INPUTS, verbose=0)
    np.testing.assert_allclose(found, golden["predictions"], rtol=1e-5, atol=1e-6)
    assert int(model.optimizer.iterations) == 2  # of HDF5 files, too, which TensorFlow forgets
    for i, weight in enumerate(goes_on(model)):
        np.testing.assert_allclose(weight, golden[f"later_{i}"], rtol=1e-4, atol=1e-5)


def test_weights_of_tensorflow_predict_as_there() -> None:
    model = model_of(keras)
    model.set_weights([weight + 1 for weight in model.get_weights()])
    model.load_weights(FILES / "tensorflow.weights.h5")
    found = model.predict(INPUTS, verbose=0)
    golden = np.load(FILES / "tensorflow.npz")["predictions"]
    np.testing.assert_allclose(found, golden, rtol=1e-5, atol=1e-6)
    assert TARGETS.shape == golden.shape


@pytest.mark.parametrize("name", ["model.keras", "model.h5"])
def test_tensorflow_reads_what_samegrad_writes(tmp_path: Path, name: str) -> None:
    python = os.environ.get("SAMEGRAD_TENSORFLOW_PYTHON")
    if python is None:
        pytest.skip("SAMEGRAD_TENSORFLOW_PYTHON names no interpreter with TensorFlow")
    model = model_of(keras)
    model.compile("adam", "mean_squared_error")  # TensorFlow's Keras cannot read "mse" of HDF5
    model.save(tmp_path / name)
    script = Path(__file__).with_name("record_keras_files.py")
    environment = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}
    environment.pop("LD_LIBRARY_PATH", None)
    done = subprocess.run(
        [python, str(script), "--read", str(tmp_path / name)],
        capture_output=True, text=True, check=True, env=environment, timeout=300,
    )  # fmt: skip
    found = json.loads(done.stdout.splitlines()[-1])
    np.testing.assert_allclose(found, model.predict(INPUTS, verbose=0), rtol=1e-5, atol=1e-6)


def test_files_are_written_whole_without_tensorflow() -> None:
    assert "tensorflow" not in sys.modules


def test_a_fresh_process_reads_what_samegrad_adds(tmp_path: Path) -> None:
    layers = tf.keras.layers
    model = tf.keras.Sequential(
        [layers.Input((5, 2)), layers.LocallyConnected1D(2, 2), layers.Flatten(), layers.Dense(1)]
    )
    model.compile(tf.keras.optimizers.LazyAdam(0.1), "mse")
    model.fit(np.ones((4, 5, 2)), np.ones((4, 1)), verbose=0)
    model.save(tmp_path / "added.keras")
    program = (
        "import numpy as np, samegrad as tf\n"
        f"model = tf.keras.models.load_model({str(tmp_path / 'added.keras')!r})\n"
        "print(type(model.optimizer).__name__, model.predict(np.ones((1, 5, 2)), verbose=0).item())"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    kind, value = done.stdout.split()
    assert kind == "LazyAdam"
    assert float(value) == model.predict(np.ones((1, 5, 2)), verbose=0).item()
