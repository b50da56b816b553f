"""Embeddings whose gradients are rows: prints a hash of the tables, and how the plan writes them.

`table.py TOTAL`: several lookups of a table, unequal per-replica batches, a clipped
norm, a mean, LazyAdam.
"""

import sys

import numpy as np

import samegrad as tf

total = int(sys.argv[1])
tf.random.set_seed(1)
strategy = tf.distribute.MultiWorkerMirroredStrategy(total_replicas=total)
rng = np.random.default_rng(0)
ids = rng.integers(0, 5000, (70, 3)).astype(np.int32)
ids[::3] = ids[0]  # many name the same rows, on several processes
ids[26:40, 0] = 11  # of 8 replicas the first two do not name it
ids[:20] = 7  # the first step names one row, later ones more
data = tf.data.Dataset.from_tensor_slices(ids).batch(20)
with strategy.scope():
    table = tf.Variable(rng.normal(size=(5000, 16)).astype(np.float32))
    other = tf.Variable(rng.normal(size=(5000, 4)).astype(np.float32))
    third = tf.Variable(rng.normal(size=(5000, 4)).astype(np.float32))
    lazy = tf.keras.optimizers.LazyAdam(0.01)
    clipped = tf.keras.optimizers.SGD(0.1, global_clipnorm=0.5)


@tf.function
def step(batch):
    def of_replica(rows):
        with tf.GradientTape() as tape:
            found = tf.gather(table, rows[:, 0]) * tf.gather(table, rows[:, 1])
            small = tf.gather(other, rows[:, 2])
            more = tf.gather(third, rows[:, 1])
            each = tf.reduce_sum(found**2, axis=1) + tf.reduce_sum(small**2 + more**3, axis=1)
            loss = tf.nn.compute_average_loss(each)
        gradients = tape.gradient(loss, [table, other, third])
        lazy.apply_gradients([(gradients[0], table)])
        clipped.apply_gradients([(gradients[1], other)])
        mean = tf.distribute.get_replica_context().all_reduce("mean", gradients[2])
        third.assign_sub(mean * 0.1)
        return loss

    return strategy.reduce("SUM", strategy.run(of_replica, args=(batch,)), axis=None)


losses = [step(batch) for _ in range(2) for batch in strategy.experimental_distribute_dataset(data)]
everything = [losses, table, other, third, lazy]
plan = str(step.explain(next(iter(strategy.experimental_distribute_dataset(data)))))
sys.stdout.write(f"table {tf.fingerprint(everything)} {plan.count('rows')}\n")
