"""`fit` with a backup every few batches: prints the fingerprint of the model and its history."""

import sys

import numpy as np

import samegrad as tf

folder, total = sys.argv[1], int(sys.argv[2])
tf.keras.utils.set_random_seed(5)
strategy = tf.distribute.MultiWorkerMirroredStrategy(total_replicas=total, timeout=30)
rng = np.random.default_rng(0)
x = rng.normal(size=(90, 12)).astype(np.float32)
y = rng.integers(0, 3, size=90)
with strategy.scope():
    layers = [tf.keras.layers.Dense(32, "relu"), tf.keras.layers.Dropout(0.2)]
    model = tf.keras.Sequential([*layers, tf.keras.layers.Dense(3)])
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile("adam", loss, metrics=["accuracy"])
backup = tf.keras.callbacks.BackupAndRestore(folder, save_freq=2, delete_checkpoint=False)
model.fit(x, y, batch_size=8, epochs=8, callbacks=[backup], verbose=0)
sys.stdout.write(f"weights {tf.fingerprint(model)}\n")
