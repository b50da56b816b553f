"""Batches for replicas, without a dataset."""

import itertools

import numpy as np
import pytest

import samegrad as tf
from samegrad._tensor.per_replica import PerReplica
from samegrad.distribute import MirroredStrategy


def examples(array):
    """A tensor whose axis 0 counts examples."""
    return tf.constant(np.asarray(array))._as_examples(0, 1)


def shares(*parts):
    """One part per replica."""
    return PerReplica(tuple(examples(part) for part in parts))


def split(array, replicas):
    """Equal shares, the last ones shorter or empty if need be."""
    chunk = -(-len(array) // replicas)
    parts = [array[i * chunk : (i + 1) * chunk] for i in range(replicas)]
    return shares(*parts) if replicas > 1 else examples(array)


def strategy(replicas):
    """A strategy of so many replicas."""
    return MirroredStrategy(replicas=replicas)


def local(value):
    """The replicas' values as NumPy arrays."""
    values = value.values if isinstance(value, PerReplica) else (value,)
    return [part.numpy() for part in values]


# Steps that run by themselves, and as part of a function.
both_ways = pytest.mark.parametrize("traced", [False, True], ids=["run", "function"])


def cut(array, counts):
    """The first rows of an array, so many for each replica."""
    return [array[a:b] for a, b in itertools.pairwise(np.cumsum([0, *counts]))]


def distributed(strategy, parts):
    """Plain arrays, one per replica."""
    return strategy.experimental_distribute_values_from_function(
        lambda context: tf.constant(parts[context.replica_id_in_sync_group])
    )


def on(strategy, step, traced):
    """What runs the step on the replicas."""

    def run(v):
        return strategy.run(step, (v,))

    return tf.function(run) if traced else run


def results(step, parts, traced):
    """What the step gives on each of as many replicas as there are parts."""
    replicas = strategy(len(parts))
    got = on(replicas, step, traced)(distributed(replicas, parts))
    return [np.asarray(part) for part in replicas.experimental_local_results(got)]
