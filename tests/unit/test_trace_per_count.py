"""Where Python needs a number of examples and the replicas' differ, each number has its trace."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import replica_values
from replica_values import both_ways, cut, distributed, on

import samegrad as tf
from samegrad._function.trace import TracedProgram

SHARES = [(4, 3), (2, 1, 1), (1, 0), (0, 2), (3, 0), (5, 5, 3), (1, 9, 4, 4)]
RNG = np.random.default_rng(11)
DATA = RNG.normal(size=(40, 6)).astype(np.float32)
Step = Callable[..., Any]

of_shares = pytest.mark.parametrize("shares", SHARES, ids=str)


def split(shares: tuple[int, ...]) -> list[np.ndarray]:
    return cut(DATA, shares)


def results(step: Step, shares: tuple[int, ...], traced: bool) -> list[Any]:
    return replica_values.results(step, split(shares), traced)


def weighted(v: Any) -> Any:
    total = 0.0
    for i in range(len(v)):
        total = total + tf.reduce_sum(v[i]) * (i + 1.0)
    return total


def by_size(v: Any) -> Any:
    if v.shape[0] == 3:
        return v * 10.0
    return v[:2] + 1.0 if v.shape[0] > 3 else v


def nested(v: Any) -> Any:
    rows = [[v[i] * v[j] for j in range(i + 1)] for i in range(int(v.shape[0]))]
    flat = [row for group in rows for row in group]
    return tf.stack(flat) if flat else tf.zeros([0, 6])


def in_loop(v: Any) -> Any:
    count = len(v)
    total = tf.zeros([6])
    for _ in tf.range(count * 2):
        total = total * 0.5 + tf.reduce_sum(v, axis=0)
    return total


CASES: dict[str, tuple[Step, Step]] = {
    "a loop over the examples": (
        weighted,
        lambda v: sum(float(v[i].sum()) * (i + 1) for i in range(len(v))),
    ),
    "branches on the number": (
        by_size,
        lambda v: v * 10 if len(v) == 3 else v[:2] + 1 if len(v) > 3 else v,
    ),
    "nested lists": (
        nested,
        lambda v: np.array([v[i] * v[j] for i in range(len(v)) for j in range(i + 1)])
        .reshape(-1, 6),
    ),
    "a number": (lambda v: v * float(int(v.shape[0])), lambda v: v * len(v)),
    "a number of NumPy's": (lambda v: v * np.ones(len(v)).sum(), lambda v: v * len(v)),
    "a size of its own": (
        lambda v: tf.ones([int(v.shape[0]), 2]) * 3.0,
        lambda v: np.full((len(v), 2), 3),
    ),
    "a shape below nothing elsewhere": (
        lambda v: tf.zeros([v.shape[0] - 3]) if v.shape[0] > 3 else tf.ones([1]),
        lambda v: np.zeros(len(v) - 3) if len(v) > 3 else np.ones(1),
    ),
    "rounds of a loop": (in_loop, lambda v: rounds(v)),
    "all examples but one": (
        lambda v: tf.reduce_sum(v[1:]) if len(v) > 2 else tf.reduce_sum(v) * 2.0,
        lambda v: v[1:].sum() if len(v) > 2 else v.sum() * 2,
    ),
}  # fmt: skip


def rounds(v: np.ndarray) -> np.ndarray:
    total = np.zeros(6)
    for _ in range(2 * len(v)):
        total = total * 0.5 + v.astype(np.float64).sum(0)
    return total


@both_ways
@of_shares
@pytest.mark.parametrize("case", CASES)
def test_each_replica_computes_by_its_own_number(
    case: str, shares: tuple[int, ...], traced: bool
) -> None:
    step, expected = CASES[case]
    for got, part in zip(results(step, shares, traced), split(shares), strict=True):
        want = np.asarray(expected(part))
        assert got.shape == want.shape
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


@both_ways
def test_python_runs_once_per_number_and_not_for_equal_answers(traced: bool) -> None:
    seen: list[int] = []

    def step(v: Any) -> Any:
        seen.append(len(v))
        return v * float(len(v))

    results(step, (5, 5, 3), traced)
    assert seen == [5, 3]
    seen.clear()

    def coarse(v: Any) -> Any:
        seen.append(0)
        return v * (2.0 if v.shape[0] > 2 else 3.0)

    results(coarse, (5, 4, 3, 1), traced)
    assert len(seen) == 2
    seen.clear()
    results(coarse, (5, 4, 3, 3), traced)
    assert len(seen) == 1


@both_ways
def test_a_number_is_a_result_of_each_replica(traced: bool) -> None:
    got = results(lambda v: len(v), (4, 3), traced)
    assert [int(n) for n in got] == [4, 3]
    assert [int(n) for n in results(lambda v: len(v), (3, 3), traced)[:1]] == [3]


def check_rows_of_one_stream(step: Step, traced: bool) -> None:
    """The same rows, however they are shared."""
    got = []
    for shares in ((4, 3), (7,), (2, 0, 5)):
        tf.random.set_seed(3)
        got.append(np.concatenate(results(step, shares, traced)))
    np.testing.assert_array_equal(got[0], got[1])
    np.testing.assert_array_equal(got[0], got[2])


@both_ways
def test_dropout_of_the_examples_is_that_of_one_replica(traced: bool) -> None:
    def step(v: Any) -> Any:
        scale = 2.0 if len(v) == 4 else 2.0 + 0.0 * len(v)
        noise = tf.random.normal(tf.shape(v)) + tf.random.uniform([len(v), 6])
        return tf.nn.dropout(v * scale, 0.5) + noise

    check_rows_of_one_stream(step, traced)


@both_ways
def test_draws_without_an_axis_of_examples_are_rows_of_one_stream(traced: bool) -> None:
    def step(v: Any) -> Any:
        rows = tf.stack([v[i] for i in range(len(v))]) if len(v) else tf.zeros([0, 6])
        return tf.nn.dropout(rows, 0.5) + tf.random.uniform(rows.shape)

    check_rows_of_one_stream(step, traced)


@both_ways
@of_shares
def test_means_over_all_examples_count_those_of_all_replicas(
    shares: tuple[int, ...], traced: bool
) -> None:
    strategy = tf.distribute.MirroredStrategy(replicas=len(shares))

    def losses(v: Any) -> Any:
        return tf.stack([tf.reduce_sum(v[i] ** 2) for i in range(len(v))] or [0.0])[: len(v)]

    def share(v: Any) -> Any:
        return tf.nn.compute_average_loss(losses(v))

    values = distributed(strategy, split(shares))
    want = (np.concatenate(split(shares)).astype(np.float64) ** 2).sum(1).mean()
    for step, how, axis in ((share, "SUM", None), (losses, "MEAN", 0)):
        run = lambda v: strategy.reduce(how, strategy.run(step, (v,)), axis=axis)  # noqa: E731, B023
        got = (tf.function(run) if traced else run)(values)
        np.testing.assert_allclose(float(got), want, rtol=1e-5)


@both_ways
def test_draws_that_do_not_correspond_are_an_error(traced: bool) -> None:
    def step(v: Any) -> Any:
        return sum(tf.random.normal([]) for _ in range(len(v)))

    said = r"same random operations .*test_trace_per_count.*random_normal.*replica 0 \(4 examples\)"
    with pytest.raises(RuntimeError, match=said):
        results(step, (4, 3), traced)


@both_ways
def test_collectives_that_do_not_correspond_are_an_error(traced: bool) -> None:
    def number(v: Any) -> Any:
        context = tf.distribute.get_replica_context()
        return sum(context.all_reduce("sum", tf.reduce_sum(v[i])) for i in range(len(v)))

    said = r"same collective.*test_trace_per_count.*no further one.*3 examples.*samegrad\.shape"
    with pytest.raises(RuntimeError, match=said):
        results(number, (4, 3), traced)

    def kind(v: Any) -> Any:
        context = tf.distribute.get_replica_context()
        return context.all_reduce("sum" if len(v) == 4 else "mean", tf.reduce_sum(v))

    with pytest.raises(RuntimeError, match="same collective"):
        results(kind, (4, 3), traced)
    np.testing.assert_allclose(results(kind, (4, 4), traced)[0], DATA[:8].sum(), rtol=1e-5)


@both_ways
def test_what_replicas_have_in_other_shapes_is_not_added(traced: bool) -> None:
    def step(v: Any) -> Any:
        rows = tf.stack([v[i] for i in range(len(v))])
        return tf.distribute.get_replica_context().all_reduce("sum", rows)

    with pytest.raises(ValueError, match="different numbers of examples"):
        results(step, (4, 3), traced)


@both_ways
def test_gathering_sizes_that_python_fixed_is_an_error(traced: bool) -> None:
    def step(v: Any) -> Any:
        rows = tf.stack([v[i] for i in range(len(v))])
        return tf.distribute.get_replica_context().all_gather(rows, axis=0)

    with pytest.raises(ValueError, match="all_gather.*fixed the replicas' numbers"):
        results(step, (4, 3), traced)


@both_ways
def test_one_variable_for_all_is_not_assigned_a_number_of_each(traced: bool) -> None:
    strategy = tf.distribute.MirroredStrategy(replicas=2)
    with strategy.scope():
        count = tf.Variable(0.0)
        seen = tf.Variable(
            0.0,
            synchronization=tf.VariableSynchronization.ON_READ,
            aggregation=tf.VariableAggregation.SUM,
        )

    def step(v: Any) -> None:
        count.assign(float(len(v)))

    values = distributed(strategy, split((4, 3)))
    with pytest.raises(RuntimeError, match="is one variable for all replicas.*reduce it first"):
        on(strategy, step, traced)(values)

    def each(v: Any) -> None:
        if len(v) == 4:
            seen.assign_add(float(len(v)))

    on(strategy, each, traced)(values)
    on(strategy, each, traced)(values)
    assert float(seen.numpy()) == 8


@both_ways
def test_other_structures_of_results_are_an_error(traced: bool) -> None:
    with pytest.raises(ValueError, match=r"one structure.*stack"):
        results(lambda v: [v[i] for i in range(len(v))], (4, 3), traced)
    with pytest.raises(ValueError, match="one dtype and as many axes"):
        results(lambda v: v if len(v) == 4 else tf.reduce_sum(v), (4, 3), traced)
    with pytest.raises(ValueError, match="one dtype and as many axes"):
        results(lambda v: v if len(v) == 4 else tf.cast(v, "float64"), (4, 3), traced)


def test_print_shows_each_replica_its_own(capfd: pytest.CaptureFixture[str]) -> None:
    def step(v: Any) -> Any:
        total = sum(tf.reduce_sum(v[i] * 0.0 + 1.0) for i in range(len(v)))
        tf.print("total", total)
        return total

    results(step, (4, 3), True)
    shown = capfd.readouterr().err
    assert "24" in shown and "18" in shown


def test_a_known_number_finds_its_program_again() -> None:
    traces: list[int] = []
    strategy = tf.distribute.MirroredStrategy(replicas=2)

    def step(v: Any) -> Any:
        traces.append(len(v))
        return weighted(v)

    train = on(strategy, step, True)
    for shares, fresh in (((4, 3), [4, 3]), ((3, 2), [3, 2]), ((4, 3), []), ((3, 4), [4, 3])):
        traces.clear()
        got = train(distributed(strategy, split(shares)))
        assert traces == fresh
        for part, result in zip(
            split(shares), strategy.experimental_local_results(got), strict=True
        ):
            want = sum(float(part[i].sum()) * (i + 1) for i in range(len(part)))
            np.testing.assert_allclose(float(result), want, rtol=1e-5, atol=1e-5)


def test_what_a_step_must_meet_is_looked_at_on_every_replica() -> None:
    def step(v: Any) -> Any:
        for i in range(len(v)):
            assert tf.reduce_sum(v[i] * 0.0) + i < 3.0
        return v

    results(step, (3, 2), True)
    with pytest.raises(AssertionError, match="replica 0"):
        results(step, (4, 3), True)


def test_values_are_not_looked_at_where_numbers_decide_otherwise() -> None:
    strategy = tf.distribute.MirroredStrategy(replicas=2)
    tf.config.run_functions_eagerly(True)
    try:
        with pytest.raises(ValueError, match="cannot be looked at.*equally many examples"):
            strategy.run(
                lambda v: float(tf.reduce_sum(weighted(v))),
                (distributed(strategy, split((4, 3))),),
            )
    finally:
        tf.config.run_functions_eagerly(False)


def test_explain_names_the_line_that_asked_for_a_number() -> None:
    strategy = tf.distribute.MirroredStrategy(replicas=2)

    def step(v: Any) -> Any:
        return tf.distribute.get_replica_context().all_reduce("sum", weighted(v))

    text = str(strategy.explain(step, (distributed(strategy, split((4, 3))),)))
    assert re.search(r"test_trace_per_count\.py:\d+: the number of examples", text)
    assert "cond" in text
    assert "trace_of_count" not in str(
        strategy.explain(step, (distributed(strategy, split((3, 3))),))
    )


def test_a_tape_outside_a_run_on_several_replicas_says_so() -> None:
    strategy = tf.distribute.MirroredStrategy(replicas=2)
    values = distributed(strategy, split((4, 3)))
    w = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        rows = strategy.run(lambda v: tf.stack([v[i] * w for i in range(len(v))]), (values,))
        loss = tf.reduce_sum(rows.values[0])
    with pytest.raises(NotImplementedError, match="the tape is outside of it"):
        tape.gradient(loss, w)


def test_runs_of_equal_numbers_share_what_is_compiled() -> None:
    strategy = tf.distribute.MirroredStrategy(replicas=2)

    def program(shares: tuple[int, ...], factor: float) -> Any:
        values = distributed(strategy, split(shares))
        step = lambda v: weighted(v) * factor  # noqa: E731
        return TracedProgram(
            lambda v: strategy._run_in_trace(step, (v,), {}), (values,), {}, 2, numbers_change=True
        )

    programs = [
        program(*given)._step.compiled
        for given in (((4, 3), 2.5), ((4, 3), 3.5), ((3, 2), 2.5), ((4, 3), 4.5), ((3, 4), 2.5))
    ]
    assert programs[1] == programs[3]  # other numbers of Python's are arguments
    assert len({*programs[1:3], programs[4]}) == 3
