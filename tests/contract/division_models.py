"""Models of Keras that train on any division of the global batch, for test_divided_steps.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from divided import Built, Results, case, integers, normal

import samegrad as tf

layers, keras = tf.keras.layers, tf.keras


def classifier(model: Any, optimizer: Any, losses: Any = None) -> Built:
    """Trains a model of labels."""
    of_examples = losses or keras.losses.SparseCategoricalCrossentropy(True, reduction="none")

    def step(x: Any, labels: Any) -> Results:
        with tf.GradientTape() as tape:
            logits = model(x, training=True)
            loss = tf.nn.compute_average_loss(of_examples(labels, logits))
            loss += tf.nn.scale_regularization_loss(model.losses)
            scaled = optimizer.scale_loss(loss)
        weights = model.trainable_variables
        optimizer.apply_gradients(zip(tape.gradient(scaled, weights), weights, strict=True))
        return Results(rows=[logits], sums=[loss])

    return step, [*model.variables, *optimizer.variables]


# ---- layers ----


@case(integers(3000, 3), integers(4), batches=(5, 37))
def embedding_layer_with_adam() -> Built:
    model = keras.Sequential(
        [layers.Embedding(3000, 4), layers.GlobalAveragePooling1D(), layers.Dense(4)]
    )
    model.build((None, 3))
    return classifier(model, keras.optimizers.Adam(0.1))


@case(normal(6), integers(4), batches=(0, 1, 5, 37, 130))
def dense() -> Built:
    model = keras.Sequential([layers.Dense(33, "relu", kernel_regularizer="l2"), layers.Dense(4)])
    model.build((None, 6))
    return classifier(model, keras.optimizers.SGD(0.1, momentum=0.9))


@case(normal(300), integers(4), batches=(131,))
def wide_dense() -> Built:
    model = keras.Sequential([layers.Dense(400, "tanh"), layers.Dense(200), layers.Dense(4)])
    model.build((None, 300))
    return classifier(model, keras.optimizers.Adam(0.01))


class Penalized(layers.Layer):  # type: ignore[misc]
    """Adds a loss of its outputs."""

    def call(self, x: Any) -> Any:
        self.add_loss(0.1 * tf.reduce_sum(tf.abs(x)))
        return x


@case(normal(6), integers(4), batches=(5, 37))
def losses_of_outputs() -> Built:
    model = keras.Sequential([
        layers.Dense(5, activity_regularizer=keras.regularizers.L2(0.2)), Penalized(),
        layers.Dense(4, bias_regularizer="l1"),
    ])  # fmt: skip
    model.build((None, 6))
    return classifier(model, keras.optimizers.SGD(0.1))


@case(normal(8, 8, 2), integers(4))
def convolutions() -> Built:
    model = keras.Sequential([
        layers.Conv2D(5, 3, activation="relu"), layers.DepthwiseConv2D(3, padding="same"),
        layers.MaxPooling2D(), layers.Conv2DTranspose(3, 3), layers.SeparableConv2D(4, 2),
        layers.Flatten(), layers.Dense(4),
    ])  # fmt: skip
    model.build((None, 8, 8, 2))
    return classifier(model, keras.optimizers.Adam(0.01))


@case(normal(6, 6, 3), integers(4), batches=(5, 37))
def batch_normalization() -> Built:
    model = keras.Sequential([
        layers.Conv2D(4, 3, use_bias=False), layers.BatchNormalization(), layers.ReLU(),
        layers.Flatten(), layers.Dense(8), layers.BatchNormalization(), layers.Dense(4),
    ])  # fmt: skip
    model.build((None, 6, 6, 3))
    return classifier(model, keras.optimizers.SGD(0.1))


@case(normal(5, 3), integers(4))
def recurrent_layers() -> Built:
    model = keras.Sequential([
        layers.LSTM(6, return_sequences=True), layers.GRU(5, return_sequences=True),
        layers.Bidirectional(layers.SimpleRNN(4)), layers.Dense(4),
    ])  # fmt: skip
    model.build((None, 5, 3))
    return classifier(model, keras.optimizers.Adam(0.01))


@case(integers(20, 6), integers(4))
def transformer_block() -> Built:
    tokens = keras.Input((6,), dtype="int32")
    x = layers.Embedding(20, 8, mask_zero=True)(tokens)
    x = layers.LayerNormalization()(x + layers.MultiHeadAttention(2, 4)(x, x, x))
    x = layers.LayerNormalization()(x + layers.Dense(8)(layers.Dense(16, "gelu")(x)))
    model = keras.Model(tokens, layers.Dense(4)(layers.GlobalAveragePooling1D()(x)))
    return classifier(model, keras.optimizers.AdamW(0.01))


@case(normal(6), integers(4))
def dropout_and_noise() -> Built:
    model = keras.Sequential(
        [layers.Dense(16), layers.Dropout(0.4), layers.GaussianNoise(0.3), layers.Dense(4)]
    )
    model.build((None, 6))
    return classifier(model, keras.optimizers.SGD(0.1))


# ---- types ----


@case(normal(6), integers(4), batches=(0, 5, 37), policy="mixed_bfloat16")
def mixed_bfloat16() -> Built:
    model = keras.Sequential(
        [layers.Dense(16, "relu"), layers.LayerNormalization(), layers.Dense(4, dtype="float32")]
    )
    model.build((None, 6))
    return classifier(model, keras.optimizers.Adam(0.01))


@case(normal(6), integers(4), batches=(5, 37), policy="mixed_float16")
def mixed_float16_with_a_scaled_loss() -> Built:
    model = keras.Sequential([layers.Dense(16, "relu"), layers.Dense(4, dtype="float32")])
    model.build((None, 6))
    optimizer = keras.optimizers.LossScaleOptimizer(keras.optimizers.SGD(0.1))
    return classifier(model, optimizer)


# ---- optimizers ----


def trained_by(optimizer: Any) -> Built:
    model = keras.Sequential([layers.Dense(7, "tanh"), layers.Dense(4)])
    model.build((None, 6))
    return classifier(model, optimizer)


def _optimizers() -> dict[str, Callable[[], Any]]:
    o = keras.optimizers
    return {
        "adam": lambda: o.Adam(0.01),
        "sgd_with_nesterov": lambda: o.SGD(0.1, momentum=0.9, nesterov=True),
        "rmsprop_centered": lambda: o.RMSprop(0.01, centered=True),
        "lamb": lambda: o.Lamb(0.01),
        "adafactor": lambda: o.Adafactor(0.01),
        "muon": lambda: o.Muon(0.01),
        "clipped_by_global_norm": lambda: o.SGD(0.1, global_clipnorm=0.05),
        "clipped_by_norm": lambda: o.SGD(0.1, clipnorm=0.05),
        "accumulated": lambda: o.SGD(0.1, gradient_accumulation_steps=2),
        "averaged": lambda: o.Adam(0.01, use_ema=True, weight_decay=0.1),
    }


def _add(name: str, make: Callable[[], Any]) -> None:
    def build() -> Built:
        return trained_by(make())

    build.__name__ = f"optimizer_{name}"
    case(normal(6), integers(4), batches=(37,), steps=4)(build)


for _name, _make in _optimizers().items():
    _add(_name, _make)
