"""float16 and bfloat16: stored in 16 bits, computed in float32, each result rounded once."""

from __future__ import annotations

import itertools

import ml_dtypes
import numpy as np
import pytest
from replica_values import local, split, strategy

import samegrad as tf
from samegrad.train import Checkpoint

HALVES = {"float16": np.float16, "bfloat16": ml_dtypes.bfloat16}
DTYPES = pytest.mark.parametrize("dtype", HALVES)
TRACED = pytest.mark.parametrize("traced", [False, True], ids=["eager", "traced"])


def rounded(x, dtype: str) -> np.ndarray:
    """Rounded to the type, in float32."""
    with np.errstate(over="ignore", invalid="ignore"):
        return np.asarray(x).astype(HALVES[dtype]).astype(np.float32)


def half(x, dtype: str) -> tf.Tensor:
    with np.errstate(over="ignore"):
        return tf.constant(np.asarray(x).astype(HALVES[dtype]))


def wide(tensor: tf.Tensor) -> np.ndarray:
    return tensor.numpy().astype(np.float32)


def bits(x: np.ndarray) -> np.ndarray:
    """Its bits, but for those of NaN."""
    x = np.asarray(x)
    raw = x.view({1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}[x.itemsize])
    return np.where(x != x, raw.dtype.type(0), raw)


def same(tensor: tf.Tensor, expected: np.ndarray) -> None:
    got = tensor.numpy()
    assert got.dtype == expected.dtype
    np.testing.assert_array_equal(bits(got), bits(expected))


def normal(*shape: int, seed: int = 0, scale: float = 1.0) -> np.ndarray:
    return (np.random.default_rng(seed).normal(size=shape) * scale).astype(np.float32)


def wrapped(fn, traced):
    return tf.function(fn) if traced else fn


@DTYPES
def test_a_type_says_what_it_holds(dtype):
    kind, limits = tf.as_dtype(dtype), ml_dtypes.finfo(HALVES[dtype])
    assert kind is getattr(tf, dtype)
    assert tf.half is tf.float16
    assert (kind.min, kind.max, kind.size) == (limits.min, limits.max, 2)
    assert (kind.is_integer, kind.is_floating, kind.is_unsigned) == (False, True, False)
    assert kind == HALVES[dtype]
    assert kind == dtype
    assert kind != tf.float32
    assert tf.as_dtype(kind.as_numpy_dtype) is kind
    assert tf.as_dtype(np.dtype(HALVES[dtype])) is kind


@DTYPES
@pytest.mark.parametrize("to", ["float32", "float64", "int16", "uint64", "bool"])
def test_every_number_of_the_type_is_converted_exactly(dtype, to):
    every = np.arange(2**16, dtype=np.uint16).view(HALVES[dtype])
    values = every.astype(np.float32)
    if to in ("int16", "uint64"):
        expected = tf.cast(tf.constant(values), to).numpy()
    else:
        expected = values.astype(to)
    same(tf.cast(tf.constant(every), to), expected)


@DTYPES
@pytest.mark.parametrize("of", ["float32", "float64"])
def test_numbers_are_rounded_to_the_nearest_or_even_one(dtype, of):
    every = np.arange(2**16, dtype=np.uint16).view(HALVES[dtype]).astype(of)
    every = np.unique(every[np.isfinite(every)])
    between = (every[1:] + every[:-1]) / 2
    around = [np.nextafter(between, np.inf), np.nextafter(between, -np.inf)]
    drawn = np.random.default_rng(0).integers(2**32, size=100000, dtype=np.uint32)
    special = [-0.0, 0.0, np.inf, -np.inf, np.nan, 65519.9, 65520.0, 1e30, -1e30, 3.4e38, 1e-40]
    x = np.concatenate([every, between, *around, drawn.view(np.float32), special])
    x = x.astype(of)
    with np.errstate(over="ignore", invalid="ignore"):
        same(tf.cast(tf.constant(x), dtype), rounded_once(x, dtype))
    if of == "float64":
        with np.errstate(over="ignore"):
            same(tf.cast(tf.constant([1e300, -1e300, 1e-300]), dtype),
                 np.array([np.inf, -np.inf, 0], HALVES[dtype]))  # fmt: skip


def rounded_once(x: np.ndarray, dtype: str) -> np.ndarray:
    """NumPy rounds float64 to float16 at once; ml_dtypes does it by way of float32."""
    if dtype == "float16" or x.dtype == np.float32:
        return x.astype(HALVES[dtype])
    near = x.astype(np.float32)
    odd = near.view(np.uint32)
    cut = np.where(np.abs(near.astype(np.float64)) > np.abs(x), odd - 1, odd) | 1
    exact = (near == x) | np.isnan(x)
    return np.where(exact, near, cut.astype(np.uint32).view(np.float32)).astype(HALVES[dtype])


@DTYPES
@pytest.mark.parametrize("of", ["int8", "uint16", "int32", "uint32", "int64", "uint64", "bool"])
def test_whole_numbers_are_rounded_once(dtype, of):
    if of == "bool":
        x = np.array([False, True])
    else:
        limits = np.iinfo(of)
        x = np.random.default_rng(0).integers(limits.min, limits.max, size=20000, dtype=of)
        x >>= np.random.default_rng(1).integers(0, limits.bits, size=x.shape).astype(of)
        ties = [2049, 2051, 257, 259, (257 << 40) + 1, (257 << 40) - 1]
        x = np.concatenate([x, np.array([n for n in ties if n <= limits.max], of)])
    expected = [round_whole(int(n), dtype) for n in x]
    np.testing.assert_array_equal(wide(tf.cast(tf.constant(x), dtype)), expected)


def round_whole(n: int, dtype: str) -> float:
    """With Python's numbers, which are exact."""
    size, kept = abs(n), {"float16": 11, "bfloat16": 8}[dtype]
    drop = max(size.bit_length() - kept, 0)
    whole, rest = size >> drop, size & ((1 << drop) - 1)
    whole += rest * 2 > 1 << drop or (rest * 2 == 1 << drop and whole & 1 and drop > 0)
    result = float(whole << drop)
    if dtype == "float16" and result >= 65520:
        result = np.inf
    return -result if n < 0 else result


UNARY = {
    tf.sqrt: lambda x: np.sqrt(np.abs(x)), tf.negative: np.negative, tf.abs: np.abs,
    tf.square: np.square, tf.floor: np.floor, tf.round: np.round,
}  # fmt: skip


@DTYPES
@TRACED
def test_a_result_is_that_of_float32_rounded(dtype, traced):
    for shape in [(1000,), (1,), (0,), (17, 3)]:
        a, b = rounded(normal(*shape), dtype), rounded(normal(*shape, seed=1), dtype)
        for name in ("add", "subtract", "multiply", "divide", "maximum"):
            fn = wrapped(getattr(tf, name), traced)
            got = fn(half(a, dtype), half(b, dtype))
            assert got.dtype == dtype
            np.testing.assert_array_equal(wide(got), rounded(getattr(np, name)(a, b), dtype))
        for ours, numpys in UNARY.items():
            x = np.abs(a) if ours is tf.sqrt else a
            np.testing.assert_array_equal(
                wide(wrapped(ours, traced)(half(x, dtype))), rounded(numpys(x), dtype)
            )
        for ours in (tf.exp, tf.tanh, tf.sigmoid, tf.sin, tf.nn.softplus, tf.math.erf):
            np.testing.assert_array_equal(
                wide(wrapped(ours, traced)(half(a, dtype))),
                rounded(ours(tf.constant(a)).numpy(), dtype),
            )


@DTYPES
def test_each_operation_of_a_fused_loop_rounds(dtype):
    x, y = rounded(normal(999), dtype), rounded(normal(999, seed=1), dtype)

    def chain(a, b):
        c = a * b + a
        d = tf.exp(c) * 0.1 - b
        return d / (c * c + 1.0), tf.where(d > c, tf.tanh(d), c)

    eager = chain(half(x, dtype), half(y, dtype))
    fused = tf.function(chain)(half(x, dtype), half(y, dtype))
    for a, b in zip(eager, fused, strict=True):
        assert a.dtype == dtype
        same(a, b.numpy())

    def by_hand():
        c = rounded(rounded(x * y, dtype) + x, dtype)
        e = rounded(tf.exp(tf.constant(c)).numpy(), dtype)
        d = rounded(rounded(e * rounded(np.float32(0.1), dtype), dtype) - y, dtype)
        return rounded(d / rounded(rounded(c * c, dtype) + np.float32(1), dtype), dtype)

    np.testing.assert_array_equal(wide(fused[0]), by_hand())
    # Not what float32 throughout gives.
    assert (wide(fused[0]) != rounded(chain(tf.constant(x), tf.constant(y))[0], dtype)).any()


@DTYPES
@TRACED
@pytest.mark.parametrize(("shape", "axis"), [
    ((5000,), 0), ((1000, 30), 0), ((30, 1000), 1), ((1,), 0), ((0, 3), 0), ((40, 50), None),
])  # fmt: skip
def test_sums_are_of_float32_and_rounded_at_the_end(dtype, traced, shape, axis):
    x = rounded(normal(*shape), dtype)
    for name in ("sum", "max", "prod"):
        if x.size == 0 and name == "max":
            continue
        reduce = getattr(tf, f"reduce_{name}")
        got = wrapped(lambda v, r=reduce: r(v, axis=axis), traced)(half(x, dtype))
        assert got.dtype == dtype
        np.testing.assert_array_equal(
            wide(got), rounded(reduce(tf.constant(x), axis=axis).numpy(), dtype)
        )


@DTYPES
def test_a_sum_of_many_small_numbers_does_not_stop_growing(dtype):
    ones = tf.constant(np.ones(4096, HALVES[dtype]))
    assert float(tf.reduce_sum(ones)) == 4096
    assert float(tf.reduce_mean(ones)) == 1
    assert float(tf.matmul(ones[None], ones[:, None])[0, 0]) == 4096
    total = tf.function(lambda v: tf.reduce_sum(v, axis=0))(ones._as_examples(0, 1))
    assert float(total) == 4096


@DTYPES
@TRACED
def test_products_and_windows_add_up_in_float32(dtype, traced):
    a, b = rounded(normal(33, 500), dtype), rounded(normal(500, 7, seed=1), dtype)
    images, filters = rounded(normal(3, 8, 8, 4), dtype), rounded(normal(3, 3, 4, 5), dtype)
    calls = [
        (tf.matmul, (a, b)),
        (lambda x, w: tf.nn.conv2d(x, w, 1, "SAME"), (images, filters)),
        (lambda x: tf.nn.max_pool2d(x, 2, 2, "VALID"), (images,)),
        (lambda x: tf.nn.avg_pool2d(x, 2, 2, "VALID"), (images,)),
        (tf.nn.softmax, (a,)),
        (tf.nn.log_softmax, (a,)),
        (lambda x: tf.cumsum(x, axis=1), (a,)),
        (lambda x, y: tf.einsum("ij,jk->ik", x, y), (a, b)),
    ]
    for fn, operands in calls:
        got = wrapped(fn, traced)(*(half(x, dtype) for x in operands))
        assert got.dtype == dtype
        wanted = fn(*(tf.constant(x) for x in operands)).numpy()
        np.testing.assert_array_equal(wide(got), rounded(wanted, dtype))


@DTYPES
@TRACED
def test_what_moves_elements_keeps_every_bit(dtype, traced):
    x = np.arange(2**16, dtype=np.uint16).view(HALVES[dtype]).reshape(256, 256)
    raw = x.view(np.uint16)
    places = np.array([4, 0, 255])
    moves = [
        (tf.transpose, np.transpose), (lambda v: tf.concat([v, v], 1), lambda v: np.hstack([v, v])),
        (lambda v: tf.gather(v, places), lambda v: v[places]),
        (lambda v: v[1:200:2, ::3], lambda v: v[1:200:2, ::3]),
        (lambda v: tf.pad(v, [[1, 0], [0, 2]]), lambda v: np.pad(v, [[1, 0], [0, 2]])),
        (lambda v: tf.tile(v, [2, 1]), lambda v: np.tile(v, [2, 1])),
        (lambda v: tf.reshape(v, [16, -1]), lambda v: v.reshape(16, -1)),
        (tf.identity, lambda v: v),
        (lambda v: tf.where(tf.ones([256], "bool"), v, v), lambda v: v),
    ]  # fmt: skip
    for ours, numpys in moves:
        got = wrapped(ours, traced)(tf.constant(x)).numpy()
        assert got.dtype == x.dtype
        np.testing.assert_array_equal(got.view(np.uint16), numpys(raw))


@DTYPES
def test_order_and_comparisons_are_those_of_the_numbers(dtype):
    x = rounded(normal(50, 40), dtype)
    x[0, :3] = [np.nan, np.inf, -np.inf]
    h = half(x, dtype)
    np.testing.assert_array_equal(wide(tf.sort(h, axis=1)), np.sort(x, axis=1))
    same(tf.argmax(h, axis=1), np.argmax(x, axis=1))
    same(h > h[:1], x > x[:1])
    same(tf.math.is_nan(h), np.isnan(x))
    for ours, wanted in zip(tf.math.top_k(h[1:], 3), tf.math.top_k(tf.constant(x[1:]), 3),
                            strict=True):  # fmt: skip
        np.testing.assert_array_equal(ours.numpy().astype("f4"), wanted.numpy().astype("f4"))


def test_first_and_second_derivatives_are_near_those_of_float32():
    x = rounded(normal(20), "float16")

    def second(v):
        with tf.GradientTape() as outer:
            outer.watch(v)
            with tf.GradientTape() as inner:
                inner.watch(v)
                y = tf.reduce_sum(tf.tanh(v) * v + tf.exp(v) / (v * v + 1.0))
            first = inner.gradient(y, v)
            total = tf.reduce_sum(first * first)
        return first, outer.gradient(total, v)

    for dtype, tolerance in (("float16", 2e-2), ("bfloat16", 2e-1)):
        for traced in (False, True):
            got = wrapped(second, traced)(half(x, dtype))
            for part, wanted in zip(got, second(tf.constant(x)), strict=True):
                assert part.dtype == dtype
                scale = np.abs(wanted.numpy()).max()
                np.testing.assert_allclose(wide(part), wanted.numpy(), atol=tolerance * scale)


def gradients_on(replicas: int, dtype: str, step) -> list[np.ndarray]:
    x = rounded(normal(64, 12), dtype).astype(HALVES[dtype])
    w = tf.Variable(rounded(normal(12, 5, seed=1), dtype).astype(HALVES[dtype]))
    b = tf.Variable(np.zeros(5, HALVES[dtype]))
    devices = strategy(replicas)

    def one(v):
        with tf.GradientTape() as tape:
            loss = step(v, w, b)
        gradients = tape.gradient(loss, [w, b])
        context = tf.distribute.get_replica_context()
        return [context.all_reduce("sum", g) for g in (*gradients, loss)]

    return [local(g)[0] for g in devices.run(one, (split(x, replicas),))]


def layer(x, w, b):
    return tf.reduce_sum(tf.nn.relu(tf.matmul(x, w) + b) ** 2) / 64


def used_twice(x, w, b):
    return tf.reduce_sum(tf.matmul(tf.tanh(tf.matmul(x, w) + b), w, transpose_b=True)) / 64


def branched(x, w, b):
    h = tf.cond(tf.reduce_sum(w) > 100.0, lambda: tf.matmul(x, w), lambda: tf.matmul(x, w * w) + b)
    return tf.reduce_sum(tf.tanh(h)) / 64


def repeated(x, w, b):
    h = tf.while_loop(lambda i, h: i < 3, lambda i, h: (i + 1, tf.tanh(h * b + h)),
                      (0, tf.matmul(x, w)))[1]  # fmt: skip
    return tf.reduce_sum(h) / 64


@DTYPES
@pytest.mark.parametrize("step", [layer, used_twice, branched, repeated])
def test_gradients_have_the_bits_of_one_device(dtype, step):
    alone = gradients_on(1, dtype, step)
    for replicas in (2, 3):
        for got, wanted in zip(gradients_on(replicas, dtype, step), alone, strict=True):
            assert got.dtype == HALVES[dtype]
            np.testing.assert_array_equal(bits(got), bits(wanted))


@DTYPES
def test_mixed_precision_trains_float32_weights_alike_on_all_replicas(dtype):
    x, y = normal(32, 10), np.random.default_rng(3).integers(4, size=32)
    trained = {}
    for replicas in (1, 2, 3):
        devices = strategy(replicas)
        with devices.scope():
            tf.random.set_seed(0)
            w = tf.Variable(normal(10, 4, seed=2))
            optimizer = tf.keras.optimizers.Adam(0.05)

        def step(v, labels, w=w, optimizer=optimizer):
            with tf.GradientTape() as tape:
                logits = tf.matmul(tf.cast(v, dtype), tf.cast(w, dtype))
                losses = tf.nn.sparse_softmax_cross_entropy_with_logits(
                    labels, tf.cast(logits, "float32")
                )
                loss = tf.nn.compute_average_loss(losses, global_batch_size=32)
                scaled = loss * 128.0
            (gradient,) = tape.gradient(scaled, [w])
            assert gradient.dtype == tf.float32
            optimizer.apply_gradients([(gradient / 128.0, w)])
            return loss

        losses = []
        for _ in range(5):
            per = devices.run(step, (split(x, replicas), split(y, replicas)))
            losses.append(float(devices.reduce("sum", per, axis=None)))
        assert losses[-1] < losses[0]
        trained[replicas] = w.numpy()
    np.testing.assert_array_equal(bits(trained[1]), bits(trained[2]))
    np.testing.assert_array_equal(bits(trained[1]), bits(trained[3]))


@DTYPES
@TRACED
def test_loops_and_branches_carry_them(dtype, traced):
    def power(x, n):
        start = (0, tf.ones_like(x))
        return tf.while_loop(lambda i, y: i < n, lambda i, y: (i + 1, y * x), start)[1]

    def fn(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.cond(tf.reduce_sum(x) > 0.0, lambda: power(x, 3), lambda: -x)
        return y, tape.gradient(y, x)

    x = rounded(np.abs(normal(6)), dtype)
    y, slope = wrapped(fn, traced)(half(x, dtype))
    cubed = rounded(rounded(x * x, dtype) * x, dtype)
    np.testing.assert_array_equal(wide(y), cubed)
    np.testing.assert_allclose(wide(slope), 3 * x * x, rtol=3e-2)


@DTYPES
def test_random_numbers_are_those_of_float32_rounded(dtype):
    for draw in (tf.random.normal, tf.random.truncated_normal, tf.random.uniform):
        tf.random.set_seed(4)
        drawn = draw([100], dtype=dtype)
        tf.random.set_seed(4)
        wanted = draw([100]).numpy()
        if draw is tf.random.uniform:  # down, to stay below 1
            wanted = (wanted.view("u4") & kept_bits(dtype)).view("f4")
        assert drawn.dtype == dtype
        np.testing.assert_array_equal(wide(drawn), rounded(wanted, dtype))


def kept_bits(dtype):
    """The bits of a float32 that the type has."""
    return np.uint32(2**32 - (2**16 if dtype == "bfloat16" else 2**13))


@DTYPES
def test_variables_datasets_and_checkpoints_hold_them(dtype, tmp_path):
    x = rounded(normal(6, 2), dtype).astype(HALVES[dtype])
    variable = tf.Variable(x)
    assert variable.dtype == dtype
    Checkpoint(v=variable).write(str(tmp_path / "kept"))
    variable.assign_add(tf.ones_like(variable))
    np.testing.assert_array_equal(variable.numpy().astype("f4"), rounded(x.astype("f4") + 1, dtype))
    Checkpoint(v=variable).read(str(tmp_path / "kept"))
    same(variable + 0, x)
    batches = tf.data.Dataset.from_tensor_slices(x).map(lambda v: v * 2).batch(3)
    joined = np.concatenate([batch.numpy() for batch in batches])
    np.testing.assert_array_equal(joined.astype("f4"), x.astype("f4") * 2)


def test_other_libraries_see_float16():
    x = normal(4, 3).astype(np.float16)
    np.testing.assert_array_equal(np.from_dlpack(tf.constant(x)), x, strict=True)


@DTYPES
def test_numbers_of_python_take_the_tensors_type(dtype, capfd):
    h = half([1.5, 2.0], dtype)
    assert (h * 2.0).dtype == (1 - h).dtype == dtype
    assert float(h[0]) == 1.5
    assert tf.constant(1e30, "float16").numpy() == np.inf
    same(tf.range(0, 3, dtype=dtype), np.array([0, 1, 2], HALVES[dtype]))
    tf.print(h)
    assert "[1.5 2]" in "".join(capfd.readouterr())
    assert dtype in repr(h)


@DTYPES
def test_an_infinity_is_found_where_it_was_made(dtype):
    tf.debugging.enable_check_numerics()
    try:
        with pytest.raises(tf.errors.NonFiniteError, match="an infinity"):
            _ = half([3e38 if dtype == "bfloat16" else 6e4], dtype) * 2.0
    finally:
        tf.debugging.disable_check_numerics()


@DTYPES
def test_other_types_are_refused_by_name(dtype):
    h = half([1.0], dtype)
    other = {"float16": "bfloat16", "bfloat16": "float16"}[dtype]
    with pytest.raises(TypeError, match=f"{dtype} and float32"):
        _ = h + tf.ones([1])
    with pytest.raises(TypeError, match=f"{dtype} and {other}"):
        tf.matmul(h[None], tf.cast(h[None], other))
    with pytest.raises(TypeError, match=f"got {dtype}"):
        tf.gather(tf.ones([3]), h)
    with pytest.raises(TypeError, match=f"holds float32: got {dtype}"):
        tf.Variable([1.0]).assign(h)


@pytest.mark.parametrize(("a", "b"), itertools.permutations(["float16", "bfloat16"], 2))
def test_one_type_becomes_the_other_rounded_once(a, b):
    x = rounded(normal(1000, scale=100.0), a)
    np.testing.assert_array_equal(wide(tf.cast(half(x, a), b)), rounded(x, b))
