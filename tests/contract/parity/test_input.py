"""Splitting the input between replicas."""

from __future__ import annotations

import numpy as np
import pytest

import samegrad as tf

from .values import batches, local, mirrored

Dataset = tf.data.Dataset


@pytest.mark.parity("input: chunks of ceil(n/N) rows")
@pytest.mark.parametrize(
    ("dataset", "replicas", "expected"),
    [
        (Dataset.range(14).batch(8), 2,
         [[[0, 1, 2, 3], [4, 5, 6, 7]], [[8, 9, 10], [11, 12, 13]]]),
        (Dataset.from_tensor_slices([5, 6, 7]).batch(4), 2, [[[5, 6], [7]]]),
        (Dataset.range(11).batch(4), 3,
         [[[0, 1], [2, 3], []], [[4, 5], [6, 7], []], [[8], [9], [10]]]),
    ],
)  # fmt: skip
def test_each_batch_is_split_by_itself(dataset, replicas, expected) -> None:
    assert batches(mirrored(replicas), dataset) == expected


@pytest.mark.parity("input: range(20).batch(10) on 4 has sizes 3,3,3,1")
def test_the_last_replicas_get_less() -> None:
    for batch in batches(mirrored(4), Dataset.range(20).batch(10)):
        assert [len(part) for part in batch] == [3, 3, 3, 1]


@pytest.mark.parity("input: an empty replica takes part and adds exactly 0")
def test_an_empty_replica_adds_nothing() -> None:
    strategy = mirrored()
    dataset = Dataset.from_tensor_slices(np.array([[5.0]], np.float32)).batch(2)
    (batch,) = strategy.experimental_distribute_dataset(dataset)
    empty = strategy.experimental_local_results(batch)[1]
    assert tuple(empty.shape) == (0, 1) and empty.dtype == tf.float32
    squares = strategy.run(lambda x: x * x, args=(batch,))
    assert local(strategy, squares) == [[[25.0]], []]

    def sums(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.reduce_sum(x * x)
        context = tf.distribute.get_replica_context()
        gradient = tf.reduce_sum(tape.gradient(y, x))
        return context.all_reduce("sum", [y, gradient, tf.cast(tf.size(x), "float32")])

    found = strategy.run(sums, args=(batch,))
    assert [local(strategy, v)[0] for v in found] == [25.0, 10.0, 1.0]


@pytest.mark.parity("input: drop_remainder concerns the global batch")
def test_drop_remainder_keeps_a_full_batch_of_one() -> None:
    dataset = Dataset.from_tensor_slices([5]).batch(1, drop_remainder=True)
    assert batches(mirrored(), dataset) == [[[5], []]]


@pytest.mark.parity("input: distribute_datasets_from_function gives one batch per replica")
def test_own_batches_go_to_the_replicas_in_order_and_none_is_lost() -> None:
    strategy = mirrored()
    dataset = strategy.distribute_datasets_from_function(lambda _: Dataset.range(9).batch(2))
    found = [local(strategy, x) for x in dataset]
    assert found == [[[0, 1], [2, 3]], [[4, 5], [6, 7]], [[8], []]]


@pytest.mark.parity("input: InputContext and get_per_replica_batch_size")
def test_the_input_context_divides_batches_without_rest() -> None:
    context = tf.distribute.InputContext(
        num_input_pipelines=2, input_pipeline_id=1, num_replicas_in_sync=6
    )
    assert (context.num_input_pipelines, context.input_pipeline_id) == (2, 1)
    assert context.num_replicas_in_sync == 6
    assert context.get_per_replica_batch_size(12) == 2
    with pytest.raises(ValueError, match="13"):
        context.get_per_replica_batch_size(13)


@pytest.mark.parity("input: iterators end, are asked, and begin again")
def test_iterators_end_are_asked_and_begin_again() -> None:
    strategy = mirrored()
    dataset = strategy.experimental_distribute_dataset(Dataset.range(4).batch(4))
    iterator = iter(dataset)
    assert local(strategy, next(iterator)) == [[0, 1], [2, 3]]
    with pytest.raises(StopIteration):
        next(iterator)
    with pytest.raises(tf.errors.OutOfRangeError):
        iterator.get_next()
    assert not bool(iterator.get_next_as_optional().has_value())
    again = iter(dataset).get_next_as_optional()
    assert bool(again.has_value())
    assert local(strategy, again.get_value()) == [[0, 1], [2, 3]]


@pytest.mark.parity("input: a dataset that is not batched is refused")
def test_a_dataset_of_single_examples_is_refused_with_the_remedy() -> None:
    with pytest.raises(ValueError, match=r"\.batch\(global_batch_size\)"):
        mirrored().experimental_distribute_dataset(Dataset.range(4))


@pytest.mark.parity("input: element_spec, nested tuples and dicts")
def test_structures_and_their_specs_are_kept() -> None:
    strategy = mirrored()
    data = {"x": np.zeros((4, 3), np.float32), "y": (np.arange(4), np.ones(4, bool))}
    dataset = strategy.experimental_distribute_dataset(Dataset.from_tensor_slices(data).batch(4))
    (batch,) = dataset
    assert local(strategy, batch["y"][0]) == [[0, 1], [2, 3]]
    spec = dataset.element_spec
    assert tuple(spec["x"].shape)[1:] == (3,) and spec["y"][1].dtype == tf.bool


@pytest.mark.parity("input: a function's dataset may have single examples, one per replica")
def test_single_examples_of_an_own_dataset_go_to_the_replicas() -> None:
    strategy = mirrored()

    def own(count):
        return strategy.distribute_datasets_from_function(lambda _: Dataset.range(count))

    assert [local(strategy, x) for x in own(4)] == [[0, 1], [2, 3]]
    with pytest.raises(ValueError, match=r"\.batch\(\)"):
        list(own(3))
