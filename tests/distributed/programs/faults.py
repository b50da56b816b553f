"""Steps in which one rank does something else than the others."""

import os
import signal
import sys
import time

import numpy as np

import samegrad as tf

is_second = os.environ.get("PMI_RANK", os.environ.get("PMIX_RANK")) == "1"
if sys.argv[1] in ("machine", "cut") and is_second:
    os.environ["SAMEGRAD_MACHINE"] = "l1=16k"  # read when the first step is compiled
fault, rank_of_fault, call_of_fault = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
strategy = tf.distribute.MultiWorkerMirroredStrategy()
rank = strategy.cluster_resolver.task_id
faulty = rank == rank_of_fault
if fault == "threads":  # as many as the rank likes: no fault
    tf.config.threading.set_intra_op_parallelism_threads(1 + rank)
if fault == "cut":  # the sum of a program that has no variables
    ones = tf.ones([400_000])
    strategy.run(lambda: tf.distribute.get_replica_context().all_reduce("sum", ones))
tf.random.set_seed(2 if fault == "seed" and faulty else 1)
with strategy.scope():
    first = 2.0 if fault == "weights" and faulty else 1.0
    weights = tf.Variable(np.full([1000, 300], first, np.float32), name="table")
factor = 3.0 if fault == "program" and faulty else 2.0


@tf.function
def step(x):
    def replica_step(x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.matmul(x, weights)) * factor + tf.random.uniform([])
            if fault == "index":
                loss += tf.reduce_sum(tf.gather(weights, tf.cast(x[:, 0], "int32")))
        gradient = tape.gradient(loss, weights)
        total = tf.distribute.get_replica_context().all_reduce("sum", gradient)
        weights.assign_sub(total * 1e-6)
        return loss

    return strategy.reduce("SUM", strategy.run(replica_step, args=(x,)), axis=None)


other = fault in ("data", "generator") and faulty
rows = 3 if other else 8 if fault in ("threads", "eight rows") else 2
batch = np.ones([rows * strategy.num_replicas_in_sync, 1000], np.float32)
if fault == "index":
    batch[rows * rank_of_fault] = 5000.0
dataset = tf.data.Dataset.from_tensor_slices(batch).batch(len(batch)).repeat(20)
if fault == "generator":  # what it yields cannot be known before
    spec = tf.TensorSpec([None, 1000])
    dataset = tf.data.Dataset.from_generator(lambda: [batch] * 20, output_signature=spec)
for number, x in enumerate(strategy.experimental_distribute_dataset(dataset)):
    if faulty and number == call_of_fault:
        if fault == "raise":
            raise ArithmeticError("the rank's own trouble")
        if fault == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if fault == "terminate":
            os.kill(os.getpid(), signal.SIGTERM)
        if fault == "stall":
            time.sleep(1000)
        if fault == "stop":
            os.kill(os.getpid(), signal.SIGSTOP)
        if fault == "end":
            break
    if fault == "caught" and number == call_of_fault:
        if faulty:
            time.sleep(1.5)
        else:  # an interrupt while it waits, and the program goes on
            signal.signal(signal.SIGALRM, signal.default_int_handler)
            signal.setitimer(signal.ITIMER_REAL, 0.3)
            try:
                step(x)
            except KeyboardInterrupt:
                sys.stdout.write(f"caught {rank}\n")
            continue
    step(x)
    if number == 3:
        sys.stdout.write(f"stepped {rank}\n")
if fault in ("none", "threads", "eight rows"):
    sys.stdout.write(f"sum {float(tf.reduce_sum(weights))}\n")
