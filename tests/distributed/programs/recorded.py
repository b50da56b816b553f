"""Trains on two hidden layers in a job, and records it: `recorded.py FILE TOTAL [DETAIL]`."""

import sys

import numpy as np

import samegrad as tf

file, total = sys.argv[1], int(sys.argv[2])
detail = int(sys.argv[3]) if len(sys.argv) > 3 else None
rng = np.random.default_rng(0)
data = rng.normal(size=(22, 4)).astype(np.float32), rng.normal(size=(22, 1)).astype(np.float32)
strategy = tf.distribute.MultiWorkerMirroredStrategy(total_replicas=total)
tf.keras.utils.set_random_seed(3)
with strategy.scope():
    model = tf.keras.Sequential(
        [
            tf.keras.layers.Dense(8, activation="relu"),
            tf.keras.layers.BatchNormalization(),
            tf.keras.layers.Dropout(0.3),
            tf.keras.layers.Dense(1),
        ]
    )
    model.compile("adam", "mse", metrics=["mae"])
with tf.record_run(file, detail):
    model.fit(*data, batch_size=8, epochs=2, verbose=0)
    model.evaluate(*data, batch_size=8, verbose=0)
