"""Twelve small training programs with integer-made data, for fingerprints that must not change.

The sizes pass the constants of `cpp/base/reduction_order.h`: leaves of fewer than 4 examples,
rows of more than 1,024 elements, columns of more than 128 and contractions of more than 4,096.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

import samegrad as tf

Array = npt.NDArray[Any]

BATCH, STEPS = 22, 3  # two equal per-replica batches of 11: leaves of 3, 3, 3 and 2 examples
EXAMPLES = BATCH * STEPS
CLASSES, WORDS = 7, 41


@dataclass(frozen=True)
class Training:
    """A training step, the arrays whose batches it takes, and the objects that it updates."""

    step: Callable[..., Any]
    data: Sequence[Array]
    state: Sequence[Any]


def integers(*shape: int, seed: int, below: int) -> Array:
    """Return int32 values of [0, below): the mixing function of SplitMix64, of the index."""
    x = np.arange(1, math.prod(shape) + 1, dtype=np.uint64) + np.uint64(seed << 32)
    x *= np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        x = (x ^ (x >> np.uint64(shift))) * np.uint64(factor)
    return ((x >> np.uint64(33)) % np.uint64(below)).astype(np.int32).reshape(shape)


def floats(*shape: int, seed: int, dtype: str = "float32") -> Array:
    """Return exact multiples of 1/1024 of [-1, 1)."""
    return integers(*shape, seed=seed, below=2048).astype(dtype) / 1024 - 1


def fill(variables: Sequence[Any]) -> list[Any]:
    """Assign values that need no random op and no function of the C library."""
    for seed, variable in enumerate(variables, start=100):
        shape = tuple(variable.shape)
        if len(shape) >= 2:  # others have zeros or ones
            scale = 2.0 ** -(math.prod(shape[:-1]).bit_length() // 2)
            values = floats(*shape, seed=seed, dtype=variable.numpy().dtype.name)
            variable.assign(values * scale)
    return list(variables)


def applied(tape: Any, loss: Any, variables: Sequence[Any], optimizer: Any) -> Any:
    """Update the variables by the gradients; return the loss."""
    gradients = tape.gradient(loss, variables)
    optimizer.apply_gradients(zip(gradients, variables, strict=True))
    return loss


def supervised(
    model: Any, losses_of: Callable[..., Any], optimizer: Any, *data: Array, metrics: Any = ()
) -> Training:
    """Return the training of a model whose last array of data is the labels."""
    model(*(array[:1] for array in data[:-1]))
    fill(model.trainable_variables)

    def step(*batch: Any) -> Any:
        *inputs, labels = batch
        with tf.GradientTape() as tape:
            outputs = model(*inputs, training=True)
            loss = tf.nn.compute_average_loss(losses_of(labels, outputs))
            if model.losses:
                loss += tf.nn.scale_regularization_loss(tf.add_n(model.losses))
        for metric in metrics:
            metric.update_state(labels, outputs)
        return applied(tape, loss, model.trainable_variables, optimizer)

    return Training(step, data, [model, optimizer, *metrics])


def classes(seed: int, *shape: int) -> Array:
    return integers(EXAMPLES, *shape, seed=seed, below=CLASSES)


def cross_entropy(labels: Any, logits: Any) -> Any:
    """Return a loss per example, the mean over its further axes."""
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
    return tf.reduce_mean(losses, axis=list(range(1, len(losses.shape))))


def functional(shape: tuple[int, ...], network: Callable[[Any], Any]) -> Any:
    inputs = tf.keras.Input(shape)
    return tf.keras.Model(inputs, network(inputs))


def tutorial_cnn() -> Training:
    """The network of the tutorial "Custom training with tf.distribute.Strategy"."""
    layers = tf.keras.layers
    regularizer = tf.keras.regularizers.L2(2.0**-10)
    model = tf.keras.Sequential(
        [
            layers.Conv2D(8, 3, activation="relu", kernel_regularizer=regularizer),
            layers.MaxPooling2D(),
            layers.Conv2D(16, 3, activation="relu", kernel_regularizer=regularizer),
            layers.MaxPooling2D(),
            layers.Flatten(),
            layers.Dense(16, activation="relu"),
            layers.Dense(CLASSES),
        ]
    )
    losses = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True, reduction="none")
    metrics = [tf.keras.metrics.SparseCategoricalAccuracy()]
    images = floats(EXAMPLES, 20, 20, 1, seed=1)
    return supervised(
        model, losses, tf.keras.optimizers.Adam(), images, classes(2), metrics=metrics
    )


def wgan_gp() -> Training:
    """A critic with gradient penalty and a generator, both updated in each step."""
    layers = tf.keras.layers
    critic = tf.keras.Sequential(
        [
            layers.Conv2D(8, 5, strides=2, padding="same"),
            layers.LeakyReLU(0.25),
            layers.Conv2D(12, 5, strides=2, padding="same"),
            layers.LeakyReLU(0.25),
            layers.Flatten(),
            layers.Dense(1),
        ]
    )
    generator = tf.keras.Sequential(
        [
            layers.Dense(3 * 3 * 8, activation="relu"),
            layers.Reshape((3, 3, 8)),
            layers.Conv2DTranspose(8, 5, strides=2, padding="same", activation="relu"),
            layers.Conv2DTranspose(1, 5, strides=2, padding="same", activation="tanh"),
        ]
    )
    optimizers = [tf.keras.optimizers.Adam(2.0**-10, beta_1=0.5) for _ in range(2)]
    data = (
        floats(EXAMPLES, 12, 12, 1, seed=3),
        floats(EXAMPLES, 10, seed=4),
        floats(EXAMPLES, 1, 1, 1, seed=5) / 2 + 0.5,
    )
    critic(data[0][:1])
    generator(data[1][:1])
    fill(critic.trainable_variables)
    fill(generator.trainable_variables)

    def step(images: Any, noise: Any, mixture: Any) -> Any:
        with tf.GradientTape() as tape:
            fakes = generator(noise, training=True)
            mixed = images + mixture * (fakes - images)
            with tf.GradientTape() as inner:
                inner.watch(mixed)
                scores = critic(mixed, training=True)
            squares = tf.square(inner.gradient(scores, mixed))
            slopes = tf.sqrt(tf.reduce_sum(squares, axis=[1, 2, 3]) + 1e-12)
            worth = critic(fakes, training=True) - critic(images, training=True)
            loss = tf.nn.compute_average_loss(worth[:, 0] + 10.0 * tf.square(slopes - 1.0))
        applied(tape, loss, critic.trainable_variables, optimizers[0])
        with tf.GradientTape() as tape:
            scores = critic(generator(noise, training=True), training=True)
            loss = tf.nn.compute_average_loss(-scores[:, 0])
        return applied(tape, loss, generator.trainable_variables, optimizers[1])

    return Training(step, data, [critic, generator, *optimizers])


class Seq2Seq(tf.keras.Model):
    """A Transformer of one encoder and one decoder layer."""

    def __init__(self, width: int = 16) -> None:
        super().__init__()
        layers = tf.keras.layers
        self.words = [layers.Embedding(WORDS, width) for _ in range(2)]
        self.places = layers.Embedding(12, width)
        self.attention = [layers.MultiHeadAttention(2, 8, dropout=0.125) for _ in range(3)]
        self.norms = [layers.LayerNormalization() for _ in range(5)]
        self.wide = [layers.Dense(40, activation="relu") for _ in range(2)]
        self.narrow = [layers.Dense(width) for _ in range(2)]
        self.dropout = layers.Dropout(0.125)
        self.logits = layers.Dense(WORDS)

    def call(self, source: Any, target: Any, training: bool = False) -> Any:
        x = self.embedded(0, source)
        present = tf.not_equal(source, 0)[:, tf.newaxis, :]
        attended = self.attention[0](x, x, attention_mask=present, training=training)
        x = self.norms[0](x + attended)
        x = self.norms[1](x + self.dropout(self.narrow[0](self.wide[0](x)), training=training))
        y = self.embedded(1, target)
        attended = self.attention[1](y, y, use_causal_mask=True, training=training)
        y = self.norms[2](y + attended)
        attended = self.attention[2](y, x, attention_mask=present, training=training)
        y = self.norms[3](y + attended)
        y = self.norms[4](y + self.narrow[1](self.wide[1](y)))
        return self.logits(y)

    def embedded(self, language: int, words: Any) -> Any:
        return self.words[language](words) * 4.0 + self.places(tf.range(words.shape[1]))


def transformer() -> Training:
    """Translation: padding, masks, dropout, a mean over the tokens of the global batch."""
    model = Seq2Seq()
    optimizer = tf.keras.optimizers.Adam(2.0**-9, beta_2=0.98, epsilon=1e-9)
    lengths = integers(EXAMPLES, 1, seed=6, below=8) + 5
    padded = np.arange(12)[np.newaxis] < lengths
    source, target, labels = (
        (integers(EXAMPLES, 12, seed=seed, below=WORDS - 1) + 1) * padded for seed in (7, 8, 9)
    )
    model(source[:1], target[:1])
    fill(model.trainable_variables)

    def step(source: Any, target: Any, labels: Any) -> Any:
        with tf.GradientTape() as tape:
            logits = model(source, target, training=True)
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
            weights = tf.cast(tf.not_equal(labels, 0), "float32")
            loss = tf.nn.compute_weighted_mean_loss(losses, weights)
        return applied(tape, loss, model.trainable_variables, optimizer)

    data = [array.astype(np.int32) for array in (source, target, labels)]
    return Training(step, data, [model, optimizer])


def resnet20() -> Training:
    """The residual network of 20 layers for small images, with a quarter of its channels."""
    layers = tf.keras.layers

    def normalized(x: Any, channels: int, size: int, stride: int) -> Any:
        x = layers.Conv2D(channels, size, strides=stride, padding="same", use_bias=False)(x)
        return layers.BatchNormalization()(x)

    def network(x: Any) -> Any:
        x = layers.ReLU()(normalized(x, 4, 3, 1))
        for stage, channels in enumerate((4, 8, 16)):
            for block in range(3):
                stride = 2 if stage > 0 and block == 0 else 1
                y = layers.ReLU()(normalized(x, channels, 3, stride))
                y = normalized(y, channels, 3, 1)
                shortcut = normalized(x, channels, 1, stride) if stride == 2 else x
                x = layers.ReLU()(shortcut + y)
        return layers.Dense(CLASSES)(layers.GlobalAveragePooling2D()(x))

    optimizer = tf.keras.optimizers.SGD(2.0**-4, momentum=0.875, weight_decay=2.0**-10)
    images = floats(EXAMPLES, 12, 12, 3, seed=10)
    model = functional((12, 12, 3), network)
    return supervised(model, cross_entropy, optimizer, images, classes(11))


def lstm() -> Training:
    """A recurrent network over sequences, with its state at each step."""
    layers = tf.keras.layers
    model = tf.keras.Sequential(
        [
            layers.LSTM(12, return_sequences=True, recurrent_dropout=0.0),
            layers.LSTM(10),
            layers.Dense(CLASSES),
        ]
    )
    optimizer = tf.keras.optimizers.RMSprop(2.0**-7)
    sequences = floats(EXAMPLES, 9, 6, seed=12)
    return supervised(model, cross_entropy, optimizer, sequences, classes(13))


def dense() -> Training:
    """Products with a contraction of two blocks, and four activations."""
    layers = tf.keras.layers
    model = tf.keras.Sequential(
        [layers.Dense(13, activation=name) for name in ("tanh", "gelu", "selu", "softplus")]
        + [layers.Dense(CLASSES)]
    )
    optimizer = tf.keras.optimizers.SGD(2.0**-5, momentum=0.5, nesterov=True)
    rows = floats(EXAMPLES, 4200, seed=14)
    return supervised(model, cross_entropy, optimizer, rows, classes(15))


def embedding_adam() -> Training:
    """A factor model: gathered rows of two tables, repeated ones too, and Adam."""
    tables = fill([tf.Variable(tf.zeros([count, 8])) for count in (300, 50)])
    optimizer = tf.keras.optimizers.Adam(2.0**-6)
    data = (
        integers(EXAMPLES, seed=16, below=300),
        integers(EXAMPLES, 5, seed=17, below=50),
        floats(EXAMPLES, seed=18),
    )

    def step(users: Any, items: Any, ratings: Any) -> Any:
        with tf.GradientTape() as tape:
            taste = tf.gather(tables[0], users)
            chosen = tf.reduce_mean(tf.gather(tables[1], items), axis=1)
            errors = tf.reduce_sum(taste * chosen, axis=1) - ratings
            loss = tf.nn.compute_average_loss(tf.square(errors))
        return applied(tape, loss, tables, optimizer)

    return Training(step, data, [tables, optimizer])


def vae_with_draws() -> Training:
    """A variational autoencoder: normal draws, exp, and sums over more than 1,024 pixels."""
    layers = tf.keras.layers
    encoder = tf.keras.Sequential([layers.Dense(24, activation="relu"), layers.Dense(8)])
    decoder = tf.keras.Sequential([layers.Dense(24, activation="relu"), layers.Dense(1100)])
    images = floats(EXAMPLES, 1100, seed=19) / 2 + 0.5
    encoder(images[:1])
    decoder(images[:1, :4])
    variables = fill([*encoder.trainable_variables, *decoder.trainable_variables])
    optimizer = tf.keras.optimizers.Adamax(2.0**-8)

    def step(images: Any) -> Any:
        with tf.GradientTape() as tape:
            mean, log_variance = tf.split(encoder(images), 2, axis=1)
            draws = tf.random.normal([images.shape[0], 4])
            logits = decoder(mean + draws * tf.exp(0.5 * log_variance))
            each = tf.nn.sigmoid_cross_entropy_with_logits(labels=images, logits=logits)
            divergence = tf.square(mean) + tf.exp(log_variance) - 1.0 - log_variance
            losses = tf.reduce_sum(each, axis=1) + 0.5 * tf.reduce_sum(divergence, axis=1)
            loss = tf.nn.compute_average_loss(losses)
        return applied(tape, loss, variables, optimizer)

    return Training(step, (images,), [encoder, decoder, optimizer])


def densenet_block() -> Training:
    """Layers that read all earlier ones, then a transition."""
    layers = tf.keras.layers

    def network(x: Any) -> Any:
        for _ in range(4):
            y = layers.ReLU()(layers.BatchNormalization()(x))
            y = layers.Conv2D(5, 3, padding="same", use_bias=False)(y)
            x = layers.Concatenate()([x, y])
        x = layers.AveragePooling2D(2)(layers.Conv2D(9, 1)(layers.BatchNormalization()(x)))
        return layers.Dense(CLASSES)(layers.Flatten()(x))

    optimizer = tf.keras.optimizers.Adagrad(2.0**-5)
    images = floats(EXAMPLES, 12, 12, 3, seed=20)
    model = functional((12, 12, 3), network)
    return supervised(model, cross_entropy, optimizer, images, classes(21))


def unet() -> Training:
    """Two levels down and up, joined by concatenation; a class for each pixel."""
    layers = tf.keras.layers

    def twice(x: Any, channels: int) -> Any:
        for _ in range(2):
            x = layers.Conv2D(channels, 3, padding="same", activation="relu")(x)
        return x

    def network(x: Any) -> Any:
        top = twice(x, 4)
        middle = twice(layers.MaxPooling2D()(top), 6)
        x = twice(layers.MaxPooling2D()(middle), 8)
        for channels, skipped in ((6, middle), (4, top)):
            x = layers.Conv2DTranspose(channels, 2, strides=2, padding="same")(x)
            x = twice(layers.Concatenate()([x, skipped]), channels)
        return layers.Conv2D(CLASSES, 1)(x)

    optimizer = tf.keras.optimizers.Nadam(2.0**-8)
    images = floats(EXAMPLES, 12, 12, 1, seed=22)
    model = functional((12, 12, 1), network)
    return supervised(model, cross_entropy, optimizer, images, classes(23, 12, 12))


def gpt_block() -> Training:
    """Causal attention and a feed-forward network, tied embeddings, clipping and AdamW."""
    layers = tf.keras.layers
    words, places = layers.Embedding(WORDS, 16), layers.Embedding(14, 16)
    norms = [layers.LayerNormalization(epsilon=1e-5) for _ in range(3)]
    projections = [layers.Dense(48), layers.Dense(16), layers.Dense(64), layers.Dense(16)]
    parts = [words, places, *norms, *projections]
    tokens = integers(EXAMPLES, 15, seed=24, below=WORDS)
    optimizer = tf.keras.optimizers.AdamW(2.0**-8, weight_decay=2.0**-7, global_clipnorm=0.5)

    def logits_of(tokens: Any) -> Any:
        x = words(tokens) + places(tf.range(14))
        heads = tf.reshape(projections[0](norms[0](x)), [-1, 14, 3, 2, 8])
        query, key, value = tf.unstack(tf.transpose(heads, [2, 0, 3, 1, 4]), axis=0)
        scores = tf.matmul(query, key, transpose_b=True) * 0.375
        causal = tf.linalg.band_part(tf.ones([14, 14]), -1, 0)
        weights = tf.nn.softmax(scores - 1e9 * (1.0 - causal))
        mixed = tf.reshape(tf.transpose(tf.matmul(weights, value), [0, 2, 1, 3]), [-1, 14, 16])
        x = x + projections[1](mixed)
        x = x + projections[3](tf.nn.gelu(projections[2](norms[1](x)), approximate=True))
        return tf.matmul(norms[2](x), words.embeddings, transpose_b=True)

    logits_of(tf.constant(tokens[:1, :-1]))
    variables = fill([variable for part in parts for variable in part.trainable_variables])

    def step(tokens: Any) -> Any:
        with tf.GradientTape() as tape:
            losses = cross_entropy(tokens[:, 1:], logits_of(tokens[:, :-1]))
            loss = tf.nn.compute_average_loss(losses)
        return applied(tape, loss, variables, optimizer)

    return Training(step, (tokens,), [variables, optimizer])


def linalg() -> Training:
    """Decompositions of a matrix per example, in float64, and their gradients."""
    factor, mean = fill(
        [tf.Variable(tf.zeros([6, 6], "float64")), tf.Variable(tf.zeros([6, 1], "float64"))]
    )
    optimizer = tf.keras.optimizers.SGD(2.0**-6)
    vectors = floats(EXAMPLES, 6, 1, seed=25, dtype="float64")

    def step(vectors: Any) -> Any:
        with tf.GradientTape() as tape:
            centered = vectors - mean
            shared = tf.matmul(factor, factor, transpose_b=True) + tf.eye(6, dtype="float64")
            matrices = shared + tf.matmul(centered, centered, transpose_b=True)
            cholesky = tf.linalg.cholesky(matrices)
            whitened = tf.linalg.triangular_solve(cholesky, centered)
            solved = tf.linalg.solve(matrices + factor, centered)
            terms = [
                tf.reduce_sum(tf.square(whitened), axis=[1, 2]),
                tf.reduce_sum(tf.square(solved), axis=[1, 2]),
                tf.linalg.logdet(matrices),
                tf.reduce_sum(tf.linalg.svd(matrices + factor, compute_uv=False), axis=1) / 8,
                tf.reduce_sum(tf.sqrt(tf.linalg.eigvalsh(matrices)), axis=1) / 8,
                tf.reduce_sum(tf.square(tf.linalg.qr(matrices)[1]), axis=[1, 2]) / 64,
                tf.reduce_sum(tf.linalg.inv(matrices), axis=[1, 2]),
                tf.linalg.det(matrices + factor) / 1024,
            ]
            loss = tf.nn.compute_average_loss(tf.add_n(terms))
        return applied(tape, loss, [factor, mean], optimizer)

    return Training(step, (vectors,), [[factor, mean], optimizer])


PROGRAMS: dict[str, Callable[[], Training]] = {
    program.__name__: program
    for program in (
        tutorial_cnn, wgan_gp, transformer, resnet20, lstm, dense,
        embedding_adam, vae_with_draws, densenet_block, unet, gpt_block, linalg,
    )
}  # fmt: skip
