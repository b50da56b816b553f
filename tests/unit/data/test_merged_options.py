"""`tf.data.Options` in one process; tests/distributed has those that change something."""

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


def options_of(policy=None, deterministic=None):
    options = tf.data.Options()
    if policy is not None:
        policies = tf.data.experimental.AutoShardPolicy
        options.experimental_distribute.auto_shard_policy = policies[policy]
    options.deterministic = deterministic
    return options


def told(dataset):
    options = dataset.options()
    return options.experimental_distribute.auto_shard_policy.name, options.deterministic


def test_options_are_merged():
    """Expected values are those of TensorFlow 2.21."""
    file = Dataset.range(3).with_options(options_of("FILE"))
    assert told(file.with_options(options_of(deterministic=True))) == ("FILE", True)
    assert told(file.with_options(options_of("AUTO"))) == ("FILE", None)
    assert told(file.with_options(options_of("OFF"))) == ("OFF", None)
    assert told(file.map(lambda n: n).batch(2)) == ("FILE", None)


def test_options_of_several_datasets_are_merged():
    """Expected values are those of TensorFlow 2.21."""
    plain, file = Dataset.range(2), Dataset.range(3).with_options(options_of("FILE"))
    off = Dataset.range(3).with_options(options_of("OFF", False))
    ordered = plain.with_options(options_of(deterministic=True))
    assert told(file.concatenate(off)) == ("OFF", False)
    assert told(plain.concatenate(file)) == ("FILE", None)
    assert told(file.concatenate(ordered)) == ("FILE", True)
    assert told(Dataset.zip((file, off))) == ("OFF", False)
    assert told(Dataset.zip((off, file))) == ("FILE", False)
    assert told(Dataset.sample_from_datasets([file, off])) == ("OFF", False)
    assert told(Dataset.sample_from_datasets([plain, file])) == ("FILE", None)
    assert told(Dataset.choose_from_datasets([plain, file], plain)) == ("FILE", None)
    choices = plain.with_options(options_of("OFF"))
    assert told(Dataset.choose_from_datasets([plain, plain], choices)) == ("OFF", None)


def test_options_are_copied():
    options = options_of("FILE")
    options.threading.private_threadpool_size = 3
    dataset = Dataset.range(2).with_options(options)
    options.experimental_distribute.auto_shard_policy = 2
    options.threading.private_threadpool_size = 4
    dataset.options().deterministic = True
    assert told(dataset) == ("FILE", None)
    assert dataset.options().threading.private_threadpool_size == 3


def test_threading_options_are_stored():
    import samegrad as tf

    threading = tf.data.ThreadingOptions()
    assert threading.max_intra_op_parallelism is threading.private_threadpool_size is None
    threading.private_threadpool_size = 2
    options = tf.data.Options()
    options.threading = threading
    dataset = Dataset.range(2).with_options(options).with_options(tf.data.Options())
    assert dataset.options().threading.private_threadpool_size == 2
    assert isinstance(dataset.options().threading, tf.data.experimental.ThreadingOptions)


def test_something_else_is_refused():
    with pytest.raises(TypeError, match=r"tf.data.Options are needed: got \{'deterministic'"):
        Dataset.range(2).with_options({"deterministic": True})
