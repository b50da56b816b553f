"""Tables, sound and functions of Python in datasets: TensorFlow's values, resumed anywhere."""

from __future__ import annotations

import gzip
import json
import pathlib
import zlib

import numpy as np
import pytest
from file_programs import STAGES, TABLES, programs, run, write_files
from pipeline_programs import plain

import samegrad as tf

Dataset = tf.data.Dataset

RECORDED = json.loads(pathlib.Path(__file__).with_name("tensorflow_files.json").read_text())
PROGRAMS = programs()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("files")
    write_files(path)
    return str(path)


def test_every_recorded_program_is_there():
    assert set(RECORDED["results"]) == set(PROGRAMS)


@pytest.mark.parametrize("name", PROGRAMS)
def test_values_are_those_of_tensorflow(name, folder):
    found = run(tf, PROGRAMS[name], folder)
    assert json.dumps(found) == json.dumps(RECORDED["results"][name])


def drawing_datasets():
    """Datasets that draw, by name."""
    numbers = Dataset.range(40)
    return {
        "random": Dataset.random().take(9),
        "random seed": Dataset.random(seed=4).take(9),
        "random anew": Dataset.random(seed=4, rerandomize_each_iteration=True).take(9),
        "resample": numbers.rejection_resample(lambda x: x % 4 == 0, [0.5, 0.5]),
        "resample known": numbers.rejection_resample(
            lambda x: x % 4 == 0, [0.5, 0.5], [0.75, 0.25], seed=3
        ),
        "ignore_errors": numbers.shuffle(40).map(odd_ones).ignore_errors(),
    }


def odd_ones(x):
    if int(x) % 2 == 0:
        raise ValueError("even")
    return tf.random.uniform([]) + tf.cast(x, "float32")


def elements(dataset):
    return [plain(element) for element in dataset.as_numpy_iterator()]


@pytest.mark.parametrize("name", [*drawing_datasets()])
def test_a_seed_gives_the_same_elements_for_any_number_of_threads(name):
    found = []
    try:
        for threads in (1, 2):
            tf.config.threading.set_intra_op_parallelism_threads(threads)
            tf.random.set_seed(5)
            found.append(elements(drawing_datasets()[name].prefetch(2)))
    finally:
        tf.config.threading.set_intra_op_parallelism_threads(0)
    assert found[0] == found[1] and found[0]


@pytest.mark.parametrize("name", [*drawing_datasets(), *(TABLES | STAGES)])
def test_a_checkpoint_goes_on_with_the_next_element(name, folder):
    if "error" in RECORDED["results"].get(name, {}):
        pytest.skip("ends with an error")

    def made():
        tf.random.set_seed(5)
        return PROGRAMS[name](tf, folder) if name in PROGRAMS else drawing_datasets()[name]

    whole = elements(made())
    for position in {0, 1, len(whole) // 2, len(whole)}:
        iterator = iter(made())
        for _ in range(min(position, len(whole))):
            next(iterator)
        again = iter(made())
        for _ in range(2):  # restored twice
            again._restore_state(dict(iterator._checkpoint_state()))
        rest = [tf.nest.map_structure(lambda x: x.numpy(), element) for element in again]
        assert [plain(element) for element in rest] == whole[position:]


def test_random_numbers_are_others_in_each_epoch_if_asked():
    still, anew = Dataset.random(4).take(50), Dataset.random(4, True).take(50)
    assert elements(still) == elements(still) and elements(anew) != elements(anew)
    drawn = np.array(elements(Dataset.random(7).take(20_000)), float)
    assert drawn.min() >= 0 and drawn.max() < 2**32
    assert abs(drawn.mean() / 2**32 - 0.5) < 0.01 and abs(drawn.std() / 2**32 - 12**-0.5) < 0.01


@pytest.mark.parametrize("initial", [None, [0.9, 0.1]])
def test_resampled_classes_come_as_wanted(initial):
    classes = np.random.default_rng(0).random(20_000) < 0.1
    data = Dataset.from_tensor_slices(classes).rejection_resample(
        lambda x: tf.cast(x, "int32"), [0.5, 0.5], initial, seed=1
    )
    found = [(int(kind), bool(x)) for kind, x in data]
    assert all(kind == x for kind, x in found)
    kept = np.bincount([kind for kind, _ in found])
    assert abs(kept[1] / kept.sum() - 0.5) < 0.03
    # All of the rare class stay, so no more than needed is left out.
    assert kept[1] >= 0.98 * classes.sum()


def test_ignored_errors_are_said_if_asked_and_do_not_go_on_forever():
    words = Dataset.from_tensor_slices(["1", "two"]).map(tf.strings.to_number)
    with pytest.warns(UserWarning, match="left out.*must be a float32: got b'two'"):
        assert elements(words.ignore_errors(log_warning=True)) == [1.0]

    def broken():
        raise ValueError("never")

    spec = tf.TensorSpec((), tf.int32)
    assert elements(Dataset.from_generator(broken, output_signature=spec).ignore_errors()) == []
    endless = Dataset.range(1).repeat().map(lambda x: tf.strings.to_number("x")).ignore_errors()
    with pytest.raises(RuntimeError, match="100000 errors one after the other"):
        next(iter(endless))


@pytest.mark.parametrize("stage", ["map", "filter", "scan", "unique", "zip", "window", "batch"])
@pytest.mark.parametrize("ahead", [False, True])
def test_behind_an_error_the_next_element_comes(stage, ahead):
    def checked(x):
        if int(x) == 2:
            raise ValueError("two")
        return x

    bad = Dataset.range(6).map(checked, num_parallel_calls=2 if ahead else None)
    data = {
        "map": bad,
        "filter": Dataset.range(6).filter(lambda x: checked(x) >= 0),
        "scan": Dataset.range(6).scan(0, lambda s, x: (s, checked(x))),
        "unique": bad.unique(),
        "zip": Dataset.zip(bad, Dataset.range(6)).map(lambda a, b: tf.maximum(a, b)),
        "window": bad.window(1).flat_map(lambda w: w),
        "batch": bad.batch(1).unbatch(),
    }[stage]
    found = elements((data.prefetch(2) if ahead else data).ignore_errors())
    assert found == [0, 1, 3, 4, 5]


def test_classes_of_datasets_are_real(folder):
    lines = tf.data.TextLineDataset(f"{folder}/plain.csv")
    assert isinstance(lines, tf.data.TextLineDataset) and isinstance(lines, Dataset)
    assert isinstance(tf.data.TFRecordDataset([]), tf.data.TFRecordDataset)
    later = lines.map(lambda x: x)
    assert isinstance(later, Dataset) and not isinstance(later, tf.data.TextLineDataset)
    assert len(elements(tf.data.TextLineDataset.range(2))) == 2


def test_options_go_along():
    options = tf.data.Options()
    options.deterministic = False
    dataset = Dataset.range(3).with_options(options)
    for later in (dataset.map(lambda x: x), dataset.batch(2).take(1), dataset.unique()):
        assert later.options().deterministic is False


def test_a_shuffled_table_has_all_rows_in_each_epoch(folder):
    table = tf.data.experimental.make_csv_dataset(
        f"{folder}/header.csv", 2, label_name="x", num_epochs=2, shuffle_seed=3
    )
    labels = [int(x) for _, batch in table for x in batch]
    assert sorted(labels[:5]) == sorted(labels[5:]) == [1, 2, 3, 4, 5]
    assert labels == [int(x) for _, batch in fresh(folder) for x in batch]
    endless = tf.data.experimental.make_csv_dataset(f"{folder}/header.csv", 2)
    assert endless.element_spec["x"] == tf.TensorSpec((2,), tf.int32)


def fresh(folder):
    return tf.data.experimental.make_csv_dataset(
        f"{folder}/header.csv", 2, label_name="x", num_epochs=2, shuffle_seed=3
    )


def test_a_table_trains_on_replicas_and_its_batches_count_examples(folder):
    table = tf.data.experimental.make_csv_dataset(
        f"{folder}/header.csv", 4, label_name="y", select_columns=["x", "y"], num_epochs=1,
        shuffle=False,
    )  # fmt: skip
    sums = []
    for replicas in (1, 2):
        strategy = tf.distribute.MirroredStrategy(replicas=replicas)

        def step(features, y):
            return tf.reduce_sum(tf.cast(features["x"], "float32") * y)

        distributed = strategy.experimental_distribute_dataset(table)
        found = [strategy.reduce("SUM", strategy.run(step, args=b), None) for b in distributed]
        sums.append([float(x) for x in found])
    assert sums[0] == sums[1] == [2.5 + 7 + 0 + 4, 10.0]


def test_a_large_table_is_read_line_by_line(tmp_path):
    path = tmp_path / "large.csv"
    path.write_text("a,b,c\n" + "".join(f"{n},{n / 4},row {n}\n" for n in range(30_000)))
    table = tf.data.experimental.make_csv_dataset(str(path), 512, num_epochs=1, shuffle=False)
    total = rows = 0
    for batch in table:
        total, rows = total + int(tf.reduce_sum(batch["a"])), rows + len(batch["c"])
    assert (total, rows) == (sum(range(30_000)), 30_000)


@pytest.mark.parametrize("kind", ["GZIP", "ZLIB"])
def test_compressed_tables_are_read_and_damaged_ones_named(tmp_path, kind):
    data = b"x,y\n1,2\n3,4\n" * 1
    packed = gzip.compress(data) if kind == "GZIP" else zlib.compress(data)
    path = tmp_path / "packed.csv"
    path.write_bytes(packed)
    rows = tf.data.experimental.CsvDataset(str(path), [[0], [0]], kind, header=True)
    assert elements(rows) == [[1, 2], [3, 4]]
    path.write_bytes(packed[:-4])
    with pytest.raises(tf.errors.DataLossError, match=f"{path} is damaged"):
        elements(rows)


def test_gradients_go_through_py_function_and_steps_of_replicas_refuse_it():
    x = tf.constant(3.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.py_function(lambda v: v * v, [x], tf.float32)
    assert float(tape.gradient(y, x)) == 6.0
    for call in (tf.py_function, tf.numpy_function):

        @tf.function
        def traced(x, call=call):
            return call(lambda v: v, [x], tf.float32)

        assert traced(tf.constant([1.0])).numpy().tolist() == [1.0]  # run by Python
        with pytest.raises(RuntimeError, match=r"call it in Dataset\.map"):
            tf.distribute.MirroredStrategy(replicas=2).run(traced, (tf.constant([1.0]),))
        with pytest.raises(TypeError, match="the dtype that Tout says: got float32 for int32"):
            call(lambda v: v, [1.0], tf.int32)
        with pytest.raises(TypeError, match="got 1 for 2"):
            call(lambda v: v, [1.0], [tf.float32, tf.float32])


def wav(**changes):
    contents = bytearray(tf.audio.encode_wav([[0.5]], 8000).numpy())
    for place, value in changes.items():
        contents[int(place[1:])] = value
    return bytes(contents)


@pytest.mark.parametrize(
    ("call", "error", "said"),
    [
        (lambda f: csv(f, "short.csv"), tf.errors.InvalidArgumentError, "short.csv, line 2"),
        (lambda f: csv(f, "stray.csv"), tf.errors.InvalidArgumentError, "stray.csv, line 1"),
        (lambda f: csv(f, "open.csv", ""), tf.errors.InvalidArgumentError, "open.csv, line 2"),
        (lambda f: csv(f, "blank.csv"), tf.errors.InvalidArgumentError, "must have 2 fields"),
        (lambda f: tf.io.decode_csv("1", []), ValueError, "a default or a dtype for each column"),
        (lambda f: tf.io.decode_csv("1", [[1, 2]]), ValueError, "one value of these or none"),
        (lambda f: tf.io.decode_csv(["1", "x"], [[1]]), ValueError, "in record 1"),
        (
            lambda f: tf.data.experimental.make_csv_dataset(
                [f"{f}/header.csv", f"{f}/only_header.csv"], 1),
            ValueError, "only_header.csv",
        ),
        (lambda f: tf.audio.decode_wav(wav(b34=8)), ValueError, "its samples have 8 bits"),
        (lambda f: tf.audio.decode_wav(wav(b20=3)), ValueError, "WAV file of 16-bit samples"),
        (lambda f: tf.audio.decode_wav(["a"]), ValueError, "those of one file"),
        (lambda f: tf.audio.encode_wav([[float("nan")]], 1), ValueError, "must be finite"),
        (lambda f: tf.audio.encode_wav([[1]], 1), ValueError, "must be floats"),
        (lambda f: tf.sparse.to_dense([1]), TypeError, "a SparseTensor is needed"),
        (
            lambda f: tf.io.parse_example(["x"], {"a": tf.io.RaggedFeature(tf.int64, None, [1])}),
            NotImplementedError, "one ragged axis",
        ),
        (
            lambda f: elements(Dataset.range(3).map(lambda n: tf.ones([n, n])).ragged_batch(3)),
            ValueError, "first sizes only",
        ),
        (
            lambda f: elements(Dataset.range(3).map(tf.range).ragged_batch(3).unbatch()),
            TypeError, r"use to_tensor\(\)",
        ),
        (lambda f: Dataset.range(3).rejection_resample(int, [0.5]), ValueError, "1 in sum"),
        (
            lambda f: elements(Dataset.range(3).rejection_resample(lambda x: x, [1.0])),
            ValueError, "one of 0 … 0: got 1",
        ),
        (
            lambda f: tf.data.experimental.assert_cardinality(-2), ValueError, "must be known",
        ),
    ],
)  # fmt: skip
def test_wrong_calls_are_refused(call, error, said, folder):
    with pytest.raises(error, match=said):
        call(folder)


def csv(folder, name, default=0):
    return elements(tf.data.experimental.CsvDataset(f"{folder}/{name}", [[0], [default]]))


@pytest.mark.parametrize(
    "value",
    [None, object(), max, [1, "a"], {}, (), [[1], [2, 3]], {1, 2}, iter([1]), Dataset.range(2)],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
def test_elements_are_made_of_tensors_only(value):
    for make in (Dataset.from_tensors, Dataset.from_tensor_slices):
        with pytest.raises((TypeError, ValueError), match=r"^\[Dataset\.from_tensor"):
            make(value)
