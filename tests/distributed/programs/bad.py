"""Something is wrong with one rank, or with the installation: `bad.py KIND [FOLDER]`."""

import os
import resource
import signal
import sys

import numpy as np

import samegrad as tf
from samegrad import _core

kind = sys.argv[1]
if kind == "no mpi4py":
    sys.modules["mpi4py"] = None  # as if it were not installed
rank = int(os.environ.get("PMI_RANK", os.environ.get("PMIX_RANK", "0")))
if kind == "version" and rank == 1:
    _core.__version__ = "0.0.1"
if kind == "function version" and rank == 1:
    _core.function_version = lambda: 9
if kind == "raises early" and rank == 1:
    raise FileNotFoundError(2, "No such file or directory", "train.npz")
if kind == "ends early" and rank == 1:
    sys.exit(3)
timeout = 4 if kind == "ends early" else 20
strategy = tf.distribute.MultiWorkerMirroredStrategy(timeout=timeout)
data = tf.data.Dataset.from_tensor_slices(np.ones([24, 2], np.float32)).batch(6)
with strategy.scope():
    weights = tf.Variable(np.ones([2, 60_000], np.float32))


@tf.function
def step(x):
    def of_replica(x):
        total = tf.distribute.get_replica_context().all_reduce("sum", tf.reduce_sum(x))
        weights.assign_sub(tf.zeros_like(weights) + total * 1e-3)

    strategy.run(of_replica, args=(x,))


for number, x in enumerate(strategy.experimental_distribute_dataset(data)):
    step(x)
    if kind == "fewer steps" and rank == 1 and number == 1:
        sys.exit()
if kind == "full disk":
    if rank == 0:  # writing more is an error of the system, as on a full disk
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, resource.RLIM_INFINITY))
    tf.train.Checkpoint(weights=weights).save(os.path.join(sys.argv[2], "checkpoint"))
sys.stdout.write(f"came to the end {rank}\n")
