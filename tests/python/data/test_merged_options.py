"""`tf.data.Options` in one process; tests/python/mpi has those that change something."""

import pytest

import samegrad as tf
from samegrad.data import Dataset


def test_options_are_accepted():
    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.OFF
    assert len(Dataset.range(3).with_options(options)) == 3


def test_the_policy_of_sharing_files_is_one_of_five():
    experimental = tf.data.experimental
    options = tf.data.Options()
    assert options.experimental_distribute.auto_shard_policy is experimental.AutoShardPolicy.AUTO
    options.experimental_distribute.auto_shard_policy = 1
    assert options.experimental_distribute.auto_shard_policy is experimental.AutoShardPolicy.FILE
    with pytest.raises(ValueError, match="OFF, AUTO, FILE, DATA, HINT is needed: got 7"):
        options.experimental_distribute.auto_shard_policy = 7
    # One process has all, whatever the policy says.
    strategy = tf.distribute.MirroredStrategy(replicas=2)
    shared = strategy.experimental_distribute_dataset(
        Dataset.range(4).batch(4).with_options(options)
    )
    assert [part.numpy().tolist() for part in next(iter(shared)).values] == [[0, 1], [2, 3]]


def test_options_of_parts_are_those_of_pairs():
    options = tf.data.Options()
    own = Dataset.range(3).with_options(options)
    assert Dataset.zip((Dataset.range(3), own)).options() is options
    assert own.map(lambda n: n).batch(2).options() is options
