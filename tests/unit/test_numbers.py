"""Numbers: exact where they can be, of bounded error where not, an error where there are none."""

from __future__ import annotations

import math
import threading

import numpy as np
import pytest

import samegrad as tf
from samegrad import _core

BIG = 2**53 + 1


def grad(fn, x):
    x = tf.constant(x)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = fn(x)
    return tape.gradient(y, x).numpy()


def second_grad(fn, x):
    x = tf.constant(x)
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = fn(x)
        first = tape.gradient(y, x)
    return outer.gradient(first, x).numpy()


class TestAttributes:
    def test_pads_that_print_alike_stay_apart(self):
        @tf.function
        def difference(x):
            one = tf.pad(x, [[0, 0], [1, 0]], constant_values=1000000.25)
            two = tf.pad(x, [[0, 0], [1, 0]], constant_values=1000000.0)
            return one - two

        x = tf.constant(np.zeros((7, 3)))
        np.testing.assert_array_equal(difference(x).numpy()[:, 0], 0.25)

    def test_programs_whose_numbers_print_alike_are_two(self):
        def made(value):
            @tf.function
            def fn(x):
                return tf.pad(x, [[0, 1]], constant_values=value)

            return fn(tf.constant([1.0], dtype=tf.float64)).numpy()[1]

        assert made(1000000.25) - made(1000000.0) == 0.25

    def test_zeros_of_both_signs_and_nan_stay_apart(self):
        @tf.function
        def both(x):
            plus = tf.pad(x, [[0, 1]], constant_values=0.0)
            return plus, tf.pad(x, [[0, 1]], constant_values=-0.0)

        plus, minus = both(tf.constant([1.0]))
        assert not np.signbit(plus.numpy()[1]) and np.signbit(minus.numpy()[1])

        @tf.function
        def twice(x):
            nan = tf.pad(x, [[0, 1]], constant_values=float("nan"))
            return nan + tf.pad(x, [[0, 1]], constant_values=float("nan"))

        assert math.isnan(twice(tf.constant([1.0])).numpy()[1])
        assert np.signbit(tf.fill([3], -0.0).numpy()).all()

    @pytest.mark.parametrize("traced", [False, True])
    def test_whole_numbers_of_64_bits_survive(self, traced):
        def all_ways():
            zeros = tf.zeros([2], tf.int64)
            return (
                tf.pad(zeros, [[0, 1]], constant_values=BIG)[2],
                tf.one_hot([1], 3, on_value=BIG, off_value=-BIG, dtype=tf.int64)[0, 1],
                tf.one_hot([1], 3, on_value=BIG, off_value=-BIG, dtype=tf.int64)[0, 0] * -1,
                tf.fill([2], tf.constant(BIG, tf.int64))[0],
                tf.constant(BIG, tf.int64),
                (zeros + BIG)[0],
                _core.ops.full_like(zeros, value=BIG)[0],
            )

        run = tf.function(all_ways) if traced else all_ways
        assert [int(n) for n in run()] == [BIG] * 7

    def test_concat_of_many_parts_has_a_gradient(self):
        parts = [tf.constant(np.full((2, 3), float(k))) for k in range(70)]

        @tf.function
        def gradients(*parts):
            with tf.GradientTape() as tape:
                tape.watch(parts)
                joined = tf.concat(list(parts), 0)
                y = tf.reduce_sum(joined * joined)
            return tape.gradient(y, parts)

        for k, g in enumerate(gradients(*parts)):
            np.testing.assert_array_equal(g.numpy(), np.full((2, 3), 2.0 * k))


class TestGradientsAtSpecialPoints:
    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    def test_elu_and_selu_at_zero(self, dtype):
        x = np.array([-1.0, -0.0, 0.0, 2.0], dtype)
        assert grad(tf.nn.elu, x)[1:] == pytest.approx([1.0, 1.0, 1.0])
        assert grad(tf.nn.elu, x)[0] == pytest.approx(math.exp(-1))
        assert grad(tf.nn.selu, x)[1:] == pytest.approx([1.05070098] * 3, rel=1e-6)
        assert second_grad(tf.nn.elu, x) == pytest.approx([math.exp(-1), 0, 0, 0])
        assert grad(lambda v: tf.nn.elu(v, alpha=3.0), x)[2] == 3.0

    @pytest.mark.parametrize("fn", [tf.sqrt, tf.math.rsqrt, tf.math.reciprocal])
    @pytest.mark.parametrize("traced", [False, True])
    def test_no_cotangent_gives_zero_at_a_pole(self, fn, traced):
        def masked(x):
            return tf.where(x > 0.0, fn(x), tf.zeros_like(x))

        def run(x):
            return grad(masked, x), second_grad(masked, x)

        x = np.array([0.0, 4.0, 0.0])
        first, second = run(x)
        assert first[0] == 0 and second[0] == 0
        assert np.isfinite(first).all() and np.isfinite(second).all()
        if traced:

            @tf.function
            def gradient(x):
                with tf.GradientTape() as tape:
                    tape.watch(x)
                    y = masked(x)
                return tape.gradient(y, x)

            np.testing.assert_array_equal(gradient(tf.constant(x)).numpy(), first)

    def test_a_zero_cotangent_hides_no_second_derivative(self):
        # d²/dx² (sqrt(x) - 1)² at 1, where the inner gradient is 0: 1/2.
        one = np.array([1.0])
        assert second_grad(lambda x: (tf.sqrt(x) - 1.0) ** 2.0, one) == pytest.approx([0.5])
        # d²/dx² (1/x - 1)² at 1: 2.
        square = tf.math.square
        assert second_grad(
            lambda x: square(tf.math.reciprocal(x) - 1.0), np.array([1.0])
        ) == pytest.approx([2.0])
        assert second_grad(
            lambda x: square(tf.math.rsqrt(x) - 1.0), np.array([1.0])
        ) == pytest.approx([0.5])

    def test_powers_of_zero(self):
        x = np.array([0.0, 2.0])
        np.testing.assert_array_equal(grad(lambda v: tf.pow(v, [0.0, 0.0]), x), [0.0, 0.0])
        assert np.isfinite(grad(lambda v: tf.where(v > 0.0, tf.pow(v, 0.5), 0.0 * v), x)).all()


class TestLongSums:
    @pytest.mark.parametrize(("shape", "axis", "most"), [
        ((3_000_001,), None, 1e-6), ((2, 1_500_001), 1, 1e-6), ((1_000_003, 3), (0, 1), 1e-6),
        ((3_000_001, 1), 0, 2e-6), ((1_000_003, 3), 0, 2e-6),
    ])  # fmt: skip
    def test_the_mean_of_millions_of_tenths(self, shape, axis, most):
        x = np.full(shape, 0.1, np.float32)
        exact = float(np.float32(0.1))
        for run in (tf.reduce_mean, tf.function(tf.reduce_mean)):
            mean = run(tf.constant(x), axis=axis).numpy()
            np.testing.assert_allclose(mean, exact, rtol=most)

    def test_a_long_product_of_matrices(self):
        rng = np.random.default_rng(3)
        a = rng.random((3, 200_003)).astype(np.float32)
        b = rng.random((200_003, 5)).astype(np.float32)
        exact = a.astype(np.float64) @ b.astype(np.float64)
        np.testing.assert_allclose(tf.matmul(a, b).numpy(), exact, rtol=4e-6)
        np.testing.assert_allclose(
            tf.matmul(a.T.copy(), b, transpose_a=True).numpy(), exact, rtol=4e-6
        )

    def test_log_sum_exp_and_softmax_of_a_long_row(self):
        x = np.full((2, 1_000_003), 0.1, np.float32)
        np.testing.assert_allclose(
            tf.reduce_logsumexp(x, axis=1).numpy(), 0.1 + math.log(1_000_003), rtol=1e-6
        )
        sums = tf.nn.softmax(x).numpy().sum(axis=1, dtype=np.float64)
        np.testing.assert_allclose(sums, 1, rtol=2e-6)


class TestWholeNumbers:
    @pytest.mark.parametrize("dtype", ["int32", "int64", "uint8"])
    @pytest.mark.parametrize("traced", [False, True])
    @pytest.mark.parametrize("n", [1, 5000, 300_001])
    def test_division_by_zero_raises(self, dtype, traced, n):
        a = tf.constant(np.arange(n) % 100 + 1, dtype=dtype)
        b = np.ones(n, np.int64)
        b[n - 1] = 0
        b = tf.constant(b, dtype=dtype)
        for name, fn in (("floor_div", lambda x, y: x // y), ("mod", lambda x, y: x % y)):
            run = tf.function(fn) if traced else fn
            np.testing.assert_array_equal(run(b, a).numpy(), fn(b.numpy(), a.numpy()))
            with pytest.raises(tf.errors.InvalidArgumentError, match=rf"\[{name}\]"):
                run(a, b)

    @pytest.mark.parametrize("traced", [False, True])
    def test_negative_powers_raise(self, traced):
        run = tf.function(tf.pow) if traced else tf.pow
        assert run(tf.constant([5, 2]), tf.constant([2, 0])).numpy().tolist() == [25, 1]
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"\[pow\]"):
            run(tf.constant([5, 2]), tf.constant([2, -2]))

    def test_a_step_that_divides_by_zero_changes_nothing(self):
        v = tf.Variable(np.ones(100_000, np.float32))
        count = tf.Variable(np.full(100_000, 7))

        @tf.function
        def step(divisor):
            v.assign(v * 2.0)
            count.assign(count // divisor)

        step(tf.constant(np.full(100_000, 2)))
        before = v.numpy(), count.numpy()
        with pytest.raises(tf.errors.InvalidArgumentError):
            step(tf.constant(np.zeros(100_000, np.int64)))
        np.testing.assert_array_equal(v.numpy(), before[0])
        np.testing.assert_array_equal(count.numpy(), before[1])
        assert before[0][0] == 2 and before[1][0] == 3

    def test_nothing_is_divided_where_there_is_nothing(self):
        empty = tf.zeros([0, 3], tf.int32)
        assert (empty // tf.zeros([3], tf.int32)).shape.as_list() == [0, 3]

    def test_a_branch_that_is_not_taken_may_be_wrong(self):
        one, zero = tf.constant(1), tf.constant(0)
        numbers = tf.constant([1.0, 2.0])

        @tf.function
        def step(x):
            y = tf.cond(x > 0.0, lambda: tf.cast(one // zero, tf.float32), lambda: x)
            return tf.cond(x > 0.0, lambda: tf.gather(numbers, [9])[0], lambda: y)

        assert float(step(tf.constant(-3.0))) == -3.0
        with pytest.raises(tf.errors.InvalidArgumentError):
            step(tf.constant(1.0))

    def test_ranges_have_the_dtype_of_their_bounds(self):
        assert tf.range(0).dtype == tf.int32
        assert tf.range(3, 3).dtype == tf.int32
        assert tf.range(0.0).dtype == tf.float32
        assert tf.range(np.int64(3)).dtype == tf.int64
        assert tf.gather([1.0], tf.range(0)).shape.as_list() == [0]
        assert tf.range(BIG, BIG + 2).dtype == tf.int64
        assert tf.range(2, 9, 3).numpy().tolist() == [2, 5, 8]


class TestRefusals:
    def test_assign_add_of_another_shape(self):
        v = tf.Variable([1.0, 2.0])
        for change in (1.0, [1.0], [[1.0, 2.0]]):
            with pytest.raises(ValueError, match="assign_add"):
                v.assign_add(change)
            with pytest.raises(ValueError, match="assign_sub"):
                v.assign_sub(change)
        assert v.assign_add([1.0, 1.0]).numpy().tolist() == [2.0, 3.0]

    def test_a_variable_of_another_shape_than_asked_for(self):
        with pytest.raises(ValueError, match="shape"):
            tf.Variable([3.0, 4.0], shape=[4])
        assert tf.Variable([3.0, 4.0], shape=[None]).shape.as_list() == [None]
        assert tf.Variable([3.0, 4.0], shape=[2]).shape.as_list() == [2]

    def test_one_hot_of_mixed_dtypes(self):
        with pytest.raises(TypeError, match="one_hot"):
            tf.one_hot([1], 3, on_value=1.0, off_value=0)
        with pytest.raises(TypeError, match="one_hot"):
            tf.one_hot([1], 3, on_value=1.5, dtype=tf.int32)
        assert tf.one_hot([1], 3, on_value=5, off_value=1).dtype == tf.int32
        five = tf.one_hot([1], 3, on_value=5, dtype=tf.float32)
        assert five.numpy().tolist() == [[0.0, 5.0, 0.0]]
        assert tf.one_hot([1], 3).dtype == tf.float32

    def test_padded_shapes_below_minus_one(self):
        ds = tf.data.Dataset.from_generator(
            lambda: iter([[1], [2, 3]]), output_signature=tf.TensorSpec((None,), tf.int32)
        )
        with pytest.raises(ValueError, match="padded_shapes"):
            ds.padded_batch(2, padded_shapes=[-2])
        assert next(ds.padded_batch(2, padded_shapes=[-1]).as_numpy_iterator()).shape == (2, 2)


def test_a_dense_gradient_in_a_thread_with_a_small_stack():
    rng = np.random.default_rng(1)
    x = tf.constant(rng.random((700, 300)).astype(np.float32))
    y = tf.constant(rng.random((700, 200)).astype(np.float32))
    results = []

    def work():
        results.append(tf.matmul(x, y, transpose_a=True).numpy())

    work()
    before = threading.stack_size(1 << 17)
    try:
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    finally:
        threading.stack_size(before)
    np.testing.assert_array_equal(results[0], results[1])


class TestOperands:
    @pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
    @pytest.mark.parametrize(
        "number",
        [0.1, -0.0, 1, True, 2**24 + 1, 2**63 + 2**40, -(2**24), 1e38, 1e300, math.inf, math.nan],
    )
    def test_a_number_is_rounded_as_numpy_casts_it(self, number, dtype):
        with np.errstate(over="ignore"):
            wanted = np.asarray(number).astype(dtype)
        plain = tf.constant(1.0, dtype)
        for found in (plain * number, tf.function(lambda x: number * x)(plain)):
            assert found.dtype == dtype
            np.testing.assert_array_equal(found.numpy(), wanted)
            assert np.signbit(found.numpy()) == np.signbit(wanted)


def test_the_line_of_an_operation_is_the_programs():
    @tf.function
    def step(x):
        return tf.math.log(-x)  # here

    tf.debugging.enable_check_numerics()
    try:
        with pytest.raises(tf.errors.NonFiniteError) as caught:
            step(tf.constant(1.0))
    finally:
        tf.debugging.disable_check_numerics()
    with open(__file__, encoding="utf-8") as file:
        line = next(i for i, text in enumerate(file, 1) if text.endswith("# here\n"))
    assert f'test_numbers.py", line {line}, in step' in str(caught.value)
