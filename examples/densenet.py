"""Train DenseNet on images, with a loop of your own or with `fit`: the weights are the same bits.

    python densenet.py --replicas 4
    python densenet.py --replicas 4 --train-mode keras_fit

Without `--data`, it learns the direction of stripes. CIFAR-10 as Keras stores it
(`cifar10.npz` with x_train, y_train, x_test, y_test) takes `--depth 40 --growth-rate 12`.
"""

import argparse

import numpy as np

import samegrad as tf

layers = tf.keras.layers


def normalized(x):
    return layers.ReLU()(layers.BatchNormalization(momentum=0.9, epsilon=1.1e-5)(x))


def convolution(x, filters, size, weight_decay):
    return layers.Conv2D(
        filters,
        size,
        padding="same",
        use_bias=False,
        kernel_initializer="he_normal",
        kernel_regularizer=tf.keras.regularizers.L2(weight_decay),
    )(x)


def densenet(shape, classes, depth, growth_rate, blocks=3, compression=0.5, weight_decay=1e-4):
    """Return DenseNet-BC: blocks whose layers read all earlier ones, with bottlenecks.

    Args:
        shape: height, width and channels of an image.
        classes: number of classes.
        depth: number of layers with weights.
        growth_rate: channels that a layer adds.
        blocks: number of dense blocks.
        compression: factor of the channels between two blocks.
        weight_decay: factor of the squares of all kernels in the loss.
    """
    inputs = layers.Input(shape)
    x = convolution(inputs, 2 * growth_rate, 3, weight_decay)
    for block in range(blocks):
        if block:
            x = convolution(normalized(x), int(x.shape[-1] * compression), 1, weight_decay)
            x = layers.AveragePooling2D(2)(x)
        for _ in range((depth - 4) // (2 * blocks)):
            y = convolution(normalized(x), 4 * growth_rate, 1, weight_decay)
            y = convolution(normalized(y), growth_rate, 3, weight_decay)
            x = layers.Concatenate()([x, y])
    x = layers.GlobalAveragePooling2D()(normalized(x))
    return tf.keras.Model(inputs, layers.Dense(classes)(x))


def stripes(count, seed, size=16):
    """Return images of stripes in four directions with noise, and the directions."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 4, (count, 1))
    angles = (labels * np.pi / 4)[:, :, None]
    y, x = np.mgrid[:size, :size]
    phase = rng.uniform(0, 6, (count, 1, 1))
    waves = np.sin(1.5 * (x * np.cos(angles) + y * np.sin(angles)) + phase)
    images = waves[..., None] + rng.normal(size=(count, size, size, 3))
    return np.clip(128 + 40 * images, 0, 255).astype(np.uint8), labels


def load(path):
    if path is None:
        return stripes(640, 0), stripes(160, 1)
    with np.load(path) as file:
        return tuple((file[f"x_{part}"], file[f"y_{part}"]) for part in ("train", "test"))


def train_with_fit(strategy, model, optimizer, train, test, epochs):
    model.compile(
        optimizer,
        tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=[tf.keras.metrics.SparseCategoricalAccuracy(name="accuracy")],
    )
    model.fit(train, epochs=epochs, validation_data=test, verbose=2)


def train_with_loop(strategy, model, optimizer, train, test, epochs):
    loss_object = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True, reduction="none")
    with strategy.scope():
        train_accuracy = tf.keras.metrics.SparseCategoricalAccuracy()
        test_accuracy = tf.keras.metrics.SparseCategoricalAccuracy()

    def train_step(images, labels):
        with tf.GradientTape() as tape:
            logits = model(images, training=True)
            loss = tf.nn.compute_average_loss(loss_object(labels, logits))
            loss += tf.nn.scale_regularization_loss(sum(model.losses))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        train_accuracy.update_state(labels, logits)
        return loss

    def test_step(images, labels):
        test_accuracy.update_state(labels, model(images, training=False))

    @tf.function
    def distributed_train_step(inputs):
        losses = strategy.run(train_step, args=inputs)
        return strategy.reduce(tf.distribute.ReduceOp.SUM, losses, axis=None)

    @tf.function
    def distributed_test_step(inputs):
        strategy.run(test_step, args=inputs)

    train = strategy.experimental_distribute_dataset(train)
    test = strategy.experimental_distribute_dataset(test)
    for epoch in range(epochs):
        train_accuracy.reset_state()
        test_accuracy.reset_state()
        losses = [float(distributed_train_step(inputs)) for inputs in train]
        for inputs in test:
            distributed_test_step(inputs)
        print(
            f"epoch {epoch + 1}: loss {np.mean(losses):.4f}, "
            f"accuracy {float(train_accuracy.result()):.4f}, "
            f"val_accuracy {float(test_accuracy.result()):.4f}"
        )


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", help="cifar10.npz, or a file like it")
    parser.add_argument("--train-mode", choices=["custom_loop", "keras_fit"], default="custom_loop")
    parser.add_argument("--replicas", type=int, default=2)
    parser.add_argument("--batch-size", type=int, default=64, help="of all replicas")
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--depth", type=int, default=10)
    parser.add_argument("--growth-rate", type=int, default=8)
    options = parser.parse_args(arguments)

    tf.keras.utils.set_random_seed(1)
    strategy = tf.distribute.MirroredStrategy(replicas=options.replicas)
    (images, labels), test = load(options.data)

    def scaled(images, labels):
        return tf.cast(images, tf.float32) / 128.0 - 1.0, labels

    train_data = tf.data.Dataset.from_tensor_slices((images, labels)).map(scaled)
    # One order for all epochs: `fit` opens iterators of its own, which would change the order.
    train_data = train_data.shuffle(len(images), seed=1, reshuffle_each_iteration=False)
    train_data = train_data.batch(options.batch_size)
    test_data = tf.data.Dataset.from_tensor_slices(test).map(scaled).batch(options.batch_size)
    steps = -(-len(images) // options.batch_size) * options.epochs
    with strategy.scope():
        classes = int(labels.max()) + 1
        model = densenet(images.shape[1:], classes, options.depth, options.growth_rate)
        rate = tf.keras.optimizers.schedules.PiecewiseConstantDecay(
            [steps // 2, steps * 3 // 4], [0.1, 0.01, 0.001]
        )
        optimizer = tf.keras.optimizers.SGD(rate, momentum=0.9, nesterov=True)
    train = {"custom_loop": train_with_loop, "keras_fit": train_with_fit}[options.train_mode]
    train(strategy, model, optimizer, train_data, test_data, options.epochs)
    print(f"weights {tf.fingerprint(model.weights)}")


if __name__ == "__main__":
    main()
