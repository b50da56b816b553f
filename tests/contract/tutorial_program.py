"""The tutorial "Custom training with tf.distribute.Strategy", up to its restored model.

    python tutorial_program.py MODULE DATA.npz REPLICAS

MODULE is samegrad or tensorflow: the lines below the import are the same for both. What the program
found is printed as one line of JSON. The data are not shuffled, and the weights begin as numbers of
NumPy, so that both begin alike.
"""

import importlib
import json
import os
import sys

import numpy as np

tf = importlib.import_module(sys.argv[1])
data = np.load(sys.argv[2])
devices = [f"CPU:{i}" for i in range(int(sys.argv[3]))]
if len(devices) > 1:
    cpu = tf.config.list_physical_devices("CPU")[0]
    logical = [tf.config.LogicalDeviceConfiguration() for _ in devices]
    tf.config.set_logical_device_configuration(cpu, logical)

strategy = tf.distribute.MirroredStrategy(devices)
BATCH_SIZE_PER_REPLICA = 16
GLOBAL_BATCH_SIZE = BATCH_SIZE_PER_REPLICA * strategy.num_replicas_in_sync
EPOCHS = 3

train_dataset = tf.data.Dataset.from_tensor_slices(
    (data["train_images"], data["train_labels"])
).batch(GLOBAL_BATCH_SIZE)
test_dataset = tf.data.Dataset.from_tensor_slices((data["test_images"], data["test_labels"])).batch(
    GLOBAL_BATCH_SIZE
)
train_dist_dataset = strategy.experimental_distribute_dataset(train_dataset)
test_dist_dataset = strategy.experimental_distribute_dataset(test_dataset)


def create_model():
    regularizer = tf.keras.regularizers.L2(1e-4)
    layers = tf.keras.layers
    model = tf.keras.Sequential(
        [
            layers.Conv2D(8, 3, activation="relu", kernel_regularizer=regularizer),
            layers.MaxPooling2D(),
            layers.Conv2D(16, 3, activation="relu", kernel_regularizer=regularizer),
            layers.MaxPooling2D(),
            layers.Flatten(),
            layers.Dense(16, activation="relu", kernel_regularizer=regularizer),
            layers.Dense(10, kernel_regularizer=regularizer),
        ]
    )
    model.build((None, 28, 28, 1))
    numbers = np.random.default_rng(7)
    for variable in model.trainable_variables:
        spread = 1 / np.sqrt(np.prod(variable.shape[:-1]) + 1)
        variable.assign(numbers.uniform(-spread, spread, variable.shape).astype(np.float32))
    return model


checkpoint_prefix = os.path.join("training_checkpoints", "ckpt")

with strategy.scope():
    loss_object = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True, reduction="none")

    def compute_loss(labels, predictions, model_losses):
        per_example_loss = loss_object(labels, predictions)
        loss = tf.nn.compute_average_loss(per_example_loss)
        if model_losses:
            loss += tf.nn.scale_regularization_loss(tf.add_n(model_losses))
        return loss

    test_loss = tf.keras.metrics.Mean(name="test_loss")
    train_accuracy = tf.keras.metrics.SparseCategoricalAccuracy(name="train_accuracy")
    test_accuracy = tf.keras.metrics.SparseCategoricalAccuracy(name="test_accuracy")

with strategy.scope():
    model = create_model()
    optimizer = tf.keras.optimizers.Adam(learning_rate=0.005)
    checkpoint = tf.train.Checkpoint(optimizer=optimizer, model=model)


def train_step(inputs):
    images, labels = inputs
    with tf.GradientTape() as tape:
        predictions = model(images, training=True)
        loss = compute_loss(labels, predictions, model.losses)
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
    train_accuracy.update_state(labels, predictions)
    return loss


def test_step(inputs):
    images, labels = inputs
    predictions = model(images, training=False)
    t_loss = loss_object(labels, predictions)
    test_loss.update_state(t_loss)
    test_accuracy.update_state(labels, predictions)


@tf.function
def distributed_train_step(dataset_inputs):
    per_replica_losses = strategy.run(train_step, args=(dataset_inputs,))
    return strategy.reduce(tf.distribute.ReduceOp.SUM, per_replica_losses, axis=None)


@tf.function
def distributed_test_step(dataset_inputs):
    return strategy.run(test_step, args=(dataset_inputs,))


epochs = []
for epoch in range(EPOCHS):
    total_loss = 0.0
    num_batches = 0
    for x in train_dist_dataset:
        total_loss += distributed_train_step(x)
        num_batches += 1
    train_loss = total_loss / num_batches
    for x in test_dist_dataset:
        distributed_test_step(x)
    if epoch % 2 == 0:
        checkpoint.save(checkpoint_prefix)
    figures = (train_loss, train_accuracy.result(), test_loss.result(), test_accuracy.result())
    epochs.append([float(figure) for figure in figures])
    test_loss.reset_state()
    train_accuracy.reset_state()
    test_accuracy.reset_state()

eval_accuracy = tf.keras.metrics.SparseCategoricalAccuracy(name="eval_accuracy")
new_model = create_model()
new_optimizer = tf.keras.optimizers.Adam()


@tf.function
def eval_step(images, labels):
    predictions = new_model(images, training=False)
    eval_accuracy.update_state(labels, predictions)


checkpoint = tf.train.Checkpoint(optimizer=new_optimizer, model=new_model)
checkpoint.restore(tf.train.latest_checkpoint("training_checkpoints"))
for images, labels in test_dataset:
    eval_step(images, labels)

print(json.dumps({"epochs": epochs, "restored": float(eval_accuracy.result())}))
