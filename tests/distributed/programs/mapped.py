"""Elements that functions make, with draws of their own: prints the rows, and who made how many."""

import sys

import numpy as np

import samegrad as tf

total = int(sys.argv[1])
strategy = tf.distribute.MultiWorkerMirroredStrategy(total_replicas=total)
tf.random.set_seed(3)
calls = []


def make(x):
    calls.append(1)
    return tf.cast(x, tf.float32) + tf.random.uniform([2]), x % 3


def again(x, label):
    return x * 2 + tf.random.uniform([2]), label


data = tf.data.Dataset.range(26).map(make).shuffle(10, seed=1)
data = data.map(again, num_parallel_calls=2).batch(8).prefetch(1)
iterator = iter(strategy.experimental_distribute_dataset(data))
checkpoint = tf.train.Checkpoint(iterator=iterator)
for number, (rows, labels) in enumerate(iterator):
    both = np.asarray(strategy.gather(rows, axis=0)), np.asarray(strategy.gather(labels, axis=0))
    sys.stdout.write(f"rows {number}: {both[0].tobytes().hex()} {both[1].tolist()}\n")
    if number == 0:
        place = dict(iterator._checkpoint_state())
again = iter(strategy.experimental_distribute_dataset(data))
again._restore_state(place)
rows, _ = next(again)
sys.stdout.write(f"again: {np.asarray(strategy.gather(rows, axis=0)).tobytes().hex()}\n")
sys.stdout.write(f"calls {strategy.cluster_resolver.task_id}: {len(calls)}\n")
