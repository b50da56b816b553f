"""Trains, saves, and checks the bits in a job: `fingerprints.py FOLDER TOTAL`."""

import sys

import numpy as np

import samegrad as tf
from samegrad.testing import assert_replica_invariant, assert_same_bits

folder, total = sys.argv[1], int(sys.argv[2])
rng = np.random.default_rng(0)
data = rng.normal(size=(22, 4)).astype(np.float32), rng.normal(size=(22, 1)).astype(np.float32)
strategy = tf.distribute.MultiWorkerMirroredStrategy(total_replicas=total)


def make():
    model = tf.keras.Sequential(
        [
            tf.keras.layers.Dense(8, activation="relu"),
            tf.keras.layers.BatchNormalization(),
            tf.keras.layers.Dropout(0.3),
            tf.keras.layers.Dense(1),
        ]
    )
    model.compile("adam", "mse", metrics=["mae"])
    return model


tf.keras.utils.set_random_seed(3)
with strategy.scope():
    model = make()
    count = tf.Variable(
        0.0,
        trainable=False,
        synchronization=tf.VariableSynchronization.ON_READ,
        aggregation=tf.VariableAggregation.SUM,
    )
model.fit(*data, batch_size=8, epochs=2, verbose=0)
each = strategy.experimental_distribute_dataset(tf.data.Dataset.from_tensors(data[0]))
for batch in each:
    strategy.run(lambda x: count.assign_add(tf.cast(tf.shape(x)[0], tf.float32)), args=(batch,))
path = tf.train.Checkpoint(model=model, count=count).save(f"{folder}/ckpt")
objects = {"model": model, "count": count}
assert tf.fingerprint(objects) == tf.fingerprint(path) == tf.fingerprint(folder)
assert_same_bits(objects, path)
counts = (1, 2) if tf.distribute.mpi.size() > 1 else (1,)
found = assert_replica_invariant(make, data, (1, 2, 3), (1,), counts, 2)
kinds = [f"{one.replicas}x{one.processes} {one.outcome} {one.why}" for one in found.outcomes]
sys.stdout.write(f"bits {tf.fingerprint(objects)}\n")
sys.stdout.write(f"divisions {'; '.join(kinds)}\n")
