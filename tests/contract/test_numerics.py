"""The engine gives the bits of docs/numerics.md, which NumPy computes in `reference_*.py`."""

from __future__ import annotations

from typing import Any

import numpy as np
import philox
import pytest
import reference_functions
import reference_sums as reference
from golden_networks import floats, integers

import samegrad as tf
from samegrad import _core
from samegrad.testing import assert_same_bits

fused = pytest.mark.skipif(
    not _core.isa_fused()[_core.isa()],
    reason="this variant rounds products before it adds them",
)
DTYPES = [np.float32, np.float64]


def numbers(*shape: int, seed: int = 0, dtype: Any = np.float32) -> np.ndarray:
    """Values of many magnitudes, so that another order rounds otherwise."""
    scale = 2.0 ** integers(*shape, seed=seed + 1000, below=9).astype(float)
    return (floats(*shape, seed=seed, dtype="float64") * scale / 7).astype(dtype)


def examples(*arrays: np.ndarray) -> list[tf.Tensor]:
    """One batch of a dataset: tensors whose first axis is that of the examples."""
    dataset = tf.data.Dataset.from_tensor_slices(arrays).batch(len(arrays[0]))
    return list(next(iter(dataset)))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("shape", "axes"),
    [
        ((3, 1), (1,)), ((3, 40), (1,)), ((2, 1024), (1,)), ((2, 1025), (1,)), ((2, 5000), (1,)),
        ((7, 5), (0,)), ((128, 3), (0,)), ((129, 3), (0,)), ((1000, 3), (0,)), ((2, 300, 3), (1,)),
        ((5, 6, 7), (0, 2)), ((5, 6, 7), (0, 1)), ((4, 1, 5), (0, 2)), ((130, 2, 30), (0, 2)),
        ((3, 4, 5), (0, 1, 2)), ((2, 3, 4, 5), (1, 3)),
    ],
)  # fmt: skip
def test_sums_along_axes_have_the_bits_of_the_specification(shape, axes, dtype) -> None:
    x = numbers(*shape, dtype=dtype)
    assert_same_bits(tf.reduce_sum(tf.constant(x), axis=axes), reference.sum_axes(x, axes))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 6, 7, 9, 13, 16, 22, 37, 64, 101])
def test_sums_over_examples_have_the_bits_of_the_specification(n, dtype) -> None:
    x = numbers(n, 3, 5, dtype=dtype)
    (batch,) = examples(x)
    assert_same_bits(tf.reduce_sum(batch, axis=0), reference.sum_examples(x))
    assert_same_bits(tf.reduce_sum(batch), reference.sum_all(x))
    assert_same_bits(tf.reduce_sum(batch[:, 0, 0]), reference.sum_all(x[:, 0, 0].copy()))
    assert_same_bits(
        tf.reduce_sum(batch, axis=[0, 2]), reference.sum_examples(reference.sum_axes(x, (2,)))
    )
    columns = np.stack([reference.sum_columns(one) for one in x])
    assert_same_bits(tf.reduce_sum(batch, axis=[0, 1]), reference.sum_examples(columns))


@pytest.mark.parametrize("replicas", [1, 2, 3, 5])
def test_replicas_sum_the_tree_of_the_global_batch(replicas) -> None:
    x = numbers(22, 30)
    strategy = tf.distribute.MirroredStrategy(replicas=replicas)
    (batch,) = strategy.experimental_distribute_dataset(
        tf.data.Dataset.from_tensor_slices(x).batch(22)
    )

    def step(rows: Any) -> Any:
        context = tf.distribute.get_replica_context()
        sums = tf.reduce_sum(rows, axis=0), tf.reduce_sum(rows)
        return tuple(context.all_reduce("SUM", one) for one in sums)

    columns, total = (
        strategy.experimental_local_results(one)[0] for one in strategy.run(step, args=(batch,))
    )
    assert_same_bits(columns, reference.sum_examples(x))
    assert_same_bits(total, reference.sum_all(x))


@pytest.mark.parametrize("n", [1, 127, 128, 129, 300, 17_000])
def test_cumulative_sums_have_the_bits_of_the_specification(n) -> None:
    x = numbers(n, 2)
    assert_same_bits(tf.cumsum(tf.constant(x)), reference.cumulative_sum(x))


@pytest.mark.parametrize(("n", "words"), [(3, 4), (13, 5), (22, 300), (5, 1100)])
def test_gradients_of_gathers_have_the_bits_of_the_specification(n, words) -> None:
    values = numbers(n, words, 3)
    indices = np.minimum(integers(n, words, seed=1, below=9), 6)
    rows, places = examples(values, indices)
    table = tf.zeros([9, 3])
    with tf.GradientTape() as tape:
        tape.watch(table)
        total = tf.reduce_sum(tf.gather(table, places) * rows)
    found = tf.convert_to_tensor(tape.gradient(total, table))
    assert_same_bits(found, reference.sum_at(values, indices, 9))


@pytest.mark.parametrize(
    ("size", "taps", "stride", "padding"),
    [(7, 2, 2, "VALID"), (9, 3, 2, "SAME"), (14, 12, 1, "SAME"), (30, 30, 1, "VALID")],
)
def test_averages_of_windows_have_the_bits_of_the_specification(
    size, taps, stride, padding
) -> None:
    x = numbers(2, size, size, 3)
    window = reference.Window(size, taps, stride, padding, 1)
    found = tf.nn.avg_pool2d(tf.constant(x), taps, stride, padding)
    assert_same_bits(found, reference.average_windows(x, window))


@pytest.mark.parametrize("n", [1, 5, 22])
def test_sums_of_negative_zeros_have_the_sign_of_the_specification(n) -> None:
    x = np.full((n, 3), -0.0, np.float32)
    (batch,) = examples(x)
    assert_same_bits(tf.reduce_sum(batch, axis=0), np.full(3, -0.0, np.float32))
    assert_same_bits(tf.reduce_sum(batch, axis=1), np.zeros(n, np.float32))
    assert_same_bits(tf.reduce_sum(batch), np.float32(0.0).reshape(()))
    assert_same_bits(tf.reduce_sum(batch[:, 0]), np.float32(-0.0).reshape(()))


def rounded(x: np.ndarray, dtype: str) -> np.ndarray:
    """Round float32 to 16 bits and back: to nearest, ties to even."""
    if dtype == "float16":
        return x.astype(np.float16).astype(np.float32)
    bits = x.view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) & np.uint32(0xFFFF0000)).view(np.float32)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_16_bit_sums_are_rounded_once_and_operations_each(dtype) -> None:
    x = rounded(numbers(22, 40), dtype)
    (batch,) = examples(x)
    narrow = tf.cast(batch, dtype)
    wide = [
        (tf.reduce_sum(narrow, axis=1), reference.sum_row(x)),
        (tf.reduce_sum(narrow, axis=0), reference.sum_examples(x)),
        (tf.reduce_sum(narrow), reference.sum_all(x)),
        (narrow * narrow, x * x),
        (narrow * narrow + narrow, rounded(x * x, dtype) + x),
    ]
    for found, expected in wide:
        assert found.dtype.name == dtype
        assert_same_bits(tf.cast(found, "float32"), rounded(expected, dtype))


@fused
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("m", "k", "n"), [(3, 1, 5), (5, 70, 33), (2, 4096, 3), (2, 4097, 3), (1, 13_000, 2)]
)
def test_products_have_the_bits_of_the_specification(m, k, n, dtype) -> None:
    a, b = numbers(m, k, dtype=dtype), numbers(k, n, seed=1, dtype=dtype)
    assert_same_bits(tf.matmul(tf.constant(a), tf.constant(b)), reference.contraction(a.T, b))


@fused
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("n", "rows"), [(1, 1), (4, 1), (5, 1), (22, 1), (37, 3), (9, 1030)])
def test_gradients_of_matrices_have_the_bits_of_the_specification(n, rows, dtype) -> None:
    x, dy = numbers(n, rows, 3, dtype=dtype), numbers(n, rows, 2, seed=1, dtype=dtype)
    batch, cotangents = examples(x, dy)
    weights = tf.zeros([3, 2], dtype)
    with tf.GradientTape() as tape:
        tape.watch(weights)
        total = tf.reduce_sum(tf.matmul(batch, weights) * cotangents)
    assert_same_bits(tape.gradient(total, weights), reference.product_of_examples(x, dy))


@fused
@pytest.mark.parametrize("traced", [False, True])
def test_several_uses_of_a_variable_are_added_from_the_last_one(traced) -> None:
    x, dy = numbers(4, 9, 1, 3), numbers(4, 9, 1, 2, seed=1)
    weights = tf.Variable(tf.zeros([3, 2]))

    def gradient(*rows: Any) -> Any:
        with tf.GradientTape() as tape:
            uses = zip(rows[:4], rows[4:], strict=True)
            total = tf.add_n([tf.reduce_sum(tf.matmul(a, weights) * b) for a, b in uses])
        return tape.gradient(total, weights)

    found = (tf.function(gradient) if traced else gradient)(*examples(*x, *dy))
    uses = [reference.product_of_examples(a, b) for a, b in zip(x, dy, strict=True)]
    assert_same_bits(found, reference.in_order(np.stack(uses[::-1])))


@fused
@pytest.mark.parametrize(("depth", "size", "channels"), [(2, 3, (5, 3)), (3, 5, (120, 5)),
                                                         (2, 5, (170, 6))])  # fmt: skip
def test_convolutions_of_volumes_have_the_bits_of_the_specification(depth, size, channels) -> None:
    x = numbers(1, depth, size, size, channels[0])
    filters = numbers(depth, size, size, *channels, seed=1)
    found = tf.nn.conv3d(tf.constant(x), tf.constant(filters), [1] * 5, "VALID")
    total = np.zeros((1, channels[1]), np.float32)
    for a, b in zip(x[0].reshape(depth, -1, 1), filters.reshape(depth, -1, channels[1]),
                    strict=True):  # fmt: skip
        is_long = len(a) > reference.CONTRACTION_BLOCK
        total = total + reference.contraction(a, b) if is_long else reference.chain(a, b, total)
    assert_same_bits(found, total.reshape(found.shape))


@fused
@pytest.mark.parametrize(
    ("n", "size", "taps", "stride", "padding", "rate", "channels"),
    [
        (3, 7, 3, 1, "VALID", 1, (2, 3)),
        (5, 7, 3, 1, "SAME", 1, (3, 2)),
        (6, 8, 3, 2, "SAME", 1, (1, 4)),
        (2, 9, 2, 1, "SAME", 3, (2, 17)),
        (1, 5, 5, 1, "SAME", 1, (170, 5)),
        (1, 5, 5, 2, "SAME", 1, (170, 4)),
        (1, 5, 5, 1, "SAME", 1, (170, 4)),
        (1, 6, 5, 1, "SAME", 1, (3, 170)),
        (1, 7, 5, 2, "SAME", 1, (1, 170)),
        (1, 6, 5, 1, "SAME", 1, (1, 170)),
        (5, 33, 1, 1, "SAME", 1, (2, 2)),
    ],
)
def test_convolutions_have_the_bits_of_the_specification(
    n, size, taps, stride, padding, rate, channels
) -> None:
    window = reference.Window(size, taps, stride, padding, rate)
    x, filters = numbers(n, size, size, channels[0]), numbers(taps, taps, *channels, seed=1)
    dy = numbers(n, window.out, window.out, channels[1], seed=2)
    batch, cotangents = examples(x, dy)
    kernel = tf.constant(filters)
    with tf.GradientTape() as tape:
        tape.watch([batch, kernel])
        y = tf.nn.conv2d(batch, kernel, stride, padding, dilations=rate)
        total = tf.reduce_sum(y * cotangents)
    of_images, of_filters = tape.gradient(total, [batch, kernel])
    assert_same_bits(y, reference.convolve(x, filters, window))
    assert_same_bits(of_images, reference.convolve_back(dy, filters, window))
    assert_same_bits(of_filters, reference.filter_gradient(x, dy, window))


def spread(low: float, high: float, dtype: Any) -> np.ndarray:
    """Numbers of all magnitudes between two limits."""
    x = floats(4000, seed=3, dtype="float64")
    some = np.concatenate([x, x / 64, x / 2**20, x / 2**40])
    return np.clip(some * max(-low, high), low, high).astype(dtype)


@fused
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("name", "low", "high"),
    [
        ("exp", -87, 88), ("expm1", -50, 80), ("log", 1e-35, 1e9), ("log1p", -0.999, 1e6),
        ("sigmoid", -80, 80), ("softplus", -80, 80), ("tanh", -20, 20), ("sin", -7000, 7000),
        ("cos", -7000, 7000), ("tan", -7000, 7000), ("erf", -7, 7), ("sinh", -80, 80),
        ("cosh", -80, 80), ("asin", -1, 1), ("acos", -1, 1), ("atan", -1e4, 1e4),
        ("asinh", -1e5, 1e5), ("acosh", 1, 1e5), ("atanh", -0.999, 0.999),
    ],
)  # fmt: skip
def test_functions_have_the_bits_of_the_specification(name, low, high, dtype) -> None:
    x = spread(low, high, dtype)
    found = getattr(tf.math, name)(tf.constant(x))
    assert_same_bits(found, getattr(reference_functions.Functions(dtype), name)(x))


@fused
def test_functions_of_two_arguments_have_the_bits_of_the_specification() -> None:
    x, y = numbers(9000, seed=1), numbers(9000, seed=2)
    for dtype in DTYPES:
        a, b = x.astype(dtype), y.astype(dtype)
        functions = reference_functions.Functions(dtype)
        base, exponent = np.abs(a) + dtype(2**-9), b / dtype(9)
        assert_same_bits(tf.pow(base, exponent), functions.pow(base, exponent))
        assert_same_bits(tf.atan2(a, b), reference_functions.Functions(dtype).atan2(a, b))


@fused
@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_large_angles_have_the_bits_of_the_specification(name, dtype) -> None:
    exponents = integers(400, seed=5, below=np.finfo(dtype).maxexp)
    x = np.ldexp(floats(400, seed=6, dtype="float64") + 1.5, exponents).astype(dtype)
    x = np.where(np.arange(400) % 2 == 0, x, -x)[np.isfinite(x)]
    found = getattr(tf.math, name)(tf.constant(x))
    assert_same_bits(found, getattr(reference_functions.Functions(dtype), name)(x))


@fused
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("classes", [1, 2, 10, 33, 1025, 3000])
def test_softmax_has_the_bits_of_the_specification(classes, dtype) -> None:
    x = numbers(6, classes, dtype=dtype)
    labels = integers(6, seed=4, below=classes)
    functions = reference_functions.Functions(dtype)
    assert_same_bits(tf.nn.softmax(tf.constant(x)), functions.softmax(x))
    assert_same_bits(tf.nn.log_softmax(tf.constant(x)), functions.log_softmax(x))
    found = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, tf.constant(x))
    assert_same_bits(found, functions.sparse_cross_entropy(labels, x))


@fused
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [3, 16, 17, 100])
def test_normal_draws_have_the_bits_of_the_specification(n, dtype) -> None:
    found = tf.random.stateless_normal([5, n], seed=[3, 9], dtype=dtype)
    assert_same_bits(found, reference_functions.normal((3, 9), list(range(5)), n, dtype))


@pytest.mark.parametrize("replicas", [1, 2, 3, 5])
def test_a_step_draws_by_seed_op_step_and_global_example(replicas) -> None:
    strategy = tf.distribute.MirroredStrategy(replicas=replicas)
    (batch,) = strategy.experimental_distribute_dataset(
        tf.data.Dataset.from_tensor_slices(floats(22, 5, seed=1)).batch(22)
    )

    def step(rows: Any) -> Any:
        return tf.random.uniform(rows.shape), tf.random.uniform([rows.shape[0], 20], seed=6)

    tf.random.set_seed(11)
    run = tf.function(lambda: strategy.run(step, args=(batch,)))
    for number in range(2):
        for ordinal, (values, op_seed, n) in enumerate(zip(run(), (0, 6), (5, 20), strict=True)):
            key = reference_functions.key_of_op(11, op_seed, ordinal, number)
            found = np.concatenate([v.numpy() for v in strategy.experimental_local_results(values)])
            assert_same_bits(found, philox.uniform(key, range(22), n).astype(np.float32))


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_reference_rounds_a_fused_multiply_add_once(dtype) -> None:
    from fractions import Fraction

    a, b = (numbers(3000, seed=seed, dtype=dtype) for seed in (5, 6))
    c = (-a * b * (1 + floats(3000, seed=7, dtype="float64") / 2**20)).astype(dtype)
    c[::3] = numbers(1000, seed=8, dtype=dtype)
    found = reference.fma(a, b, c)
    for x, y, z, result in zip(a, b, c, found, strict=True):
        exact = Fraction(float(x)) * Fraction(float(y)) + Fraction(float(z))
        gap = abs(Fraction(float(result)) - exact)
        for other in (np.nextafter(result, dtype(-np.inf)), np.nextafter(result, dtype(np.inf))):
            assert gap <= abs(Fraction(float(other)) - exact)
