"""A completion GAN in three stages: generator alone, discriminator alone, both; over replicas."""

from __future__ import annotations

from typing import Any

import numpy as np

import samegrad as tf

SIZE, BATCH = 8, 32


def create_generator() -> Any:
    """Masked images and their masks `[n, SIZE, SIZE, 2]` to whole images."""
    layers = tf.keras.layers
    return tf.keras.Sequential(
        [
            tf.keras.Input((SIZE, SIZE, 2)),
            layers.Conv2D(4, 3, 2, "same"),
            layers.BatchNormalization(),
            layers.PReLU(),
            layers.Conv2DTranspose(1, 4, 2, "same", activation="tanh"),
        ],
        name="generator",
    )


def create_discriminator() -> Any:
    """Images to logits `[n, 1]`."""
    layers = tf.keras.layers
    return tf.keras.Sequential(
        [
            tf.keras.Input((SIZE, SIZE, 1)),
            layers.Conv2D(4, 3, 2, "same"),
            layers.LeakyReLU(0.2),
            layers.Flatten(),
            layers.Dense(1),
        ],
        name="discriminator",
    )


def masked(images: Any) -> tuple[Any, Any]:
    """Images with a hole, and the masks of the holes; the holes are drawn."""
    count = tf.shape(images)[0]
    side = tf.random.uniform((count, 1, 1, 1), 2.0, 6.0)
    place = tf.reshape(tf.range(float(SIZE)), (1, SIZE, 1, 1))
    hole = tf.cast((place < side) & (tf.transpose(place, (0, 2, 1, 3)) < side), images.dtype)
    return tf.concat([images * (1.0 - hole), hole], 3), hole


class StagedGan:
    """Models, optimizers and the step of each stage."""

    def __init__(self, replicas: int) -> None:
        tf.keras.utils.set_random_seed(4)
        self.strategy = tf.distribute.MirroredStrategy(replicas=replicas)
        with self.strategy.scope():
            self.generator, self.discriminator = create_generator(), create_discriminator()
            adam = tf.keras.optimizers.Adam
            self.generator_optimizer, self.discriminator_optimizer = adam(1e-2), adam(1e-2)
            for optimizer, model in self.pairs():
                optimizer.build(model.trainable_variables)
            self.global_step = tf.Variable(
                0, trainable=False, aggregation=tf.VariableAggregation.ONLY_FIRST_REPLICA
            )
        stages = (self.generator_stage, self.discriminator_stage, self.both_stage)
        self.steps = [self.distributed(stage) for stage in stages]

    def pairs(self) -> list[tuple[Any, Any]]:
        """Each optimizer with its model."""
        return [
            (self.generator_optimizer, self.generator),
            (self.discriminator_optimizer, self.discriminator),
        ]

    def distributed(self, stage: Any) -> Any:
        """The step over all replicas; its losses are those of the global batch."""

        @tf.function
        def step(batch: Any) -> Any:
            shares = self.strategy.run(stage, args=(batch,))
            return self.strategy.reduce("SUM", shares, axis=None)

        return step

    def reconstruction(self, images: Any, holes: Any, made: Any) -> Any:
        """The mean error over the pixels of all holes."""
        return tf.nn.compute_weighted_mean_loss((made - images) ** 2, holes)

    def discriminator_loss(self, images: Any, made: Any) -> Any:
        """The discriminator is one model, called on real and on completed images."""
        real = self.discriminator(images, training=True)
        fake = self.discriminator(made, training=True)
        each = tf.nn.softplus(-real) + tf.nn.softplus(fake)
        return tf.nn.compute_average_loss(tf.squeeze(each, 1))

    def update(self, optimizer: Any, tape: Any, loss: Any, model: Any) -> None:
        variables = model.trainable_variables
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))

    def generator_stage(self, images: Any) -> Any:
        given, holes = masked(images)
        with tf.GradientTape() as tape:
            loss = self.reconstruction(images, holes, self.generator(given, training=True))
        self.update(self.generator_optimizer, tape, loss, self.generator)
        self.global_step.assign_add(1)
        return loss

    def discriminator_stage(self, images: Any) -> Any:
        given, _ = masked(images)
        made = self.generator(given, training=False)  # its moving means stay what they are
        with tf.GradientTape() as tape:
            loss = self.discriminator_loss(images, made)
        self.update(self.discriminator_optimizer, tape, loss, self.discriminator)
        self.global_step.assign_add(1)
        return loss

    def both_stage(self, images: Any) -> Any:
        given, holes = masked(images)
        with tf.GradientTape(persistent=True) as tape:
            made = self.generator(given, training=True)
            adversarial = tf.nn.softplus(-self.discriminator(made, training=True))
            loss = self.reconstruction(images, holes, made)
            loss += 0.1 * tf.nn.compute_average_loss(tf.squeeze(adversarial, 1))
            discriminator_loss = self.discriminator_loss(images, made)
        self.update(self.generator_optimizer, tape, loss, self.generator)
        self.update(self.discriminator_optimizer, tape, discriminator_loss, self.discriminator)
        self.global_step.assign_add(1)
        return loss + discriminator_loss

    def batches(self, examples: int = 7 * BATCH) -> Any:
        """Global batches without end, the last one of an epoch short if need be."""
        rng = np.random.default_rng(2)
        images = np.tanh(rng.normal(size=(examples, SIZE, SIZE, 1))).astype(np.float32)
        dataset = tf.data.Dataset.from_tensor_slices(images).shuffle(examples, seed=1)
        return iter(self.strategy.experimental_distribute_dataset(dataset.batch(BATCH).repeat()))


def bits(part: Any) -> bytes:
    """All variables of a model or an optimizer."""
    return b"".join(np.asarray(variable).tobytes() for variable in part.variables)
