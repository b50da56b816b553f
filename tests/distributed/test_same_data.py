"""Ranks that take their rows of the same global batches compare their datasets; others do not."""

import pytest
from launch import every_mpi, run

pytestmark = pytest.mark.parametrize("mpi", every_mpi(), scope="module")
# What the error says of each dataset: the transformation, and what it is on the two ranks.
DIFFERENT = {
    "values of an array": "transformation 1: from_tensor_slices(tensors=float32[12, 2] with hash ",
    "shape of an array": "transformation 1: from_tensor_slices(tensors=float32[12, 2] with hash ",
    "dtype of an array": "transformation 1: from_tensor_slices(tensors=float32[12, 2] with hash ",
    "one of two arrays": "transformation 1: from_tensor_slices(tensors=(float32[12, 2] with hash ",
    "a large array": "transformation 1: from_tensor_slices(tensors=uint8[201326592] with hash ",
    "strings": "transformation 1: from_tensor_slices(tensors=strings[12] with hash ",
    "seed of shuffle": "transformation 2: shuffle(buffer_size=12, seed=0, reshuffle=True) on rank "
    "0, shuffle(buffer_size=12, seed=1, reshuffle=True) on rank 1",
    "buffer of shuffle": "transformation 2: shuffle(buffer_size=4, seed=1, reshuffle=True) on rank",
    "process's seed": "seed: 0 of tf.random.set_seed, after 0 other random operations on rank 0, 1",
    "draws before": "seed: 1 of tf.random.set_seed, after 0 other random operations on rank 0, 1 "
    "of tf.random.set_seed, after 1 other random operations on rank 1",
    "order": "transformation 2: repeat(count=2) on rank 0, shuffle(buffer_size=12, seed=1,",
    "shard": "transformation 2: shard(count=2, index=0) on rank 0, shard(count=2, index=1) on rank",
    "take": "transformation 2: take(count=8) on rank 0, take(count=9) on rank 1",
    "size of a batch": "transformation 2: batch(size=4, drop=False) on rank 0, batch(size=5,",
    "one transformation more": "transformation 2: batch(size=4, drop=False) on rank 0, skip(count=",
    "sizes of files": "transformation 1: from_tensor_slices(tensors=files[3] with hash ",
    "names of files": "transformation 1: from_tensor_slices(tensors=files[2] with hash ",
    "epoch of a shuffled dataset": "epoch: 0 on rank 1, 1 on rank 0",
    "arrays of fit": "arrays: (float32[12, 2] with hash ",
    "order of fit": "order, which keras.utils.set_random_seed makes the same: {'key': uint32[624]",
    "dataset of fit": "transformation 2: take(count=12) on rank 1, take(count=8) on rank 0",
}
SAME = [
    "arrays", "no seed", "functions", "objects", "caches and prefetching",
    "files in folders of their own", "cache in files of their own", "generators", "policy OFF",
    "epoch of a dataset in its order", "policy FILE", "ragged rows", "windows",
    "the same arrays of fit", "arrays of fit in their order", "the same dataset of fit",
    "generator of fit",
]  # fmt: skip


@pytest.fixture(scope="module")
def told(mpi, tmp_path_factory):
    """The lines of both ranks, by their beginning."""
    ended = run(mpi, 2, "same_data.py", tmp_path_factory.mktemp("data"))
    assert ended.code == 0, ended.text
    found = {}
    for line in ended.out.splitlines():
        name, _, text = line.partition(": ")
        found.setdefault(name, []).append(text)
    assert set(found) == {*DIFFERENT, *SAME, "warnings"}
    return found


@pytest.mark.parametrize("name", DIFFERENT)
def test_datasets_that_differ_are_refused_on_all_ranks(told, name):
    first, second = told[name]
    assert first == second
    assert first.startswith("[MultiWorkerMirroredStrategy] all ranks must run one program on one")
    assert f"they differ in dataset: {DIFFERENT[name]}" in first
    assert "give all ranks the same program, seed, data and settings" in first


@pytest.mark.parametrize("name", SAME)
def test_datasets_that_need_not_be_the_same_are_accepted(told, name):
    assert told[name] == ["accepted"] * 2


def test_a_strategy_of_one_process_in_a_job_of_two_warns_once(told):
    text = " ".join(told["warnings"])
    assert sorted(told["warnings"])[1] == "[]"
    assert text.count("[MirroredStrategy]") == 1
    assert "got 2 processes" in text and "tf.distribute.MultiWorkerMirroredStrategy" in text
