"""Datasets that each process makes for its own replicas, and the names of Horovod."""

import sys

import numpy as np

import samegrad as tf
from samegrad.distribute import mpi

strategy = tf.distribute.MultiWorkerMirroredStrategy(replicas=2)
rank, size = mpi.rank(), mpi.size()


def say(name, value):
    sys.stdout.write(f"{name}: {np.asarray(value).tolist()}\n")


def own(context):
    assert context.num_input_pipelines == size
    assert context.input_pipeline_id == rank
    data = tf.data.Dataset.range(13)
    return data.shard(context.num_input_pipelines, context.input_pipeline_id).batch(2)


for batch in strategy.distribute_datasets_from_function(own):
    say("rows", np.sort(strategy.gather(batch, axis=0)))
say("average", mpi.allreduce(float(rank)))
say("sum", mpi.allreduce(np.full(3, rank, np.float32), op="sum"))
say("objects", mpi.allgather_object(rank * 10))
say("from rank 1", mpi.broadcast_object(rank, root_rank=1))
say("joined", mpi.allgather([rank] * (rank + 1)))
weights = tf.Variable([float(rank)])
mpi.broadcast_variables([weights], root_rank=size - 1)
say("broadcast", weights)
assert mpi.any_process(rank == size - 1) and not mpi.any_process(False)
assert 0 <= mpi.local_rank() < mpi.local_size() == size
mpi.barrier()
resolver = strategy.cluster_resolver
assert resolver.cluster_spec().num_tasks("worker") == size
assert (resolver.task_type, resolver.task_id) == ("worker", rank)
assert "none" not in tf.sysconfig()["mpi"]
