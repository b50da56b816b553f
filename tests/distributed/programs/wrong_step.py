"""A step with one wrong argument, which every rank raises."""

import numpy as np

import samegrad as tf

strategy = tf.distribute.MultiWorkerMirroredStrategy()
with strategy.scope():
    weight = tf.Variable(np.ones(3, np.float32))


def replica_step(x):
    with tf.GradientTape() as tape:
        per_example = tf.reduce_sum(x * weight, axis=1)
        loss = tf.nn.compute_average_loss(per_example, global_batch_size="8")
    return tape.gradient(loss, weight)


@tf.function
def train_step(x):
    return strategy.reduce("SUM", strategy.run(replica_step, args=(x,)), axis=None)


data = tf.data.Dataset.from_tensor_slices(np.ones((8, 3), np.float32)).batch(8)
for batch in strategy.experimental_distribute_dataset(data):
    train_step(batch)
