"""The workloads written once against the tf.distribute API, for TensorFlow and for samegrad.

Both run the very same lines: the argument `tf` is either module. Only opening the framework
differs, because TensorFlow must first be told to split the CPU into logical devices.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable
from typing import Any

from tf_bert import bert_block
from workloads import (
    BERT_BLOCKS,
    CLASSES,
    DENSE,
    EMBEDDED,
    EMBEDDINGS,
    GIVEN,
    HEADS,
    HIDDEN,
    LAYERS,
    LENGTH,
    NOISE,
    PIXELS,
    VOCABULARY,
    WIDTH,
    Arrays,
    Job,
    Program,
)

Step = Callable[[Any], Any]


def build(job: Job, data: Arrays) -> Program:
    """Returns the distributed training step of `job` on TensorFlow or samegrad."""
    open_backend = {"samegrad": open_samegrad, "mpi": open_processes, "tf": open_tensorflow}
    tf, strategy = open_backend[job.backend](job)
    if job.workload in GIVEN:
        return given_gradients(tf, strategy, job, data[0])
    dataset = tf.data.Dataset.from_tensor_slices(data if len(data) > 1 else data[0])
    dataset = dataset.shuffle(len(data[0])).repeat()
    dataset = dataset.batch(job.global_batch, drop_remainder=True).prefetch(2)
    batches = iter(strategy.experimental_distribute_dataset(dataset))
    steps = {"cnn": cnn, "tiny": tiny, "wgan_gp": wgan_gp, "transformer": transformer}
    steps |= dict.fromkeys(DENSE, dense) | dict.fromkeys(EMBEDDINGS, embeddings)
    steps |= dict.fromkeys(BERT_BLOCKS, bert_block)
    with strategy.scope():
        replica_step = steps[job.workload](tf, job)

    def distributed_step(batch: Any) -> Any:
        return strategy.reduce("SUM", strategy.run(replica_step, args=(batch,)), axis=None)

    compiled_step = tf.function(distributed_step)
    return Program(lambda i: compiled_step(next(batches)), float, str(tf.__version__))


def open_tensorflow(job: Job) -> tuple[Any, Any]:
    """Returns TensorFlow and a strategy over one logical CPU device per replica."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    # Keras 3 cannot train under a MirroredStrategy of CPU devices.
    os.environ["TF_USE_LEGACY_KERAS"] = "1"
    tf: Any = importlib.import_module("tensorflow")
    if job.threads:
        tf.config.threading.set_intra_op_parallelism_threads(job.threads)
    cpu = tf.config.list_physical_devices("CPU")[0]
    devices = [tf.config.LogicalDeviceConfiguration() for _ in range(job.replicas)]
    tf.config.set_logical_device_configuration(cpu, devices)
    return tf, tf.distribute.MirroredStrategy([f"CPU:{i}" for i in range(job.replicas)])


def open_samegrad(job: Job) -> tuple[Any, Any]:
    """Returns samegrad and a strategy of as many replicas, whatever the number of cores."""
    tf: Any = importlib.import_module("samegrad")
    if job.threads:
        tf.config.threading.set_intra_op_parallelism_threads(job.threads)
    return tf, tf.distribute.MirroredStrategy(replicas=job.replicas)


def open_processes(job: Job) -> tuple[Any, Any]:
    """Returns samegrad and a strategy over the processes of an MPI job, which share the cores."""
    tf: Any = importlib.import_module("samegrad")
    strategy = tf.distribute.MultiWorkerMirroredStrategy(total_replicas=job.replicas)
    size = len(strategy.processes) - 1
    share = max(1, (os.cpu_count() or 1) // max(1, size))
    tf.config.threading.set_intra_op_parallelism_threads(job.threads or share)
    return tf, strategy


def apply(optimizer: Any, tape: Any, loss: Any, variables: Any) -> None:
    optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))


def cnn(tf: Any, job: Job) -> Step:
    """The network of the tutorial "Custom training with tf.distribute.Strategy"."""
    keras, layers = tf.keras, tf.keras.layers
    model = keras.Sequential(
        [
            layers.Conv2D(32, 3, activation="relu", input_shape=(28, 28, 1)),
            layers.MaxPooling2D(),
            layers.Conv2D(64, 3, activation="relu"),
            layers.MaxPooling2D(),
            layers.Flatten(),
            layers.Dense(64, activation="relu"),
            layers.Dense(10),
        ]
    )
    return classifier(tf, job, model)


def classifier(tf: Any, job: Job, model: Any) -> Step:
    """One step of Adam."""
    keras = tf.keras
    optimizer = keras.optimizers.Adam()
    loss_object = keras.losses.SparseCategoricalCrossentropy(from_logits=True, reduction="none")

    def step(batch: Any) -> Any:
        images, labels = batch
        with tf.GradientTape() as tape:
            each = loss_object(labels, model(images, training=True))
            loss = tf.nn.compute_average_loss(each, global_batch_size=job.global_batch)
        apply(optimizer, tape, loss, model.trainable_variables)
        return loss

    return step


def dense(tf: Any, job: Job) -> Step:
    """Two wide layers with Adam."""
    keras, layers = tf.keras, tf.keras.layers
    width = DENSE[job.workload]
    model = keras.Sequential(
        [
            layers.Dense(width, activation="relu", input_shape=(PIXELS,)),
            layers.Dense(width, activation="relu"),
            layers.Dense(CLASSES),
        ]
    )
    return classifier(tf, job, model)


def embeddings(tf: Any, job: Job) -> Step:
    """Rows of a table, which lose some of their length in each step (LazyAdam: samegrad only)."""
    name, rows = EMBEDDINGS[job.workload]
    table = tf.Variable(tf.random.normal([rows, EMBEDDED], stddev=0.02))
    optimizers = tf.keras.optimizers
    optimizer = optimizers.SGD(0.01) if name == "sparse_sgd" else optimizers.LazyAdam(0.001)

    def step(ids: Any) -> Any:
        with tf.GradientTape() as tape:
            each = tf.reduce_sum(tf.square(tf.gather(table, ids)), axis=1)
            loss = tf.nn.compute_average_loss(each, global_batch_size=job.global_batch)
        apply(optimizer, tape, loss, [table])
        return loss

    return step


def given_gradients(tf: Any, strategy: Any, job: Job, gradient: Any) -> Program:
    """All-reduce and Adam of one large variable, whose gradients each replica has already."""
    with strategy.scope():
        weights, optimizer = tf.Variable(tf.zeros(gradient.shape)), tf.keras.optimizers.Adam()
        each = tf.Variable(
            gradient,
            trainable=False,
            synchronization=tf.VariableSynchronization.ON_READ,
            aggregation=tf.VariableAggregation.SUM,
        )

    def replica_step() -> Any:
        gradient = each.read_value()
        optimizer.apply_gradients([(gradient, weights)])
        return gradient[0, 0]

    compiled_step = tf.function(lambda: strategy.run(replica_step))

    def value(of_replicas: Any) -> float:
        return float(strategy.experimental_local_results(of_replicas)[0])

    return Program(lambda _: compiled_step(), value, str(tf.__version__))


def tiny(tf: Any, job: Job) -> Step:
    """A two-layer perceptron: nearly no arithmetic, so its time is the framework's overhead."""
    keras, layers = tf.keras, tf.keras.layers
    model = keras.Sequential(
        [layers.Dense(16, activation="relu", input_shape=(8,)), layers.Dense(1)]
    )
    optimizer = keras.optimizers.SGD(0.01)

    def step(batch: Any) -> Any:
        inputs, targets = batch
        with tf.GradientTape() as tape:
            error = model(inputs, training=True) - targets
            loss = tf.reduce_sum(error**2) / job.global_batch
        apply(optimizer, tape, loss, model.trainable_variables)
        return loss

    return step


def wgan_models(tf: Any) -> tuple[Any, Any]:
    """Returns the critic and the generator, which mirrors it."""
    keras, layers = tf.keras, tf.keras.layers
    critic = keras.Sequential(
        [
            layers.Conv2D(64, 5, 2, "same", input_shape=(28, 28, 1)),
            layers.LeakyReLU(0.2),
            layers.Conv2D(128, 5, 2, "same"),
            layers.LeakyReLU(0.2),
            layers.Flatten(),
            layers.Dense(1),
        ]
    )
    generator = keras.Sequential(
        [
            layers.Dense(7 * 7 * 128, input_shape=(NOISE,)),
            layers.LeakyReLU(0.2),
            layers.Reshape((7, 7, 128)),
            layers.Conv2DTranspose(64, 5, 2, "same"),
            layers.LeakyReLU(0.2),
            layers.Conv2DTranspose(1, 5, 2, "same", activation="tanh"),
        ]
    )
    return critic, generator


def wgan_gp(tf: Any, job: Job) -> Step:
    """One critic and one generator update; the gradient penalty needs second derivatives."""
    critic, generator = wgan_models(tf)
    adam = tf.keras.optimizers.Adam
    critic_optimizer, generator_optimizer = adam(1e-4, 0.5, 0.9), adam(1e-4, 0.5, 0.9)

    def penalty(real: Any, fake: Any) -> Any:
        mix = tf.random.uniform((job.batch, 1, 1, 1))
        between = mix * real + (1 - mix) * fake
        with tf.GradientTape() as inner:
            inner.watch(between)
            score = critic(between, training=True)
        gradient = inner.gradient(score, between)
        norm = tf.sqrt(tf.reduce_sum(gradient**2, [1, 2, 3]) + 1e-12)
        return 10.0 * (norm - 1.0) ** 2

    def step(real: Any) -> Any:
        noise = tf.random.normal((job.batch, NOISE))
        with tf.GradientTape() as tape:
            fake = generator(noise, training=True)
            gap = tf.squeeze(critic(fake, training=True) - critic(real, training=True), 1)
            loss = tf.reduce_sum(gap + penalty(real, fake)) / job.global_batch
        apply(critic_optimizer, tape, loss, critic.trainable_variables)
        with tf.GradientTape() as tape:
            score = critic(generator(noise, training=True), training=True)
            generator_loss = -tf.reduce_sum(score) / job.global_batch
        apply(generator_optimizer, tape, generator_loss, generator.trainable_variables)
        return loss

    return step


def transformer_model(tf: Any) -> Any:
    """Returns an encoder-decoder in the post-norm form of "Attention is all you need"."""
    keras, layers = tf.keras, tf.keras.layers

    def attention() -> Any:
        return layers.MultiHeadAttention(HEADS, WIDTH // HEADS, dropout=0.1)

    def feed_forward() -> Any:
        return keras.Sequential(
            [layers.Dense(HIDDEN, "relu"), layers.Dense(WIDTH), layers.Dropout(0.1)]
        )

    class Transformer(keras.Model):  # type: ignore[misc, name-defined, unused-ignore]
        def __init__(self) -> None:
            super().__init__()
            norm = layers.LayerNormalization
            self.source = layers.Embedding(VOCABULARY, WIDTH)
            self.target = layers.Embedding(VOCABULARY, WIDTH)
            self.position = self.add_weight(name="position", shape=(LENGTH, WIDTH))
            self.encoder = [(attention(), norm(), feed_forward(), norm()) for _ in range(LAYERS)]
            self.decoder = [
                (attention(), norm(), attention(), norm(), feed_forward(), norm())
                for _ in range(LAYERS)
            ]
            self.logits = layers.Dense(VOCABULARY)
            # Keras finds layers in flat lists only.
            self.tracked = [layer for block in self.encoder + self.decoder for layer in block]

        def call(self, source: Any, target: Any) -> Any:
            seen = (source != 0)[:, None, :]
            causal = tf.linalg.band_part(tf.ones((LENGTH, LENGTH), tf.bool), -1, 0)[None]
            h = self.source(source) * WIDTH**0.5 + self.position
            for attend, norm1, feed, norm2 in self.encoder:
                h = norm1(h + attend(h, h, attention_mask=seen, training=True))
                h = norm2(h + feed(h, training=True))
            g = self.target(target) * WIDTH**0.5 + self.position
            for own, norm1, cross, norm2, feed, norm3 in self.decoder:
                g = norm1(g + own(g, g, attention_mask=causal, training=True))
                g = norm2(g + cross(g, h, attention_mask=seen, training=True))
                g = norm3(g + feed(g, training=True))
            return self.logits(g)

    return Transformer()


def transformer(tf: Any, job: Job) -> Step:
    """Translation with label smoothing; the loss is divided by the tokens of all replicas."""
    model = transformer_model(tf)
    optimizer = tf.keras.optimizers.Adam(1e-4, 0.9, 0.98, 1e-9)

    def step(batch: Any) -> Any:
        source, target = batch
        labels = target[:, 1:]
        with tf.GradientTape() as tape:
            logits = model(source, target[:, :-1])
            weights = tf.cast(labels != 0, tf.float32)
            smooth = tf.one_hot(labels, VOCABULARY, 0.9, 0.1 / (VOCABULARY - 1))
            each = tf.nn.softmax_cross_entropy_with_logits(smooth, logits)
            context = tf.distribute.get_replica_context()
            tokens = context.all_reduce("SUM", tf.reduce_sum(weights))
            loss = tf.reduce_sum(each * weights) / tokens
        apply(optimizer, tape, loss, model.trainable_variables)
        return loss

    return step
