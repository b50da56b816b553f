"""Programs that ask for trouble: `hostile.py KIND [TOTAL]`; the last line is a hash."""

import os
import signal
import sys
import threading
import time

import numpy as np

import samegrad as tf

kind, total = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else None
strategy = tf.distribute.MultiWorkerMirroredStrategy(total_replicas=total, timeout=30)
rank = strategy.cluster_resolver.task_id
found = []


def trained(strategy, shapes, rows, steps=3):
    """Steps over so many rows each, in a variable of each shape; the variables."""
    with strategy.scope():
        variables = [tf.Variable(np.full(shape, 0.5, np.float32)) for shape in shapes]
        optimizer = tf.keras.optimizers.Adam(0.01)

    @tf.function
    def step(x):
        def of_replica(x):
            with tf.GradientTape() as tape:
                sums = [tf.reduce_sum(v) for v in variables]
                loss = tf.nn.compute_average_loss(tf.reduce_sum(x, axis=1) * sum(sums))
            gradients = tape.gradient(loss, variables)
            optimizer.apply_gradients(zip(gradients, variables, strict=True))

        strategy.run(of_replica, args=(x,))

    x = np.random.default_rng(0).normal(size=(rows * steps, 3)).astype(np.float32)
    data = tf.data.Dataset.from_tensor_slices(x).batch(rows)
    for batch in strategy.experimental_distribute_dataset(data):
        step(batch)
    return variables


def several():
    """Train with several strategies by turns, variables of 1 and of many elements."""
    other = tf.distribute.MultiWorkerMirroredStrategy(total_replicas=2 * total)
    for rows in (1, 64, 5):  # of one row most replicas have none
        for one in (strategy, other, tf.distribute.MirroredStrategy(["CPU:0"])):
            found.append(trained(one, [(1,), (), (3, 70_001), (2, 0)], rows))


def forked():
    """A child of a rank may compute, and may not step; the rank goes on."""
    trained(strategy, [(100, 100)], 8)
    child = os.fork()
    if child == 0:
        try:
            trained(strategy, [(100, 100)], 8)
        except RuntimeError as error:
            os.write(1, f"child: {error}\n".encode())
        sys.exit(3)  # as programs end: with all that has been asked to run at an exit
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
    found.append(trained(strategy, [(100, 100)], 8))


def interrupted():
    """Ctrl-C reaches one rank in its first step, which waits for another rank."""
    if rank == 0:
        time.sleep(2)
    else:
        threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
    found.append(trained(strategy, [(100, 100)], 8))


{"several": several, "forked": forked, "interrupted": interrupted}[kind]()
sys.stdout.write(f"hash {tf.fingerprint(found)}\n")
