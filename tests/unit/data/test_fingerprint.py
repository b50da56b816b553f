"""Descriptions of datasets, which processes compare, differ where their elements do."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest
from pipeline_programs import PROGRAMS

import samegrad as tf
from samegrad.data import _fingerprint as fingerprint
from samegrad.data._nodes import Node

ROWS = np.arange(24.0, dtype=np.float32).reshape(12, 2)
TABLE = fingerprint.TRANSFORMATIONS
Dataset = tf.data.Dataset
# Each transformation with two arguments that give other elements.
PAIRS = {
    "batch": lambda d, n: d.batch(2 + n),
    "drop_remainder": lambda d, n: d.batch(5, drop_remainder=bool(n)),
    "bucket": lambda d, n: d.bucket_by_sequence_length(lambda x: x, [3 + n], [2, 2]),
    "choose": lambda d, n: Dataset.choose_from_datasets([d, d], d, bool(n)),
    "concatenate": lambda d, n: d.concatenate(d.take(n + 1)),
    "filter": lambda d, n: d.filter(lambda x: x > 0) if n else d,
    "interleave": lambda d, n: d.interleave(lambda x: d, 2 + n),
    "interleave blocks": lambda d, n: d.interleave(lambda x: d, 2, 1 + n),
    "map": lambda d, n: d.map(lambda x: x) if n else d,
    "random": lambda d, n: Dataset.random(seed=n),
    "range": lambda d, n: Dataset.range(9 + n),
    "rebatch": lambda d, n: d.batch(4).rebatch(2 + n),
    "repeat": lambda d, n: d.repeat(1 + n),
    "resample": lambda d, n: d.rejection_resample(lambda x: 0, [1.0], seed=n),
    "sample": lambda d, n: Dataset.sample_from_datasets([d, d], [0.5, 0.4 + n], seed=1),
    "scan": lambda d, n: d.scan(np.int64(n), lambda s, x: (s, x)),
    "shard": lambda d, n: d.shard(2, n),
    "shuffle": lambda d, n: d.shuffle(2 + n, seed=1),
    "reshuffle": lambda d, n: d.shuffle(2, seed=1, reshuffle_each_iteration=bool(n)),
    "skip": lambda d, n: d.skip(n),
    "slices": lambda d, n: Dataset.from_tensor_slices({"x": ROWS, "y": ROWS + n}),
    "strings": lambda d, n: Dataset.from_tensor_slices(["a", f"b{n}"]),
    "ragged": lambda d, n: Dataset.from_tensor_slices(tf.ragged.constant([[1], [2, 3 + n]])),
    "take": lambda d, n: d.take(3 + n),
    "tensors": lambda d, n: Dataset.from_tensors(ROWS * (1 + n)),
    "unbatch": lambda d, n: d.batch(2).unbatch() if n else d.batch(2),
    "unique": lambda d, n: d.unique() if n else d,
    "window": lambda d, n: d.window(2 + n),
    "zip": lambda d, n: Dataset.zip(*[d] * (2 + n)),
}


def described(dataset: Any) -> list[tuple[str, str]]:
    return fingerprint.description_of(dataset._node)


def nodes(kind: type[Node]) -> set[type[Node]]:
    below = {node for each in kind.__subclasses__() for node in nodes(each)}
    return below | (set() if inspect.isabstract(kind) else {kind})


def test_every_transformation_is_known():
    of_datasets = {kind for kind in nodes(Node) if kind.__module__.startswith("samegrad.data.")}
    known = {*TABLE, *fingerprint.UNKNOWN}
    assert of_datasets == {kind for kind in of_datasets if known & set(kind.__mro__)}
    assert all(inspect.isclass(kind) and not inspect.isabstract(kind) for kind in TABLE)


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_that_is_run_again_has_the_same_description(name):
    found = []
    for _ in range(2):
        tf.random.set_seed(3)
        found.append(described(PROGRAMS[name](tf)))
    assert found[0] == found[1]
    assert "0x" not in str(found[0])  # an address is another one in each process


@pytest.mark.parametrize("name", PAIRS)
def test_another_argument_gives_another_description(name):
    first, second = (described(PAIRS[name](Dataset.range(9), n)) for n in (0, 1))
    assert first and second and first != second


def test_what_makes_the_same_elements_sooner_is_left_out():
    plain = Dataset.range(9).batch(2)
    quick = Dataset.range(9).cache().batch(2).prefetch(3).with_options(tf.data.Options())
    assert described(plain) == described(quick)


def test_a_generator_cannot_be_known():
    spec = tf.TensorSpec([])
    generated = Dataset.from_generator(lambda: iter([1.0]), output_signature=spec)
    assert (
        described(generated.batch(2)) == described(Dataset.zip(generated, Dataset.range(2))) == []
    )


def test_a_shuffle_without_a_seed_depends_on_those_of_the_process():
    found = []
    for seed, draws in ((1, 0), (1, 0), (2, 0), (1, 1)):
        tf.random.set_seed(seed)
        for _ in range(draws):
            tf.random.uniform([1])
        found.append(described(Dataset.range(9).shuffle(9)))
    assert found[0] == found[1] and found[2] != found[0] != found[3]


def test_files_are_known_by_name_and_size(tmp_path):
    def files(folder: str, size: int) -> Any:
        path = tmp_path / folder / "a.txt"
        path.parent.mkdir(exist_ok=True)
        path.write_text("x" * size)
        return described(tf.data.TextLineDataset([str(path)]))

    assert files("one", 3) == files("two", 3) != files("three", 4)


@pytest.mark.parametrize("step", [1, 2])
def test_of_a_large_array_a_sample_is_read(step, monkeypatch):
    read = []
    monkeypatch.setattr(fingerprint, "_WHOLE_BYTES", 1 << 20)
    monkeypatch.setattr(
        fingerprint.zlib, "crc32", lambda data: read.append(len(data)) or int(bytes(data)[-1])
    )
    large = np.zeros([1 << 16, 64 * step], np.uint8)[:, ::step]
    first = fingerprint.content_of(large)
    assert sum(read) <= 1 << 20
    large[-1, -1] = 1
    assert fingerprint.content_of(large) != first
