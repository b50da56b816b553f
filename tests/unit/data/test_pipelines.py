"""Datasets of datasets, of text and of files: TensorFlow's elements, resumed anywhere."""

from __future__ import annotations

import base64
import json
import pathlib

import numpy as np
import pytest
from pipeline_programs import PROGRAMS, elements, plain

import samegrad as tf

RECORDED = json.loads(pathlib.Path(__file__).with_name("tensorflow_pipelines.json").read_text())
RECORDS = [b"", b"a", b"hello" * 3, bytes(range(256)) * 20]
Dataset = tf.data.Dataset


@pytest.mark.parametrize("name", PROGRAMS)
def test_elements_are_those_of_tensorflow_in_each_epoch(name):
    dataset = PROGRAMS[name](tf)
    assert elements(dataset) == RECORDED["results"][name]
    assert elements(dataset) == RECORDED["results"][name]


def test_every_recorded_program_is_there():
    assert set(RECORDED["results"]) == set(PROGRAMS)


def random_datasets():
    """Datasets that draw, by name."""
    numbers = Dataset.range(20)
    return {
        "flat_map": numbers.flat_map(lambda n: Dataset.range(n, n + 3).shuffle(3)),
        "interleave": numbers.interleave(
            lambda n: Dataset.range(4).map(lambda x: tf.random.uniform([]) + tf.cast(x, "float32")),
            cycle_length=3,
        ),
        "sample": Dataset.sample_from_datasets([numbers, numbers.shuffle(20), numbers], [1, 2, 1]),
        "scan": numbers.shuffle(9).scan(np.float32(0), lambda s, x: (s + tf.random.uniform([]), s)),
        "window": numbers.shuffle(20).window(4, shift=3).flat_map(lambda w: w.batch(4)),
        "rebatch": numbers.shuffle(20).batch(6).rebatch([4, 1]),
        "unique": numbers.map(lambda n: n % 7).shuffle(20).unique(),
        "take_while": numbers.shuffle(20).take_while(lambda n: n != 3),
        "words": Dataset.from_tensor_slices([f"w{n}" for n in range(20)]).shuffle(20).batch(3),
    }


@pytest.mark.parametrize("name", [*random_datasets()])
def test_a_seed_gives_the_same_elements_for_any_number_of_threads(name):
    found = []
    try:
        for threads in (1, 2, 1):
            tf.config.threading.set_intra_op_parallelism_threads(threads)
            tf.random.set_seed(5)
            found.append(elements(random_datasets()[name].prefetch(2)))
    finally:
        tf.config.threading.set_intra_op_parallelism_threads(0)
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize("name", [*random_datasets(), *PROGRAMS])
def test_a_checkpoint_goes_on_with_the_next_element(name, tmp_path):
    def made():
        tf.random.set_seed(5)
        return PROGRAMS[name](tf) if name in PROGRAMS else random_datasets()[name]

    whole = [plain(leaf_values(element)) for element in iter(made())]
    for position in {0, 1, len(whole) // 2, len(whole)}:
        iterator = iter(made())
        for _ in range(min(position, len(whole))):
            next(iterator)
        state = dict(iterator._checkpoint_state())
        again = iter(made())
        for _ in range(2):  # restored twice
            again._restore_state(state)
        assert [plain(leaf_values(element)) for element in again] == whole[position:]


def leaf_values(element):
    return tf.nest.map_structure(lambda x: None if x is None else x.numpy(), element)


def test_a_checkpoint_stores_the_place_in_files(tmp_path):
    for number in range(3):
        lines = "".join(f"{number} {line}\n" for line in range(number + 2))
        tf.io.write_file(str(tmp_path / f"{number}.txt"), lines)
    names = Dataset.list_files(str(tmp_path / "*.txt"), seed=3)
    dataset = names.interleave(tf.data.TextLineDataset, cycle_length=2).shuffle(4, seed=1)
    whole = [x.numpy() for x in dataset]
    assert sorted(whole) == sorted(f"{n} {k}".encode() for n in range(3) for k in range(n + 2))
    iterator = iter(dataset)
    first = [next(iterator).numpy() for _ in range(4)]
    checkpoint = tf.train.Checkpoint(data=iterator)
    path = checkpoint.save(str(tmp_path / "ckpt"))
    rest = [x.numpy() for x in iterator]
    checkpoint.restore(path)
    assert [x.numpy() for x in iterator] == rest
    assert sorted(first + rest) == sorted(whole)


def test_lines_of_files_have_no_ends(tmp_path):
    paths = [str(tmp_path / name) for name in ("a.txt", "empty.txt", "b.txt")]
    for path, content in zip(
        paths, (b"one\r\n\ntwo", b"", b"x" * 3_000_000 + b"\ny\n"), strict=True
    ):
        tf.io.write_file(path, content)
    lines = [line.numpy() for line in tf.data.TextLineDataset(paths)]
    assert lines == [b"one", b"", b"two", b"x" * 3_000_000, b"y"]
    assert tf.data.TextLineDataset(paths).element_spec == tf.TensorSpec((), tf.string)
    turns = tf.data.TextLineDataset(Dataset.from_tensor_slices(paths), num_parallel_reads=2)
    assert [line.numpy()[:3] for line in turns] == [b"one", b"", b"xxx", b"two", b"y"]


@pytest.mark.parametrize("kind", ["", "GZIP", "ZLIB"])
def test_records_are_those_of_tensorflow(tmp_path, kind):
    theirs = base64.b64decode(RECORDED["files"][kind])
    path = str(tmp_path / "theirs")
    tf.io.write_file(path, theirs)
    assert [r.numpy() for r in tf.data.TFRecordDataset(path, kind)] == RECORDS
    ours = str(tmp_path / "ours")
    with tf.io.TFRecordWriter(ours, tf.io.TFRecordOptions(kind)) as writer:
        for data in RECORDS:
            writer.write(data)
    assert [r.numpy() for r in tf.data.TFRecordDataset([ours, path], kind)] == RECORDS * 2
    if not kind:
        assert pathlib.Path(ours).read_bytes() == theirs


@pytest.mark.parametrize("place", [0, 3, 9, 13, 20, 29, 60, 3000, -1])
def test_a_changed_byte_of_a_record_is_found(tmp_path, place):
    data = bytearray(base64.b64decode(RECORDED["files"][""]))
    data[place] ^= 0x10
    path = tmp_path / "damaged"
    path.write_bytes(bytes(data))
    with pytest.raises(tf.errors.DataLossError, match=rf"{path} is damaged at byte \d+"):
        list(tf.data.TFRecordDataset(str(path)))


@pytest.mark.parametrize("kind", ["", "GZIP", "ZLIB"])
def test_a_file_of_records_that_ends_too_early_is_damaged(tmp_path, kind):
    data = base64.b64decode(RECORDED["files"][kind])
    path = tmp_path / "short"
    for size in (1, len(data) // 2, len(data) - 1):
        path.write_bytes(data[:size])
        with pytest.raises(tf.errors.DataLossError, match=f"{path} is damaged"):
            list(tf.data.TFRecordDataset(str(path), kind))


def test_files_are_listed_in_random_order_unless_told(tmp_path):
    for number in range(12):
        tf.io.write_file(str(tmp_path / f"{number:02}.txt"), "")
    pattern = str(tmp_path / "*.txt")
    expected = [str(tmp_path / f"{n:02}.txt").encode() for n in range(12)]
    assert [x.numpy() for x in Dataset.list_files(pattern, shuffle=False)] == expected
    mixed = Dataset.list_files(pattern, seed=1)
    first, second = ([x.numpy() for x in mixed] for _ in range(2))
    assert sorted(first) == sorted(second) == expected and first != expected and first != second
    with pytest.raises(tf.errors.InvalidArgumentError, match="must match a file"):
        Dataset.list_files(str(tmp_path / "*.png"))


def test_draws_follow_the_weights():
    ones = [Dataset.from_tensors(n).repeat() for n in range(3)]
    drawn = Dataset.sample_from_datasets(ones, [0.7, 0.0, 0.3], seed=2).take(2000)
    counts = np.bincount([int(n) for n in drawn], minlength=3)
    assert counts[1] == 0 and abs(counts[0] / 2000 - 0.7) < 0.04
    short = Dataset.sample_from_datasets(
        [Dataset.range(3), Dataset.range(100)], seed=1, stop_on_empty_dataset=True
    )
    assert len(list(short)) < 40
    assert len(list(Dataset.sample_from_datasets([Dataset.range(3), Dataset.range(9)]))) == 12


def test_reduce_carries_a_state_of_any_structure():
    total, count = Dataset.range(1, 6).reduce(
        (np.float32(0), np.int64(0)),
        lambda state, x: (state[0] + tf.cast(x, "float32"), state[1] + 1),
    )
    assert float(total) == 15.0 and int(count) == 5
    joined = Dataset.from_tensor_slices(["a", "b"]).reduce("", lambda s, x: s + x)
    assert joined.numpy() == b"ab"
    assert int(Dataset.range(0).reduce(np.int64(7), lambda s, x: x)) == 7


def test_a_window_is_a_dataset_that_can_be_read_twice():
    for window in Dataset.range(4).window(2):
        assert elements(window) == elements(window) and len(window) == 2
    spec = Dataset.range(4).window(2).element_spec
    assert spec.element_spec == tf.TensorSpec((), tf.int64)


def test_a_thousand_windows_hold_one_window_in_memory():
    windows = Dataset.range(100_000).window(3, shift=100)
    assert len(windows) == 1000
    assert [int(next(iter(w))) for w in windows.skip(990)] == [100 * n for n in range(990, 1000)]


def test_options_are_kept():
    options = tf.data.Options()
    options.deterministic = False
    dataset = Dataset.range(3).with_options(options)
    assert dataset.options().deterministic is False and len(dataset) == 3
    assert isinstance(Dataset.range(3).options(), tf.data.Options)


@pytest.mark.parametrize(
    ("call", "error", "said"),
    [
        (lambda: list(Dataset.range(2).flat_map(lambda x: x)), TypeError, "must return a Dataset"),
        (lambda: Dataset.range(2).interleave(Dataset.range, 0), ValueError, "cycle_length"),
        (lambda: Dataset.range(2).window(0), ValueError, "size must be at least 1"),
        (lambda: Dataset.range(2).window(1, shift=0), ValueError, "shift must be at least 1"),
        (lambda: list(Dataset.range(2).scan(0, lambda s, x: x)), TypeError, "scan_func must"),
        (
            lambda: Dataset.range(2).reduce(0, lambda s, x: tf.cast(x, "float32")),
            TypeError, "keep its structure and dtypes",
        ),
        (lambda: list(Dataset.range(2).rebatch(2)), ValueError, "call batch first"),
        (lambda: Dataset.range(2).batch(2).rebatch([1, 0]), ValueError, "at least 1"),
        (lambda: Dataset.sample_from_datasets([]), ValueError, "at least one dataset"),
        (lambda: Dataset.sample_from_datasets([Dataset.range(2)], [1, 2]), ValueError, "weight"),
        (lambda: Dataset.sample_from_datasets([Dataset.range(2)], [0]), ValueError, "weight"),
        (
            lambda: list(Dataset.choose_from_datasets([Dataset.range(2)], Dataset.range(3))),
            ValueError, "got 1 for 1 datasets",
        ),
        (lambda: Dataset.range(2).get_single_element(), ValueError, "one element"),
        (lambda: list(tf.data.TextLineDataset("/nowhere/a")), FileNotFoundError, "/nowhere/a"),
        (lambda: tf.data.TFRecordDataset("a", "LZ4"), ValueError, "GZIP or ZLIB"),
        (lambda: tf.data.TFRecordDataset(5), TypeError, "filenames must be strings"),
        (lambda: list(Dataset.range(3).map(lambda x: None)), TypeError, "must return something"),
        (
            lambda: list(Dataset.from_tensor_slices(["a b", "c"]).map(tf.strings.split).batch(2)),
            ValueError, "see padded_batch",
        ),
        (lambda: list(Dataset.range(4).window(2).batch(2)), TypeError, "numbers or strings"),
    ],
)  # fmt: skip
def test_wrong_calls_are_refused(call, error, said):
    with pytest.raises(error, match=said):
        call()


def test_text_is_split_between_replicas():
    strategy = tf.distribute.MirroredStrategy(replicas=2)
    dataset = strategy.experimental_distribute_dataset(
        Dataset.from_tensor_slices(["a", "b"]).batch(2)
    )
    (batch,) = dataset
    assert [part.numpy().tolist() for part in batch.values] == [[b"a"], [b"b"]]
