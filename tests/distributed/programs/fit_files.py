"""`fit` and `evaluate` over files that are distributed: `fit_files.py FOLDER POLICY [DROPS]`.

POLICY OFF: rows of the program's own sharding, 9 on rank 0 and 8 on rank 1.
"""

import sys
from pathlib import Path

import numpy as np

import samegrad as tf
from samegrad.distribute import mpi

folder, policy = Path(sys.argv[1]), sys.argv[2]
strategy = tf.distribute.MultiWorkerMirroredStrategy(total_replicas=4, timeout=60)
opened = set()


def watch(event, details):
    if event == "open" and isinstance(details[0], str | bytes):
        path = Path(details[0].decode() if isinstance(details[0], bytes) else details[0])
        if path.parent == folder:
            opened.add(path.name)


sys.addaudithook(watch)


def example(text):
    x = tf.strings.to_number(text, tf.float32) / 50.0
    return tf.stack([x, x * x]), x * 3.0 - 1.0


names = sorted(str(path) for path in folder.glob("*.txt"))
options = tf.data.Options()
options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy[policy]
data = tf.data.TextLineDataset(names).map(example).batch(8).with_options(options)
if policy == "OFF":
    texts = tf.data.Dataset.from_tensor_slices([str(n) for n in range(17)]).map(example)
    own = texts.shard(mpi.size(), mpi.rank()).batch(4, len(sys.argv) > 3)
    data = own.with_options(options)
tf.keras.utils.set_random_seed(5)
with strategy.scope():
    model = tf.keras.Sequential([tf.keras.layers.Input((2,)), tf.keras.layers.Dense(1)])
    model.compile("sgd", "mse", metrics=["mae"])
history = model.fit(data, epochs=3, verbose=0, validation_data=data)
losses = history.history["loss"]
if policy == "OFF":
    shared = strategy.experimental_distribute_dataset(data)
    sys.stdout.write(f"batches {len(shared)} {len(list(shared))}\n")
assert len(losses) == 3 and losses[-1] < losses[0], losses
found = np.round(model.evaluate(data, verbose=0), 5).tolist()
bits = tf.fingerprint(model.get_weights())
sys.stdout.write(f"steps {int(model.optimizer.iterations)} {bits} {found}\n")
sys.stdout.write(f"opened {strategy.cluster_resolver.task_id}: {sorted(opened)}\n")
