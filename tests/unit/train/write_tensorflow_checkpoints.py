"""Write the checkpoints of TensorFlow that `test_tensorflow_checkpoints.py` reads.

    python tests/unit/train/write_tensorflow_checkpoints.py

It needs TensorFlow 2.21 and tf_keras 2.21, which the tests do not. It also writes `expected.npz`:
what TensorFlow reads from the checkpoints, the outputs of the models, and their weights after one
more step. The programs below are given TensorFlow's modules here, and samegrad's in the tests.
"""

from __future__ import annotations

import json
import pathlib
import shutil
import tempfile
from collections.abc import Callable
from typing import Any

import numpy as np

FOLDER = pathlib.Path(__file__).parent / "tensorflow_checkpoints"
FEATURES = np.linspace(-1.0, 1.0, 12, dtype=np.float32).reshape(3, 4)
# Each once: Keras 3 on TensorFlow squares the gradients of a repeated token one by one.
TOKENS = np.arange(9, dtype=np.int32).reshape(3, 3)


def sequential(keras: Any) -> Any:
    """Return a model whose second layer has no weights, and third has moving averages."""
    layers = keras.layers
    stack = [layers.Dense(3), layers.Activation("tanh"), layers.BatchNormalization()]
    return keras.Sequential([layers.Input((4,)), *stack, layers.Dense(2)])


def functional(keras: Any) -> Any:
    """Return a model of two branches, one a model itself."""
    layers = keras.layers
    x = keras.Input((4,))
    inner = keras.Sequential([layers.Input((4,)), layers.Dense(2, name="deep")], name="inner")
    joined = layers.Concatenate()([layers.Dense(3, "tanh")(x), inner(x)])
    return keras.Model(x, layers.Dense(1)(joined))


def recurrent(keras: Any) -> Any:
    """Return a model with cells, wrappers and an embedding."""
    layers = keras.layers
    stack = [layers.Embedding(9, 2), layers.LSTM(2, return_sequences=True)]
    stack += [layers.Bidirectional(layers.GRU(2))]
    return keras.Sequential([layers.Input((3,), dtype="int32"), *stack, layers.Dense(1)])


def layered(keras: Any) -> Any:
    """Return a model of a program's own class, whose layers are in attributes and a list."""
    layers = keras.layers

    class Scale(layers.Layer):  # type: ignore[name-defined, misc]
        def build(self, shape: Any) -> None:
            self.factor = self.add_weight(shape=(shape[-1],), name="scale", initializer="ones")
            super().build(shape)

        def call(self, x: Any) -> Any:
            return x * self.factor

    class Model(keras.Model):  # type: ignore[name-defined, misc]
        def __init__(self) -> None:
            super().__init__()
            self.second = layers.Dense(2)
            self.blocks = [layers.Dense(2, activation="tanh"), Scale()]

        def call(self, x: Any) -> Any:
            for block in self.blocks:
                x = block(x)
            return self.second(x)

    model = Model()
    model(FEATURES)
    return model


def subclassed(keras: Any) -> Any:
    """Return a model of a program's own class, which has a weight itself."""
    layers = keras.layers

    class Model(keras.Model):  # type: ignore[name-defined, misc]
        def __init__(self) -> None:
            super().__init__()
            self.second = layers.Dense(2)
            self.blocks = [layers.Dense(3, activation="tanh"), layers.LayerNormalization()]

        def build(self, shape: Any) -> None:
            self.factor = self.add_weight(shape=(2,), name="scale", initializer="ones")
            super().build(shape)

        def call(self, x: Any) -> Any:
            for block in self.blocks:
                x = block(x)
            return self.second(x) * self.factor

    model = Model()
    model(FEATURES)
    return model


def module(tf: Any) -> Any:
    """Return a module whose variables have many dtypes."""

    class Module(tf.Module):  # type: ignore[name-defined, misc]
        def __init__(self) -> None:
            super().__init__()
            self.weight = tf.Variable(np.zeros((3, 4), np.float32))
            self.parts = [tf.Variable(np.zeros(2)), tf.Variable(0, dtype=tf.int32)]
            self.named = {"half": tf.Variable(np.zeros(3, np.float16))}
            self.small = tf.Variable(tf.zeros([2], tf.bfloat16))
            self.flag = tf.Variable(np.array([False, False]))
            self.bytes = tf.Variable(np.zeros(3, np.uint8))
            self.count = tf.Variable(0, dtype=tf.int64)

    return Module()


def fill(variables: Any, tf: Any) -> None:
    """Give variables values that differ from one another."""
    for index, variable in enumerate(variables):
        values: Any = np.arange(int(np.prod(variable.shape))) % 7 + index + 1
        values = values.reshape(variable.shape) / 8.0
        if tf.as_dtype(variable.dtype).is_integer:
            values = values * 8
        if tf.as_dtype(variable.dtype) == tf.bool:
            values = values > index / 8 + 0.13
        variable.assign(tf.cast(values, variable.dtype))


def step(tf: Any, model: Any, optimizer: Any, inputs: Any) -> None:
    """Train a model by one step."""
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(model(inputs, training=True) - 1.0))
    variables = model.trainable_variables
    gradients = tape.gradient(loss, variables)
    optimizer.apply_gradients(zip(gradients, variables, strict=True))


def flat(variables: Any) -> np.ndarray[Any, Any]:
    """Return the elements of all variables, sorted: Keras 2 has another order of variables."""
    return np.sort(np.concatenate([np.ravel(np.asarray(v.numpy())) for v in variables]))


# Model, inputs, optimizer of Keras 3 by name and arguments.
MODELS: dict[str, tuple[Callable[[Any], Any], Any, str, dict[str, Any]]] = {
    "keras3-adam": (sequential, FEATURES, "Adam", {"learning_rate": 0.1}),
    "keras3-momentum": (functional, FEATURES, "SGD", {"learning_rate": 0.1, "momentum": 0.9}),
    "keras3-rmsprop": (subclassed, FEATURES, "RMSprop", {"learning_rate": 0.01}),
    "keras3-recurrent": (recurrent, TOKENS, "Adam", {"learning_rate": 0.1, "amsgrad": True}),
    "keras2-adam": (sequential, FEATURES, "Adam", {"learning_rate": 0.1}),
    "keras2-nested": (functional, FEATURES, "Adagrad", {"learning_rate": 0.1}),
    "keras2-slots": (sequential, FEATURES, "Adam", {"learning_rate": 0.1}),
    "keras2-slots-momentum": (
        subclassed, FEATURES, "SGD", {"learning_rate": 0.1, "momentum": 0.9},
    ),
    "keras2-slots-rmsprop": (functional, FEATURES, "RMSprop", {"learning_rate": 0.01}),
    "keras2-weights": (layered, FEATURES, "Adam", {"learning_rate": 0.1}),
    "keras2-weights-slots": (recurrent, TOKENS, "Adam", {"learning_rate": 0.1}),
}  # fmt: skip


def _write_models(tf: Any, expected: dict[str, Any]) -> None:
    import keras
    import tf_keras

    for name, (make, inputs, optimizer_name, options) in MODELS.items():
        library = keras if name.startswith("keras3") else tf_keras
        optimizers = library.optimizers.legacy if "slots" in name else library.optimizers
        library.utils.set_random_seed(len(name))
        model = make(library)
        optimizer = getattr(optimizers, optimizer_name)(**options)
        for _ in range(2):
            step(tf, model, optimizer, inputs)
        if "weights" in name:
            model.compile(optimizer, "mse")
            model.save_weights(FOLDER / name)
        else:
            count = tf.Variable(2, dtype=tf.int64)
            tf.train.Checkpoint(model=model, optimizer=optimizer, step=count).save(FOLDER / name)
        old = "slots" in name  # all but counts and rates
        slots = optimizer.weights[1:] if old else [v for v in optimizer.variables if v.shape != ()]
        expected[f"{name}:slots"] = flat(slots)
        expected[f"{name}:output"] = np.asarray(model(inputs))
        expected[f"{name}:weights"] = flat(model.weights)
        step(tf, model, optimizer, inputs)
        expected[f"{name}:next"] = flat(model.trainable_variables)


def _write_export(tf: Any, expected: dict[str, Any]) -> None:
    import keras

    model = functional(keras)
    fill(model.variables, tf)
    expected["keras3-export:output"] = np.asarray(model(FEATURES))
    with tempfile.TemporaryDirectory() as folder:
        model.export(folder)
        for path in pathlib.Path(folder, "variables").iterdir():
            shutil.copy(path, FOLDER / f"keras3-export{path.suffix}")


def _write_modules(tf: Any) -> None:
    written = module(tf)
    fill(written.variables, tf)
    written.words = tf.Variable(["", "two", "drei" * 40])
    written.pair = tf.Variable(np.array([1 + 2j, 3j], np.complex64))
    tf.train.Checkpoint(written).write(FOLDER / "module")
    policy = tf.train.experimental.MaxShardSizePolicy(max_shard_size=24)
    options = tf.train.CheckpointOptions(experimental_sharding_callback=policy)
    del written.words, written.pair
    tf.train.Checkpoint(written).write(FOLDER / "sharded", options)


def _write_names(tf: Any) -> None:
    v1 = tf.compat.v1
    with tf.Graph().as_default(), v1.Session() as session:
        kernel = np.arange(12, dtype=np.float32).reshape(4, 3)
        v1.get_variable("dense/kernel", initializer=kernel)
        v1.get_variable("dense/bias", initializer=np.array([1, 2, 3], np.float32))
        v1.get_variable("dense/kernel/Adam", initializer=kernel / 2)
        v1.get_variable("global_step", initializer=np.int64(7))
        v1.get_variable("words", initializer=["a", "bc"])
        v1.get_variable("flags", initializer=[True, False])
        v1.get_variable("small", initializer=tf.constant([1, 2.5], tf.bfloat16))
        split = v1.fixed_size_partitioner(3)
        v1.get_variable("split", (7, 100), initializer=v1.ones_initializer(), partitioner=split)
        session.run(v1.global_variables_initializer())
        parts = [v for v in v1.global_variables() if v.op.name.startswith("split/")]
        for index, part in enumerate(parts):
            session.run(part.assign(part + index))
        v1.train.Saver(sharded=True).save(session, str(FOLDER / "names"), write_meta_graph=False)


def main() -> None:
    """Write all checkpoints and what TensorFlow reads from them."""
    import tensorflow as tf

    FOLDER.mkdir(exist_ok=True)
    for old in FOLDER.iterdir():
        old.unlink()
    expected: dict[str, Any] = {}
    _write_models(tf, expected)
    _write_export(tf, expected)
    _write_modules(tf)
    _write_names(tf)
    contents = {}
    for index in sorted(FOLDER.glob("*.index")):
        name = index.stem
        reader = tf.train.load_checkpoint(str(index.with_suffix("")))
        dtypes = reader.get_variable_to_dtype_map()
        shapes = reader.get_variable_to_shape_map()
        if name in ("module", "sharded", "names", "keras2-slots-1"):
            contents[name] = {key: [dtypes[key].name, shapes[key]] for key in sorted(shapes)}
        if name in ("module", "names"):
            for key in shapes:
                if dtypes[key].name in ("float16", "string"):  # its reader lacks the first
                    continue
                value = reader.get_tensor(key)
                if dtypes[key].name == "bfloat16":
                    value = value.astype(np.float32)
                expected[f"{name}:{key}"] = value
    (FOLDER / "checkpoint").unlink()  # it names the folder of this machine
    np.savez_compressed(FOLDER / "expected.npz", **expected)
    (FOLDER / "expected.json").write_text(json.dumps(contents, separators=(",", ":")))


if __name__ == "__main__":
    main()
