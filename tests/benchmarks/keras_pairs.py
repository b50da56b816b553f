"""Models of tf.keras, and the same mathematics written by hand on variables.

What Keras costs is what a step of the one takes longer than a step of the other. Both compute the
same numbers: the weights are given, and optimizer, loss and metrics have the same formulas. Either
model has all its variables when it is made, the optimizer's too, so that a first call makes none.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

Step = Callable[[Any, Any], Any]


@dataclass(frozen=True)
class Sizes:
    """How large the models are; `SMALL` ones are for tests."""

    batch: int = 64
    units: int = 64
    filters: tuple[int, int] = (32, 64)
    image: int = 28
    length: int = 32
    heads: int = 4


SMALL = Sizes(batch=6, units=8, filters=(4, 8), image=10, length=5, heads=2)
CLASSES, RATE, EPSILON = 10, 0.001, 1e-7


@dataclass
class Model:
    """A model in either form: what it computes and how it is trained.

    Attributes:
        step: Trains on one batch of inputs and labels and returns its loss; not compiled.
        variables: The trained weights, in the same order in both forms.
        keras: The compiled model of Keras, for `fit`; None in the other form.
    """

    step: Step
    variables: list[Any]
    keras: Any = None


@dataclass(frozen=True)
class Pair:
    """One model in both forms, and a batch for it."""

    of_keras: Model
    written: Model
    inputs: Any
    labels: Any


# ---- what both forms share ----


def of_keras(tf: Any, layers: Any, optimizer: Any, loss: Any, metrics: Any = ()) -> Model:
    """The step of the tutorial on custom training loops, with a model of Keras."""
    model = layers if isinstance(layers, tf.keras.Model) else tf.keras.Sequential(layers)
    model.compile(optimizer=optimizer, loss=loss, metrics=list(metrics))
    optimizer.build(model.trainable_variables)  # as `adam` makes its slots

    def step(x: Any, y: Any) -> Any:
        with tf.GradientTape() as tape:
            predicted = model(x, training=True)
            value = loss(y, predicted)
        gradients = tape.gradient(value, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        for metric in metrics:
            metric.update_state(y, predicted)
        return value

    return Model(step, list(model.trainable_variables), model)


def written(
    tf: Any,
    weights: list[Any],
    predict: Callable[..., Any],
    loss: Callable[..., Any],
    update: Callable[[Any], None],
    measure: Callable[[Any, Any], None] | None = None,
) -> Model:
    """The same step without Keras."""

    def step(x: Any, y: Any) -> Any:
        with tf.GradientTape() as tape:
            predicted = predict(x)
            value = loss(y, predicted)
        update(tape.gradient(value, weights))
        if measure:
            measure(y, predicted)
        return value

    return Model(step, weights)


def copies(tf: Any, model: Model) -> list[Any]:
    """Variables of the engine with the values that those of Keras have."""
    return [tf.Variable(variable.numpy()) for variable in model.variables]


def adam(tf: Any, weights: list[Any]) -> Callable[[Any], None]:
    """Kingma and Ba (2014), algorithm 1 with both corrections in the rate, as Keras has it."""
    means = [tf.Variable(tf.zeros_like(w), trainable=False) for w in weights]
    squares = [tf.Variable(tf.zeros_like(w), trainable=False) for w in weights]
    steps = tf.Variable(0, dtype="int64", trainable=False)

    def update(gradients: Any) -> None:
        now = tf.cast(steps + 1, "float32")
        rate = RATE * tf.sqrt(1.0 - tf.pow(0.999, now)) / (1.0 - tf.pow(0.9, now))
        for g, w, m, s in zip(gradients, weights, means, squares, strict=True):
            m.assign_add((g - m) * 0.1)
            s.assign_add((tf.square(g) - s) * 0.001)
            w.assign_sub(m * rate / (tf.sqrt(s) + EPSILON))
        steps.assign_add(1)

    return update


def sgd(weights: list[Any], rate: float) -> Callable[[Any], None]:
    def update(gradients: Any) -> None:
        for g, w in zip(gradients, weights, strict=True):
            w.assign_sub(g * rate)

    return update


def cross_entropy(tf: Any) -> Callable[..., Any]:
    def loss(labels: Any, logits: Any) -> Any:
        each = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
        return tf.nn.compute_average_loss(each)

    return loss


def keras_loss(tf: Any) -> Any:
    return tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)


def labels(batch: int, seed: int = 1) -> Any:
    return np.random.default_rng(seed).integers(0, CLASSES, batch).astype(np.int32)


def normal(*shape: int) -> Any:
    return np.random.default_rng(0).normal(size=shape).astype(np.float32)


# ---- the models ----


def cnn(tf: Any, sizes: Sizes) -> Pair:
    """The network of the tutorial "Custom training with tf.distribute.Strategy"."""
    layers = tf.keras.layers
    first, second = sizes.filters
    keras = of_keras(
        tf,
        [
            tf.keras.Input((sizes.image, sizes.image, 1)),
            layers.Conv2D(first, 3, activation="relu"),
            layers.MaxPooling2D(),
            layers.Conv2D(second, 3, activation="relu"),
            layers.MaxPooling2D(),
            layers.Flatten(),
            layers.Dense(sizes.units, activation="relu"),
            layers.Dense(CLASSES),
        ],
        tf.keras.optimizers.Adam(RATE),
        keras_loss(tf),
    )
    weights = copies(tf, keras)

    def predict(x: Any) -> Any:
        for kernel, bias in zip(weights[0:4:2], weights[1:4:2], strict=True):
            x = tf.nn.relu(tf.nn.conv2d(x, kernel, 1, "VALID") + bias)
            x = tf.nn.max_pool2d(x, 2, 2, "VALID")
        x = tf.reshape(x, [-1, weights[4].shape[0]])
        return tf.nn.relu(x @ weights[4] + weights[5]) @ weights[6] + weights[7]

    hand = written(tf, weights, predict, cross_entropy(tf), adam(tf, weights))
    return Pair(keras, hand, normal(sizes.batch, sizes.image, sizes.image, 1), labels(sizes.batch))


def tiny(tf: Any, sizes: Sizes) -> Pair:
    """Two dense layers on 4 examples of 4 numbers: nearly no arithmetic."""
    layers = tf.keras.layers
    keras = of_keras(
        tf,
        [tf.keras.Input((4,)), layers.Dense(4, activation="relu"), layers.Dense(1)],
        tf.keras.optimizers.SGD(0.01),
        tf.keras.losses.MeanSquaredError(),
    )
    weights = copies(tf, keras)

    def predict(x: Any) -> Any:
        return tf.nn.relu(x @ weights[0] + weights[1]) @ weights[2] + weights[3]

    def loss(y: Any, predicted: Any) -> Any:
        return tf.nn.compute_average_loss(tf.reduce_mean(tf.square(predicted - y), -1))

    hand = written(tf, weights, predict, loss, sgd(weights, 0.01))
    return Pair(keras, hand, normal(4, 4), normal(4, 1))


def normalized(tf: Any, sizes: Sizes) -> Pair:
    """Dense layers with batch normalization, dropout, Adam, the accuracy and the mean loss."""
    layers, units = tf.keras.layers, sizes.units
    keras = of_keras(
        tf,
        [
            tf.keras.Input((units,)),
            layers.Dense(units, activation="relu"),
            layers.BatchNormalization(),
            layers.Dropout(0.25),
            layers.Dense(CLASSES),
        ],
        tf.keras.optimizers.Adam(RATE),
        keras_loss(tf),
        [
            tf.keras.metrics.SparseCategoricalAccuracy(),
            tf.keras.metrics.SparseCategoricalCrossentropy(from_logits=True),
        ],
    )
    weights = copies(tf, keras)
    moving = [tf.Variable(value, trainable=False) for value in (np.zeros(units), np.ones(units))]
    moving = [tf.Variable(tf.cast(v, "float32"), trainable=False) for v in moving]

    def predict(x: Any) -> Any:
        w, b, gamma, beta, w2, b2 = weights
        x = tf.nn.relu(x @ w + b)
        mean, variance = tf.nn.moments(x, [0])
        for old, new in zip(moving, (mean, variance), strict=True):
            old.assign(old * 0.99 + new * 0.01)
        x = tf.nn.batch_normalization(x, mean, variance, beta, gamma, 0.001)
        return tf.nn.dropout(x, 0.25) @ w2 + b2

    hand = written(
        tf, weights, predict, cross_entropy(tf), adam(tf, weights), accuracy_and_loss(tf)
    )
    return Pair(keras, hand, normal(sizes.batch, units), labels(sizes.batch))


def accuracy_and_loss(tf: Any) -> Callable[[Any, Any], None]:
    """Sums and counts of right answers and losses, as two metrics of Keras keep them."""
    sums = [tf.Variable(np.float64(0), trainable=False) for _ in range(4)]

    def measure(y: Any, logits: Any) -> None:
        right = tf.cast(tf.argmax(logits, -1) == tf.cast(y, "int64"), "float32")
        each = tf.nn.sparse_softmax_cross_entropy_with_logits(y, logits)
        for total, count, values in ((*sums[:2], right), (*sums[2:], each)):
            total.assign_add(tf.cast(tf.reduce_sum(values), "float64"))
            count.assign_add(tf.cast(tf.size(values), "float64"))

    return measure


def transformer(tf: Any, sizes: Sizes) -> Pair:
    """One block of a Transformer (Vaswani et al., 2017), normalized before its parts."""
    layers, units, heads = tf.keras.layers, sizes.units, sizes.heads
    x = given = tf.keras.Input((sizes.length, units))
    inner = layers.LayerNormalization()(x)
    x = x + layers.MultiHeadAttention(heads, units // heads)(inner, inner)
    inner = layers.LayerNormalization()(x)
    inner = layers.Dense(4 * units, activation="gelu")(inner)
    x = x + layers.Dense(units)(inner)
    x = layers.GlobalAveragePooling1D()(x)
    model = tf.keras.Model(given, layers.Dense(CLASSES)(x))
    keras = of_keras(tf, model, tf.keras.optimizers.Adam(RATE), keras_loss(tf))
    weights = copies(tf, keras)

    def normalize(x: Any, gamma: Any, beta: Any) -> Any:
        mean, variance = tf.nn.moments(x, [-1], keepdims=True)
        return tf.nn.batch_normalization(x, mean, variance, beta, gamma, 0.001)

    def attend(x: Any, parts: list[Any]) -> Any:
        q, k, v = (
            tf.reshape(x @ tf.reshape(w, [units, units]), [-1, sizes.length, *b.shape]) + b
            for w, b in zip(parts[0:6:2], parts[1:6:2], strict=True)
        )
        seen = tf.nn.dot_product_attention(q, k, v)
        flat = tf.reshape(seen, [-1, sizes.length, units])
        return flat @ tf.reshape(parts[6], [units, units]) + parts[7]

    def predict(x: Any) -> Any:
        x = x + attend(normalize(x, *weights[0:2]), weights[2:10])
        inner = normalize(x, *weights[10:12]) @ weights[12] + weights[13]
        inner = 0.5 * inner * (1.0 + tf.math.erf(inner / math.sqrt(2.0)))
        x = tf.reduce_mean(x + (inner @ weights[14] + weights[15]), 1)
        return x @ weights[16] + weights[17]

    hand = written(tf, weights, predict, cross_entropy(tf), adam(tf, weights))
    return Pair(keras, hand, normal(sizes.batch, sizes.length, units), labels(sizes.batch))


def lstm(tf: Any, sizes: Sizes) -> Pair:
    """A recurrent layer of Hochreiter and Schmidhuber (1997), the last output classified."""
    layers, units = tf.keras.layers, sizes.units
    keras = of_keras(
        tf,
        [tf.keras.Input((sizes.length, units)), layers.LSTM(units), layers.Dense(CLASSES)],
        tf.keras.optimizers.Adam(RATE),
        keras_loss(tf),
    )
    weights = copies(tf, keras)
    kernel, recurrent, bias, last, last_bias = weights

    def cell(state: Any, z: Any) -> Any:
        h, c = state
        i, f, g, o = tf.split(z + h @ recurrent, 4, axis=1)
        c = tf.sigmoid(f) * c + tf.sigmoid(i) * tf.tanh(g)
        return tf.sigmoid(o) * tf.tanh(c), c

    def predict(x: Any) -> Any:
        z = tf.transpose(x, [1, 0, 2]) @ kernel + bias
        start = tf.zeros_like(z[0, :, :units])
        return tf.scan(cell, z, (start, start))[0][-1] @ last + last_bias

    hand = written(tf, weights, predict, cross_entropy(tf), adam(tf, weights))
    return Pair(keras, hand, normal(sizes.batch, sizes.length, units), labels(sizes.batch))


PAIRS: dict[str, Callable[[Any, Sizes], Pair]] = {
    "cnn": cnn,
    "tiny": tiny,
    "normalized": normalized,
    "transformer": transformer,
    "lstm": lstm,
}
