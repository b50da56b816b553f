"""Batches for replicas, without a dataset."""

import numpy as np

import samegrad as tf
from samegrad._values import PerReplica
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
