"""Keras's layers in a function that leaves the lengths of sentences open."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from length_values import Traced

import samegrad as tf

RNG = np.random.default_rng(3)
WIDTH, TOKENS = 8, 20
WORDS = tf.TensorSpec([None, None, WIDTH], tf.float32)
IDS = tf.TensorSpec([None, None], tf.int32)
LENGTHS = (5, 3, 9, 2, 6)
layers = tf.keras.layers


def words(length: int, rows: int = 4) -> np.ndarray:
    return RNG.normal(size=(rows, length, WIDTH)).astype(np.float32)


def ids(length: int, rows: int = 4) -> np.ndarray:
    tokens = RNG.integers(1, TOKENS, (rows, length)).astype(np.int32)
    for row in range(rows):
        tokens[row, max(1, length - row) :] = 0
    return tokens


class Causal(layers.Layer):  # type: ignore[misc]
    """Attention of a sentence to what comes before, with sums of Keras's ops."""

    def __init__(self) -> None:
        super().__init__()
        self.attention = layers.MultiHeadAttention(2, 4, dropout=0.1)
        self.norm = layers.LayerNormalization()

    def build(self, shape: Any) -> None:
        self.attention.build(shape, shape)
        self.norm.build(shape)

    def call(self, x: Any, training: bool = False) -> Any:
        found = self.attention(x, x, use_causal_mask=True, training=training)
        length = tf.keras.ops.shape(x)[1]
        places = tf.keras.ops.cast(tf.keras.ops.arange(length), x.dtype)
        return self.norm(x + found) + places[None, :, None]


LAYERS: dict[str, Callable[[], Any]] = {
    "Dense": lambda: layers.Dense(5, "relu"),
    "EinsumDense": lambda: layers.EinsumDense("abc,cd->abd", (None, 5), bias_axes="d"),
    "LayerNormalization": layers.LayerNormalization,
    "BatchNormalization": layers.BatchNormalization,
    "Dropout": lambda: layers.Dropout(0.3),
    "SpatialDropout1D": lambda: layers.SpatialDropout1D(0.3),
    "GaussianNoise": lambda: layers.GaussianNoise(0.3),
    "GlobalAveragePooling1D": layers.GlobalAveragePooling1D,
    "GlobalMaxPooling1D": layers.GlobalMaxPooling1D,
    "Conv1D": lambda: layers.Conv1D(5, 2, padding="same"),
    "causal Conv1D": lambda: layers.Conv1D(5, 2, padding="causal"),
    "MaxPooling1D": lambda: layers.MaxPooling1D(2),
    "ZeroPadding1D": lambda: layers.ZeroPadding1D(1),
    "Cropping1D": lambda: layers.Cropping1D((1, 0)),
    "UpSampling1D": lambda: layers.UpSampling1D(2),
    "Permute": lambda: layers.Permute((2, 1)),
    "LSTM": lambda: layers.LSTM(5, return_sequences=True),
    "GRU": lambda: layers.GRU(5),
    "SimpleRNN": lambda: layers.SimpleRNN(5, return_sequences=True),
    "Bidirectional": lambda: layers.Bidirectional(layers.LSTM(3, return_sequences=True)),
    "TimeDistributed": lambda: layers.TimeDistributed(layers.Dense(3)),
    "Softmax": lambda: layers.Softmax(axis=1),
    "Causal": Causal,
}
# Windows are numbers of a program, and a loop of Keras's own in Python asks for its rounds.
TRACED_AGAIN = {"Conv1D", "causal Conv1D", "MaxPooling1D", "TimeDistributed"}


def trained(layer: Any, x: Any) -> Any:
    """What it gives, and the gradients of its weights and of x."""
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = layer(x, training=True)
        loss = tf.reduce_sum(y * y)
    return y, tape.gradient(loss, [x, *layer.trainable_variables])


@pytest.mark.parametrize("name", LAYERS)
def test_a_layer_has_the_bits_of_a_trace_for_each_length(name: str) -> None:
    tf.keras.utils.set_random_seed(1)
    layer = LAYERS[name]()
    layer.build((None, None, WIDTH))
    traced = Traced(lambda x: trained(layer, x), WORDS)
    traced.check([[words(n)] for n in LENGTHS], layer.variables)
    assert traced.runs == (len(LENGTHS) if name in TRACED_AGAIN else 1)


@pytest.mark.parametrize("mask_zero", [False, True])
def test_a_model_of_sentences_is_traced_once(mask_zero: bool) -> None:
    tf.keras.utils.set_random_seed(1)
    model = tf.keras.Sequential(
        [
            layers.Embedding(TOKENS, WIDTH, mask_zero=mask_zero),
            Causal(),
            layers.Dropout(0.2),
            layers.Dense(WIDTH, "gelu"),
            layers.GlobalAveragePooling1D(),
            layers.Dense(1),
        ]
    )
    model.build((None, None))

    def f(x: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(model(x, training=True) ** 2)
        return loss, tape.gradient(loss, model.trainable_variables)

    traced = Traced(f, IDS)
    traced.check([[ids(n)] for n in LENGTHS], model.variables)
    assert traced.runs == 1


def test_attention_between_sentences_of_two_lengths() -> None:
    tf.keras.utils.set_random_seed(1)
    attention = layers.MultiHeadAttention(2, 4)
    attention.build((None, None, WIDTH), (None, None, WIDTH))

    def f(x: Any, y: Any, seen: Any) -> Any:
        mask = tf.not_equal(seen, 0)[:, None, :]
        with tf.GradientTape() as tape:
            tape.watch([x, y])
            found = attention(x, y, attention_mask=mask)
            loss = tf.reduce_sum(found * found)
        return found, tape.gradient(loss, [x, y, *attention.trainable_variables])

    traced = Traced(f, WORDS, WORDS, IDS)
    traced.check([[words(n), words(m), ids(m)] for n, m in ((5, 3), (4, 4), (2, 9), (3, 5))])
    assert traced.runs == 1
    explained = str(traced.open.explain(words(5), words(3), ids(3)))
    assert "attention" in explained


def test_padded_losses_count_the_tokens_of_any_length() -> None:
    def f(logits: Any, labels: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(logits)
            losses, weights = tf.nn.padded_cross_entropy_loss(logits, labels, 0.1, WIDTH)
            loss = tf.nn.compute_weighted_mean_loss(losses, weights)
        return loss, tape.gradient(loss, logits)

    traced = Traced(f, WORDS, IDS)
    traced.check([[words(n), ids(n) % WIDTH] for n in LENGTHS])
    assert traced.runs == 1
    traced.check([[words(5), ids(3) % WIDTH], [words(9), ids(4) % WIDTH]])
    assert traced.runs <= 3
