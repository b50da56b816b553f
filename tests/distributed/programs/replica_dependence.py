"""`replica_dependence.py`: ranks run programs with statistics of their own examples.

Says of each program and mode what a rank warned of, or raised.
"""

import sys
import warnings
from pathlib import Path

import numpy as np

import samegrad as tf
from samegrad.errors import ReplicaDependenceError, ReplicaDependenceWarning

strategy = tf.distribute.MultiWorkerMirroredStrategy()
rank = strategy.cluster_resolver.task_id
ROWS = np.arange(15, dtype=np.float32).reshape(5, 3) + 1
average = tf.nn.compute_average_loss


def all_reduce(x):
    return tf.distribute.get_replica_context().all_reduce("SUM", x)


def largest(x, w):
    return average(tf.reduce_sum(x * w, 1) / tf.reduce_max(x))


def mean_of_own(x, w):
    return average(tf.reduce_sum(x * w, 1)) + 0.0 * kept.assign(tf.reduce_mean(x))


def right(x, w):
    return average(tf.reduce_sum(x * w, 1) / all_reduce(tf.reduce_sum(x)))


PROGRAMS = {
    "a maximum": (largest, 5),
    "a mean": (mean_of_own, 5),
    "a mean of equal batches": (mean_of_own, 4),
    "a right program": (right, 5),
}
with strategy.scope():
    weights = tf.Variable(np.ones(3, np.float32))
    kept = tf.Variable(0.0, trainable=False, aggregation=tf.VariableAggregation.MEAN)
    optimizer = tf.keras.optimizers.SGD(0.1)


def trained(loss, count, traced):
    """Two steps: what is warned of, or raised."""

    def step(x):
        with tf.GradientTape() as tape:
            value = loss(x, weights)
        optimizer.apply_gradients([(tape.gradient(value, weights), weights)])
        return value

    data = tf.data.Dataset.from_tensor_slices(ROWS[:count]).batch(count).repeat(2)
    run, before = tf.function(strategy.run) if traced else strategy.run, int(optimizer.iterations)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("default")  # once for each line
        try:
            for batch in strategy.experimental_distribute_dataset(data):
                run(step, args=(batch,))
        except ReplicaDependenceError as error:
            return f"error after {int(optimizer.iterations) - before} steps: {error}"
    found = [w for w in told if issubclass(w.category, ReplicaDependenceWarning)]
    lines = [f" of {Path(w.filename).name}:{w.lineno}: {w.message}" for w in found]
    return f"{len(found)} warnings{''.join(lines)}"


for mode in ("warn", "error", "off"):
    tf.config.set_replica_dependence_check(mode)
    for name, (loss, count) in PROGRAMS.items():
        for way in ("bare", "traced"):
            said = trained(loss, count, way == "traced")
            sys.stdout.write(f"{mode}; {name}; {way}; {rank}: {said}\n")
