"""Train a GAN that completes images in three stages, each with its own list of variables.

    python staged_gan.py --replicas 4

First the generator learns to fill holes, then the discriminator to tell completed images from real
ones, and then both train against each other. A stage passes the variables that it trains to
`apply_gradients`: there is one copy of them for all replicas. With `--all-variables`, the first
stage passes those of the discriminator too. Their gradients are None, and they do not change.
"""

import argparse

import numpy as np

import samegrad as tf

layers = tf.keras.layers
SIZE = 16


def stripes(count, seed):
    """Return images of stripes with random directions and phases."""
    rng = np.random.default_rng(seed)
    angle, phase = rng.uniform(0, np.pi, (2, count, 1, 1))
    y, x = np.mgrid[:SIZE, :SIZE]
    waves = np.sin(0.8 * (x * np.cos(angle) + y * np.sin(angle)) + 2 * phase)
    return waves[..., None].astype(np.float32)


def holes(images):
    """Return masks [n, SIZE, SIZE, 1] of a square at a random position in each image."""
    count = tf.shape(images)[0]
    places = tf.range(float(SIZE))
    top, left = (tf.random.uniform((count, 1, 1, 1), 2, SIZE - 8) for _ in range(2))
    rows, columns = places[None, :, None, None], places[None, None, :, None]
    inside = (rows >= top) & (rows < top + 6) & (columns >= left) & (columns < left + 6)
    return tf.cast(inside, tf.float32)


def generator():
    return tf.keras.Sequential(
        [
            layers.Input((SIZE, SIZE, 2)),
            layers.Conv2D(16, 5, 2, "same", activation="relu"),
            layers.Conv2D(32, 5, 2, "same", activation="relu"),
            layers.Conv2DTranspose(16, 5, 2, "same", activation="relu"),
            layers.Conv2DTranspose(1, 5, 2, "same", activation="tanh"),
        ],
        name="generator",
    )


def discriminator():
    return tf.keras.Sequential(
        [
            layers.Input((SIZE, SIZE, 1)),
            layers.Conv2D(16, 5, 2, "same", activation="relu"),
            layers.Conv2D(32, 5, 2, "same", activation="relu"),
            layers.Flatten(),
            layers.Dense(1),
        ],
        name="discriminator",
    )


class StagedGan:
    """The models, an optimizer for each stage, and the three steps."""

    def __init__(self, strategy, all_variables):
        self.strategy, self.all_variables = strategy, all_variables
        with strategy.scope():
            self.generator, self.discriminator = generator(), discriminator()
            self.optimizers = [tf.keras.optimizers.Adam(rate) for rate in (2e-3, 1e-3, 5e-4)]
        self.stages = [self.distributed(one) for one in (self.first, self.second, self.third)]

    def distributed(self, step):
        @tf.function
        def distributed_step(images):
            losses = self.strategy.run(step, args=(images,))
            return self.strategy.reduce(tf.distribute.ReduceOp.SUM, losses, axis=None)

        return distributed_step

    def complete(self, images):
        """Return images whose holes are filled, and the masks of the holes."""
        masks = holes(images)
        made = self.generator(tf.concat([images * (1.0 - masks), masks], axis=-1))
        return images * (1.0 - masks) + made * masks, masks

    def reconstruction_loss(self, images, completed, masks):
        """Return the mean error of the pixels in all holes, those of other replicas included."""
        return tf.nn.compute_weighted_mean_loss(tf.abs(completed - images), masks)

    def discriminator_loss(self, images, completed):
        real, made = self.discriminator(images), self.discriminator(completed)
        losses = tf.nn.softplus(-real) + tf.nn.softplus(made)
        return tf.nn.compute_average_loss(losses[:, 0])

    def update(self, tape, loss, optimizer, variables):
        gradients = tape.gradient(loss, variables)
        optimizer.apply_gradients(zip(gradients, variables))
        return loss

    def first(self, images):
        with tf.GradientTape() as tape:
            loss = self.reconstruction_loss(images, *self.complete(images))
        variables = self.generator.trainable_variables
        if self.all_variables:
            variables = variables + self.discriminator.trainable_variables
        return self.update(tape, loss, self.optimizers[0], variables)

    def second(self, images):
        completed, _ = self.complete(images)
        with tf.GradientTape() as tape:
            loss = self.discriminator_loss(images, completed)
        return self.update(tape, loss, self.optimizers[1], self.discriminator.trainable_variables)

    def third(self, images):
        self.second(images)
        with tf.GradientTape() as tape:
            completed, masks = self.complete(images)
            deceiving = tf.nn.softplus(-self.discriminator(completed))[:, 0]
            loss = 0.01 * tf.nn.compute_average_loss(deceiving)
            loss += self.reconstruction_loss(images, completed, masks)
        return self.update(tape, loss, self.optimizers[2], self.generator.trainable_variables)


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--replicas", type=int, default=2)
    parser.add_argument("--batch-size", type=int, default=32, help="of all replicas")
    parser.add_argument("--steps", type=int, default=60, help="of each stage")
    parser.add_argument("--all-variables", action="store_true", help="in the first stage")
    options = parser.parse_args(arguments)

    tf.keras.utils.set_random_seed(1)
    strategy = tf.distribute.MirroredStrategy(replicas=options.replicas)
    gan = StagedGan(strategy, options.all_variables)
    data = tf.data.Dataset.from_tensor_slices(stripes(640, seed=0)).shuffle(640, seed=1)
    batches = iter(
        strategy.experimental_distribute_dataset(data.repeat().batch(options.batch_size))
    )  # fmt: skip
    models = {"generator": gan.generator, "discriminator": gan.discriminator}
    before = {name: tf.fingerprint(model) for name, model in models.items()}
    for number, stage in enumerate(gan.stages, 1):
        losses = [float(stage(next(batches))) for _ in range(options.steps)]
        now = {name: tf.fingerprint(model) for name, model in models.items()}
        changed = [name for name in models if now[name] != before[name]]
        before = now
        print(
            f"stage {number}: loss {losses[0]:.4f} to {losses[-1]:.4f}, "
            f"changed: {' and '.join(changed)}"
        )
    print(f"weights {tf.fingerprint([gan.generator, gan.discriminator])}")


if __name__ == "__main__":
    main()
