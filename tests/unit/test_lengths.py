"""A function whose signature leaves lengths open is traced once for all of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from length_values import LENGTHS, Traced, same_bits, text

import samegrad as tf

RNG = np.random.default_rng(7)
TABLE = RNG.normal(size=(1024, 6)).astype(np.float32)
SENTENCES = tf.TensorSpec([None, None], tf.float32)
ROWS = {length: text(RNG, 4, length) for length in (*LENGTHS, 1, 6, 9, 10)}


def length(x: Any, axis: int = 1) -> Any:
    return tf.shape(x)[axis]


def places(x: Any) -> Any:
    """Positional encodings, of the sentences' length."""
    return tf.constant(TABLE)[tf.newaxis, : length(x), :]


def embedded(x: Any) -> Any:
    return x[..., tf.newaxis] * tf.constant(TABLE[:1]) + places(x)


def causal(x: Any) -> Any:
    n = length(x)
    return 1 - tf.linalg.band_part(tf.ones([n, n]), -1, 0)


def attention(x: Any) -> Any:
    q = embedded(x)
    scores = tf.matmul(q, q, transpose_b=True) - 1e9 * causal(x)
    return tf.matmul(tf.nn.softmax(scores), q)


def last_of_loop(x: Any) -> Any:
    def body(i: Any, state: Any) -> Any:
        return i + 1, tf.tanh(state + x[:, i])

    return tf.while_loop(lambda i, s: i < length(x), body, [tf.constant(0), x[:, 0]])[1]


def scanned(x: Any) -> Any:
    return tf.scan(lambda state, row: tf.tanh(state + row), tf.transpose(x))


def flat(x: Any) -> Any:
    rows = tf.reshape(embedded(x), [-1, 6]) @ tf.constant(TABLE[:6])
    return tf.reshape(rows, [tf.shape(x)[0], -1, 6])


CASES: dict[str, Callable[..., Any]] = {
    "sum of squares": lambda x: tf.reduce_sum(x * x),
    "mean along the length": lambda x: tf.reduce_mean(x, axis=1),
    "mean of all": lambda x: tf.reduce_mean(x),
    "divided by the length": lambda x: tf.reduce_sum(x, 1) / tf.cast(length(x), tf.float32),
    "softmax": lambda x: tf.nn.softmax(x),
    "transposed product": lambda x: tf.transpose(x) @ x,
    "all pairs": lambda x: x[:, :, None] * x[:, None, :],
    "positional encodings": embedded,
    "causal attention": attention,
    "flat rows": flat,
    "reshape by the shape": lambda x: tf.reshape(x, [tf.shape(x)[0], length(x), 1]) * 2.0,
    "swapped axes": lambda x: tf.transpose(embedded(x), [0, 2, 1]),
    "without the first": lambda x: x[:, 1:] * 3.0,
    "without the last": lambda x: x[:, :-1] + x[:, 1:],
    "the last": lambda x: x[:, -1],
    "the middle": lambda x: x[:, length(x) // 2],
    "the first half": lambda x: x[:, : length(x) // 2],
    "backwards": lambda x: x[:, ::-1] - tf.reverse(x, [1]),
    "the first two": lambda x: x[:, :2],
    "the first ten": lambda x: x[:, :10],
    "joined": lambda x: tf.concat([x, x * 2.0, x[:, :1]], axis=1),
    "stacked": lambda x: tf.stack([x, x], axis=1),
    "padded": lambda x: tf.pad(x, [[0, 0], [1, 2]]),
    "tiled": lambda x: tf.tile(x, [1, 3]),
    "repeated": lambda x: tf.repeat(x, 2, axis=1),
    "repeated by the length": lambda x: tf.repeat(x[:, :1], length(x), axis=1),
    "ones": lambda x: x + tf.ones([length(x)]),
    "zeros": lambda x: x + tf.zeros(tf.shape(x)),
    "filled": lambda x: x + tf.fill([1, length(x)], 2.0),
    "range": lambda x: x * tf.cast(tf.range(length(x)), tf.float32),
    "one_hot": lambda x: tf.one_hot(tf.argmax(x, axis=1), length(x)) * x,
    "broadcast": lambda x: tf.broadcast_to(x[:, :1], tf.shape(x)) - x,
    "cumulative": lambda x: tf.cumsum(x, axis=1),
    "largest": lambda x: tf.reduce_max(x, axis=1),
    "sorted": lambda x: tf.sort(x, axis=1),
    "where": lambda x: tf.where(x > 0, x, tf.zeros_like(x)),
    "sequence_mask": lambda x: x * tf.sequence_mask([1, 2, 2, 1], length(x), tf.float32),
    "gathered": lambda x: tf.gather(tf.constant(TABLE), tf.cast(x * x, tf.int64)),
    "einsum": lambda x: tf.einsum("bl,bm->lm", x, x),
    "norm": lambda x: (x - tf.reduce_mean(x, 1, keepdims=True)) * tf.math.rsqrt(
        tf.math.reduce_variance(x, 1, keepdims=True) + 1e-6),
    "dropout": lambda x: tf.nn.dropout(embedded(x), 0.3),
    "noise": lambda x: x + tf.random.normal([length(x)]),
    "noise for each": lambda x: x + tf.random.uniform(tf.shape(x)),
    "loop over the length": last_of_loop,
    "scan over the length": scanned,
    "map over the length": lambda x: tf.map_fn(lambda row: row * row, tf.transpose(x)),
    "cond on the length": lambda x: tf.cond(length(x) > 4, lambda: x * 2.0, lambda: x),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_one_trace_gives_every_length_the_bits_of_a_trace_of_its_own(name: str) -> None:
    def values_and_gradient(x: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = CASES[name](x)
            loss = tf.reduce_sum(tf.cast(y, tf.float32) ** 2)
        gradient = tape.gradient(loss, x)
        return y, (x if gradient is None else gradient)

    traced = Traced(values_and_gradient, SENTENCES)
    traced.check([[ROWS[n]] for n in LENGTHS])
    assert traced.runs == 1


def test_python_runs_once_and_sees_no_number() -> None:
    seen = []

    @tf.function(input_signature=[SENTENCES])
    def f(x: Any) -> Any:
        seen.append(x.shape.as_list())
        with tf.GradientTape() as tape:
            tape.watch(x)
            loss = tf.reduce_sum(x * x)
        return loss, tape.gradient(loss, x)

    for n in (3, 5, 700):
        loss, gradient = f(tf.constant(ROWS[n]))
        np.testing.assert_allclose(float(loss), (ROWS[n] ** 2).sum(), rtol=1e-5)
        np.testing.assert_array_equal(gradient.numpy(), 2 * ROWS[n])
    assert seen == [[None, None]]
    assert f.experimental_get_tracing_count() == 1


def test_a_question_about_the_length_is_answered_once_per_answer() -> None:
    def f(x: Any) -> Any:
        if x.shape[1] > 4:
            return tf.reduce_sum(x, 1)
        return tf.reduce_max(x, 1)

    traced = Traced(f, SENTENCES)
    traced.check([[ROWS[n]] for n in (3, 5, 4, 9, 2, 700, 3)])
    assert traced.runs == 2
    explained = str(traced.open.explain(tf.constant(ROWS[9])))
    assert "size 1 of argument 0" in explained
    assert "test_lengths.py" in explained


def test_a_length_that_python_wants_as_a_number_is_traced_for_itself() -> None:
    def f(x: Any) -> Any:
        total = tf.zeros_like(x[:, 0])
        for i in range(x.shape[1]):
            total += x[:, i]
        return total

    traced = Traced(tf.autograph.experimental.do_not_convert(f), SENTENCES)
    traced.check([[ROWS[n]] for n in (3, 5, 3, 5)])
    assert traced.runs == 2
    assert "size 1 of argument 0) - 5 == 0 (" in str(traced.open.explain(tf.constant(ROWS[5])))


def test_the_program_of_a_length_is_compiled_once() -> None:
    traced = Traced(lambda x: tf.nn.softmax(x) @ tf.transpose(x), SENTENCES)
    one, other = (tf.constant(ROWS[n]) for n in (3, 5))
    traced.open(one)
    traced.open(other)
    programs = {id(program) for program in traced.open._programs.values()}
    traced.open(one)
    traced.open(other)
    assert {id(program) for program in traced.open._programs.values()} == programs
    assert len(programs) == 2


def test_explain_is_that_of_a_trace_of_the_length() -> None:
    traced = Traced(lambda x: tf.reduce_sum(attention(x)), SENTENCES)
    for n in (5, 9):
        plan = str(traced.open.explain(ROWS[n]))
        assert plan.startswith("traced once for lengths")
        assert plan.endswith(str(traced.alone(ROWS[n]).explain(ROWS[n])))


def test_a_concrete_function_of_open_sizes_is_traced_once() -> None:
    runs = []

    @tf.function
    def f(x: Any) -> Any:
        runs.append(1)
        return tf.nn.softmax(x) @ tf.transpose(x)

    concrete = f.get_concrete_function(SENTENCES)
    assert runs == [1]
    for n in (3, 5, 9):
        found = concrete(tf.constant(ROWS[n])).numpy()
        np.testing.assert_array_equal(found, f(tf.constant(ROWS[n])).numpy())
        assert found.shape == (4, 4)
    assert len(runs) == 4  # three of the function without a signature
    assert concrete.inputs == [SENTENCES]


PAIRS = [(3, 5), (4, 4), (9, 2), (1, 3), (3, 1), (5, 3)]


def test_two_lengths_may_be_equal_by_chance() -> None:
    def f(source: Any, target: Any) -> Any:
        scores = tf.nn.softmax(tf.matmul(embedded(target), embedded(source), transpose_b=True))
        return tf.matmul(scores, embedded(source))

    traced = Traced(f, SENTENCES, SENTENCES)
    traced.check([[ROWS[a], ROWS[b]] for a, b in PAIRS])
    assert traced.runs == 1


def test_lengths_that_meet_must_be_equal_or_one() -> None:
    traced = Traced(lambda a, b: tf.reduce_sum(a * b, 1) + a[:, 0], SENTENCES, SENTENCES)
    traced.check([[ROWS[a], ROWS[b]] for a, b in [(3, 3), (5, 5), (9, 9), (1, 3), (3, 1), (5, 1)]])
    assert traced.runs == 3  # equal, one for the first, one for the second
    with pytest.raises(ValueError, match="do not broadcast"):
        traced.open(tf.constant(ROWS[3]), tf.constant(ROWS[5]))


def test_a_length_of_one_is_the_trace_of_a_length() -> None:
    traced = Traced(lambda x: tf.nn.softmax(embedded(x)), SENTENCES)
    traced.check([[ROWS[n]] for n in (5, 1, 3)])
    assert traced.runs == 1


def test_no_elements_are_a_length_of_their_own() -> None:
    def f(x: Any) -> Any:
        return tf.reduce_sum(embedded(x), 1), tf.nn.softmax(x) * 2.0

    traced = Traced(f, SENTENCES)
    traced.check([[ROWS[n]] for n in (5, 3)] + [[np.zeros((4, 0), np.float32)], [ROWS[9]]])
    assert traced.runs <= 2


def test_sizes_that_change_are_lengths_where_retracing_is_reduced() -> None:
    seen = []

    @tf.function(reduce_retracing=True)
    def f(x: Any, y: Any) -> Any:
        seen.append(x.shape.as_list())
        return tf.reduce_sum(x * x) + tf.reduce_sum(y)

    y = tf.ones([2, 2])
    for n in (3, 3, 5, 9, 700, 3):
        np.testing.assert_allclose(
            float(f(tf.constant(ROWS[n]), y)), (ROWS[n] ** 2).sum() + 4, rtol=1e-5
        )
    assert seen == [[4, 3], [4, None]]
    f(tf.constant(ROWS[5]), tf.ones([2, 7]))
    assert seen == [[4, 3], [4, None], [4, None]]


def test_a_step_that_a_length_does_not_allow_names_its_line() -> None:
    traced = Traced(lambda x: tf.reshape(x, [4, 2, -1]), tf.TensorSpec([4, None], tf.float32))
    traced.check([[ROWS[n]] for n in (4, 2, 6, 10)])
    with pytest.raises(ValueError, match=r"reshape"):
        traced.open(tf.constant(ROWS[5]))
    traced.check([[ROWS[4]]])


def test_other_axes_than_the_second_are_lengths() -> None:
    images = tf.TensorSpec([None, None, None, 3], tf.float32)
    traced = Traced(lambda x: tf.reduce_mean(x, axis=[1, 2]), images)
    sizes = [(2, 3, 4), (5, 4, 4), (1, 7, 2)]
    traced.check([[RNG.normal(size=(*size, 3)).astype(np.float32)] for size in sizes])
    assert traced.runs == 1


def test_windows_are_traced_for_each_size() -> None:
    kernel = tf.constant(RNG.normal(size=(2, 2, 3, 4)).astype(np.float32))

    def f(x: Any) -> Any:
        y = tf.nn.conv2d(x, kernel, 1, "SAME")
        return tf.reduce_sum(tf.nn.max_pool2d(y, 2, 2, "VALID"), axis=[1, 2])

    traced = Traced(f, tf.TensorSpec([None, None, None, 3], tf.float32))
    sizes = [(2, 4, 4), (5, 6, 4), (1, 4, 4), (3, 6, 4)]
    traced.check([[RNG.normal(size=(*size, 3)).astype(np.float32)] for size in sizes])
    assert traced.runs == 2


def test_the_first_axis_may_be_one_too() -> None:
    @tf.function(reduce_retracing=True)
    def f(x: Any) -> Any:
        return tf.reduce_mean(x, 0), tf.shape(x)[0]

    for n in (3, 5, 9, 700):
        mean, count = f(tf.constant(ROWS[n].T))
        np.testing.assert_allclose(mean.numpy(), ROWS[n].mean(1), rtol=1e-4, atol=1e-6)
        assert int(count) == n
    assert f.experimental_get_tracing_count() == 2


def test_a_tape_outside_differentiates_every_length() -> None:
    traced = Traced(attention, SENTENCES)
    for n in (3, 5, 9):
        gradients = []
        for function in (traced.open, traced.alone(ROWS[n])):
            x = tf.Variable(ROWS[n])
            with tf.GradientTape() as tape:
                loss = tf.reduce_sum(function(x) ** 2)
            gradients.append(tape.gradient(loss, x))
        assert same_bits(*gradients)
    assert traced.runs == 1


def test_a_function_inside_takes_the_lengths_of_the_one_outside() -> None:
    inner = tf.function(attention, input_signature=[SENTENCES])
    traced = Traced(lambda x: inner(x) + inner(x[:, ::-1]), SENTENCES)
    traced.check([[ROWS[n]] for n in (3, 9, 5)])
    assert traced.runs == 1


def test_variables_are_written_by_the_program_of_each_length() -> None:
    total = tf.Variable(0.0)

    @tf.function(input_signature=[SENTENCES])
    def f(x: Any) -> Any:
        total.assign_add(tf.reduce_sum(x))
        return total * 1.0

    expected = 0.0
    for n in (3, 5, 9, 3):
        expected += float(ROWS[n].sum())
        np.testing.assert_allclose(float(f(tf.constant(ROWS[n]))), expected, rtol=1e-5)
    assert f.experimental_get_tracing_count() == 1


def test_plain_tensors_without_examples_have_lengths() -> None:
    traced = Traced(lambda x: tf.nn.softmax(x) * 2.0, tf.TensorSpec([3, None], tf.float64))
    traced.check([[np.float64(ROWS[n][:3])] for n in (3, 5, 9)])
    assert traced.runs == 1
