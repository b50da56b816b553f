"""explain() says whether replicas are bitwise identical to one device, and what departs from it."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import samegrad as tf

ROWS = np.arange(24, dtype=np.float32).reshape(12, 2)


def explained(fn, replicas: int = 4, strategy: tf.distribute.Strategy | None = None) -> list[str]:
    """The lines of explain() for fn(rows): the second one and the reasons under it."""
    strategy = strategy or tf.distribute.MirroredStrategy(replicas=replicas)
    dataset = tf.data.Dataset.from_tensor_slices(ROWS).batch(12)
    rows = next(iter(strategy.experimental_distribute_dataset(dataset)))
    lines = str(strategy.explain(fn, args=(rows,))).splitlines()
    return [line for line in lines if line.startswith(("bitwise", "  - "))]


def all_reduced(value):
    return tf.distribute.get_replica_context().all_reduce("sum", value)


def test_a_sum_that_goes_straight_to_its_all_reduce_keeps_the_bits() -> None:
    (line,) = explained(lambda rows: all_reduced(tf.reduce_sum(rows * 0.5, axis=0)))
    assert line == "bitwise identical to one replica: yes"


def test_the_loss_divided_by_the_global_batch_and_its_gradients_keep_the_bits() -> None:
    strategy = tf.distribute.MirroredStrategy(replicas=4)
    with strategy.scope():
        w = tf.Variable(np.ones((2, 1), np.float32))
        optimizer = tf.keras.optimizers.Adam()

    def step(rows):
        with tf.GradientTape() as tape:
            loss = tf.nn.compute_average_loss(tf.reduce_sum((rows @ w) ** 2, axis=1))
        optimizer.apply_gradients([(tape.gradient(loss, w), w)])
        return all_reduced(loss)

    (line,) = explained(step, strategy=strategy)
    assert line == "bitwise identical to one replica: yes"


@pytest.mark.parametrize(
    ("fn", "reason"),
    [
        (
            lambda rows: all_reduced(tf.reduce_sum(rows) * tf.reduce_sum(rows)),
            "mul changes a per-replica sum",
        ),
        (
            lambda rows: all_reduced(tf.reduce_max(rows, axis=0) * 0.3),
            r"test_explain\.py:\d+: reduce_max is computed from one replica's batch",
        ),
        (
            lambda rows: all_reduced(
                tf.while_loop(
                    lambda i, total: i < 3,
                    lambda i, total: (i + 1, total + tf.exp(tf.reduce_sum(rows))),
                    (tf.constant(0), tf.constant(0.0)),
                )[1]
            ),
            "exp changes a per-replica sum",
        ),
        (
            lambda rows: all_reduced(
                tf.cond(tf.reduce_sum(rows) > 0.0, lambda: 1.0, lambda: 2.0) * 2.0
            ),
            "greater changes a per-replica sum",
        ),
        (lambda rows: all_reduced(tf.exp(tf.reduce_sum(rows))), "exp changes a per-replica sum"),
        (
            lambda rows: all_reduced(tf.cast(tf.shape(rows)[0], "float32")),
            "depends on the per-replica batch size",
        ),
        (
            lambda rows: all_reduced(
                tf.distribute.get_replica_context().replica_id_in_sync_group * 2
            ),
            "replica_id differs between replicas",
        ),
        (
            lambda rows: tf.distribute.get_replica_context().all_reduce(
                "mean", tf.reduce_sum(rows)
            ),
            "averages per-replica sums",
        ),
        (lambda rows: all_reduced(rows), "all_reduce combines examples of different replicas"),
        (
            lambda rows: tf.distribute.get_replica_context().all_gather(rows, axis=1),
            "all_gather combines examples of different replicas by position",
        ),
        (lambda rows: all_reduced(tf.ones(2)), "all_reduce depends on the number of replicas"),
        (
            lambda rows: all_reduced(tf.reduce_sum(tf.nn.softmax(rows, axis=0)[:, 0] * rows[:, 1])),
            "softmax is computed from one replica's batch",
        ),
        (
            lambda rows: all_reduced(tf.reduce_sum(rows * tf.random.uniform([]))),
            "random_uniform draws other numbers on each replica",
        ),
        (
            lambda rows: all_reduced(tf.reduce_sum(tf.map_fn(tf.reduce_sum, rows))),
            "a loop over rows has as many iterations as the replica has examples",
        ),
        (
            lambda rows: all_reduced(tf.foldl(tf.add, rows, tf.zeros(2))),
            "a loop over rows has as many iterations as the replica has examples",
        ),
    ],
)
def test_what_departs_is_named_with_its_line(fn, reason: str) -> None:

    lines = explained(fn)
    assert lines[0].startswith("bitwise identical to one replica: no")
    assert any(re.search(reason, line) for line in lines[1:]), lines
    assert any("test_explain.py:" in line for line in lines[1:]), lines


def linear_functions_of_sums(rows, replicas: int = 4):
    """Of a sum over the examples and each replica's share of a constant."""
    total = tf.reduce_sum(rows, axis=0)
    share = tf.constant([1.3, 2.7]) / replicas
    both = tf.concat([total * 0.3, share], axis=0) - tf.repeat(total, 2)
    looped = tf.while_loop(
        lambda i, kept: i < 3,
        lambda i, kept: (i + 1, kept + both * 0.7),
        (tf.constant(0), tf.zeros(4)),
    )[1]
    return tf.cond(tf.constant(True), lambda: looped / 3.0, lambda: tf.abs(tf.ones(4)))


def test_an_all_reduce_of_linear_functions_is_one_of_the_sums_and_keeps_the_bits() -> None:
    (line,) = explained(lambda rows: all_reduced(linear_functions_of_sums(rows)))
    assert line == "bitwise identical to one replica: yes"


def test_the_plan_shows_the_all_reduce_before_the_function() -> None:
    strategy = tf.distribute.MirroredStrategy(replicas=4)
    dataset = tf.data.Dataset.from_tensor_slices(ROWS).batch(12)
    rows = next(iter(strategy.experimental_distribute_dataset(dataset)))
    plan = str(
        strategy.explain(lambda r: all_reduced(tf.reduce_sum(r, axis=0) * 0.3), args=(rows,))
    )
    tree, reduced, scaled = (plan.index(word) for word in ("reduce_sum", "all_reduce", " mul "))
    assert tree < reduced < scaled
    assert "float32 (2,), partial" in plan


def test_linear_functions_of_sums_have_the_value_of_one_device() -> None:
    rng = np.random.default_rng(4)
    table = (rng.normal(size=(96, 2)) * np.exp(rng.normal(size=(96, 1)) * 3)).astype(np.float32)

    def value(replicas: int) -> np.ndarray:
        strategy = tf.distribute.MirroredStrategy(replicas=replicas)
        dataset = tf.data.Dataset.from_tensor_slices(table).batch(96)
        rows = next(iter(strategy.experimental_distribute_dataset(dataset)))

        def step(share):
            return all_reduced(linear_functions_of_sums(share, replicas))

        (first, *_) = strategy.experimental_local_results(strategy.run(step, args=(rows,)))
        return first.numpy()

    one = value(1)
    for replicas in (2, 3, 4, 5, 8):
        np.testing.assert_array_equal(value(replicas), one)


@pytest.mark.parametrize(
    "fn",
    [
        lambda rows: all_reduced(tf.reduce_sum(rows)),
        lambda rows: tf.constant(1.0),
        lambda rows: rows * 2.0,
        lambda rows: all_reduced(tf.reduce_sum(tf.cast(rows, tf.int32)) * 2),
        lambda rows: tf.distribute.get_replica_context().all_gather(rows, axis=0),
    ],
)
def test_three_replicas_keep_the_bits(fn) -> None:
    (line,) = explained(fn, replicas=3)
    assert line == "bitwise identical to one replica: yes"


@pytest.mark.parametrize("shared", [False, True])
def test_a_summand_that_all_replicas_have_is_named_unless_it_is_a_share(shared: bool) -> None:
    strategy = tf.distribute.MirroredStrategy(replicas=4)
    with strategy.scope():
        w = tf.Variable(3.0)

    def loss(rows):
        penalty = w * w / strategy.num_replicas_in_sync if shared else w * w
        return all_reduced(tf.reduce_sum(rows * w) + penalty)

    first, *reasons = explained(loss, strategy=strategy)
    assert first.startswith(
        "bitwise identical to one replica: yes"
        if shared
        else "bitwise identical to one replica: no"
    )
    assert len(reasons) == (0 if shared else 1)
    assert all("all_reduce" in r and "depends on the number of replicas" in r for r in reasons)


def test_nothing_is_run() -> None:
    strategy = tf.distribute.MirroredStrategy(replicas=2)
    with strategy.scope():
        v = tf.Variable(1.0)
    strategy.explain(lambda: v.assign_add(1.0))
    assert float(v) == 1.0


def training(replicas: int) -> tuple[tf.distribute.Strategy, tf.Variable, object, object]:
    """A strategy, a variable, a step with draws that trains it, and its rows."""
    strategy = tf.distribute.MirroredStrategy(replicas=replicas)
    with strategy.scope():
        w = tf.Variable(np.ones((2, 1), np.float32))
        optimizer = tf.keras.optimizers.Adam()

    def step(rows):
        with tf.GradientTape() as tape:
            noisy = rows + tf.random.normal(tf.shape(rows))
            loss = tf.nn.compute_average_loss(tf.reduce_sum((noisy @ w) ** 2, axis=1))
        optimizer.apply_gradients([(tape.gradient(loss, w), w)])
        tf.print("loss", loss)
        return all_reduced(loss)

    dataset = tf.data.Dataset.from_tensor_slices(ROWS).batch(12)
    rows = next(iter(strategy.experimental_distribute_dataset(dataset)))
    return strategy, w, step, rows


def steps_of(text: str) -> list[str]:
    """The titles of the steps, of which each has one line of times."""
    return [line for line in text.splitlines() if re.match(r"  [a-z].*:$", line)]


TIME = r"[0-9.]+ (us|ms)"


@pytest.mark.parametrize("replicas", [1, 2])
def test_each_step_has_a_predicted_and_a_measured_time(replicas: int) -> None:
    strategy, _, step, rows = training(replicas)
    text = str(strategy.explain(step, args=(rows,), measure=3))
    shared = r"(, \d+ pieces in \d+ parallel loop\(s\))?"
    measured = rf"^    predicted {TIME}, measured {TIME} \(least {TIME}\){shared}$"
    times = re.findall(measured, text, re.M)
    assert len(times) == len(steps_of(text)) > 1
    assert re.search(rf"^time: predicted {TIME}, measured {TIME} \(mean of 3 runs", text, re.M)


def test_a_measured_step_counts_the_pieces_that_its_threads_share() -> None:
    def shared(threads: int, measure: int) -> list[tuple[int | None, int | None]]:
        tf.config.threading.set_intra_op_parallelism_threads(threads)
        try:
            plan = tf.function(lambda x: x @ x).explain(tf.ones((1024, 1024)), measure=measure)
        finally:
            tf.config.threading.set_intra_op_parallelism_threads(0)
        return [(step.parallel_loops, step.pieces) for step in plan.steps]

    assert shared(16, 0) == [(None, None)]
    assert shared(1, 1) == [(0, 0)]
    ((loops, pieces),) = shared(16, 3)  # of one run, not of three
    assert loops in (1, 2) and 16 <= pieces <= 128


def test_without_measuring_there_are_predictions_only() -> None:
    strategy, _, step, rows = training(2)
    text = str(strategy.explain(step, args=(rows,)))
    times = re.findall(rf"^    predicted {TIME}$", text, re.M)
    assert len(times) == len(steps_of(text)) > 1
    assert "measured" not in text


def predicted(function: Any, *arguments: Any) -> float:
    return sum(step.predicted for step in tf.function(function).explain(*arguments).steps)


def test_a_loop_is_predicted_by_its_iterations() -> None:
    w = tf.ones((16, 16))  # all stays in caches

    def products(x: Any) -> Any:
        return tf.scan(lambda state, row: tf.tanh(tf.matmul(state, w) + row), x, tf.ones((16, 16)))

    short, long = (predicted(products, tf.ones((n, 16, 16))) for n in (8, 64))
    assert 6 < long / short < 10


def test_attention_is_predicted_by_its_pairs() -> None:
    def attention(x: Any) -> Any:
        return tf.keras.ops.dot_product_attention(x, x, x)

    few, many = (predicted(attention, tf.ones((1, n, 4, 32))) for n in (256, 1024))
    assert 8 < many / few < 20


def test_a_gather_is_predicted_by_the_elements_that_it_moves() -> None:
    def rows(table: Any) -> Any:
        return tf.gather(table, [1, 2, 3])

    small, large = (predicted(rows, tf.ones((n, 16))) for n in (64, 100_000))
    assert large < 2 * small


def test_measuring_changes_no_variable_and_no_draw_and_prints_nothing(capfd) -> None:
    def trained(measure: int) -> tuple[bytes, list[float]]:
        tf.random.set_seed(5)
        strategy, w, step, rows = training(2)
        compiled = tf.function(lambda r: strategy.run(step, args=(r,)))
        losses = []
        for _ in range(3):
            losses.append(float(strategy.reduce("SUM", compiled(rows), axis=None)))
            if measure:
                capfd.readouterr()
                before = w.numpy().tobytes()
                strategy.explain(step, args=(rows,), measure=measure)
                compiled.explain(rows, measure=measure)
                assert w.numpy().tobytes() == before
                printed = capfd.readouterr()
                assert printed.out == printed.err == ""
        return w.numpy().tobytes(), losses

    assert trained(0) == trained(4)


def test_a_variable_that_somebody_holds_an_array_of_is_measured_too() -> None:
    v = tf.Variable([1.0, 2.0])
    held = v.read_value()
    add = tf.function(lambda: v.assign_add([1.0, 1.0]))
    assert add.explain(measure=2).runs == 2
    assert v.numpy().tolist() == np.asarray(held).tolist() == [1.0, 2.0]


def test_the_plan_names_the_machine_its_memory_and_its_tiles() -> None:
    strategy, _, step, rows = training(2)
    text = str(strategy.explain(step, args=(rows,)))
    assert re.search(r"^    tiles of \d+ examples, each with .* of L2$", text, re.M)
    assert re.search(r"^machine: L1 \d+ KiB, L2 .*, L3 .*, \d+ thread", text, re.M)
    assert re.search(r"^memory between steps: .* \(of .* without reuse\)$", text, re.M)


@pytest.mark.parametrize("measure", [-1, -100, 10**12])
def test_a_negative_number_of_runs_is_an_error(measure: int) -> None:
    strategy = tf.distribute.MirroredStrategy(replicas=2)
    with pytest.raises(ValueError, match=rf"'measure' must be a number of runs .*: got {measure}"):
        strategy.explain(lambda: tf.constant(1.0), measure=measure)


@pytest.mark.parametrize("measure", [1.5, "3", None, {}])
def test_a_number_of_runs_that_is_no_whole_number_is_an_error(measure: object) -> None:
    function = tf.function(lambda: tf.constant(1.0))
    with pytest.raises(TypeError, match=r"\[explain\] 'measure' must be a number of runs"):
        function.explain(measure=measure)


def test_an_error_of_a_measured_run_is_raised_and_changes_nothing() -> None:
    v = tf.Variable([4, 5])

    @tf.function
    def divide(x):
        v.assign_add([1, 1])
        return v // x

    with pytest.raises(ValueError, match="divi"):
        divide.explain(tf.constant([1, 0]), measure=1)
    assert v.numpy().tolist() == [4, 5]
