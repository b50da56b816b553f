"""The networks of models.py in Keras: samegrad, TensorFlow and XLA run the very same lines."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable
from typing import Any

from models import MODELS, Model, Weights
from workloads import Arrays, Job, Program, peak_memory_mib

Step = Callable[..., Any]


class Builder:
    """Layers of Keras between symbolic tensors, with drawn kernels.

    Args:
        tf: samegrad or TensorFlow.
        weights: The source of the kernels.
    """

    def __init__(self, tf: Any, weights: Weights) -> None:
        self.layers, self.ops, self.weights = tf.keras.layers, tf.keras.ops, weights
        layers = self.layers
        self.relu, self.relu6 = layers.ReLU(), layers.ReLU(6)
        self.leaky_relu = layers.LeakyReLU(0.2)
        for name in ("gelu", "swish", "sigmoid", "tanh"):
            setattr(self, name, layers.Activation(name))
        self.flatten, self.average = layers.Flatten(), layers.GlobalAveragePooling2D()
        self.mean_token = layers.GlobalAveragePooling1D()
        self.concat = self.concat_channels = layers.Concatenate()
        self.exp = tf.keras.ops.exp

    def apply(self, layer: Any, *inputs: Any, **options: Any) -> Any:
        """Call a new layer and draw its kernels; biases and norms keep their zeros and ones."""
        output = layer(*inputs, **options)
        for variable in layer.trainable_weights:
            if variable.name not in ("bias", "gamma", "beta"):
                variable.assign(self.weights.draw(*variable.shape))
        return output

    def conv(self, x: Any, filters: int, size: int, stride: int = 1, bias: bool = True) -> Any:
        return self.apply(self.layers.Conv2D(filters, size, stride, "same", use_bias=bias), x)

    def depthwise(self, x: Any, size: int, stride: int) -> Any:
        return self.apply(self.layers.DepthwiseConv2D(size, stride, "same", use_bias=False), x)

    def transposed(self, x: Any, filters: int, size: int, stride: int) -> Any:
        return self.apply(self.layers.Conv2DTranspose(filters, size, stride, "same"), x)

    def patches(self, x: Any, filters: int, size: int) -> Any:
        return self.apply(self.layers.Conv2D(filters, size, size), x)

    def dense(self, x: Any, units: int) -> Any:
        return self.apply(self.layers.Dense(units), x)

    def norm(self, x: Any) -> Any:
        return self.layers.BatchNormalization()(x)

    def layer_norm(self, x: Any) -> Any:
        return self.layers.LayerNormalization()(x)

    def embedding(self, x: Any, rows: int, width: int) -> Any:
        return self.apply(self.layers.Embedding(rows, width), x)

    def recurrent(
        self, x: Any, kind: str, units: int, sequences: bool = False, both: bool = False
    ) -> Any:
        layer = {"lstm": self.layers.LSTM, "gru": self.layers.GRU}[kind]
        made = layer(units, return_sequences=sequences)
        return self.apply(self.layers.Bidirectional(made) if both else made, x)

    def attention(self, x: Any, heads: int, causal: bool) -> Any:
        layer = self.layers.MultiHeadAttention(heads, x.shape[-1] // heads)
        return self.apply(layer, x, x, use_causal_mask=causal)

    def pool(self, x: Any, size: int, stride: int) -> Any:
        return self.layers.MaxPooling2D(size, stride, "same")(x)

    def stack(self, parts: list[Any]) -> Any:
        return self.ops.stack(parts, 1)

    def products(self, x: Any) -> Any:
        return self.ops.matmul(x, self.ops.transpose(x, [0, 2, 1]))

    def scale(self, x: Any, factors: Any) -> Any:
        return x * self.ops.reshape(factors, [-1, 1, 1, factors.shape[-1]])

    def image(self, x: Any, *shape: int) -> Any:
        return self.ops.reshape(x, [-1, *shape])

    def tokens(self, x: Any) -> Any:
        return self.ops.reshape(x, [-1, x.shape[1] * x.shape[2], x.shape[3]])

    def channels_last(self, x: Any) -> Any:
        return x

    def add(self, a: Any, b: Any) -> Any:
        return a + b

    def multiply(self, a: Any, b: Any) -> Any:
        return a * b

    def half(self, x: Any) -> Any:
        return 0.5 * x


def build(job: Job, data: Arrays) -> Program:
    """Return the step of a model on samegrad, TensorFlow or XLA."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    tf: Any = importlib.import_module("samegrad" if job.backend == "samegrad" else "tensorflow")
    tf.constant(0.0)  # so that what is loaded on first use counts as imported
    tf.keras.layers.Dense(1)
    base = peak_memory_mib()
    if job.threads:
        tf.config.threading.set_intra_op_parallelism_threads(job.threads)
    model, strategy = MODELS[job.workload], tf.distribute.get_strategy()
    if job.replicas > 1:
        strategy = tf.distribute.MirroredStrategy(replicas=job.replicas)
    with strategy.scope():
        networks = _networks(tf, model)
        step = STEPS.get(model.loss, _train)(tf, model, networks)
    dataset = tf.data.Dataset.from_tensor_slices(data).batch(job.global_batch)
    batch = next(iter(strategy.experimental_distribute_dataset(dataset)))
    if job.replicas > 1:
        step = _replicated(strategy, step)
    if not model.eager:
        step = tf.function(step, jit_compile=True) if job.backend == "xla" else tf.function(step)
    parameters = sum(int(v.numpy().size) for each in networks for v in each.trainable_variables)
    explain = getattr(step, "explain", None)
    return Program(
        lambda _: step(*batch),
        float,
        str(tf.__version__),
        parameters,
        base,
        explain and (lambda runs: explain(*batch, measure=runs)),
    )


def _replicated(strategy: Any, step: Step) -> Step:
    return lambda *batch: strategy.reduce("SUM", strategy.run(step, args=batch), axis=None)


def _networks(tf: Any, model: Model) -> list[Any]:
    """Return models of Keras; of a GAN, each reads one input."""
    weights, made = Weights(), []
    for i, network in enumerate(model.networks):
        given = model.inputs[model.read_by(i)]
        symbols = [
            tf.keras.Input(each.shape, dtype="int32" if each.limit else "float32") for each in given
        ]
        made.append(tf.keras.Model(symbols, network(Builder(tf, weights), *symbols)))
    return made


def _loss(tf: Any, name: str, found: Any, batch: Any) -> Any:
    """Return the mean loss over the batch."""
    if name == "classes":
        each = tf.nn.sparse_softmax_cross_entropy_with_logits(batch[-1], found)
        while len(each.shape) > 1:
            each = tf.reduce_mean(each, -1)
        return tf.nn.compute_average_loss(each)
    if name == "binary":
        return _binary(tf, tf.cast(batch[-1], "float32")[:, None], found)
    if name == "square":
        return tf.reduce_mean(tf.square(found))
    logits, mean, variance = found
    pixels = tf.nn.sigmoid_cross_entropy_with_logits(labels=tf.sigmoid(batch[0]), logits=logits)
    distance = -0.5 * (1.0 + variance - tf.square(mean) - tf.exp(variance))
    return tf.reduce_mean(tf.reduce_sum(pixels, [1, 2, 3]) + tf.reduce_sum(distance, 1))


def _binary(tf: Any, labels: Any, logits: Any) -> Any:
    each = tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits)
    return tf.reduce_mean(each)


def _optimizer(tf: Any, model: Any) -> Any:
    optimizer = tf.keras.optimizers.Adam(1e-4)
    optimizer.build(model.trainable_variables)
    return optimizer


def _train(tf: Any, model: Model, networks: list[Any]) -> Step:
    (network,) = networks
    optimizer, variables = _optimizer(tf, network), network.trainable_variables

    def step(*batch: Any) -> Any:
        with tf.GradientTape() as tape:
            found = network(list(batch[: model.arguments]), training=True)
            loss = _loss(tf, model.loss, found, batch)
        gradients = tape.gradient(loss, variables)
        optimizer.apply_gradients(zip(gradients, variables, strict=True))
        return loss

    return step


def _predict(tf: Any, model: Model, networks: list[Any]) -> Step:
    return lambda *batch: tf.reduce_mean(networks[0](list(batch), training=False))


def _adversarial(tf: Any, model: Model, networks: list[Any]) -> Step:
    """The step of the tutorial on DCGAN: both updates from one pass."""
    generator, critic = networks
    optimizers = [_optimizer(tf, network) for network in networks]

    def step(noise: Any, real: Any) -> Any:
        with tf.GradientTape() as first, tf.GradientTape() as second:
            fake = critic(generator(noise, training=True), training=True)
            right = critic(real, training=True)
            ours = _binary(tf, tf.ones_like(fake), fake)
            theirs = _binary(tf, tf.ones_like(right), right)
            theirs += _binary(tf, tf.zeros_like(fake), fake)
        for optimizer, network, tape, loss in zip(
            optimizers, networks, (first, second), (ours, theirs), strict=True
        ):
            variables = network.trainable_variables
            gradients = tape.gradient(loss, variables)
            optimizer.apply_gradients(zip(gradients, variables, strict=True))
        return ours + theirs

    return step


STEPS = {"predict": _predict, "adversarial": _adversarial}
