"""Trains, saves after every step and goes on from the last checkpoint, if there is one.

A rank kills itself where it is asked to: `resume.py FOLDER TOTAL [RANK STEP]`. SAMEGRAD_TEST_PIDS
is a folder where each rank leaves its process id; SAMEGRAD_TEST_STEPS is the number of steps.
"""

import os
import signal
import sys
from pathlib import Path

if "SAMEGRAD_TEST_PIDS" in os.environ:  # at once: whoever kills a rank does so at any moment
    (Path(os.environ["SAMEGRAD_TEST_PIDS"]) / str(os.getpid())).touch()

import numpy as np

import samegrad as tf

folder, total = sys.argv[1], int(sys.argv[2])
killed, last = (int(sys.argv[3]), int(sys.argv[4])) if len(sys.argv) > 3 else (-1, -1)
STEPS = int(os.environ.get("SAMEGRAD_TEST_STEPS", "8"))
strategy = tf.distribute.MultiWorkerMirroredStrategy(total_replicas=total, timeout=20)
rank = strategy.cluster_resolver.task_id
tf.random.set_seed(1)
rng = np.random.default_rng(0)
x = rng.normal(size=(48, 20)).astype(np.float32)
data = tf.data.Dataset.from_tensor_slices((x, x.sum(axis=1, keepdims=True)))
data = data.shuffle(48, seed=1).batch(24).repeat()
iterator = iter(strategy.experimental_distribute_dataset(data))
width = int(os.environ.get("SAMEGRAD_TEST_WIDTH", "0"))  # many: weights in common memory
with strategy.scope():
    wide = [tf.keras.layers.Dense(width)] if width else []
    model = tf.keras.Sequential([tf.keras.layers.Dropout(0.1), *wide, tf.keras.layers.Dense(1)])
    model.build((None, 20))
    optimizer = tf.keras.optimizers.Adam(0.01)
step = tf.Variable(0)
checkpoint = tf.train.Checkpoint(model=model, optimizer=optimizer, iterator=iterator, step=step)
manager = tf.train.CheckpointManager(checkpoint, folder, max_to_keep=2)
manager.restore_or_initialize()
begin = int(step)


@tf.function
def train_step(batch):
    def replica_step(x, y):
        with tf.GradientTape() as tape:
            loss = tf.nn.compute_average_loss(
                tf.reduce_sum(tf.square(model(x, training=True) - y), axis=1)
            )
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        return loss

    return strategy.reduce("SUM", strategy.run(replica_step, args=batch), axis=None)


while int(step) < STEPS:
    if rank == killed and int(step) == last:
        os.kill(os.getpid(), signal.SIGKILL)
    train_step(next(iterator))
    step.assign_add(1)
    manager.save()
if width and int(step) > begin and tf.distribute.mpi.size() > 1:
    with open("/proc/self/maps", encoding="utf-8") as maps:
        assert "memfd:samegrad" in maps.read(), "no weights in common memory"
sys.stdout.write(f"weights {tf.fingerprint(model)}\n")
