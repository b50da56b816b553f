"""Small programs that are exported to TensorFlow, with weights that no draw of ours changes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import samegrad as tf

layers = tf.keras.layers
RESULTS = Path(__file__).with_name("tensorflow_results.json")
OPERATIONS = Path(__file__).with_name("tensorflow_operations.json")


class Program(NamedTuple):
    """A function, its signature, and inputs by name for each call."""

    function: Any
    signature: list[Any]
    calls: list[dict[str, np.ndarray]]


def _numbers(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def _weighted(model: Any) -> Any:
    rng = np.random.default_rng(7)
    model.set_weights([rng.uniform(0.1, 0.5, w.shape).astype(w.dtype) for w in model.get_weights()])
    return model


def dense() -> Program:
    model = tf.keras.Sequential([
        tf.keras.Input((5,)), layers.Dense(4, activation="relu"), layers.Dense(3), layers.Softmax(),
    ])  # fmt: skip
    spec = tf.TensorSpec([None, 5], tf.float32, name="x")
    return Program(_weighted(model), [spec], [{"x": _numbers(n, 5, seed=n)} for n in (1, 4)])


def convolutions() -> Program:
    model = tf.keras.Sequential([
        tf.keras.Input((9, 8, 2)), layers.Conv2D(4, 3, strides=2, padding="same"),
        layers.BatchNormalization(), layers.DepthwiseConv2D(2, depth_multiplier=2),
        layers.AveragePooling2D(2, strides=1, padding="same"),
        layers.Conv2DTranspose(3, 3, strides=2), layers.MaxPooling2D(2, padding="same"),
        layers.Flatten(), layers.Dense(2),
    ])  # fmt: skip
    spec = tf.TensorSpec([None, 9, 8, 2], tf.float32, name="images")
    return Program(_weighted(model), [spec], [{"images": _numbers(3, 9, 8, 2)}])


def recurrent() -> Program:
    words = tf.keras.Input((None,), dtype="int32")
    x = layers.Embedding(11, 4, mask_zero=True)(words)
    x = layers.Bidirectional(layers.LSTM(3, return_sequences=True))(x)
    model = _weighted(tf.keras.Model(words, layers.GRU(2)(x)))
    rng = np.random.default_rng(1)
    calls = [{"words": rng.integers(0, 11, shape, np.int32)} for shape in ((2, 5), (3, 1))]
    return Program(model, [tf.TensorSpec([None, None], tf.int32, name="words")], calls)


def attention() -> Program:
    layer = layers.MultiHeadAttention(2, 3)
    norm = layers.LayerNormalization()
    layer(np.zeros((1, 2, 4), np.float32), np.zeros((1, 2, 4), np.float32))
    norm(np.zeros((1, 2, 4), np.float32))
    _weighted(layer)

    def encode(x: Any) -> Any:
        return norm(x + layer(x, x, use_causal_mask=True))

    spec = tf.TensorSpec([None, None, 4], tf.float32, name="x")
    return Program(encode, [spec], [{"x": _numbers(2, 3, 4)}, {"x": _numbers(1, 5, 4)}])


def control() -> Program:
    def run(x: Any) -> Any:
        y, rounds = x, 0
        while rounds < 4 and tf.reduce_max(y) < 9.0:
            y = y * 2.0 if tf.reduce_sum(y) > 0.0 else y + 1.0
            rounds += 1
        steps = tf.transpose(y)
        sums = tf.scan(lambda state, step: state * 0.5 + step, steps, tf.zeros_like(steps[0]))
        return {"y": y, "rounds": rounds, "sums": sums}

    spec = tf.TensorSpec([None, 3], tf.float32, name="x")
    return Program(tf.function(run), [spec], [{"x": _numbers(2, 3)}, {"x": -_numbers(4, 3)}])


def movement() -> Program:
    def run(x: Any, places: Any) -> Any:
        best = tf.math.top_k(x, 2)
        return {
            "best": best.values, "where": best.indices, "order": tf.argsort(x, axis=0),
            "cut": x[:, ::-2], "taken": tf.gather(x, places), "powers": tf.math.cumprod(x, axis=1),
            "hot": tf.one_hot(places, 3), "gamma": tf.math.lgamma(tf.abs(x) + 1.0),
            "joined": tf.concat([x, tf.pad(x, [[0, 0], [1, 2]])], 1),
            "parts": tf.math.unsorted_segment_sum(x[:2], places, 4),
        }  # fmt: skip

    specs = [tf.TensorSpec([3, 5], tf.float32, "x"), tf.TensorSpec([2], tf.int32, "places")]
    places = np.array([2, 0], np.int32)
    return Program(run, specs, [{"x": _numbers(3, 5), "places": places}])


PROGRAMS: dict[str, Callable[[], Program]] = {
    made.__name__: made
    for made in (dense, convolutions, recurrent, attention, control, movement)
}  # fmt: skip
