"""run, values and contexts."""

from __future__ import annotations

import numpy as np
import pytest

import samegrad as tf

from .values import local, mirrored, per_replica


@pytest.mark.parity("run: PerReplica is unwrapped anywhere, results are regrouped")
def test_arguments_are_unwrapped_and_results_regrouped() -> None:
    strategy = mirrored()
    x = per_replica(strategy, 1.0, 3.0)

    def fn(pair, *, more):
        return {"sum": pair[0] + more["x"], "none": None, "seven": 7, "pair": (pair[1], more["x"])}

    found = strategy.run(fn, args=((x, 5),), kwargs={"more": {"x": x}})
    assert local(strategy, found["sum"]) == [2.0, 6.0]
    assert found["none"] is None and found["seven"] == 7 and found["pair"][0] == 5
    assert local(strategy, found["pair"][1]) == [1.0, 3.0]


@pytest.mark.parity("run: experimental_local_results")
def test_local_results_are_a_tuple() -> None:
    strategy = mirrored()
    assert strategy.experimental_local_results(5) == (5,)
    assert len(strategy.experimental_local_results(per_replica(strategy, 1.0, 2.0))) == 2


@pytest.mark.parity("run: experimental_run takes the next batch of a distributed iterator")
def test_experimental_run_takes_the_next_batch() -> None:
    strategy = mirrored()
    data = tf.data.Dataset.range(6).batch(4)
    iterator = iter(strategy.experimental_distribute_dataset(data))
    found = [local(strategy, strategy.experimental_run(tf.reduce_sum, iterator)) for _ in range(2)]
    assert found == [[1, 5], [4, 5]]
    with pytest.raises(tf.errors.OutOfRangeError):
        strategy.experimental_run(tf.reduce_sum, iterator)
    iterator = iter(strategy.experimental_distribute_dataset(data))

    @tf.function
    def epoch():
        shares = [strategy.experimental_run(tf.reduce_sum, iterator) for _ in range(2)]
        return [strategy.reduce("SUM", share, axis=None) for share in shares]

    assert [int(total) for total in epoch()] == [6, 9]
    assert local(strategy, strategy.experimental_run(lambda: tf.constant(7))) == [7, 7]
    for other in (data, iter(data), [1, 2]):  # every replica would take the whole batch
        with pytest.raises(TypeError, match=r"iter\(strategy.experimental_distribute_dataset"):
            strategy.experimental_run(tf.reduce_sum, other)


@pytest.mark.parity("run: experimental_distribute_values_from_function")
def test_values_are_made_with_the_number_of_the_replica() -> None:
    strategy = mirrored(3)
    values = strategy.experimental_distribute_values_from_function(
        lambda context: context.replica_id_in_sync_group * 10 + context.num_replicas_in_sync
    )
    assert local(strategy, values) == [3, 13, 23]


@pytest.mark.parity("run: get_replica_context, in_cross_replica_context, has_strategy")
def test_the_contexts_are_those_of_the_place() -> None:
    distribute = tf.distribute
    assert distribute.get_replica_context().num_replicas_in_sync == 1
    assert not distribute.has_strategy() and not distribute.in_cross_replica_context()
    strategy = mirrored()
    with strategy.scope():
        assert distribute.get_replica_context() is None
        assert distribute.in_cross_replica_context() and distribute.has_strategy()
        assert distribute.get_strategy() is strategy

        def fn():
            assert distribute.get_replica_context().num_replicas_in_sync == 2
            assert distribute.get_strategy() is strategy
            assert not distribute.in_cross_replica_context()

        strategy.run(fn)


@pytest.mark.parity("run: run or reduce inside run is an error")
@pytest.mark.parametrize(
    "call", [lambda s: s.run(lambda: 1), lambda s: s.reduce("SUM", 1.0, axis=None)]
)
def test_run_and_reduce_inside_run_are_refused(call) -> None:
    strategy = mirrored()
    with pytest.raises(RuntimeError, match="inside run"):
        strategy.run(lambda: call(strategy))


@pytest.mark.parity("run: the same scope nests, another one does not")
def test_a_scope_nests_in_itself_only() -> None:
    strategy, other = mirrored(), mirrored()
    with strategy.scope(), strategy.scope():
        pass
    with strategy.scope(), pytest.raises(RuntimeError, match="another strategy"), other.scope():
        pass


@pytest.mark.parity("run: fn runs once for all replicas, values cannot be looked at")
@pytest.mark.parametrize("look", [float, bool, int, lambda x: x.numpy()])
def test_a_value_of_a_replica_cannot_become_a_python_number(look) -> None:
    strategy = mirrored()
    calls = []

    def fn(x):
        calls.append(x)
        return look(x)

    remedies = "(?=.*return it)(?=.*samegrad.cond)(?=.*run_functions_eagerly)"
    with pytest.raises(TypeError, match=remedies):
        strategy.run(fn, args=(per_replica(strategy, 1.0, 2.0),))
    assert len(calls) == 1 and "traced" in repr(calls)


@pytest.mark.parametrize("look", [print, str, lambda x: f"{x}"])
def test_a_value_of_a_replica_is_printed_as_what_it_is(look, capsys) -> None:
    strategy = mirrored()
    texts = []
    strategy.run(lambda x: texts.append(look(x)), args=(per_replica(strategy, 1.0, 2.0),))
    assert "dtype=float64" in (texts[0] or capsys.readouterr().out)


@pytest.mark.parity("run: with run_functions_eagerly, operations run at once on all replicas")
@pytest.mark.parametrize("wrap", [lambda fn: fn, tf.function])
def test_values_can_be_looked_at_where_functions_run_eagerly(wrap, capsys) -> None:
    strategy = mirrored()
    x = per_replica(strategy, 1.0, 3.0)
    calls = []

    def fn(x):
        total = tf.distribute.get_replica_context().all_reduce("sum", x)
        calls.append((float(total), int(total), total.numpy(), repr(x)))
        with pytest.raises(TypeError, match=r"got 0: 1\.0, 1: 3\.0; print the tensor"):
            float(x)
        return total

    tf.config.run_functions_eagerly(True)
    try:
        found = wrap(lambda x: strategy.run(fn, args=(x,)))(x)
        strategy.run(print, args=(x,))
    finally:
        tf.config.run_functions_eagerly(False)
    assert calls == [(4.0, 4, 4.0, repr(x))] and local(strategy, found) == [4.0, 4.0]
    assert capsys.readouterr().out == f"{x!r}\n"


@pytest.mark.parity("run: MirroredStrategy() is one replica")
def test_without_arguments_there_is_one_replica() -> None:
    assert tf.distribute.MirroredStrategy().num_replicas_in_sync == 1


@pytest.mark.parity("run: a PerReplica is not a tensor outside run")
@pytest.mark.parametrize("use", [lambda x: x + 1.0, tf.exp, float, lambda x: tf.constant(x)])
def test_a_value_per_replica_is_no_tensor_outside_run(use) -> None:
    with pytest.raises((ValueError, TypeError)):
        use(per_replica(mirrored(), 1.0, 2.0))


@pytest.mark.parity("run: if, while and for on a tensor inside function are part of the step")
def test_control_flow_on_tensors_is_part_of_the_step() -> None:
    strategy = mirrored()

    @tf.function
    def step(limit):
        def fn(limit):
            total = tf.cast(tf.distribute.get_replica_context().replica_id_in_sync_group, "float32")
            while total < limit:
                total = total * 2.0 + 1.0
            for i in tf.range(3):
                if i == 1 and total > 5.0:
                    break
                total += 1.0
            return total

        return strategy.run(fn, args=(limit,))

    def expected(total, limit):
        while total < limit:
            total = total * 2 + 1
        for i in range(3):
            if i == 1 and total > 5:
                break
            total += 1
        return total

    for limit in (0.0, 4.0, 20.0):
        values = strategy.experimental_local_results(step(tf.constant(limit)))
        assert [float(v) for v in values] == [expected(r, limit) for r in range(len(values))]


@pytest.mark.parity("run: control flow on a tensor where it cannot be part of the step says why")
@pytest.mark.parametrize("where", ["a bare run", "no source"])
def test_control_flow_that_cannot_be_part_of_the_step_says_why(where) -> None:
    scope: dict = {}
    exec("def decide(x):\n  return x if x > 0 else -x", scope)
    strategy = mirrored()
    step = strategy.run if where == "a bare run" else tf.function(strategy.run)
    reason = "not in a bare strategy.run" if where == "a bare run" else "source code"
    with pytest.raises(TypeError, match=rf"{reason}.*samegrad\.cond.*samegrad\.while_loop"):
        step(scope["decide"], args=(per_replica(strategy, 1.0, 2.0),))


@pytest.mark.parity("run: an exception in fn reaches the caller unchanged")
def test_an_exception_reaches_the_caller_unchanged() -> None:
    class OwnError(Exception):
        pass

    error = OwnError("mine")

    def fn():
        raise error

    with pytest.raises(OwnError) as caught:
        mirrored().run(fn)
    assert caught.value is error


@pytest.mark.parity("run: experimental_local_results in a function are a tuple after it")
def test_local_results_leave_a_function_as_a_tuple() -> None:
    strategy = mirrored()

    @tf.function
    def fn(x):
        results = strategy.run(lambda v: {"y": v * v, "one": 1.0}, args=(x,))
        return tf.nest.map_structure(strategy.experimental_local_results, results)

    found = fn(per_replica(strategy, 2.0, 3.0))
    assert [float(part) for part in found["y"]] == [4.0, 9.0]
    assert found["one"] == (1.0,)


@pytest.mark.parity("run: a function computes with the local values of its replicas")
@pytest.mark.parametrize(
    "of", [lambda s, v: s.experimental_local_results(v), lambda s, v: v.values]
)
@pytest.mark.parametrize("wrap", [lambda fn: fn, tf.function])
def test_a_function_computes_with_local_values(of, wrap) -> None:
    strategy = mirrored()

    def one(x):
        return of(strategy, strategy.run(tf.square, args=(x,)))[1]

    def several(x):
        first, second = of(strategy, strategy.run(tf.square, args=(x,)))
        total = first
        if second > 5.0:
            first = first - 2.0 * second
        for _ in tf.range(2):
            total = total + second
        return first, total, tf.sqrt(second), len(of(strategy, x)), of(strategy, x)[0].dtype

    x = per_replica(strategy, 2.0, 3.0)
    assert float(wrap(one)(x)) == 9.0
    assert wrap(several)(x) == (-14.0, 22.0, 3.0, 2, tf.float64)
    rows = per_replica(strategy, [[1.0], [2.0]], [[3.0], [4.0]])
    joined = wrap(lambda x: tf.concat(of(strategy, x), 0))(rows)
    assert joined.numpy().tolist() == [[1.0], [2.0], [3.0], [4.0]]


@pytest.mark.parity("run: local values keep NaN, signs of zero and dtypes in a function")
@pytest.mark.parametrize("value", [float("nan"), -0.0, True, 2**40])
def test_local_values_keep_their_bits_in_a_function(value) -> None:
    strategy = mirrored()
    x = per_replica(strategy, 1 if type(value) is int else type(value)(1), value)
    found = tf.function(lambda: tf.identity(strategy.run(lambda v: v, args=(x,)).values[1]))()
    np.testing.assert_array_equal(found.numpy(), x.values[1].numpy(), strict=True)
    assert np.signbit(found.numpy() * 1.0) == np.signbit(value * 1.0)


@pytest.mark.parity(
    "run: local values of other sizes leave a function, which cannot compute with them"
)
def test_local_values_of_other_sizes() -> None:
    strategy = mirrored()
    x = per_replica(strategy, [1.0], [2.0, 3.0])
    whole = tf.function(lambda x: strategy.experimental_local_results(x))(x)
    assert [part.numpy().tolist() for part in whole] == [[1.0], [2.0, 3.0]]
    with pytest.raises(ValueError, match="numbers of examples"):
        tf.function(lambda x: x.values[1] * 2.0)(x)


@pytest.mark.parity("run: the gradient of a local value reaches the replica's variables")
def test_the_gradient_of_a_local_value() -> None:
    strategy = mirrored()
    with strategy.scope():
        weight = tf.Variable(3.0, dtype=tf.float64)

    @tf.function
    def step(x):
        with tf.GradientTape() as tape:
            parts = strategy.run(lambda v: weight * v, args=(x,)).values
            loss = parts[0] * parts[1]
        return tape.gradient(loss, weight)

    assert local(strategy, step(per_replica(strategy, 2.0, 5.0)))[0] == 60.0


@pytest.mark.parity("run: a value per replica that a function finds outside is used as it is")
@pytest.mark.parametrize("wrap", [lambda fn: fn, tf.function])
def test_a_captured_value_has_its_part_on_each_replica(wrap) -> None:
    strategy = mirrored()
    x = per_replica(strategy, 1.0, 3.0)
    found = wrap(lambda: strategy.run(lambda v: v * 2.0, args=(x,)))()
    assert local(strategy, found) == [2.0, 6.0]
    assert float(wrap(lambda: strategy.reduce("SUM", x, axis=None))()) == 4.0
    dataset = tf.data.Dataset.range(4).batch(4)
    (batch,) = strategy.experimental_distribute_dataset(dataset)
    found = wrap(lambda: strategy.run(lambda v: v * 2, args=(batch,)))()
    assert local(strategy, found) == [[0, 2], [4, 6]]


@pytest.mark.parity("run: replicas' parts differ in the number of examples only")
def test_parts_of_other_lengths_are_refused_with_the_remedy() -> None:
    strategy = mirrored()
    x = per_replica(strategy, [[1.0, 2.0]], [[1.0, 2.0, 3.0]])
    with pytest.raises(ValueError, match="pad"):
        strategy.run(lambda v: v, args=(x,))
