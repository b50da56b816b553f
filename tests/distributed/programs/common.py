"""Trains variables that ranks of a machine have together: prints hashes of them.

`common.py REPLICAS WHAT`: replicas of this process, and what happens between the steps.
"""

import hashlib
import os
import sys
from pathlib import Path

import numpy as np

import samegrad as tf

replicas, what = int(sys.argv[1]), sys.argv[2]
strategy = tf.distribute.MultiWorkerMirroredStrategy(replicas=replicas)
rank = strategy.cluster_resolver.task_id
rng = np.random.default_rng(0)
start, other = rng.normal(size=(2, 150, 700)).astype(np.float32)  # 410 KiB each
rows = rng.normal(size=(strategy.num_replicas_in_sync, 150, 700)).astype(np.float32)
with strategy.scope():
    weights = tf.Variable(start)
    optimizer = tf.keras.optimizers.Adam(0.01)
given = strategy.experimental_distribute_values_from_function(
    lambda context: tf.constant(rows[context.replica_id_in_sync_group])
)


@tf.function
def step(given):
    def of_replica(gradient):
        optimizer.apply_gradients([(gradient * weights, weights)])

    strategy.run(of_replica, args=(given,))


def tell(name, value):
    digest = hashlib.sha256(np.asarray(value).tobytes()).hexdigest()[:16]
    sys.stdout.write(f"{name} {digest}\n")


def lies_in_common():
    return "memfd:samegrad" in Path("/proc/self/maps").read_text()


def in_child():
    """What a forked child says of the weights, and of those that it holds after another step."""
    went_on, goes_on = os.pipe()
    child = os.fork()
    if child == 0:
        os.read(went_on, 1)
        tell("first", held)
        try:
            tell("child", weights.numpy())
        except RuntimeError as error:
            sys.stdout.write(f"child {str(error).splitlines()[0]}\n")
        sys.stdout.flush()
        os._exit(0)
    step(given)
    os.write(goes_on, b"1")
    os.waitpid(child, 0)


assert not lies_in_common()
step(given)
held = weights.read_value()
tell("first", held)
if what == "assigned":
    weights.assign(other)
if what == "swapped on rank 0" and rank == 0:
    before = weights.numpy()
    weights.assign(other)
    weights.assign(before)
if what == "forked":
    in_child()
step(given)
step(given)
tell("held", held)
tell("last", weights)
sys.stdout.write(f"in common: {lies_in_common()}\n")
