"""A neural collaborative filter: tables of embeddings, trained by fit on any number of replicas."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from keras_programs import keras

import samegrad as tf

USERS, ITEMS, EXAMPLES, BATCH = 300, 200, 912, 64  # the last batch has 16
RNG = np.random.default_rng(3)
PAIRS = {
    "user": RNG.integers(0, USERS - 20, EXAMPLES),  # the last 20 are never named
    "item": RNG.integers(0, ITEMS - 20, EXAMPLES),
}
LABELS = (RNG.random(EXAMPLES) < 0.2).astype("float32")


def _filter(optimizer: Any, replicas: int) -> Any:
    """He et al. (2017): a product of embeddings and dense layers over others, weighed by a last."""
    keras.utils.set_random_seed(7)
    layers = keras.layers
    with tf.distribute.MirroredStrategy(replicas=replicas).scope():
        user, item = (keras.Input((), dtype="int32", name=name) for name in PAIRS)
        product = layers.Multiply()([
            layers.Embedding(USERS, 4, name="users")(user),
            layers.Embedding(ITEMS, 4, name="items")(item),
        ])  # fmt: skip
        hidden = layers.Concatenate()(
            [layers.Embedding(USERS, 8)(user), layers.Embedding(ITEMS, 8)(item)]
        )
        for units in (16, 8):
            hidden = layers.Dense(units, activation="relu")(hidden)
        both = layers.Concatenate()([product, hidden])
        model = keras.Model(
            {"user": user, "item": item}, layers.Dense(1, activation="sigmoid")(both)
        )
        model.compile(optimizer(), "binary_crossentropy", metrics=["accuracy", "auc"])
    return model


def _epoch(optimizer: Any, replicas: int) -> tuple[dict[str, Any], list[np.ndarray]]:
    model = _filter(optimizer, replicas)
    history = model.fit(PAIRS, LABELS, batch_size=BATCH, verbose=0).history
    return history, model.get_weights()


OPTIMIZERS = {
    "lazy": lambda: tf.keras.optimizers.LazyAdam(0.01),
    "adam": lambda: keras.optimizers.Adam(0.01),
    "sgd": lambda: keras.optimizers.SGD(0.1),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_an_epoch_has_the_same_bits_on_any_replicas(name: str) -> None:
    history, weights = _epoch(OPTIMIZERS[name], 1)
    for replicas in (2, 3):
        found, others = _epoch(OPTIMIZERS[name], replicas)
        assert found == history
        assert all(np.array_equal(a, b) for a, b in zip(weights, others, strict=True))


def test_an_epoch_leaves_rows_alone_that_no_example_names() -> None:
    fresh = _filter(OPTIMIZERS["lazy"], 4)
    before = {name: fresh.get_layer(f"{name}s").get_weights()[0] for name in PAIRS}
    fresh.fit(PAIRS, LABELS, batch_size=BATCH, verbose=0)
    for name, ids in PAIRS.items():
        moved = (fresh.get_layer(f"{name}s").get_weights()[0] != before[name]).any(axis=1)
        np.testing.assert_array_equal(np.flatnonzero(moved), np.unique(ids))
