"""Under `run_functions_eagerly`, values of a running step can be looked at."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from replica_values import examples, local, shares, split, strategy

import samegrad as tf
from samegrad._tensor.per_replica import PerReplica
from samegrad.distribute import get_replica_context


@pytest.fixture(autouse=True)
def _eagerly() -> Iterator[None]:
    tf.random.set_seed(7)
    tf.config.run_functions_eagerly(True)
    yield
    tf.config.run_functions_eagerly(False)


def parts(*values: Any) -> Any:
    """A batch of float32 numbers per replica."""
    return shares(*(np.float32(value) for value in values))


def total_of(x: Any) -> Any:
    return get_replica_context().all_reduce("sum", tf.reduce_sum(x))


LOOKS = {
    "float": (float, 6.0),
    "int": (int, 6),
    "bool": (bool, True),
    "numpy": (lambda x: x.numpy(), 6.0),
    "numpy.asarray": (lambda x: np.asarray(x), 6.0),
    "an index": (lambda x: list(range(10))[tf.cast(x, "int32")], 6),
    "format": (lambda x: f"{x:.2f}", "6.00"),
    "if": (lambda x: "more" if x > 5.0 else "less", "more"),
    "iteration": (lambda x: [float(row) for row in tf.stack([x, x + 1.0])], [6.0, 7.0]),
    "text": (str, repr(tf.constant(6.0))),
    "dlpack": (lambda x: np.from_dlpack(x), 6.0),
}


@pytest.mark.parametrize("replicas", [1, 2, 3])
@pytest.mark.parametrize("look", LOOKS)
def test_a_value_that_replicas_agree_on_is_a_number(look: str, replicas: int) -> None:
    call, expected = LOOKS[look]
    found = []
    x = split(np.float32([1.0, 2.0, 3.0]), replicas)  # of 4 replicas, the last has none
    strategy(replicas).run(lambda x: found.append(call(total_of(x))), args=(x,))
    assert found == [expected]


@pytest.mark.parametrize("look", ["float", "int", "bool", "numpy", "numpy.asarray", "if"])
def test_a_value_that_differs_is_refused_with_the_values_of_all(look: str) -> None:
    call = LOOKS[look][0]
    x = parts([1.0, 2.0], [5.5])
    with pytest.raises(TypeError, match=r"got 0: (3\.0|False), 1: (5\.5|True); print the tensor"):
        strategy(2).run(lambda x: call(tf.reduce_sum(x)), args=(x,))


def test_many_replicas_and_large_values_are_shortened_in_the_message() -> None:
    with pytest.raises(
        TypeError, match=r"got 0: .{,70}\.\.\., 1: .* 7: .{,70}\.\.\., \.\.\.; print"
    ):
        strategy(9).run(
            lambda: (
                tf.ones([40, 40])
                * tf.cast(get_replica_context().replica_id_in_sync_group, "float32")
            ).numpy()
        )


def test_the_text_of_a_value_that_differs_shows_all(capsys: Any) -> None:
    def replica_fn(x: Any) -> Any:
        print(x * 2.0)
        return repr(x * 2.0), f"{x * 2.0}"

    x = parts([1.0, 2.0], [4.5])
    texts = strategy(2).run(replica_fn, args=(x,))
    doubled = PerReplica((tf.constant([2.0, 4.0]), tf.constant([9.0])))
    assert texts == (repr(doubled), repr(doubled))
    assert capsys.readouterr().out == f"{doubled!r}\n"


def test_written_variables_have_their_new_values() -> None:
    two = strategy(2)
    with two.scope():
        v = tf.Variable(1.0)
        count = tf.Variable(
            0.0, synchronization=tf.VariableSynchronization.ON_READ,
            aggregation=tf.VariableAggregation.SUM,
        )  # fmt: skip
    seen: list[Any] = []

    def replica_fn(x: Any) -> None:
        seen.append(float(v))
        v.assign_add(total_of(x))
        seen.append(v.numpy())
        v.assign(v * 2.0)
        seen.append(float(v))
        count.assign_add(tf.reduce_sum(x))
        seen.append(repr(count))

    two.run(replica_fn, args=(parts([1.0, 2.0], [4.0]),))
    assert seen[:3] == [1.0, 8.0, 16.0]
    assert "numpy=3.0" in seen[3] and "numpy=4.0" in seen[3]
    assert (float(v), float(count)) == (16.0, 7.0)


def test_looking_writes_no_variable() -> None:
    v = tf.Variable(1.0)

    def replica_fn() -> None:
        v.assign_add(1.0)
        assert float(v) == 2.0
        raise OSError

    with pytest.raises(OSError):
        strategy(1).run(replica_fn)
    assert float(v) == 1.0


@pytest.mark.parametrize("replicas", [1, 2])
def test_the_draws_that_are_seen_are_those_of_the_step(replicas: int) -> None:
    state = tf._core.random_state()
    seen = []

    def replica_fn() -> Any:
        draws = [tf.random.normal([3]), tf.random.uniform([2])]
        before = state.step
        seen[:] = [[part.numpy() for part in draw._look()] for draw in draws]
        assert state.step == before
        return draws

    for _ in range(2):
        for parts, draw in zip(seen, strategy(replicas).run(replica_fn), strict=True):
            np.testing.assert_array_equal(parts, local(draw))


def test_what_a_step_prints_is_printed_once(capsys: Any) -> None:
    def replica_fn(x: Any) -> None:
        tf.print("total", total_of(x))
        x = tf.cond(total_of(x) > 0.0, lambda: (tf.print("branch", x), x * 2.0)[1], lambda: x)
        (last,) = tf.while_loop(
            lambda i: i < 2.0, lambda i: (tf.print("round", i), i + 1.0)[1], [total_of(x) * 0.0]
        )
        assert float(last) == 2.0 and float(last + 1.0) == 3.0

    strategy(1).run(replica_fn, args=(examples([1.0]),))
    printed = capsys.readouterr().err.splitlines()
    assert sorted(printed) == ["branch [1]", "round 0", "round 1", "total 1"]


def test_python_decides_anew_at_each_call() -> None:
    two = strategy(2)

    @tf.function(autograph=False)
    def step(x: Any) -> Any:
        def replica_fn(x: Any) -> Any:
            rounds = 0
            while total_of(x) < 100.0:
                x, rounds = x * 2.0, rounds + 1
            return rounds

        return two.run(replica_fn, args=(x,))

    assert [step(parts([n], [1.0])) for n in (1.0, 30.0, 99.0)] == [6, 2, 0]
    tf.config.run_functions_eagerly(False)
    with pytest.raises(TypeError, match="run_functions_eagerly"):
        step(parts([1.0], [1.0]))
    tf.config.run_functions_eagerly(True)
    assert step(parts([99.0], [1.0])) == 0


def test_a_plan_is_explained_for_the_values_at_hand_and_not_kept() -> None:
    two = strategy(2)

    def replica_fn(x: Any) -> Any:
        return tf.exp(x) if total_of(x) > 0.0 else x

    step = tf.function(lambda x: two.run(replica_fn, args=(x,)), autograph=False)
    assert "exp" in str(step.explain(parts([1.0], [1.0]))) + str(
        two.explain(replica_fn, args=(parts([1.0], [1.0]),))
    )
    assert "exp" not in str(step.explain(parts([-1.0], [-1.0])))
    assert not step._programs


def test_the_mode_may_change_inside_a_function_that_reads_data() -> None:
    tf.config.run_functions_eagerly(False)
    two = strategy(2)
    dataset = two.experimental_distribute_dataset(tf.data.Dataset.range(4).batch(2))
    seen = []

    @tf.function
    def epoch(batches: Any) -> None:
        for x in batches:
            two.run(lambda x: seen.append(int(total_of(x))), args=(x,))

    def all_at_once() -> None:
        tf.config.run_functions_eagerly(True)
        epoch(dataset)

    all_at_once()
    assert seen == [1, 5]

    @tf.function
    def later(batches: Any) -> None:
        for x in batches:
            tf.config.run_functions_eagerly(True)
            two.run(lambda x: seen.append(int(total_of(x))), args=(x,))

    tf.config.run_functions_eagerly(False)
    later(dataset)
    assert seen == [1, 5, 1, 5]


class Bodies:
    """Ways to look at a value while Python describes a branch or a loop."""

    @staticmethod
    def of_a_branch(x: Any) -> Any:
        return tf.cond(total_of(x) > 0.0, lambda: tf.constant(float(total_of(x))), lambda: 0.0)

    @staticmethod
    def from_outside(x: Any) -> Any:
        total = total_of(x)
        return tf.cond(total > 0.0, lambda: tf.constant(float(total)), lambda: 0.0)

    @staticmethod
    def of_a_loop(x: Any) -> Any:
        def body(i: Any) -> Any:
            print(i)
            return i + 1.0

        return tf.while_loop(lambda i: i < total_of(x), body, [0.0])

    @staticmethod
    def as_a_condition(x: Any) -> Any:
        return tf.cond(total_of(x) > 0.0, lambda: x * 2.0 if total_of(x) > 1.0 else x, lambda: x)


@pytest.mark.parametrize("way", [name for name in vars(Bodies) if not name.startswith("_")])
def test_a_value_inside_a_branch_or_loop_cannot_be_looked_at(way: str) -> None:
    with pytest.raises(TypeError, match=r"branch or loop.*samegrad\.print.*autograph=False"):
        strategy(2).run(getattr(Bodies, way), args=(parts([1.0], [2.0]),))


def test_a_debugger_sees_what_there_is_inside_a_branch() -> None:
    def replica_fn(x: Any) -> Any:
        total = total_of(x)

        def branch() -> Any:
            inside = x * 2.0
            assert repr(inside) == "<samegrad.Tensor: shape=(?,), dtype=float32, traced>"
            assert repr(total) == repr(tf.constant(3.0))
            return inside

        return tf.cond(total > 0.0, branch, lambda: x)

    found = strategy(2).run(replica_fn, args=(parts([1.0], [2.0]),))
    assert [part.tolist() for part in local(found)] == [[2.0], [4.0]]


def test_values_can_be_looked_at_after_an_exception() -> None:
    left = []

    def replica_fn(x: Any) -> None:
        left.append(x * 3.0)
        raise OSError

    with pytest.raises(OSError):
        strategy(2).run(replica_fn, args=(parts([1.0], [2.0]),))
    assert "array([3.], dtype=float32)" in repr(left) and "array([6.], dtype" in repr(left)


def test_values_of_a_step_that_is_over_are_gone() -> None:
    left = []
    strategy(2).run(lambda x: left.append(x * 3.0), args=(parts([1.0], [2.0]),))
    with pytest.raises(TypeError, match="no value yet"):
        float(left[0])
    assert "traced" in repr(left)


def test_the_message_of_an_assertion_shows_the_values() -> None:
    two = strategy(2)

    @tf.function
    def step(x: Any) -> Any:
        def replica_fn(x: Any) -> Any:
            assert tf.reduce_sum(x) > 0.0, f"x is {x}"
            return x

        return two.run(replica_fn, args=(x,))

    with pytest.raises(AssertionError, match=r"(?s)array\(\[-1\.\].*array\(\[2\.\].*on replica 0"):
        step(parts([-1.0], [2.0]))
    tf.config.run_functions_eagerly(False)
    with pytest.raises(AssertionError, match=r"x is <samegrad.Tensor.*traced>.*on replica 0"):
        step(parts([-1.0], [2.0]))


def test_printing_a_tensor_outside_run_says_that_it_is_traced() -> None:
    tf.config.run_functions_eagerly(False)
    texts: list[str] = []
    tf.function(lambda x: texts.extend([str(x), f"{x}"]), autograph=False)(tf.constant(1.0))
    assert texts == ["<samegrad.Tensor: shape=(), dtype=float32, traced>"] * 2


def test_functions_inside_run_may_look() -> None:
    inner = tf.function(lambda x: float(total_of(x)), autograph=False)
    assert strategy(2).run(inner, args=(parts([1.0], [2.0]),)) == 3.0


def test_a_merge_call_shows_values_per_replica() -> None:
    def merge(_: Any, x: Any) -> Any:
        text = repr(x)
        assert text.startswith("PerReplica:{") and "array([2.]" in text
        return x

    strategy(2).run(
        lambda x: get_replica_context().merge_call(merge, args=(x,)), args=(parts([1.0], [2.0]),)
    )


def test_a_gradient_through_a_loop_that_was_looked_at_is_right() -> None:
    def replica_fn(x: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(x)
            _, y = tf.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y * y), [0, x])
            assert "PerReplica" in repr(y)
            total = total_of(y)
            assert float(total) == 1.0 + 2.0**8
        gradient = tape.gradient(total, x)
        assert "array([2048.]" in repr(gradient)  # 8 · 2⁷, of each of the two all-reduced sums
        return gradient

    found = strategy(2).run(replica_fn, args=(parts([1.0], [2.0]),))
    assert [part.tolist() for part in local(found)] == [[16.0], [2048.0]]


def values_of_everything(x: Any, more: Any) -> list[Any]:
    """Values of all kinds: per example, per replica, equal on all, with other counts."""
    context = get_replica_context()
    both = tf.concat([x, more], axis=0)
    mean = context.all_reduce("mean", tf.reduce_mean(x, axis=0))
    gathered = context.all_gather(x, axis=0)
    dropped = tf.nn.dropout(both, 0.4)
    total = context.all_reduce("mean", tf.reduce_sum(dropped, axis=0))
    with tf.GradientTape() as tape:
        tape.watch(total)
        loss = tf.reduce_sum(tf.tanh(tf.matmul(x, total[:, None])))
    gradient = tape.gradient(loss, total)
    noise = tf.random.normal([2], seed=3)
    return [
        both, mean, x - mean, gathered, gathered[::2], x[1:], tf.reduce_sum(gathered), dropped,
        total, loss, gradient, noise, noise * loss, tf.argmax(x, axis=1), x > 0.0,
        context.replica_id_in_sync_group,
        tf.cond(loss > 0.0, lambda: loss * 2.0, lambda: loss + gradient[0]),
    ]  # fmt: skip


@pytest.mark.parametrize("replicas", [1, 2, 3])
@pytest.mark.parametrize("order", ["forwards", "backwards"])
def test_all_values_that_are_seen_have_the_bits_of_those_that_leave(
    replicas: int, order: str
) -> None:
    rng = np.random.default_rng(0)
    args = tuple(split(rng.normal(size=(n, 4)).astype(np.float32), replicas) for n in (7, 5))
    seen: list[Any] = []

    def looking(x: Any, more: Any) -> Any:
        values = values_of_everything(x, more)
        chosen = values if order == "forwards" else values[::-1]
        parts = [[p.numpy() for p in tf.convert_to_tensor(value)._look()] for value in chosen]
        seen[:] = parts if order == "forwards" else parts[::-1]
        return values

    tf.random.set_seed(1)
    looked = strategy(replicas).run(looking, args=args)
    tf.config.run_functions_eagerly(False)
    tf.random.set_seed(1)
    plain = strategy(replicas).run(values_of_everything, args=args)
    for parts, a, b in zip(seen, looked, plain, strict=True):
        found, expected = (local(v) if not isinstance(v, int) else [v] for v in (a, b))
        parts = parts if len(parts) > 1 else parts * len(found)
        for part, one, other in zip(parts, found, expected, strict=True):
            np.testing.assert_array_equal(part, one)
            np.testing.assert_array_equal(one, other)


def train(replicas: int, looking: bool) -> tuple[list[Any], list[float]]:
    tf.random.set_seed(3)
    rng = np.random.default_rng(0)
    data = rng.normal(size=(22, 6)).astype(np.float32), rng.integers(0, 3, 22)
    mirrored = strategy(replicas)
    dataset = mirrored.experimental_distribute_dataset(
        tf.data.Dataset.from_tensor_slices(data).batch(8)  # the last batch is short
    )
    with mirrored.scope():
        layers = tf.keras.layers
        model = tf.keras.Sequential([layers.Dense(8), layers.Dropout(0.3), layers.Dense(3)])
        model.build((None, 6))
        optimizer = tf.keras.optimizers.Adam(1e-2, clipnorm=0.1)
        mean = tf.keras.metrics.Mean()
        loss_object = tf.keras.losses.SparseCategoricalCrossentropy(
            from_logits=True, reduction="none"
        )

    def look(value: Any) -> None:
        if looking:
            assert any(
                said in repr(value) for said in ("array(", "value=", "numpy=")
            ) and "traced" not in repr(value)

    def step(x: Any, y: Any) -> Any:
        with tf.GradientTape() as tape:
            losses = loss_object(y, model(x, training=True))
            loss = tf.nn.compute_average_loss(losses)
            look(losses)
        gradients = tape.gradient(loss, model.trainable_variables)
        for gradient in gradients:
            look(gradient)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        for variable in (*model.variables, optimizer.iterations):
            look(variable)
        mean.update_state(losses)
        look(mean.result())
        return loss

    @tf.function
    def distributed(x: Any, y: Any) -> Any:
        return mirrored.reduce("SUM", mirrored.run(step, args=(x, y)), axis=None)

    tf.config.run_functions_eagerly(looking)
    losses = [float(distributed(x, y)) for _ in range(3) for x, y in dataset]
    return [v.numpy() for v in model.variables], [*losses, float(mean.result())]


@pytest.mark.parametrize("replicas", [1, 2, 3])
def test_training_that_looks_at_everything_has_the_bits_of_the_compiled_one(replicas: int) -> None:
    weights, losses = train(replicas, looking=False)
    found, found_losses = train(replicas, looking=True)
    assert losses == found_losses
    for a, b in zip(weights, found, strict=True):
        np.testing.assert_array_equal(a, b)
