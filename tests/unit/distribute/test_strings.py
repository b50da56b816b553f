"""Strings per replica: steps pass them on, and strategies gather them."""

from __future__ import annotations

from typing import Any

import pytest

import samegrad as tf

STRATEGY = tf.distribute.MirroredStrategy(replicas=2)
WORDS = ["a", "b", "c", "d", "e"]


def batches() -> Any:
    data = tf.data.Dataset.from_tensor_slices((WORDS, [1.0, 2.0, 3.0, 4.0, 5.0]))
    return STRATEGY.experimental_distribute_dataset(data.batch(3))


def strings() -> Any:
    return STRATEGY.experimental_distribute_values_from_function(
        lambda context: tf.constant([f"r{context.replica_id_in_sync_group}", "x"])
    )


def listed(value: Any) -> list[list[bytes]]:
    return [part.numpy().tolist() for part in STRATEGY.experimental_local_results(value)]


def test_strings_of_a_batch_pass_through_one_trace() -> None:
    traces = []

    @tf.function
    def step(batch: Any) -> Any:
        traces.append(1)
        return STRATEGY.run(lambda word, x: {"word": word, "x": 2 * x}, args=batch)

    found = [step(batch) for batch in batches()]
    assert [listed(each["word"]) for each in found] == [[[b"a", b"b"], [b"c"]], [[b"d"], [b"e"]]]
    assert [listed(each["x"]) for each in found] == [[[2.0, 4.0], [6.0]], [[8.0], [10.0]]]
    assert len(traces) == 1


def test_run_returns_strings_and_gather_joins_them_in_order() -> None:
    passed = STRATEGY.run(lambda x: (x, "constant"), args=(strings(),))
    assert listed(passed[0]) == [[b"r0", b"x"], [b"r1", b"x"]] and passed[1] == "constant"
    assert STRATEGY.gather(passed[0], axis=0).numpy().tolist() == [b"r0", b"x", b"r1", b"x"]
    constant = STRATEGY.run(lambda: tf.constant(["a"]))
    assert STRATEGY.gather(constant, axis=0).numpy().tolist() == [b"a", b"a"]


def test_strings_from_outside_pass_through_a_function() -> None:
    outside = strings()
    step = tf.function(lambda: STRATEGY.run(lambda x: x, args=(outside,)))
    assert listed(step()) == listed(outside)
    assert listed(tf.function(lambda x: x)(outside)) == listed(outside)


def test_replicas_whose_batches_differ_in_size_have_their_own_strings() -> None:
    (first, _) = batches()
    word, x = STRATEGY.run(lambda w, x: (w, x if x.shape[0] == 2 else 10 * x), args=first)
    assert listed(word) == [[b"a", b"b"], [b"c"]] and listed(x) == [[1.0, 2.0], [30.0]]


def test_a_dataset_per_replica_may_have_strings() -> None:
    data = STRATEGY.distribute_datasets_from_function(
        lambda _: tf.data.Dataset.from_tensor_slices(WORDS[:3]).batch(1)
    )
    assert [listed(batch) for batch in data] == [[[b"a"], [b"b"]], [[b"c"], []]]


@pytest.mark.parametrize("axis", [None, 0])
@pytest.mark.parametrize("kind", ["sum", "mean"])
def test_strings_are_not_reduced(kind: str, axis: Any) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"^\[Strategy.reduce\] numbers are"):
        STRATEGY.reduce(kind, strings(), axis=axis)


@pytest.mark.parametrize(
    "read", [tf.strings.upper, lambda x: x == "a", lambda x: x.shape, lambda x: x[0]]
)
def test_steps_of_several_replicas_do_not_read_strings(read: Any) -> None:
    with pytest.raises(RuntimeError, match=r"^\[Strategy.run\] steps of several replicas pass"):
        STRATEGY.run(read, args=(strings(),))
