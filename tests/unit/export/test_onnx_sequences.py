"""Recurrent models and Transformers in onnxruntime, with open batches and lengths."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from onnx_runs import error_ratio, flat_arrays, results_of, session_of

import samegrad as tf

layers = tf.keras.layers
WORDS, WIDTH = 23, 8


def recurrent(layer: Callable[..., Any], **options: Any) -> Any:
    inputs = tf.keras.Input((None,), dtype="int32", name="words")
    x = layers.Embedding(WORDS, WIDTH, mask_zero=options.pop("mask_zero", False))(inputs)
    x = layer(6, return_sequences=True, **options)(x)
    return tf.keras.Model(inputs, layers.Dense(3)(layer(5)(x)))


def stacked_cells() -> Any:
    inputs = tf.keras.Input((None,), dtype="int32", name="words")
    x = layers.Embedding(WORDS, WIDTH)(inputs)
    cells = [layers.GRUCell(4), layers.LSTMCell(3)]
    return tf.keras.Model(inputs, layers.RNN(cells, return_sequences=True)(x))


def both_ways() -> Any:
    inputs = tf.keras.Input((None,), dtype="int32", name="words")
    x = layers.Embedding(WORDS, WIDTH, mask_zero=True)(inputs)
    return tf.keras.Model(inputs, layers.Bidirectional(layers.LSTM(4, return_sequences=True))(x))


class Block(layers.Layer):
    """Encoder block of a Transformer."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.attention = layers.MultiHeadAttention(2, 4, dropout=0.1)
        self.norms = [layers.LayerNormalization(), layers.LayerNormalization()]
        self.inner, self.outer = layers.Dense(16, activation="gelu"), layers.Dense(WIDTH)

    def call(self, x: Any, present: Any, causal: bool = False) -> Any:
        mask = present[:, None, :]
        y = self.attention(x, x, attention_mask=mask, use_causal_mask=causal)
        x = self.norms[0](x + y)
        return self.norms[1](x + self.outer(self.inner(x)))


class Transformer(tf.keras.Model):
    """Encoder with learned positions, and padding that is masked."""

    def __init__(self, causal: bool = False) -> None:
        super().__init__()
        self.words, self.positions = layers.Embedding(WORDS, WIDTH), layers.Embedding(40, WIDTH)
        self.blocks, self.causal = [Block(), Block()], causal
        self.head = layers.Dense(WORDS)

    def call(self, words: Any) -> Any:
        places = tf.convert_to_tensor(tf.range(tf.shape(words)[1]))
        x = self.words(words) + self.positions(places)
        for block in self.blocks:
            x = block(x, words > 0, causal=self.causal)
        return tf.nn.log_softmax(self.head(x))


MODELS: dict[str, Callable[[], Any]] = {
    "LSTM": lambda: recurrent(layers.LSTM),
    "LSTM, masked": lambda: recurrent(layers.LSTM, mask_zero=True),
    "GRU": lambda: recurrent(layers.GRU),
    "GRU, backwards": lambda: recurrent(layers.GRU, go_backwards=True),
    "SimpleRNN": lambda: recurrent(layers.SimpleRNN),
    "cells": stacked_cells,
    "both ways": both_ways,
    "Transformer": Transformer,
    "Transformer, causal": lambda: Transformer(causal=True),
}


def results(model: Any, words: np.ndarray) -> list[np.ndarray]:
    return flat_arrays(model(tf.constant(words)))


@pytest.mark.parametrize("name", MODELS)
def test_a_sequence_model_runs_with_any_batch_and_length(name: str) -> None:
    rng = np.random.default_rng(2)
    batches = [rng.integers(0, WORDS, shape).astype(np.int32) for shape in ((3, 7), (1, 1), (5, 4))]
    tf.keras.utils.set_random_seed(4)
    model = MODELS[name]()
    owns = [results(model, words) for words in batches]
    spec = tf.TensorSpec([None, None], tf.int32, name="words")
    session = session_of(tf.export.to_onnx(lambda words: model(words), [spec]))
    assert session.get_inputs()[0].name == "words"
    assert session.get_inputs()[0].shape == ["batch", "length"]
    tf.keras.config.set_floatx("float64")
    tf.keras.config.set_dtype_policy("float64")
    try:
        wide = MODELS[name]()
        wide(tf.constant(batches[0]))
        wide.set_weights(model.get_weights())
        rights = [results(wide, words) for words in batches]
    finally:
        tf.keras.config.set_floatx("float32")
        tf.keras.config.set_dtype_policy("float32")
    for words, own, right in zip(batches, owns, rights, strict=True):
        assert error_ratio(results_of(session, [words]), own, right) <= 1
