"""Elements in files: whole or not there, checked, resumed anywhere."""

from __future__ import annotations

import gc
import pathlib
import subprocess
import sys

import numpy as np
import pytest
from pipeline_programs import plain

import samegrad as tf

Dataset = tf.data.Dataset


def elements(dataset):
    return [plain(element) for element in dataset.as_numpy_iterator()]


def all_kinds():
    """One element with all that files hold."""
    dtypes = [
        "bool", "int8", "uint8", "int16", "int32", "int64", "uint16", "uint32", "uint64",
        "float16", "float32", "float64", "bfloat16",
    ]  # fmt: skip
    numbers = {name: tf.cast(tf.constant([[0, 1], [2, 3]]), name) for name in dtypes}
    numbers["empty"] = tf.zeros([0, 3])
    numbers["number"] = tf.constant(2.5)
    return Dataset.from_tensors((numbers, None, (tf.constant(["", "a\0b"]), tf.constant("ü"))))


@pytest.mark.parametrize("compression", [None, "GZIP"])
def test_all_kinds_of_elements_come_back(tmp_path, compression):
    all_kinds().save(tmp_path / "kept", compression)
    (found,), (expected,) = list(Dataset.load(tmp_path / "kept")), list(all_kinds())
    assert found[1] is None
    for ours, theirs in zip(tf.nest.flatten(found), tf.nest.flatten(expected), strict=True):
        if theirs is not None:
            assert ours.dtype == theirs.dtype and ours.shape == theirs.shape
            assert np.asarray(ours.numpy()).tolist() == np.asarray(theirs.numpy()).tolist()
    assert Dataset.load(tmp_path / "kept").element_spec == all_kinds().element_spec


def test_a_cache_is_made_once_and_read_by_others(tmp_path):
    calls = []

    def made(x):
        calls.append(int(x))
        return x * 2

    def dataset():
        return Dataset.range(5).map(made).cache(tmp_path / "cache")

    first = dataset()
    assert elements(first) == elements(first) == elements(dataset()) == [0, 2, 4, 6, 8]
    assert calls == [0, 1, 2, 3, 4]
    assert [path.name for path in tmp_path.iterdir()] == ["cache.elements"]


def test_a_run_that_does_not_end_leaves_nothing(tmp_path):
    dataset = Dataset.range(5).cache(tmp_path / "cache")
    iterator = iter(dataset)
    assert int(next(iterator)) == 0
    del iterator
    gc.collect()
    assert list(tmp_path.iterdir()) == []

    def failing(x):
        if int(x) == 3:
            raise ValueError("three")
        return x

    bad = Dataset.range(5).map(failing).cache(tmp_path / "bad")
    with pytest.raises(ValueError, match="three"):
        elements(bad)
    assert list(tmp_path.iterdir()) == []
    assert elements(bad.ignore_errors()) == [0, 1, 2, 4]
    assert list(tmp_path.iterdir()) == []  # a file without it would hide the error


KILLED = """
import os, sys
import samegrad as tf
dataset = tf.data.Dataset.range(100).shuffle(100, seed=1).cache(sys.argv[1])
iterator = iter(dataset)
for n in range(60):
    next(iterator)
    if n == 40:
        tf.train.Checkpoint(data=iterator).write(sys.argv[2])
os.kill(os.getpid(), 9)
"""


def test_a_killed_run_goes_on_and_its_cache_is_whole(tmp_path):
    cache, checkpoint = str(tmp_path / "cache"), str(tmp_path / "checkpoint")
    done = subprocess.run([sys.executable, "-c", KILLED, cache, checkpoint], check=False)
    assert done.returncode == -9 and not pathlib.Path(f"{cache}.elements").exists()
    shuffled = Dataset.range(100).shuffle(100, seed=1)
    whole = elements(shuffled)
    dataset = Dataset.range(100).shuffle(100, seed=1).cache(cache)
    iterator = iter(dataset)
    tf.train.Checkpoint(data=iterator).read(checkpoint)
    assert [int(x) for x in iterator] == whole[41:]
    assert elements(dataset) == elements(Dataset.range(9).cache(cache)) == whole


def test_a_checkpoint_goes_on_in_a_file(tmp_path):
    Dataset.range(50).save(tmp_path / "kept", shard_func=lambda x: x % 3)
    for make in (
        lambda: Dataset.load(tmp_path / "kept"),
        lambda: Dataset.range(50).cache(tmp_path / "c"),
        lambda: Dataset.load(tmp_path / "kept").shuffle(9, seed=1).batch(4),
    ):
        whole = elements(make())
        for position in (0, 1, 7, len(whole)):
            iterator = iter(make())
            for _ in range(position):
                next(iterator)
            state = dict(iterator._checkpoint_state())
            again = iter(make())
            again._restore_state(state)
            again._restore_state(state)
            assert [plain(x.numpy()) for x in again] == whole[position:]


def test_shards_are_read_in_turn_or_as_asked(tmp_path):
    Dataset.range(7).save(tmp_path, shard_func=lambda x: x // 3)
    assert elements(Dataset.load(tmp_path)) == [0, 3, 6, 1, 4, 2, 5]
    one_by_one = Dataset.load(tmp_path, reader_func=lambda files: files.flat_map(lambda f: f))
    assert elements(one_by_one) == list(range(7))
    assert len(Dataset.load(tmp_path, reader_func=lambda files: files)) == 3


def test_what_was_saved_stays_until_all_is_written(tmp_path):
    Dataset.range(3).save(tmp_path)

    def failing(x):
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        Dataset.range(3).map(failing).save(tmp_path)
    assert elements(Dataset.load(tmp_path)) == [0, 1, 2]
    old = Dataset.load(tmp_path)
    iterator = iter(old)
    assert int(next(iterator)) == 0
    Dataset.range(5).save(tmp_path)
    assert [int(x) for x in iterator] == [1, 2]  # an open file stays
    assert elements(Dataset.load(tmp_path)) == [0, 1, 2, 3, 4]
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.parametrize("place", [*range(0, 200, 7), -1, -9, -20, -40])
def test_a_changed_byte_is_found(tmp_path, place):
    Dataset.from_tensor_slices(np.arange(40, dtype=np.uint8).reshape(4, 10)).save(tmp_path)
    (path,) = tmp_path.glob("*.elements")
    data = bytearray(path.read_bytes())
    data[place] ^= 0x10
    path.write_bytes(bytes(data))
    with pytest.raises(tf.errors.DataLossError, match=rf"{path} is damaged at byte \d+"):
        elements(Dataset.load(tmp_path))


def test_a_file_that_ends_too_early_is_found(tmp_path):
    Dataset.range(9).save(tmp_path)
    (path,) = tmp_path.glob("*.elements")
    data = path.read_bytes()
    for size in range(0, len(data), 11):
        path.write_bytes(data[:size])
        with pytest.raises(tf.errors.DataLossError, match=rf"{path} is damaged at byte \d+"):
            elements(Dataset.load(tmp_path))


def test_skipping_reads_no_elements(tmp_path):
    Dataset.range(20_000).save(tmp_path)
    loaded = Dataset.load(tmp_path)
    assert len(loaded) == 20_000
    assert elements(loaded.skip(19_998)) == [19_998, 19_999]


def test_batches_of_a_cache_are_split_between_replicas(tmp_path):
    data = Dataset.range(6).map(lambda x: tf.cast(x, "float32")).batch(4).cache(tmp_path / "c")
    strategy = tf.distribute.MirroredStrategy(replicas=2)
    for _ in range(2):  # written, then read
        batches = strategy.experimental_distribute_dataset(data)
        means = [
            strategy.reduce(
                "SUM", strategy.run(lambda x: tf.nn.compute_average_loss(x), args=(b,)), None
            )
            for b in batches
        ]
        assert [float(x) for x in means] == [1.5, 4.5]


@pytest.mark.parametrize(
    ("call", "error", "said"),
    [
        (lambda f: Dataset.range(3).cache(5), TypeError, "Dataset.cache"),
        (lambda f: Dataset.load(f / "nowhere"), tf.errors.NotFoundError, "see Dataset.save"),
        (lambda f: Dataset.range(3).repeat().save(f), ValueError, "must have an end"),
        (lambda f: Dataset.range(3).save(f, "SNAPPY"), ValueError, "None or GZIP"),
        (lambda f: Dataset.range(3).save(f, None, None, {}), NotImplementedError, "leave it out"),
        (lambda f: Dataset.range(3).window(2).save(f), TypeError, "tensors and strings"),
        (
            lambda f: Dataset.range(3).map(tf.range).ragged_batch(3).save(f),
            TypeError, "to_tensor",
        ),
        (
            lambda f: Dataset.range(3).map(lambda x: tf.cast(x, "int32") if x > 1 else x).save(f),
            TypeError, "dtypes of the first: got int32 after int64",
        ),
        (
            lambda f: Dataset.range(3).snapshot(f, shard_func=lambda x: x),
            NotImplementedError, "a snapshot is one file",
        ),
        (lambda f: other_elements(f), tf.errors.InvalidArgumentError, "remove it"),
        (
            lambda f: Dataset.range(3).save(f) or Dataset.load(f, tf.TensorSpec((), "int32")),
            tf.errors.InvalidArgumentError, "must be those of element_spec",
        ),
    ],
)  # fmt: skip
def test_wrong_calls_are_refused(call, error, said, tmp_path):
    with pytest.raises(error, match=said):
        call(tmp_path)


def other_elements(folder):
    elements(Dataset.range(3).cache(folder / "c"))
    elements(Dataset.from_tensor_slices([0.5]).cache(folder / "c"))
