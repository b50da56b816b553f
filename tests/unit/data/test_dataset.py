"""What the stages of a dataset give, where the engine does the work and where Python does."""

import collections

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import samegrad as tf

Dataset = tf.data.Dataset


def values(dataset):
    """All elements as plain Python values."""
    return [to_python(element) for element in dataset.as_numpy_iterator()]


def to_python(element):
    if isinstance(element, tuple):
        return tuple(map(to_python, element))
    if isinstance(element, dict):
        return {name: to_python(part) for name, part in element.items()}
    return element.tolist()


def through_python(dataset):
    """The same elements, but made by Python."""
    spec = dataset.element_spec
    return Dataset.from_generator(lambda: iter(dataset), output_signature=spec)


def test_slices_keep_structure_and_dtype():
    arrays = {"x": np.arange(6.0).reshape(3, 2), "y": (np.array([1, 2, 3], np.uint8), [True] * 3)}
    dataset = Dataset.from_tensor_slices(arrays)
    first = next(iter(dataset))
    assert first["x"].dtype == tf.float64
    assert first["y"][0].dtype == tf.uint8
    assert first["y"][1].dtype == tf.bool
    assert values(dataset)[1] == {"x": [2.0, 3.0], "y": (2, True)}
    assert dataset.element_spec["x"] == tf.TensorSpec((2,), tf.float64)


def test_python_numbers_have_the_usual_dtypes():
    spec = Dataset.from_tensor_slices(([1, 2], [0.5, 1.5])).element_spec
    assert [s.dtype for s in spec] == [tf.int32, tf.float32]


def test_named_tuples_stay_named():
    pair = collections.namedtuple("Pair", ["left", "right"])
    dataset = Dataset.from_tensor_slices(pair(np.arange(3), np.arange(3.0))).batch(2)
    assert next(iter(dataset)).right.shape == (2,)


def test_arrays_are_borrowed():
    array = np.zeros(4)
    dataset = Dataset.from_tensor_slices(array)
    array[2] = 7
    assert values(dataset) == [0, 0, 7, 0]


def test_the_array_lives_as_long_as_the_dataset():
    dataset = Dataset.from_tensor_slices(np.arange(1000.0)).batch(1000)
    assert values(dataset)[0] == list(range(1000))


@pytest.mark.parametrize("array", [np.arange(12).reshape(3, 4).T, np.arange(9)[::-2]])
def test_arrays_need_not_be_contiguous(array):
    assert values(Dataset.from_tensor_slices(array)) == array.tolist()


def test_elements_do_not_change_with_later_ones():
    elements = list(Dataset.range(1000).batch(3))
    assert [e.numpy()[0] for e in elements] == list(range(0, 1000, 3))


@pytest.mark.parametrize(
    ("tensors", "words"),
    [
        (np.float32(3), "axis 0"),
        ((np.zeros(3), np.zeros(4)), r"\(3,\), \(4,\)"),
        ((), "no tensor"),
    ],
)
def test_bad_slices_are_named(tensors, words):
    with pytest.raises(ValueError, match=words):
        Dataset.from_tensor_slices(tensors)


@pytest.mark.parametrize(
    "tensors", [np.zeros(3, "M8[s]"), np.array([b"a", 1], object), ["a", 1], [None]]
)
def test_other_dtypes_are_errors(tensors):
    with pytest.raises((TypeError, ValueError)):
        Dataset.from_tensor_slices(tensors)


@pytest.mark.parametrize("args", [(5,), (2, 7), (0, 10, 3), (5, 0, -2), (3, 3)])
def test_range(args):
    assert values(Dataset.range(*args)) == list(range(*args))
    assert Dataset.range(*args).element_spec.dtype == tf.int64


def test_batches_are_marked_as_examples():
    assert next(iter(Dataset.range(4).batch(2)))._example_axis == (0, 1)
    assert next(iter(Dataset.range(4)))._example_axis is None
    mapped = Dataset.range(4).map(lambda x: x + 1).batch(2)
    assert next(iter(mapped))._example_axis == (0, 1)


STAGES = {
    "take": lambda ds: ds.take(7),
    "take all": lambda ds: ds.take(-1),
    "skip": lambda ds: ds.skip(3),
    "skip all": lambda ds: ds.skip(-1),
    "shard": lambda ds: ds.shard(3, 1),
    "repeat": lambda ds: ds.repeat(3),
    "shuffle": lambda ds: ds.shuffle(100, seed=3),
    "shuffle in a small buffer": lambda ds: ds.shuffle(4, seed=-3),
    "shuffled passes": lambda ds: ds.shuffle(5, seed=1).repeat(2),
    "equal passes": lambda ds: ds.shuffle(5, seed=1, reshuffle_each_iteration=False).repeat(2),
    "shuffle repeated": lambda ds: ds.repeat(2).shuffle(6, seed=1),
    "batch": lambda ds: ds.batch(4),
    "whole batches": lambda ds: ds.batch(4, drop_remainder=True),
    "repeated batches": lambda ds: ds.batch(4).repeat(2),
    "batches in part": lambda ds: ds.batch(4).skip(1).take(1),
    "all at once": lambda ds: ds.shuffle(7, seed=2).repeat().skip(4).batch(3).take(9),
}


@pytest.mark.parametrize("name", STAGES)
@pytest.mark.parametrize("size", [0, 1, 11])
def test_python_does_what_the_engine_does(name, size):
    if name == "all at once" and size == 0:
        pytest.skip("no end")
    base = Dataset.range(size)
    stage = STAGES[name]
    for _ in range(2):  # two epochs
        fast = stage(base)
        assert values(fast) == values(stage(through_python(base)))
    assert len(values(fast)) == len(fast)


@pytest.mark.parametrize("name", STAGES)
def test_stages_follow_functions(name):
    base = Dataset.range(11)
    after = STAGES[name](base.map(lambda x: x * 10))
    assert values(after) == [(np.array(v) * 10).tolist() for v in values(STAGES[name](base))]


def test_every_iterator_is_an_epoch():
    dataset = Dataset.range(50).shuffle(50, seed=4)
    first, second = values(dataset), values(dataset)
    assert first != second
    assert sorted(first) == sorted(second) == list(range(50))
    again = Dataset.range(50).shuffle(50, seed=4)
    assert [values(again), values(again)] == [first, second]
    assert values(Dataset.range(50).shuffle(50, seed=4).repeat(2)) == first + second
    assert values(Dataset.range(50).shuffle(90, seed=4)) == first


def test_without_reshuffling_epochs_are_equal():
    dataset = Dataset.range(50).shuffle(50, seed=4, reshuffle_each_iteration=False)
    assert values(dataset) == values(dataset)


def test_a_shuffle_without_seed_follows_the_process_seed():
    def orders():
        return [values(Dataset.range(20).shuffle(20)) for _ in range(2)]

    tf.random.set_seed(1)
    first = orders()
    tf.random.set_seed(1)
    assert orders() == first
    assert first[0] != first[1]
    tf.random.set_seed(2)
    assert orders() != first


@settings(max_examples=60, deadline=None)
@given(
    size=st.integers(1, 40), buffer=st.integers(1, 50), seed=st.integers(-(2**70), 2**70),
    batch=st.integers(1, 12),
)  # fmt: skip
def test_a_shuffle_loses_nothing(size, buffer, seed, batch):
    batches = values(Dataset.range(size).shuffle(buffer, seed=seed).batch(batch))
    flat = [n for rows in batches for n in rows]
    assert sorted(flat) == list(range(size))
    assert all(n < place + buffer for place, n in enumerate(flat))


def test_zip_of_datasets_shuffled_apart():
    a, b = Dataset.range(9).shuffle(9, seed=1), Dataset.range(100, 109).shuffle(9, seed=2)
    pairs = values(Dataset.zip({"a": a, "b": (b, b.take(5))}).batch(2))
    assert len(pairs) == 3
    column = sorted(n for pair in pairs for n in pair["b"][0])
    assert len(set(column)) == 5
    assert set(column) < set(range(100, 109))


def test_zip_ends_with_the_shortest():
    python = through_python(Dataset.range(3))
    assert values(Dataset.zip((Dataset.range(5), python))) == [(0, 0), (1, 1), (2, 2)]
    assert values(Dataset.zip(Dataset.range(2), Dataset.range(9))) == [(0, 0), (1, 1)]


def test_enumerate_and_concatenate():
    both = Dataset.range(2).concatenate(Dataset.range(7, 9))
    assert values(both.enumerate(5)) == [(5, 0), (6, 1), (7, 7), (8, 8)]
    assert len(both) == 4
    assert values(both.skip(3)) == [8]


def test_map_gets_tuples_as_arguments():
    dataset = Dataset.from_tensor_slices(([1, 2], [10, 20]))
    assert values(dataset.map(lambda a, b: {"sum": a + b})) == [{"sum": 11}, {"sum": 22}]
    assert values(dataset.map(lambda a, b: (a.numpy() * 2, b))) == [(2, 10), (4, 20)]


def test_map_sees_whole_batches_after_batch():
    shapes = []
    values(Dataset.range(5).batch(2).map(lambda x: (shapes.append(x.shape), x)[1]))
    assert shapes == [(2,), (2,), (1,)]


def test_map_knows_its_element_spec():
    dataset = Dataset.range(5).map(lambda x: (tf.cast(x, tf.float32), x)).batch(2)
    assert dataset.element_spec == (
        tf.TensorSpec((None,), tf.float32),
        tf.TensorSpec((None,), tf.int64),
    )
    assert Dataset.range(5).batch(2).map(lambda x: x + 1).element_spec.shape == (None,)


def test_elements_nobody_needs_are_not_made():
    seen = []
    dataset = Dataset.range(1000).map(lambda x: (seen.append(int(x)), x)[1])
    assert values(dataset.skip(10).take(2)) == [10, 11]
    assert seen == [10, 11]


def test_what_a_function_draws_depends_on_its_element_only():
    def noisy(x):
        return tf.cast(x, tf.float32) + tf.random.uniform(())

    def run(**kwargs):
        tf.random.set_seed(5)
        return values(Dataset.range(6).map(noisy, **kwargs).map(noisy))

    first = run()
    assert len(set(np.round(np.array(first) % 1, 5))) == 6
    tf.random.set_seed(5)
    dataset = Dataset.range(6).map(noisy).map(noisy)
    got = []
    for element in dataset:
        tf.random.uniform((3,))  # the rest of the program draws, too
        got.append(float(element))
    assert got == pytest.approx(first, abs=0)
    assert run(num_parallel_calls=tf.data.AUTOTUNE) == first


def test_functions_are_not_recorded_by_a_tape():
    variable = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        (element,) = Dataset.from_tensor_slices([3.0]).map(lambda x: x * variable)
        y = element * 1.0
    assert float(y) == 6.0
    assert tape.gradient(y, variable) is None


@pytest.mark.parametrize("kwargs", [{}, {"num_parallel_calls": 2}])
def test_errors_of_functions_reach_the_consumer(kwargs):
    def fail(x):
        if int(x) == 2:
            raise KeyError("two")
        return x

    iterator = iter(Dataset.range(5).map(fail, **kwargs))
    assert [int(next(iterator)), int(next(iterator))] == [0, 1]
    with pytest.raises(KeyError, match="two"):
        next(iterator)


def test_a_function_that_raises_stop_iteration_does_not_end_the_data_silently():
    with pytest.raises(RuntimeError, match="StopIteration"):
        values(Dataset.range(3).map(lambda x: next(iter(()))))


def test_a_function_that_returns_no_tensor():
    with pytest.raises(TypeError, match="NoneType"):
        values(Dataset.range(3).map(lambda x: None))


def test_filter_and_its_cardinality():
    dataset = Dataset.range(9).filter(lambda x: x % 3 == 0)
    assert values(dataset) == [0, 3, 6]
    assert int(dataset.cardinality()) == tf.data.UNKNOWN_CARDINALITY
    with pytest.raises(TypeError, match="iterating"):
        len(dataset)


def test_unbatch():
    dataset = Dataset.from_tensor_slices((np.arange(6).reshape(3, 2), np.arange(3)))
    assert values(dataset.batch(2).unbatch()) == values(dataset)
    with pytest.raises(ValueError, match="same number of rows"):
        values(Dataset.from_tensors((np.zeros(2), np.zeros(3))).unbatch())


def ragged():
    spec = (tf.TensorSpec((None,), tf.int32), tf.TensorSpec((), tf.int64))
    return Dataset.from_generator(
        lambda: (([1] * n, n) for n in range(1, 4)), output_signature=spec
    )


def test_padded_batch():
    (first, last) = values(ragged().padded_batch(2))
    assert first == ([[1, 0], [1, 1]], [1, 2])
    assert last == ([[1, 1, 1]], [3])
    (whole,) = values(ragged().padded_batch(3, padded_shapes=([4], []), padding_values=(9, 0)))
    assert whole[0] == [[1, 9, 9, 9], [1, 1, 9, 9], [1, 1, 1, 9]]
    spec = ragged().padded_batch(3, padded_shapes=([4], [])).element_spec
    assert spec[0].shape == (None, 4)
    with pytest.raises(ValueError, match="less than"):
        values(ragged().padded_batch(3, padded_shapes=([2], [])))


def test_batches_need_equal_shapes():
    with pytest.raises(ValueError, match=r"\(1,\).*\(2,\).*padded_batch"):
        values(ragged().batch(2))


def test_generators_begin_anew():
    dataset = Dataset.from_generator(
        lambda n: iter(range(n)), output_signature=tf.TensorSpec((), tf.int32), args=(3,)
    )
    assert values(dataset) == values(dataset) == [0, 1, 2]
    assert next(iter(dataset)).dtype == tf.int32


@pytest.mark.parametrize(
    ("yielded", "signature", "error", "words"),
    [
        ([1.5], tf.TensorSpec((), tf.int32), tf.errors.InvalidArgumentError, "float64"),
        ([[1, 2]], tf.TensorSpec((3,), tf.int32), ValueError, r"\(2,\)"),
        ([(1, 2)], tf.TensorSpec((), tf.int32), TypeError, "2 components"),
    ],
)
def test_generators_must_keep_their_signature(yielded, signature, error, words):
    with pytest.raises(error, match=words):
        values(Dataset.from_generator(lambda: iter(yielded), output_signature=signature))


def test_generators_need_a_signature():
    with pytest.raises(TypeError, match="output_signature"):
        Dataset.from_generator(lambda: iter([1]))


@pytest.mark.parametrize("shapes", [None, ([None], [None])])
def test_generators_take_the_types_and_shapes_of_older_programs(shapes):
    rows = [([1, 2], [3]), ([4], [5, 6])]
    dataset = Dataset.from_generator(lambda: iter(rows), (tf.int64, tf.float32), shapes)
    assert dataset.element_spec == (
        tf.TensorSpec((None,), tf.int64), tf.TensorSpec((None,), tf.float32))  # fmt: skip
    assert [(x.numpy().tolist(), y.numpy().tolist()) for x, y in dataset] == rows
    ((x, y),) = dataset.padded_batch(2, padded_shapes=([-1], [-1]))
    assert x.numpy().tolist() == [[1, 2], [4, 0]]
    assert y.dtype == tf.float32


def test_generators_of_one_type_have_the_shape_of_their_first_element():
    dataset = Dataset.from_generator(lambda n: iter(np.ones((n, 2))), tf.float32, args=(3,))
    assert dataset.element_spec == tf.TensorSpec((None,), tf.float32)
    assert len(values(dataset)) == 3
    assert values(Dataset.from_generator(lambda: iter([]), tf.float32)) == []
    assert values(Dataset.from_generator(lambda: iter([7]), tf.int32, [])) == [7]


def test_generators_of_dicts_take_types_by_name():
    dataset = Dataset.from_generator(
        lambda: iter([{"a": 1, "b": [2]}]), {"a": tf.int64, "b": tf.int64}, {"a": [], "b": [1]}
    )
    (row,) = dataset
    assert (int(row["a"]), row["b"].numpy().tolist()) == (1, [2])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"output_types": tf.int32, "output_signature": tf.TensorSpec((), tf.int32)}, "without"),
        ({"output_shapes": []}, "output_types"),
        ({"output_types": (tf.int32, tf.int32), "output_shapes": ([],)}, "structure"),
    ],
)
def test_generators_take_types_or_a_signature(options, words):
    with pytest.raises(TypeError, match=words):
        Dataset.from_generator(lambda: iter([1]), **options)


@pytest.mark.parametrize("kind", ["stacked", "ragged", "unknown size"])
def test_cache_runs_functions_once(kind):
    calls = []

    def count(x):
        calls.append(int(x))
        return x

    def row(x):
        return np.ones(int(x)) if kind == "ragged" else x

    dataset = Dataset.range(6).map(count).map(row)
    if kind == "unknown size":
        dataset = dataset.filter(lambda x: True)
    dataset = dataset.cache()
    first = values(dataset)
    assert values(dataset) == first
    assert values(dataset.shuffle(6, seed=1).take(3)) != first[:3]
    assert sorted(calls) == list(range(6))


def test_cache_keeps_the_order_of_the_first_run():
    dataset = Dataset.range(30).shuffle(30, seed=1).cache()
    assert values(dataset) == values(dataset)


def test_cache_of_endless_data_does_not_hang():
    assert values(Dataset.range(2).map(lambda x: x).repeat().cache().take(3)) == [0, 1, 0]


@pytest.mark.parametrize("depth", [tf.data.AUTOTUNE, 0, 1, 100])
def test_prefetch_changes_nothing(depth):
    for dataset in (Dataset.range(50).batch(3), through_python(Dataset.range(50))):
        assert values(dataset.prefetch(depth)) == values(dataset)


def test_cardinality():
    base = Dataset.range(10)
    assert int(base.repeat().cardinality()) == tf.data.INFINITE_CARDINALITY
    assert len(base.batch(4)) == 3
    assert len(base.batch(4, drop_remainder=True).repeat(5)) == 10
    assert len(base.skip(3).shard(2, 1)) == 3
    assert len(base.repeat().take(12)) == 12
    assert len(Dataset.from_tensors(np.zeros(3))) == 1
    with pytest.raises(TypeError, match="endless"):
        len(base.repeat())
    assert base.take(0)  # a dataset is true, however long


def test_repeating_nothing_ends():
    assert values(Dataset.range(0).repeat()) == []
    assert values(through_python(Dataset.range(0)).repeat()) == []


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda ds: ds.batch(0), "batch_size must be at least 1: got 0"),
        (lambda ds: ds.shuffle(0), "buffer_size must be at least 1: got 0"),
        (lambda ds: ds.shard(2, 2), "index=2"),
        (lambda ds: ds.padded_batch(-1), "at least 1: got -1"),
    ],
)
def test_wrong_arguments_are_errors_at_once(make, words):
    with pytest.raises(ValueError, match=words):
        make(Dataset.range(3))


def test_optional_and_out_of_range():
    iterator = iter(Dataset.range(1))
    optional = iterator.get_next_as_optional()
    assert optional.has_value()
    assert int(optional.get_value()) == 0
    empty = iterator.get_next_as_optional()
    assert not empty.has_value()
    with pytest.raises(tf.errors.InvalidArgumentError, match="has_value"):
        empty.get_value()
    with pytest.raises(tf.errors.OutOfRangeError, match="no more elements"):
        iterator.get_next()


def test_a_large_array_is_sliced_like_a_small_one():
    """Large arrays are looked at before the call; a structure may be anything."""
    array = np.zeros((1 << 22, 1), np.int8)
    dataset = Dataset.from_tensor_slices(array).batch(1 << 22)
    assert next(iter(dataset)).shape == (1 << 22, 1)
