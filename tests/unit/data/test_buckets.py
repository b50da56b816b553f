"""Padding, windows and length buckets: TensorFlow's batches, found again and distributed."""

import itertools
import json
from pathlib import Path

import numpy as np
import pytest
from bucket_cases import (
    BOUNDARIES,
    CASES,
    LENGTHS,
    TOKEN_SIZES,
    TOKENS,
    pairs,
    record,
    sequences,
    size,
    windows_of_tokens,
)

import samegrad as tf

Dataset = tf.data.Dataset
RECORDED = json.loads(Path(__file__).with_name("tensorflow_buckets.json").read_text())["results"]
# What samegrad refuses earlier than TensorFlow does: the elements before the error are not given.
EARLIER = {
    "bucket, to boundary and too long": {"elements": ["an error"]},
    "bucket, to boundary and as long": {"elements": ["an error"]},
    "bucket, a size of 0": "an error at once",
}


@pytest.fixture(scope="module")
def found():
    return json.loads(json.dumps(record(tf)))


@pytest.mark.parametrize("case", RECORDED)
def test_batches_are_those_of_tensorflow(found, case):
    assert found[case] == EARLIER.get(case, RECORDED[case])


def test_every_recorded_case_is_compared():
    assert set(CASES) == set(RECORDED)
    assert all("error" in str(RECORDED[case]) for case in EARLIER)


def bucketed(dataset=None, sizes=(3, 2, 2), **more):
    dataset = sequences(tf) if dataset is None else dataset
    return dataset.bucket_by_sequence_length(size, [3, 6], list(sizes), **more)


def values(iterable):
    return [tf.nest.map_structure(lambda leaf: leaf.numpy().tolist(), e) for e in iterable]


def test_sixteen_thousand_sequences_keep_the_rule():
    lengths = LENGTHS * 1000
    held, expected = {0: [], 1: [], 2: []}, []
    for number, length in enumerate(lengths):
        bucket = sum(length >= bound for bound in (3, 6))
        held[bucket].append(number)
        if len(held[bucket]) == (30, 20, 10)[bucket]:
            expected.append(held[bucket])
            held[bucket] = []
    expected += [left for left in held.values() if left]
    numbered = pairs(tf, lengths).bucket_by_sequence_length(size, [3, 6], [30, 20, 10])
    assert [batch["number"].numpy().tolist() for _, batch in numbered] == expected


@pytest.mark.parametrize(
    "prepare",
    [
        lambda ds: ds.map(lambda row: row),
        lambda ds: ds.map(lambda row: row, num_parallel_calls=tf.data.AUTOTUNE),
        lambda ds: ds.prefetch(3),
        lambda ds: ds.cache(),
    ],
)
def test_threads_and_functions_before_change_nothing(prepare):
    assert values(bucketed(prepare(sequences(tf))).prefetch(2)) == values(bucketed())


def test_an_order_by_seed_and_epoch():
    def epochs():
        dataset = bucketed(sequences(tf).shuffle(16, seed=3))
        return [values(dataset), values(dataset)]

    first, second = epochs()
    assert [first, second] == epochs()
    assert first != second
    # Row n is 10 n, 10 n + 1, … and row 0 holds a 0 besides its padding.
    numbers = [sorted(n for batch in each for row in batch for n in row if n) for each in epochs()]
    assert numbers[0] == numbers[1]
    assert len(numbers[0]) == sum(LENGTHS) - 1


def test_elements_of_a_function_are_padded_to_the_largest_of_the_batch():
    grown = Dataset.range(5).map(lambda n: tf.ones((n,), tf.int32))
    assert [row.shape for row in grown.padded_batch(5)] == [(5, 4)]
    batches = grown.bucket_by_sequence_length(size, [2], [2, 3])
    assert [row.shape for row in batches] == [(2, 1), (3, 4)]
    assert batches.element_spec.shape == (None, None)
    to_boundary = grown.bucket_by_sequence_length(size, [3, 9], [3, 2, 1], None, None, True)
    assert [row.shape for row in to_boundary] == [(3, 2), (2, 8)]


@pytest.mark.parametrize("prepared", [lambda ds: ds, lambda ds: ds.map(lambda row: row)])
def test_a_dataset_without_elements(prepared):
    nothing = prepared(sequences(tf, []))
    assert values(bucketed(nothing)) == []
    assert values(nothing.padded_batch(2)) == []
    assert values(nothing.padded_batch(2, padded_shapes=[3], padding_values=1)) == []
    windows = nothing.group_by_window(size, lambda key, window: window.padded_batch(2), 2)
    assert values(windows) == []


def test_one_element_and_one_empty_sequence():
    assert values(bucketed(sequences(tf, [2]))) == [[[0, 1]]]
    (batch,) = bucketed(sequences(tf, [0]))
    assert batch.shape == (1, 0)
    assert batch.dtype == tf.int64


def noisy(row):
    return row + tf.cast(tf.random.uniform(tf.shape(row)) * 1000, row.dtype)


def random_key(row):
    return int(tf.random.uniform(()) * 3)


def drawn_windows(key, window):
    return window.shuffle(4).map(noisy).padded_batch(2)


PIPELINES = {
    "buckets": lambda: bucketed(),
    "buckets of shuffled rows": lambda: bucketed(sequences(tf).shuffle(16)),
    "shuffled buckets, twice": lambda: bucketed(sequences(tf).shuffle(5)).shuffle(3).repeat(2),
    "noise in a thread": lambda: bucketed(sequences(tf).map(noisy, tf.data.AUTOTUNE)),
    "endless rows": lambda: bucketed(sequences(tf).shuffle(16).repeat()).take(25),
    "full batches": lambda: bucketed(sequences(tf).repeat(2), drop_remainder=True),
    "windows that draw": lambda: sequences(tf).group_by_window(random_key, drawn_windows, 4),
}


@pytest.mark.parametrize("name", PIPELINES)
def test_a_restored_iterator_goes_on_inside_half_filled_buckets(name, tmp_path):
    tf.random.set_seed(5)
    whole = values(PIPELINES[name]())
    assert len(whole) >= 5
    for consumed in range(len(whole) + 1):
        tf.random.set_seed(5)
        iterator = iter(PIPELINES[name]())
        assert values(itertools.islice(iterator, consumed)) == whole[:consumed]
        path = tf.train.Checkpoint(iterator=iterator).save(tmp_path / "ckpt")
        tf.random.set_seed(6)
        tf.random.uniform((3,))
        resumed = iter(PIPELINES[name]())
        for _ in range(2):  # resumed twice
            tf.train.Checkpoint(iterator=resumed).restore(path)
            assert values(resumed) == whole[consumed:]


@pytest.mark.parametrize("moment", [0, 5, 11])
def test_an_interrupt_in_the_length_function_loses_nothing(moment):
    calls = itertools.count()

    def interrupted(row):
        if next(calls) == moment:
            raise KeyboardInterrupt
        return size(row)

    iterator = iter(sequences(tf).bucket_by_sequence_length(interrupted, [3, 6], [3, 2, 2]))
    batches = []
    with pytest.raises(KeyboardInterrupt):
        batches.extend(iterator)
    assert values([*batches, *iterator]) == values(bucketed())


def test_rows_in_a_bucket_do_not_change_with_the_programs_array():
    shared = np.zeros(2, np.int64)

    def rows():
        for number in range(4):
            shared[:] = number
            yield shared

    dataset = Dataset.from_generator(rows, output_signature=tf.TensorSpec((None,), tf.int64))
    assert values(dataset.bucket_by_sequence_length(size, [3], [4, 4])) == [
        [[0, 0], [1, 1], [2, 2], [3, 3]]
    ]


def test_windows_draw_nothing_from_the_program():
    tf.random.set_seed(5)
    wanted = tf.random.uniform((3,)).numpy().tolist()
    tf.random.set_seed(5)
    dataset = sequences(tf).group_by_window(random_key, drawn_windows, 4)
    assert len(list(dataset)) > 4
    assert dataset.element_spec.shape == (None, None)
    after = tf.random.uniform((3,)).numpy().tolist()
    tf.random.set_seed(5)
    sequences(tf).group_by_window(random_key, drawn_windows, 4)
    assert after == tf.random.uniform((3,)).numpy().tolist()
    assert after != wanted  # a dataset that draws counts as one draw, as shuffle does


def shares(dataset, replicas):
    strategy = tf.distribute.MirroredStrategy(replicas=replicas)
    for batch in strategy.experimental_distribute_dataset(dataset):
        parts = [batch] if replicas == 1 else batch.values
        yield [part.numpy() for part in parts]


@pytest.mark.parametrize("replicas", [1, 2, 3, 4, 8])
def test_a_bucketed_batch_is_shared_out_by_rows(replicas):
    whole = [batch.numpy() for batch in bucketed(sizes=(5, 3, 4))]
    found = list(shares(bucketed(sizes=(5, 3, 4)), replicas))
    assert len({len(batch) for batch in whole}) > 2
    assert len(found) == len(whole)
    for parts, batch in zip(found, whole, strict=True):
        assert len(parts) == replicas
        np.testing.assert_array_equal(np.concatenate(parts), batch)
        assert {part.shape[1] for part in parts} == {batch.shape[1]}
        chunk = -(-len(batch) // replicas)
        rows = [max(0, min(chunk, len(batch) - chunk * r)) for r in range(replicas)]
        assert [len(part) for part in parts] == rows


def test_shares_of_uneven_and_single_rows():
    sizes = [[len(part) for part in parts] for parts in shares(bucketed(), 2)]
    assert sizes[0] == [1, 1]
    assert [2, 1] in sizes  # of a bucket of 3
    last = list(shares(bucketed(sequences(tf, [4])), 3))
    assert [part.shape for part in last[0]] == [(1, 4), (0, 4), (0, 4)]


def test_a_run_goes_on_with_another_number_of_replicas(tmp_path):
    def iterator(replicas):
        strategy = tf.distribute.MirroredStrategy(replicas=replicas)
        return iter(strategy.experimental_distribute_dataset(bucketed()))

    whole = values(bucketed())
    two = iterator(2)
    for _ in range(3):
        next(two)
    path = tf.train.Checkpoint(iterator=two).save(tmp_path / "ckpt")
    three = iterator(3)
    tf.train.Checkpoint(iterator=three).restore(path)
    rest = [np.concatenate([part.numpy() for part in batch.values]).tolist() for batch in three]
    assert rest == whole[3:]


def traced_sums(dataset, replicas, signature=None):
    """The sum of each batch, and how often the step was traced."""
    strategy = tf.distribute.MirroredStrategy(replicas=replicas)
    traces = []

    @tf.function(input_signature=signature)
    def step(batch):
        traces.append(1)
        shares = strategy.run(lambda part: tf.reduce_sum(tf.cast(part, tf.float32)), (batch,))
        return strategy.reduce("sum", shares, axis=None)

    batches = strategy.experimental_distribute_dataset(dataset)
    return [float(step(batch)) for batch in batches], len(traces)


@pytest.mark.parametrize("replicas", [1, 2, 3])
def test_a_step_is_traced_at_most_once_per_bucket(replicas):
    dataset = sequences(tf, LENGTHS * 3).bucket_by_sequence_length(
        size, [3, 6, 10], [5, 3, 2, 1], pad_to_bucket_boundary=True
    )
    batches = [batch.numpy() for batch in dataset]
    assert len(batches) > 12
    sums, traces = traced_sums(dataset, replicas)
    assert sums == [batch.sum() for batch in batches]
    assert traces == 3


def test_called_again_no_step_is_traced_anew():
    dataset = sequences(tf).bucket_by_sequence_length(
        size, [3, 6, 10], [5, 3, 2, 1], pad_to_bucket_boundary=True
    )
    _, traces = traced_sums(dataset.repeat(3), 2)
    assert traces == 3


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda ds: ds.bucket_by_sequence_length(size, [6, 3], [1, 1, 1]), r"ascend: got \[6, 3\]"),
        (lambda ds: ds.bucket_by_sequence_length(size, [3, 3], [1, 1, 1]), r"ascend: got \[3, 3\]"),
        (lambda ds: ds.bucket_by_sequence_length(size, [3], [1]), "got 1 sizes for 1 boundaries"),
        (lambda ds: ds.bucket_by_sequence_length(size, [3], [2, 0]), "at least 1: got 0"),
        (lambda ds: ds.padded_batch(2, padded_shapes=[4, 4]), r"1 sizes here.*got \[4, 4\]"),
        (lambda ds: ds.padded_batch(2, padded_shapes=[-2]), r"got \[-2\]"),
        (lambda ds: ds.padded_batch(2, padding_values=0.5), "got 0.5 for int64"),
        (lambda ds: ds.padded_batch(2, padding_values="x"), "one number.*got 'x'"),
        (lambda ds: ds.group_by_window(size, lambda k, w: w), "got neither"),
        (lambda ds: ds.group_by_window(size, lambda k, w: w, 0), "at least 1: got 0"),
        (
            lambda ds: Dataset.zip((ds, ds)).padded_batch(2, padded_shapes=([4], [4], [4])),
            "for 2 components",
        ),
    ],
)
def test_wrong_arguments_are_errors_at_once(make, words):
    with pytest.raises(ValueError, match=words):
        make(sequences(tf))


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (
            lambda ds: bucketed(ds, pad_to_bucket_boundary=True),
            tf.errors.InvalidArgumentError,
            r"got length 7 and boundaries \[3, 6\]",
        ),
        (
            lambda ds: ds.padded_batch(2, padded_shapes=[5]),
            ValueError,
            r"got \(5,\) and an element of shape \(7,\)",
        ),
        (
            lambda ds: bucketed(ds, padded_shapes=[8]),
            ValueError,
            r"bucket_by_sequence_length.*got \(8,\) and an element of shape \(9,\)",
        ),
        (
            lambda ds: ds.bucket_by_sequence_length(lambda row: 1.5, [3], [2, 2]),
            TypeError,
            "length is an integer.*1.5",
        ),
        (
            lambda ds: ds.group_by_window(size, lambda key, window: 7, 2),
            TypeError,
            "return a Dataset: got int",
        ),
        (
            lambda ds: ds.map(lambda row: row).padded_batch(2, padded_shapes=[4, 4]),
            ValueError,
            r"1 sizes here.*got \[4, 4\]",
        ),
    ],
)
def test_wrong_elements_are_errors_with_their_values(make, error, words):
    with pytest.raises(error, match=words):
        list(make(sequences(tf)))


def test_an_error_of_the_length_function_reaches_the_consumer():
    def failing(row):
        raise KeyError("no length")

    with pytest.raises(KeyError, match="no length"):
        next(iter(sequences(tf).bucket_by_sequence_length(failing, [3], [2, 2])))


def test_batches_by_a_token_budget():
    boundaries, tokens = [3, 6, 10], 12
    sizes = [max(1, tokens // (bound - 1)) for bound in boundaries] + [1]
    batches = list(sequences(tf).bucket_by_sequence_length(size, boundaries, sizes))
    assert sizes == [6, 2, 1, 1]
    assert max(batch.shape[0] * batch.shape[1] for batch in batches) <= tokens


@pytest.mark.parametrize("replicas", [1, 2, 3])
def test_global_batches_of_a_token_budget_are_the_same_by_windows_and_by_buckets(replicas):
    strategy = tf.distribute.MirroredStrategy(replicas=replicas)
    buckets = sequences(tf).bucket_by_sequence_length(size, BOUNDARIES, [*TOKEN_SIZES, 1])
    found = []
    for dataset in (windows_of_tokens(tf), buckets):
        batches = strategy.experimental_distribute_dataset(dataset)
        found.append([strategy.gather(batch, axis=0).numpy().tolist() for batch in batches])
    assert found[0] == found[1]
    assert max(len(batch) * len(batch[0]) for batch in found[0]) <= TOKENS
    assert sum(len(batch) for batch in found[0]) == len(LENGTHS)
