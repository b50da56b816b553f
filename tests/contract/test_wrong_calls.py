"""Wrong calls of Keras's classes are refused in Keras's words, which name argument and value."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import samegrad as tf

keras = tf.keras
layers, optimizers, metrics = keras.layers, keras.optimizers, keras.metrics
IMAGES = tf.ones((2, 6, 6, 2))
WRONG: list[tuple[Callable[[], Any], str]] = [
    (lambda: layers.Dense(-3), "`units`.*units=-3"),
    (lambda: layers.Dense(2, activation="rolu"), "activation.*rolu"),
    (lambda: layers.Dense(2, kernel_initializer="zeroes"), "initializer.*zeroes"),
    (lambda: layers.Dense(2, dtype="float31"), "'float31'"),
    (lambda: layers.Dense(2)("text"), "tensors.*text"),
    (lambda: layers.Conv2D(0, 3), "`filters`.*filters=0"),
    (lambda: layers.Conv2D(3, 3, padding="much"), "`padding`.*much"),
    (lambda: layers.Conv2D(3, 3)(IMAGES[0]), r"min_ndim=4, found ndim=3.*\(6, 6, 2\)"),
    (lambda: layers.MaxPooling2D(0), "`pool_size`.*pool_size=0"),
    (lambda: layers.Dropout(1.5), "`rate`.*rate=1.5"),
    (lambda: layers.Reshape((5, 5))(IMAGES), r"\(6, 6, 2\).*\(5, 5\)"),
    (lambda: layers.Permute((1, 3)), r"`dims`.*\(1, 3\)"),
    (lambda: layers.RepeatVector("a"), "`n`.*str"),
    (lambda: layers.Concatenate()([IMAGES, IMAGES[:, :3]]), r"\(2, 6, 6, 2\).*\(2, 3, 6, 2\)"),
    (lambda: layers.Add()(IMAGES), r"list of inputs.*\(2, 6, 6, 2\)"),
    (lambda: layers.Embedding(0, 3), "`input_dim`.*input_dim=0"),
    (lambda: layers.LSTM(-1), "`units`.*-1"),
    (lambda: layers.LSTM(3)(IMAGES), r"ndim=3, found ndim=4.*\(2, 6, 6, 2\)"),
    (lambda: layers.MultiHeadAttention(2, -1), "`key_dim`.*key_dim=-1"),
    (lambda: layers.GroupNormalization(groups=5)(IMAGES), r"groups \(5\).*channels \(2\)"),
    (lambda: layers.Flatten(data_format="odd"), "`data_format`.*odd"),
    (lambda: keras.losses.get("mze"), "loss.*mze"),
    (lambda: keras.losses.Huber(reduction="most"), "`reduction`.*reduction=most"),
    (lambda: metrics.AUC(num_thresholds=1), "`num_thresholds`.*num_thresholds=1"),
    (lambda: metrics.MeanIoU(), "num_classes"),
    (lambda: metrics.Precision(thresholds=1.5), r"[Tt]hreshold.*1\.5"),
    (lambda: metrics.get("acc2"), "metric.*acc2"),
    (lambda: optimizers.get("sdg"), "optimizer.*sdg"),
    (lambda: optimizers.SGD("fast"), "`learning_rate`.*fast"),
    (lambda: optimizers.SGD(momentum=2.0), "`momentum`"),
    (lambda: optimizers.Adam(clipnorm=1.0, clipvalue=2.0), "clipnorm=1.0, clipvalue=2.0"),
    (lambda: optimizers.SGD(gradient_accumulation_steps=1), "gradient_accumulation_steps=1"),
]


@pytest.mark.parametrize(("call", "message"), WRONG, ids=[message for _, message in WRONG])
def test_it_names_argument_and_value(call: Callable[[], Any], message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=f"(?s){message}"):
        call()
