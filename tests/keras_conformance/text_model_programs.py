"""Models that get strings, with TensorFlow and with samegrad alike."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import numpy as np

TEXTS = ["a b", "c d e", "a", "B b c, d", "e", "a c", "d!", "f a a", "g g", "e d c b a", "g", "b e"]
COLOURS = ["x", "y", "z", "x", "y", "y", "x", "q", "z", "z", "x", "y"]
NUMBERS = np.linspace(-1, 1, 24, dtype=np.float32).reshape(12, 2)
INTEGERS = np.arange(12).reshape(12, 1)
TARGETS = np.linspace(0, 1, 12, dtype=np.float32).reshape(12, 1)
BATCH = 4

Program = Callable[[Any], tuple[Any, Any]]  # the model, and its inputs


def column(strings: list[str]) -> Any:
    return np.array(strings, object)[:, None]


def vectorization(tf: Any, **options: Any) -> Any:
    layer = tf.keras.layers.TextVectorization(max_tokens=20, **options)
    layer.adapt(TEXTS)
    return layer


def dense_tail(tf: Any, pooling: Any = None) -> list[Any]:
    layers = tf.keras.layers
    pooling = layers.GlobalAveragePooling1D() if pooling is None else pooling
    return [layers.Embedding(40, 4, mask_zero=True), pooling, layers.Dense(1)]


def sequential(first: Callable[[Any], list[Any]], pooling: str = "") -> Program:
    def program(tf: Any) -> tuple[Any, Any]:
        pool = tf.keras.layers.LSTM(3) if pooling else None
        return tf.keras.Sequential([*first(tf), *dense_tail(tf, pool)]), TEXTS

    return program


def of_vectors(**options: Any) -> Program:
    """A dense layer after vectors of words."""

    def program(tf: Any) -> tuple[Any, Any]:
        layers = [vectorization(tf, **options), tf.keras.layers.Dense(1)]
        return tf.keras.Sequential(layers), TEXTS

    return program


def functional(shape: tuple[int, ...], texts: Any) -> Program:
    def program(tf: Any) -> tuple[Any, Any]:
        given = tf.keras.Input(shape, dtype="string")
        x = vectorization(tf)(given)
        for layer in dense_tail(tf):
            x = layer(x)
        return tf.keras.Model(given, x), texts

    return program


def of_columns(make: Callable[[Any], Any], *columns: tuple[str, Any]) -> Program:
    """A dense layer after a layer of one or more columns."""

    def program(tf: Any) -> tuple[Any, Any]:
        inputs = [tf.keras.Input((1,), dtype=dtype) for dtype, _ in columns]
        x = make(tf)(inputs if len(inputs) > 1 else inputs[0])
        x = tf.keras.layers.Flatten()(tf.keras.layers.Dense(1)(x))
        given = tuple(values for _, values in columns)
        return tf.keras.Model(inputs, x), given if len(given) > 1 else given[0]

    return program


def several_inputs(tf: Any) -> tuple[Any, Any]:
    layers = tf.keras.layers
    texts = tf.keras.Input((1,), dtype="string", name="texts")
    numbers = tf.keras.Input((2,), name="numbers")
    colours = tf.keras.Input((1,), dtype="string", name="colours")
    embedding, pooling, dense = dense_tail(tf)
    lookup = layers.StringLookup(vocabulary=["x", "y"], output_mode="one_hot")
    parts = [pooling(embedding(vectorization(tf)(texts))), numbers, lookup(colours)]
    inputs = {"texts": texts, "numbers": numbers, "colours": colours}
    model = tf.keras.Model(inputs, dense(layers.Concatenate()(parts)))
    return model, {"texts": column(TEXTS), "numbers": NUMBERS, "colours": column(COLOURS)}


def shared_layers(tf: Any) -> tuple[Any, Any]:
    inputs = [tf.keras.Input((1,), dtype="string") for _ in range(2)]
    words, (embedding, pooling, dense) = vectorization(tf), dense_tail(tf)
    parts = [pooling(embedding(words(x))) for x in inputs]
    model = tf.keras.Model(inputs, dense(tf.keras.layers.Concatenate()(parts)))
    return model, (column(TEXTS), column(TEXTS[::-1]))


def nested_models(tf: Any) -> tuple[Any, Any]:
    words, embedding, pooling, dense = vectorization(tf), *dense_tail(tf)
    inner = tf.keras.Sequential([words, embedding, pooling])
    given = tf.keras.Input((1,), dtype="string")
    return tf.keras.Model(given, dense(inner(given))), column(TEXTS)


def feature_space(tf: Any) -> tuple[Any, Any]:
    kinds = tf.keras.utils.FeatureSpace
    space = kinds(
        {"c": kinds.string_categorical(), "h": kinds.string_hashed(num_bins=5), "n": kinds.float()},
        crosses=[("c", "h")], crossing_dim=8, output_mode="concat",
    )  # fmt: skip
    data = {"c": COLOURS, "h": TEXTS, "n": NUMBERS[:, 0]}
    space.adapt(tf.data.Dataset.from_tensor_slices(data))
    outputs = tf.keras.layers.Dense(1)(space.get_encoded_features())
    given = {"c": column(COLOURS), "h": column(TEXTS), "n": NUMBERS[:, :1]}
    return tf.keras.Model(space.get_inputs(), outputs), given


def subclassed(reads: Any = None, own_step: bool = False) -> Program:
    """A subclass of Model, whose call may have functions of strings."""

    def program(tf: Any) -> tuple[Any, Any]:
        class Texts(tf.keras.Model):  # type: ignore[misc,name-defined]
            def __init__(self) -> None:
                super().__init__()
                self.words, self.parts = vectorization(tf), dense_tail(tf)

            def call(self, x: Any) -> Any:
                x = self.words(reads(tf, x) if reads else x)
                for layer in self.parts:
                    x = layer(x)
                return x

        class OwnStep(Texts):
            def train_step(self, data: Any) -> Any:
                x, y = data
                with tf.GradientTape() as tape:
                    loss = self.compute_loss(y=y, y_pred=self(x, training=True))
                weights = self.trainable_weights
                gradients = tape.gradient(loss, weights)
                self.optimizer.apply_gradients(zip(gradients, weights, strict=True))
                self._loss_tracker.update_state(loss)
                return {"loss": self._loss_tracker.result()}

        return (OwnStep if own_step else Texts)(), TEXTS

    return program


def of_own_layers(tf: Any) -> list[Any]:
    class Lower(tf.keras.layers.Layer):  # type: ignore[misc,name-defined]
        def __init__(self) -> None:
            super().__init__(dtype="string")

        def call(self, x: Any) -> Any:
            return tf.strings.lower(x)

    return [tf.keras.Input((), dtype="string"), Lower(), vectorization(tf, standardize=None)]


def lookup(**options: Any) -> Program:
    return of_columns(
        lambda tf: tf.keras.layers.StringLookup(vocabulary=["x", "y"], **options),
        ("string", column(COLOURS)),
    )


def hashing(dtype: str, values: Any, **options: Any) -> Program:
    return of_columns(
        lambda tf: tf.keras.layers.Hashing(5, output_mode="one_hot", **options), (dtype, values)
    )


def crossing(*columns: tuple[str, Any]) -> Program:
    return of_columns(lambda tf: tf.keras.layers.HashedCrossing(7, output_mode="one_hot"), *columns)


_TEXT, _COLOUR = ("string", column(TEXTS)), ("string", column(COLOURS))
PROGRAMS: dict[str, Program] = {
    "vectorization first": sequential(lambda tf: [vectorization(tf)]),
    "recurrent": sequential(lambda tf: [vectorization(tf)], "lstm"),
    "a fixed length": sequential(lambda tf: [vectorization(tf, output_sequence_length=3)]),
    "characters": sequential(lambda tf: [vectorization(tf, split="character")]),
    "pairs of words": sequential(lambda tf: [vectorization(tf, ngrams=2)]),
    "own standardization": sequential(
        lambda tf: [vectorization(tf, standardize=lambda x: tf.strings.lower(x))]
    ),
    "an input of strings": sequential(
        lambda tf: [tf.keras.Input((1,), dtype="string"), vectorization(tf)]
    ),
    "a lambda": sequential(
        lambda tf: [tf.keras.layers.Lambda(lambda x: tf.strings.lower(x)), vectorization(tf)]
    ),
    "own layer": sequential(of_own_layers),
    **{f"vectors: {mode}": of_vectors(output_mode=mode) for mode in ("multi_hot", "tf_idf")},
    "functional, column": functional((1,), column(TEXTS)),
    "functional, rank fitted": functional((1,), TEXTS),
    "functional, no axis": functional((), TEXTS),
    **{f"lookup: {mode}": lookup(output_mode=mode) for mode in ("one_hot", "multi_hot", "count")},
    "hashed strings": hashing("string", column(TEXTS)),
    "hashed strings with salt": hashing("string", column(TEXTS), salt=[3, 5]),
    "hashed integers": hashing("int64", INTEGERS),
    "crossed strings": crossing(_TEXT, _COLOUR),
    "crossed strings and integers": crossing(_COLOUR, ("int64", INTEGERS)),
    "several inputs": several_inputs,
    "shared layers": shared_layers,
    "nested models": nested_models,
    "feature space": feature_space,
    "subclass": subclassed(),
    "subclass that reads strings": subclassed(
        lambda tf, x: tf.strings.lower(tf.strings.regex_replace(x, "b", "C"))
    ),
    "subclass with operators of strings": subclassed(lambda tf, x: (x + " b")[:]),
    "own train_step": subclassed(own_step=True),
}


def built(tf: Any, name: str, strategy: Any = None) -> tuple[Any, Any]:
    """Return a model with fixed weights, and its inputs as tensors."""
    with strategy.scope() if strategy else contextlib.nullcontext():
        model, given = PROGRAMS[name](tf)
        given = tf.nest.map_structure(tf.constant, given) if type(given) is not list else (
            tf.constant(given)
        )  # fmt: skip
        model.compile("sgd", "mse")
        model.predict(given, batch_size=BATCH, verbose=0)
    draws = np.random.RandomState(0)
    for weight in model.trainable_weights:
        weight.assign(draws.uniform(-0.5, 0.5, tuple(weight.shape)).astype(np.float32))
    return model, given


def losses(tf: Any, model: Any, given: Any) -> list[float]:
    """Return the losses of the first batches of fit."""
    found: list[float] = []

    class Losses(tf.keras.callbacks.Callback):  # type: ignore[misc,name-defined]
        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            found.append(float(logs["loss"]))

    data = tf.data.Dataset.from_tensor_slices((given, TARGETS)).batch(BATCH)
    model.fit(data, verbose=0, callbacks=[Losses()])
    return found
