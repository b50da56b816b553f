"""Models of Keras: export, endpoints, and layers around them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import samegrad as tf

keras = pytest.importorskip("samegrad.keras")
layers = keras.layers
RNG = np.random.default_rng(0)
X = RNG.normal(size=(6, 8)).astype(np.float32)
IDS = RNG.integers(0, 10, (3, 5)).astype(np.int32)
IMAGES = RNG.normal(size=(2, 16, 16, 3)).astype(np.float32)


def dense() -> Any:
    return keras.Sequential([
        keras.Input((8,), name="features"), layers.Dense(4, activation="relu"),
        layers.BatchNormalization(), layers.Dropout(0.5), layers.Dense(2),
    ])  # fmt: skip


def recurrent(kind: Any) -> Any:
    ids = keras.Input((None,), dtype="int32")
    embedded = layers.Embedding(10, 6, mask_zero=True)(ids)
    return keras.Model(ids, layers.Dense(2)(kind(5)(embedded)))


def images() -> Any:
    return keras.Sequential([
        keras.Input((16, 16, 3)), layers.Conv2D(4, 3, activation="relu"), layers.MaxPooling2D(),
        layers.SeparableConv2D(3, 3), layers.GlobalAveragePooling2D(), layers.Softmax(),
    ])  # fmt: skip


def attention() -> Any:
    ids = keras.Input((None,), dtype="int32")
    x = layers.Embedding(10, 8)(ids)
    x = layers.LayerNormalization()(x + layers.MultiHeadAttention(2, 4)(x, x))
    return keras.Model(ids, layers.Dense(3)(x))


class Subclassed(keras.Model):
    def __init__(self) -> None:
        super().__init__()
        self.inner = layers.Dense(3)

    def call(self, inputs: Any, training: bool = False) -> Any:
        return self.inner(inputs) * (2.0 if training else 1.0)


MODELS = {
    "dense": (dense, X), "lstm": (lambda: recurrent(layers.LSTM), IDS),
    "gru": (lambda: recurrent(layers.GRU), IDS), "images": (images, IMAGES),
    "bidirectional": (lambda: recurrent(lambda n: layers.Bidirectional(layers.LSTM(n))), IDS),
    "attention": (attention, IDS), "subclassed": (Subclassed, X),
}  # fmt: skip


@pytest.mark.parametrize("name", MODELS)
def test_an_exported_model_serves_the_bits_of_the_model(tmp_path: Path, name: str) -> None:
    make, given = MODELS[name]
    model = make()
    wanted = model(given, training=False)
    model.export(tmp_path / "m", verbose=False)
    loaded = tf.saved_model.load(tmp_path / "m")
    for rows in (len(given), 1):
        x = tf.constant(given[:rows])
        found = loaded.serve(x).numpy()
        assert found.tobytes() == model(x, training=False).numpy().tobytes()
    (output,) = loaded.signatures["serving_default"](tf.constant(given)).values()
    assert output.numpy().tobytes() == wanted.numpy().tobytes()
    assert [v.shape for v in loaded.variables] == [v.shape for v in model.variables]
    assert len(loaded.trainable_variables) == len(model.trainable_variables)


def test_inputs_and_outputs_have_the_names_of_the_model(tmp_path: Path) -> None:
    a, b = keras.Input((3,), name="left"), keras.Input((3,), name="right")
    model = keras.Model(
        {"a": a, "b": b}, {"sum": layers.Add()([a, b]), "dense": layers.Dense(2)(a)}
    )
    model.export(tmp_path / "m", verbose=False)
    loaded = tf.saved_model.load(tmp_path / "m")
    x = {"a": tf.constant(X[:, :3]), "b": tf.constant(X[:, 3:6])}
    wanted = model(x)
    found = loaded.serve(x)
    served = loaded.signatures["serve"](left=x["a"], right=x["b"])
    for name in ("sum", "dense"):
        assert found[name].numpy().tobytes() == wanted[name].numpy().tobytes()
        assert served[name].numpy().tobytes() == wanted[name].numpy().tobytes()


def test_a_model_that_was_trained_on_replicas_is_served_anywhere(tmp_path: Path) -> None:
    with tf.distribute.MirroredStrategy(replicas=2).scope():
        model = dense()
        model.compile("adam", "mse")
    model.fit(X, np.ones((6, 2), np.float32), batch_size=4, epochs=2, verbose=0)
    wanted = model(X, training=False).numpy().tobytes()
    model.export(tmp_path / "m", verbose=False)
    assert tf.saved_model.load(tmp_path / "m").serve(tf.constant(X)).numpy().tobytes() == wanted
    strategy = tf.distribute.MirroredStrategy(replicas=3)
    with strategy.scope():
        loaded = tf.saved_model.load(tmp_path / "m")
    data = tf.data.Dataset.from_tensor_slices(X).batch(6)
    for batch in strategy.experimental_distribute_dataset(data):
        parts = strategy.experimental_local_results(strategy.run(loaded.serve, (batch,)))
        assert np.concatenate([part.numpy() for part in parts]).tobytes() == wanted


def test_an_archive_has_several_endpoints_and_collections(tmp_path: Path) -> None:
    model = dense()
    archive = keras.export.ExportArchive()
    archive.track(model)
    spec = [keras.InputSpec(shape=(None, 8), dtype="float32")]
    archive.add_endpoint("call_inference", lambda x: model(x, training=False), spec)
    archive.add_endpoint("call_training", lambda x: model(x, training=True), spec)
    archive.add_variable_collection("kernels", [model.layers[0].kernel])
    archive.write_out(tmp_path / "m", verbose=False)
    loaded = tf.saved_model.load(tmp_path / "m")
    assert set(loaded.signatures) == {"call_inference", "call_training", "serving_default"}
    assert any(v is loaded.kernels[0] for v in loaded.variables)
    moving = [v.numpy() for v in loaded.non_trainable_variables]
    tf.keras.utils.set_random_seed(1)
    loaded.call_training(tf.constant(X))
    later = [v.numpy() for v in loaded.non_trainable_variables]
    assert any((a != b).any() for a, b in zip(moving, later, strict=True))
    found = loaded.call_inference(tf.constant(X[:2]))
    assert found.shape == (2, 2)


def test_a_layer_around_an_endpoint_trains_on(tmp_path: Path) -> None:
    model = dense()
    model.export(tmp_path / "m", verbose=False)
    layer = layers.TFSMLayer(str(tmp_path / "m"), call_endpoint="serve")
    assert layer(X).numpy().tobytes() == model(X, training=False).numpy().tobytes()
    assert len(layer.trainable_weights) == 6
    inputs = keras.Input((8,))
    whole = keras.Model(inputs, layer(inputs))
    whole.compile(keras.optimizers.SGD(0.1), "mse")
    before = [w.numpy().copy() for w in layer.trainable_weights]
    whole.fit(X, np.ones((6, 2), np.float32), epochs=1, verbose=0)
    later = [w.numpy() for w in layer.trainable_weights]
    assert all((a != b).any() for a, b in zip(before[-2:], later[-2:], strict=True))
    with pytest.raises(ValueError, match="endpoint 'other'"):
        layers.TFSMLayer(str(tmp_path / "m"), call_endpoint="other")


def test_a_model_is_saved_without_export(tmp_path: Path) -> None:
    model = dense()
    tf.saved_model.save(model, tmp_path / "m")
    loaded = tf.saved_model.load(tmp_path / "m")
    (found,) = loaded.signatures["serving_default"](inputs=tf.constant(X)).values()
    assert found.numpy().tobytes() == model(X, training=False).numpy().tobytes()
    module = tf.Module()
    module.model = model
    module.f = tf.function(lambda x: model(x), input_signature=[tf.TensorSpec([None, 8])])
    tf.saved_model.save(module, tmp_path / "module")
    found = tf.saved_model.load(tmp_path / "module").f(tf.constant(X))
    assert found.numpy().tobytes() == model(X, training=False).numpy().tobytes()


def test_an_archive_says_what_it_lacks(tmp_path: Path) -> None:
    archive = keras.export.ExportArchive()
    with pytest.raises(ValueError, match="No endpoints have been set yet"):
        archive.write_out(tmp_path / "m")
    with pytest.raises(ValueError, match="has not yet been built"):
        archive.track(layers.Dense(2))
    with pytest.raises(ValueError, match="Invalid resource type"):
        archive.track(3)
    with pytest.raises(ValueError, match="you must provide an `input_signature`"):
        archive.add_endpoint("serve", lambda x: x)
    with pytest.raises(ValueError, match="has never been called"):
        archive.add_endpoint("serve", tf.function(lambda x: x))
    spec = [keras.InputSpec(shape=(None, 8), dtype="float32")]
    archive.add_endpoint("serve", lambda x: x, spec)
    with pytest.raises(ValueError, match="'serve' is already taken"):
        archive.add_endpoint("serve", lambda x: x, spec)
    with pytest.raises(ValueError, match="only supported with the jax backend"):
        archive.add_endpoint("other", lambda x: x, spec, is_static=True)
    with pytest.raises(ValueError, match="list/tuple/set"):
        archive.add_variable_collection("w", 3)
    with pytest.raises(ValueError, match="not yet been built"):
        keras.Sequential([layers.Dense(2)]).export(tmp_path / "m")
