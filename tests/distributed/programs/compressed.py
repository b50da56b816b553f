"""Adds up large gradients as bfloat16: prints a hash and how far they are from the exact sum.

`compressed.py [RANK]`: with a number, only that rank says so.
"""

import sys

import numpy as np

import samegrad as tf

strategy = tf.distribute.MultiWorkerMirroredStrategy(replicas=2)
rank = strategy.cluster_resolver.task_id
if len(sys.argv) < 2 or int(sys.argv[1]) == rank:
    tf.distribute.MultiWorkerMirroredStrategy(replicas=2, compression="bfloat16")
elif len(sys.argv) > 1:
    tf.distribute.MultiWorkerMirroredStrategy(replicas=2)
rng = np.random.default_rng(0)
parts = rng.normal(size=(strategy.num_replicas_in_sync, 300, 100)).astype(np.float32)
with strategy.scope():
    total = tf.Variable(np.zeros([300, 100], np.float32))
    small = tf.Variable(np.zeros([100], np.float32))
given = strategy.experimental_distribute_values_from_function(
    lambda context: tf.constant(parts[context.replica_id_in_sync_group])
)


@tf.function
def step(given):
    def of_replica(x):
        context = tf.distribute.get_replica_context()
        large, of_row = context.all_reduce("sum", [x, x[0] + 1024.0])  # they travel together
        total.assign(large)
        small.assign(of_row)

    strategy.run(of_replica, args=(given,))


step(given)
exact = parts.astype(np.float64).sum(0)
worst = np.abs(total.numpy() - exact).max() / np.abs(exact).max()
rounded = (total.numpy().view(np.uint32) & 0xFFFF == 0).all()
rows = [part[0] + np.float32(1024.0) for part in parts]
while len(rows) > 1:
    rows = [a + b for a, b in zip(rows[::2], rows[1::2], strict=True)]
kept = (small.numpy() == rows[0]).all()
sys.stdout.write(f"sum {tf.fingerprint(total)} {rounded} {worst < 0.02} {worst > 1e-4} {kept}\n")
