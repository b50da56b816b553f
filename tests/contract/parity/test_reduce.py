"""reduce, all_reduce, gather, merge_call."""

from __future__ import annotations

import math

import numpy as np
import pytest

import samegrad as tf

from .values import local, mirrored, per_replica

EMPTY = np.zeros(0, np.float32)


@pytest.mark.parity("reduce: MEAN over axis 0 weighs rows, SUM adds them")
@pytest.mark.parametrize(
    ("op", "parts", "expected"),
    [
        ("MEAN", ([5.0, 6.0], [7.0]), 6.0),
        ("SUM", ([5.0, 6.0], [7.0]), 18.0),
        ("MEAN", ([8.0], EMPTY.astype(np.float64)), 8.0),
    ],
)
def test_rows_weigh_alike(op, parts, expected) -> None:
    strategy = mirrored()
    assert float(strategy.reduce(op, per_replica(strategy, *parts), axis=0)) == expected


@pytest.mark.parity("reduce: nothing at all has the mean nan")
def test_the_mean_of_nothing_is_no_number() -> None:
    strategy = mirrored()
    assert math.isnan(float(strategy.reduce("MEAN", per_replica(strategy, EMPTY, EMPTY), axis=0)))


@pytest.mark.parity("reduce: axis None, a tuple, nested structures, names and enums")
def test_axes_and_structures() -> None:
    strategy = mirrored()
    x = per_replica(strategy, [[1.0, 2.0]], [[3.0, 4.0]])
    assert strategy.reduce("sum", x, axis=None).numpy().tolist() == [[4.0, 6.0]]
    assert strategy.reduce(tf.distribute.ReduceOp.MEAN, x, axis=None).numpy().tolist() == [[2, 3]]
    assert float(strategy.reduce("SUM", x, axis=(0, 1))) == 10.0
    nested = strategy.reduce("SUM", {"a": x, "b": (x,)}, axis=(0, 1))
    assert float(nested["a"]) == float(nested["b"][0]) == 10.0


@pytest.mark.parity("reduce: unequal shapes with axis=None are an error")
def test_unequal_shapes_need_an_axis() -> None:
    strategy = mirrored()
    with pytest.raises(ValueError, match="axis"):
        strategy.reduce("SUM", per_replica(strategy, [1.0, 2.0], [3.0]), axis=None)


@pytest.mark.parity("reduce: MAX is a ValueError, a missing axis a TypeError")
def test_other_reductions_and_a_missing_axis_are_refused() -> None:
    strategy = mirrored()
    x = per_replica(strategy, 1.0, 2.0)
    with pytest.raises(ValueError, match="MAX"):
        strategy.reduce("MAX", x, axis=None)
    with pytest.raises(TypeError, match="axis"):
        strategy.reduce("SUM", x)  # type: ignore[call-arg]


@pytest.mark.parity("reduce: integers under MEAN become float64")
def test_the_mean_of_integers_is_float64() -> None:
    strategy = mirrored()
    mean = strategy.reduce("MEAN", per_replica(strategy, [1, 2], [4]), axis=0)
    assert mean.dtype == tf.float64 and float(mean) == pytest.approx(7 / 3)


@pytest.mark.parity("reduce: one value for all cannot be summed, its mean is itself")
def test_one_value_for_all() -> None:
    strategy = mirrored()
    with pytest.raises(ValueError, match="per replica"):
        strategy.reduce("SUM", 5.0, axis=None)
    assert float(strategy.reduce("MEAN", 5.0, axis=None)) == 5.0


@pytest.mark.parity("all_reduce: SUM and MEAN, nested; its gradient is the same all-reduce")
@pytest.mark.parametrize(("op", "expected"), [("SUM", [4.0, 4.0]), ("MEAN", [2.0, 2.0])])
def test_the_gradient_of_an_all_reduce_is_an_all_reduce(op, expected) -> None:
    strategy = mirrored()

    def fn(x, c):
        with tf.GradientTape() as tape:
            tape.watch(x)
            reduced = tf.distribute.get_replica_context().all_reduce(op, {"x": x})["x"]
            y = c * reduced
        return reduced, tape.gradient(y, x)

    x = per_replica(strategy, 1.0, 3.0)
    reduced, gradient = strategy.run(fn, args=(x, x))
    assert local(strategy, reduced)[0] == expected[0]
    assert local(strategy, gradient) in (expected, expected[:1])


@pytest.mark.parity("gather: parts of any number of rows, one after the other")
def test_gather_joins_rows() -> None:
    strategy = mirrored()
    parts = per_replica(strategy, [1.0], [2.0, 3.0])
    assert strategy.gather(parts, axis=0).numpy().tolist() == [1.0, 2.0, 3.0]

    def fn(x):
        return tf.distribute.get_replica_context().all_gather(x, axis=0)

    found = strategy.run(fn, args=(parts,))
    assert all(part == [1.0, 2.0, 3.0] for part in local(strategy, found))


@pytest.mark.parity("gather: sizes off the axis must agree")
def test_gather_wants_equal_sizes_off_the_axis() -> None:
    strategy = mirrored()
    with pytest.raises(ValueError, match="axis"):
        strategy.gather(per_replica(strategy, [[1.0]], [[1.0, 2.0]]), axis=0)
    wide = per_replica(strategy, [[1.0]], [[1.0, 2.0]])
    assert strategy.gather(wide, axis=1).numpy().tolist() == [[1.0, 1.0, 2.0]]


@pytest.mark.parity("merge_call: runs once in cross-replica context with PerReplica arguments")
def test_merge_call_sees_all_replicas() -> None:
    strategy = mirrored()
    seen = []

    def merge(inner, x, scale):
        seen.append((inner, tf.distribute.in_cross_replica_context(), scale))
        return inner.reduce("SUM", x, axis=None)

    def fn(x):
        return tf.distribute.get_replica_context().merge_call(merge, args=(x, 3))

    found = strategy.run(fn, args=(per_replica(strategy, 1.0, 2.0),))
    assert local(strategy, found)[0] == 3.0
    assert seen == [(strategy, True, 3)]


@pytest.mark.parity("merge_call: a value that all replicas have in common is one per replica")
@pytest.mark.parametrize("wrap", [lambda fn: fn, tf.function])
@pytest.mark.parametrize(
    "make",
    [
        lambda _: tf.constant([1, 2]),
        lambda _: np.array([1, 2], np.int32),
        lambda variable: variable.read_value(),
        lambda variable: variable + 0,
    ],
)
def test_merge_call_takes_common_values(make, wrap) -> None:
    strategy = mirrored()
    with strategy.scope():
        variable = tf.Variable([1, 2])
    add = tf.distribute.ReduceOp.SUM
    seen = []

    def merge(inner, x, nested):
        seen.append(len(x.values))
        return {
            "sum": inner.reduce("SUM", x, axis=None),
            "mean": inner.reduce("MEAN", x, axis=None),
            "rows": inner.reduce("SUM", x, axis=0),
            "to": inner.extended.reduce_to(add, x, variable),
            "batch": inner.extended.batch_reduce_to(add, [(x, variable)])[0],
            "nested": inner.reduce("SUM", nested, axis=None)["a"][0],
            "local": inner.experimental_local_results(x)[1] * 1,
            "gathered": inner.gather(x, axis=0),
            "updated": inner.extended.update(variable, lambda v, x: v.assign_add(x), args=(x,)),
        }

    def fn():
        x = make(variable)
        context = tf.distribute.get_replica_context()
        return context.merge_call(merge, args=(x,), kwargs={"nested": {"a": [x]}})

    found = wrap(lambda: strategy.run(fn))()
    first = {name: local(strategy, value)[0] for name, value in found.items()}
    assert first == {
        "sum": [2, 4], "mean": [1, 2], "rows": 6, "to": [2, 4], "batch": [2, 4], "nested": [2, 4],
        "local": [1, 2], "gathered": [1, 2, 1, 2], "updated": [2, 4],
    }  # fmt: skip
    assert set(seen) == {2}


@pytest.mark.parity("gather: all_gather has a gradient, on any shares")
@pytest.mark.parametrize("rows", [(2, 2), (1, 3), (0, 2)])
def test_the_gradient_of_an_all_gather_adds_up_what_replicas_send_back(rows) -> None:
    strategy = mirrored()
    rng = np.random.default_rng(0)
    parts = [rng.normal(size=(n, 3)) for n in rows]
    weights = rng.normal(size=(sum(rows), 3))

    @tf.function
    def step(x):
        def fn(own):
            context = tf.distribute.get_replica_context()
            number = tf.cast(context.replica_id_in_sync_group, "float64") + 1.0
            with tf.GradientTape() as tape:
                tape.watch(own)
                everything = context.all_gather(own, axis=0)
                y = tf.reduce_sum(everything * everything * weights) * number
            return everything, tape.gradient(y, own)

        return strategy.run(fn, args=(x,))

    everything, gradient = step(per_replica(strategy, *parts))
    whole = np.concatenate(parts)
    assert local(strategy, everything)[0] == whole.tolist()
    found = np.concatenate([np.reshape(g, (-1, 3)) for g in local(strategy, gradient)])
    np.testing.assert_allclose(found, (1.0 + 2.0) * 2.0 * weights * whole, rtol=1e-12)


@pytest.mark.parity("gather: any number of rows in later steps, along another axis, integers")
def test_all_gather_takes_any_rows_axes_and_dtypes() -> None:
    strategy = mirrored(3)
    context = tf.distribute.get_replica_context

    @tf.function
    def joined(x):
        return strategy.run(lambda own: context().all_gather(own * 2, axis=0), args=(x,))

    for sizes in ((3, 3, 1), (2, 2, 2), (1, 0, 0)):
        dataset = tf.data.Dataset.range(sum(sizes)).batch(sum(sizes))
        (batch,) = strategy.experimental_distribute_dataset(dataset)
        expected = [2 * i for i in range(sum(sizes))]
        assert local(strategy, joined(batch))[0] == expected
    wide = per_replica(strategy, [[1.0], [2.0]], [[3.0], [4.0]], [[5.0], [6.0]])
    found = strategy.run(lambda x: context().all_gather(x, axis=-1), args=(wide,))
    assert local(strategy, found)[0] == [[1.0, 3.0, 5.0], [2.0, 4.0, 6.0]]
    with pytest.raises(ValueError, match="axis"):
        strategy.run(lambda: context().all_gather(tf.constant(1.0), axis=0))
