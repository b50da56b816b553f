"""The tutorial's convolutional network on made-up images: prints the hash of the weights."""

import argparse
import sys

import numpy as np

import samegrad as tf

parser = argparse.ArgumentParser()
parser.add_argument("--replicas", type=int, default=1)  # of this process
parser.add_argument("--batch", type=int, default=32)
parser.add_argument("--examples", type=int, default=75)
parser.add_argument("--one-process", action="store_true")
options = parser.parse_args()
tf.random.set_seed(7)
kind = (
    tf.distribute.MirroredStrategy
    if options.one_process
    else tf.distribute.MultiWorkerMirroredStrategy
)
strategy = kind(replicas=options.replicas)
rng = np.random.default_rng(0)
images = rng.normal(size=(options.examples, 14, 14, 1)).astype(np.float32)
labels = rng.integers(0, 10, size=options.examples)
dataset = tf.data.Dataset.from_tensor_slices((images, labels)).shuffle(100, seed=1)
dataset = strategy.experimental_distribute_dataset(dataset.batch(options.batch))
with strategy.scope():
    model = tf.keras.Sequential(
        [
            tf.keras.layers.Conv2D(8, 3, activation="relu"),
            tf.keras.layers.MaxPooling2D(),
            tf.keras.layers.Conv2D(16, 3, activation="relu"),
            tf.keras.layers.Flatten(),
            tf.keras.layers.Dense(32, activation="relu"),
            tf.keras.layers.Dropout(0.25),
            tf.keras.layers.Dense(10),
        ]
    )
    optimizer = tf.keras.optimizers.Adam(0.01)
    losses = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True, reduction="none")
    accuracy = tf.keras.metrics.SparseCategoricalAccuracy()


def replica_step(x, y):
    with tf.GradientTape() as tape:
        logits = model(x, training=True)
        loss = tf.nn.compute_average_loss(losses(y, logits))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
    accuracy.update_state(y, logits)
    return loss


@tf.function
def train_step(batch):
    return strategy.reduce("SUM", strategy.run(replica_step, args=batch), axis=None)


found = [train_step(batch) for _ in range(2) for batch in dataset]
everything = {"losses": found, "model": model, "accuracy": accuracy.result()}
sys.stdout.write(f"weights {tf.fingerprint(everything)}\n")
