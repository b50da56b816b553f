"""Global batches and the replicas' shares of them."""

import numpy as np
import pytest

import samegrad as tf
from samegrad.distribute._input import InputContext, distribute_from_function

Dataset = tf.data.Dataset


def strategy_of(replicas):
    return tf.distribute.MirroredStrategy(replicas=replicas)


def parts(value):
    return [part.numpy().tolist() for part in local(value)]


def local(value):
    return getattr(value, "values", (value,))


def through_python(dataset):
    spec = dataset.element_spec
    return Dataset.from_generator(lambda: iter(dataset), output_signature=spec)


def shares(dataset, replicas):
    strategy = strategy_of(replicas)
    fast = [parts(v) for v in strategy.experimental_distribute_dataset(dataset)]
    slow = strategy.experimental_distribute_dataset(through_python(dataset))
    assert [parts(v) for v in slow] == fast
    return fast


def test_chunks_as_tensorflow_has_them():
    assert shares(Dataset.range(14).batch(8), 2) == [
        [[0, 1, 2, 3], [4, 5, 6, 7]],
        [[8, 9, 10], [11, 12, 13]],
    ]
    assert shares(Dataset.from_tensor_slices([5, 6, 7]).batch(4), 2) == [[[5, 6], [7]]]
    assert shares(Dataset.range(11).batch(4), 3) == [
        [[0, 1], [2, 3], []],
        [[4, 5], [6, 7], []],
        [[8], [9], [10]],
    ]
    sizes = [[len(part) for part in batch] for batch in shares(Dataset.range(20).batch(10), 4)]
    assert sizes == [[3, 3, 3, 1]] * 2


def test_drop_remainder_concerns_the_global_batch():
    assert shares(Dataset.range(5, 6).batch(1, drop_remainder=True), 2) == [[[5], []]]


def test_empty_shares_keep_shape_and_dtype():
    images = np.zeros((1, 3, 2), np.float64)
    dataset = Dataset.from_tensor_slices((images, [1])).batch(4)
    ((image, label),) = strategy_of(2).experimental_distribute_dataset(dataset)
    empty = image.values[1]
    assert (tuple(empty.shape), empty.dtype) == ((0, 3, 2), tf.float64)
    assert label.values[1].dtype == tf.int32
    assert empty._example_axis == (0, 1)


def test_one_replica_gets_plain_tensors():
    dataset = Dataset.range(3).batch(2)
    for made in (dataset, through_python(dataset)):
        (first, last) = strategy_of(1).experimental_distribute_dataset(made)
        assert isinstance(first, tf.Tensor)
        assert first._example_axis == (0, 1)
        assert last.numpy().tolist() == [2]


def test_structures_are_kept():
    arrays = {"x": np.arange(4), "y": (np.arange(4.0), np.ones((4, 2)))}
    dataset = Dataset.from_tensor_slices(arrays).batch(4)
    (element,) = strategy_of(2).experimental_distribute_dataset(dataset)
    assert parts(element["y"][0]) == [[0.0, 1.0], [2.0, 3.0]]
    spec = strategy_of(2).experimental_distribute_dataset(dataset).element_spec
    assert spec["y"][1] == tf.TensorSpec((None, 2), tf.float64)


def test_shares_are_views_of_one_batch():
    dataset = Dataset.from_tensor_slices(np.arange(8.0)).batch(8)
    (value,) = strategy_of(2).experimental_distribute_dataset(dataset)
    first, second = (part._view().__array_interface__["data"][0] for part in value.values)
    assert second - first == 4 * 8


@pytest.mark.parametrize(
    "dataset",
    [
        Dataset.range(8),
        Dataset.from_tensor_slices(np.zeros((4, 3))),
        Dataset.range(8).map(lambda x: x),
        Dataset.range(8).batch(2).unbatch(),
        Dataset.from_generator(lambda: iter([1]), output_signature=tf.TensorSpec((), tf.int32)),
    ],
)
@pytest.mark.parametrize("replicas", [1, 2])
def test_single_examples_cannot_be_split(dataset, replicas):
    with pytest.raises(ValueError, match=r"\.batch\(global_batch_size\) first"):
        strategy_of(replicas).experimental_distribute_dataset(dataset)


def test_something_else_than_a_dataset():
    with pytest.raises(TypeError, match="from_tensor_slices"):
        strategy_of(2).experimental_distribute_dataset([np.zeros(4)])


def test_components_of_a_batch_must_agree():
    dataset = Dataset.from_tensors((np.zeros(4), np.zeros(3)))
    with pytest.raises(ValueError, match=r"\(4,\), \(3,\)"):
        list(strategy_of(2).experimental_distribute_dataset(dataset))


def test_the_users_own_batches_are_split():
    dataset = Dataset.from_tensors(np.arange(5))
    (value,) = strategy_of(2).experimental_distribute_dataset(dataset)
    assert parts(value) == [[0, 1, 2], [3, 4]]


@pytest.mark.parametrize("mapped", [False, True])
def test_own_batches_come_in_order_and_none_is_dropped(mapped):
    def make(context):
        dataset = Dataset.range(9).batch(2)
        return dataset.map(lambda x: x) if mapped else dataset

    dataset = distribute_from_function(make, strategy_of(2))
    assert len(dataset) == 3
    assert [parts(v) for v in dataset] == [[[0, 1], [2, 3]], [[4, 5], [6, 7]], [[8], []]]


def test_the_input_context():
    seen = []
    distribute_from_function(lambda c: (seen.append(c), Dataset.range(4).batch(2))[1],
                             strategy_of(6))  # fmt: skip
    (context,) = seen
    assert (context.num_input_pipelines, context.input_pipeline_id) == (1, 0)
    assert context.get_per_replica_batch_size(12) == 2
    with pytest.raises(ValueError, match="13 and 6"):
        context.get_per_replica_batch_size(13)
    assert InputContext().num_replicas_in_sync == 1


def test_iterating_again_restarts_and_ends_are_told():
    dataset = strategy_of(2).experimental_distribute_dataset(Dataset.range(4).batch(4))
    assert len(dataset) == 1
    for _ in range(2):
        assert len(list(dataset)) == 1
    iterator = iter(dataset)
    assert parts(iterator.get_next()) == [[0, 1], [2, 3]]
    assert not iterator.get_next_as_optional().has_value()
    with pytest.raises(tf.errors.OutOfRangeError):
        iterator.get_next()
    with pytest.raises(StopIteration):
        next(iterator)


def make_dataset(kind):
    dataset = Dataset.range(23).shuffle(23)
    if kind == "map":
        dataset = dataset.map(lambda x: tf.cast(x, tf.float32) + tf.random.uniform(()))
    return dataset.batch(5).repeat(2)


@pytest.mark.parametrize("kind", ["plain", "map"])
def test_every_number_of_replicas_sees_the_same_batches_and_resumes(kind, tmp_path):
    def run(replicas, iterator=None):
        if iterator is None:
            tf.random.set_seed(3)
            dataset = make_dataset(kind)
            iterator = iter(strategy_of(replicas).experimental_distribute_dataset(dataset))
        return [[n for part in parts(value) for n in part] for value in iterator]

    whole = run(1)
    assert len(whole) == 10
    for replicas in (2, 3, 8):
        assert run(replicas) == whole
        tf.random.set_seed(3)
        strategy = strategy_of(2)
        iterator = iter(strategy.experimental_distribute_dataset(make_dataset(kind)))
        for _ in range(7):
            next(iterator)
        path = tf.train.Checkpoint(iterator=iterator).save(tmp_path / f"ckpt{replicas}")
        tf.random.set_seed(4)
        strategy = strategy_of(replicas)
        other = iter(strategy.experimental_distribute_dataset(make_dataset(kind)))
        tf.train.Checkpoint(iterator=other).restore(path)
        assert run(replicas, other) == whole[7:]


def test_own_batches_are_counted_each():
    def make(_):
        return Dataset.range(12).batch(1)

    iterator = iter(distribute_from_function(make, strategy_of(3)))
    next(iterator)
    state = iterator._checkpoint_state()
    assert state["position"] == 3
    other = iter(distribute_from_function(make, strategy_of(2)))
    other._restore_state(state)
    assert parts(next(other)) == [[3], [4]]


def test_a_step_takes_shares_nobody_looked_at():
    strategy = strategy_of(2)

    @tf.function
    def step(batch):
        values = strategy.run(lambda x: tf.reduce_sum(x), args=(batch,))
        return strategy.reduce("SUM", values, axis=None)

    dataset = Dataset.from_tensor_slices(np.arange(7.0)).batch(4)
    sums = [float(step(batch)) for batch in strategy.experimental_distribute_dataset(dataset)]
    assert sums == [6.0, 15.0]


@pytest.mark.parametrize("replicas", [1, 2])
@pytest.mark.parametrize("kind", ["sparse_batch", "ragged_batch"])
def test_batches_that_are_not_dense_are_refused(replicas, kind):
    data = Dataset.range(4).map(lambda n: tf.fill([n], n))
    data = data.sparse_batch(2, [4]) if kind == "sparse_batch" else data.ragged_batch(2)
    strategy = strategy_of(replicas)
    for distributed in (
        strategy.experimental_distribute_dataset(data),
        strategy.distribute_datasets_from_function(lambda context: data),
    ):
        with pytest.raises(TypeError, match=r"dense: got (Sparse|Ragged)Tensor; .*to_dense"):
            next(iter(distributed))


def test_text_that_python_made_is_split():
    data = Dataset.from_tensor_slices((["a", "b"], [1, 2])).map(lambda x, n: (x, n)).batch(2)
    ((words, numbers),) = strategy_of(1).experimental_distribute_dataset(data)
    assert words.numpy().tolist() == [b"a", b"b"] and numbers.numpy().tolist() == [1, 2]
    ((words, _),) = strategy_of(2).experimental_distribute_dataset(data)
    assert [part.numpy().tolist() for part in words.values] == [[b"a"], [b"b"]]
