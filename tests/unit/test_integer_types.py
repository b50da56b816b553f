"""Whole numbers of every width are NumPy's: they wrap around, and sums have their type."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from replica_values import examples, local, split, strategy

import samegrad as tf
from samegrad.train import Checkpoint

SIGNED = ("int8", "int16", "int32", "int64")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
DTYPES = pytest.mark.parametrize("dtype", SIGNED + UNSIGNED)
TRACED = pytest.mark.parametrize("traced", [False, True], ids=["eager", "traced"])
ALL = (*SIGNED, *UNSIGNED, "float32", "float64", "bool")


def numbers(dtype: str, shape: tuple[int, ...], seed: int = 0) -> np.ndarray:
    """From the whole range, with its ends."""
    limits = np.iinfo(dtype)
    drawn = np.random.default_rng(seed).integers(
        limits.min, limits.max, size=shape, dtype=dtype, endpoint=True
    )
    drawn.ravel()[:3] = [limits.min, limits.max, 1][: drawn.size]
    return drawn


def same(tensor: tf.Tensor, expected: np.ndarray) -> None:
    np.testing.assert_array_equal(tensor.numpy(), expected, strict=True)


def wrapped(fn, traced):
    return tf.function(fn) if traced else fn


@DTYPES
def test_a_type_says_what_it_holds(dtype):
    kind, limits = tf.as_dtype(dtype), np.iinfo(dtype)
    assert kind is getattr(tf, dtype)
    assert (kind.min, kind.max, kind.size) == (limits.min, limits.max, np.dtype(dtype).itemsize)
    assert (kind.is_integer, kind.is_floating, kind.is_unsigned) == (True, False, dtype[0] == "u")
    assert kind == np.dtype(dtype)
    assert tf.as_dtype(kind.as_numpy_dtype) is kind


@pytest.mark.parametrize(("of", "to"), list(itertools.product(ALL, ALL)))
def test_a_cast_of_whole_numbers_wraps_as_numpys(of, to):
    x = np.array([0, 1, 1], bool) if of == "bool" else np.array([0, 1, 5, 100], of)
    if of in SIGNED + UNSIGNED:
        x = np.concatenate([x, numbers(of, (1000,))])
    same(tf.cast(tf.constant(x), to), x.astype(to))


@pytest.mark.parametrize("of", ["float32", "float64"])
@DTYPES
def test_a_float_beyond_the_range_becomes_its_nearest_end(of, dtype):
    limits = np.iinfo(dtype)
    x = np.array([-np.inf, -1e30, -3.9, -0.0, 2.7, 1e30, np.inf, np.nan], of)
    expected = [limits.min, limits.min, max(-3, limits.min), 0, 2, limits.max, limits.max, 0]
    same(tf.cast(tf.constant(x), dtype), np.array(expected, dtype))


@DTYPES
@TRACED
@pytest.mark.parametrize("name", ["add", "subtract", "multiply", "maximum", "minimum"])
def test_arithmetic_is_numpys(dtype, traced, name):
    for shape in [(1000,), (1,), (0,), (3, 5)]:
        a, b = numbers(dtype, shape), numbers(dtype, shape, 1)
        with np.errstate(over="ignore"):
            same(wrapped(getattr(tf, name), traced)(tf.constant(a), tf.constant(b)),
                 getattr(np, name)(a, b))  # fmt: skip


@DTYPES
def test_division_and_powers_are_numpys(dtype):
    a, b = numbers(dtype, (500,)), numbers(dtype, (500,), 1)
    b[(b == 0) | (b == np.iinfo(dtype).max)] = 3
    a[(a == np.iinfo(dtype).min)] = 7
    same(tf.constant(a) // tf.constant(b), a // b)
    same(tf.constant(a) % tf.constant(b), a % b)
    with np.errstate(over="ignore"):
        same(tf.constant(a) ** tf.constant(np.array(3, dtype)), a ** np.array(3, dtype))
        same(tf.square(tf.constant(a)), a * a)
    wide = "float32" if np.dtype(dtype).itemsize < 4 else "float64"
    same(tf.constant(a) / tf.constant(b), a.astype(wide) / b.astype(wide))


@DTYPES
def test_signs_are_numpys(dtype):
    x = numbers(dtype, (100,))
    if dtype in SIGNED:
        same(-tf.constant(x), -x)
        same(tf.abs(tf.constant(x)), np.abs(x))
        same(tf.sign(tf.constant(x)), np.sign(x))
    else:
        with pytest.raises(TypeError, match=f"int64: got {dtype}"):
            tf.negative(tf.constant(x))
    same(tf.nn.relu(tf.constant(x)), np.maximum(x, 0))


@DTYPES
@TRACED
def test_comparisons_and_choices_are_numpys(dtype, traced):
    a = numbers(dtype, (1000,)) % np.array(4, dtype)
    b = numbers(dtype, (1000,), 1)
    for name in ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal"):
        compare = wrapped(getattr(tf, name), traced)
        same(compare(tf.constant(a), tf.constant(b)), getattr(np, name)(a, b))
    same(tf.where(tf.constant(a > b), tf.constant(a), tf.constant(b)), np.where(a > b, a, b))


@DTYPES
@TRACED
@pytest.mark.parametrize(("shape", "axis"), [
    ((1000,), 0), ((37, 11), 0), ((37, 11), 1), ((3, 1000), -1), ((0, 3), 0), ((2, 0), 0),
    ((1,), 0), ((300, 70), None),
])  # fmt: skip
def test_reductions_have_the_type_and_wrap_around(dtype, traced, shape, axis):
    x = numbers(dtype, shape)
    reductions = ["sum", "prod"] + (["max", "min"] if x.size else [])
    for name in reductions:
        reduce = wrapped(getattr(tf, f"reduce_{name}"), traced)
        options = {"dtype": dtype} if name in ("sum", "prod") else {}
        expected = np.asarray(getattr(np, name)(x, axis=axis, **options))
        same(reduce(tf.constant(x), axis=axis), expected if expected.ndim else expected[()])


@DTYPES
@pytest.mark.parametrize("replicas", [1, 2, 3])
def test_sums_over_the_examples_are_the_same_on_all_replicas(dtype, replicas):
    x = numbers(dtype, (1001, 3))

    def step(v):
        context = tf.distribute.get_replica_context()
        return [
            context.all_reduce("sum", tf.reduce_sum(v, axis=0)),
            tf.reduce_max(v, axis=0),
            tf.reduce_prod(v, axis=0),
        ]

    devices = strategy(replicas)
    total, most, product = devices.run(step, (split(x, replicas),))
    for part in local(total):
        np.testing.assert_array_equal(part, x.sum(axis=0, dtype=dtype), strict=True)
    np.testing.assert_array_equal(np.max(local(most), axis=0), x.max(axis=0))
    whole = np.prod(local(product), axis=0, dtype=dtype)
    np.testing.assert_array_equal(whole, x.prod(axis=0, dtype=dtype))


@DTYPES
@TRACED
def test_what_moves_elements_moves_these(dtype, traced):
    x, places = numbers(dtype, (6, 7)), np.array([4, 0, 0, 5])
    moves = [
        (tf.transpose, np.transpose),
        (lambda v: tf.concat([v, v], 1), lambda v: np.concatenate([v, v], 1)),
        (lambda v: tf.gather(v, places), lambda v: v[places]),
        (lambda v: tf.reverse(v, [0]) if hasattr(tf, "reverse") else v[::-1], lambda v: v[::-1]),
        (lambda v: v[1:5:2, ::3], lambda v: v[1:5:2, ::3]),
        (lambda v: tf.pad(v, [[1, 0], [0, 2]]), lambda v: np.pad(v, [[1, 0], [0, 2]])),
        (lambda v: tf.tile(v, [2, 1]), lambda v: np.tile(v, [2, 1])),
        (lambda v: tf.repeat(v, 3, axis=1), lambda v: np.repeat(v, 3, axis=1)),
        (lambda v: tf.broadcast_to(v[:1], [5, 7]), lambda v: np.broadcast_to(v[:1], [5, 7])),
        (lambda v: tf.stack([v, v]), lambda v: np.stack([v, v])),
        (tf.zeros_like, np.zeros_like),
        (tf.ones_like, np.ones_like),
        (lambda v: tf.sort(v, axis=-1), lambda v: np.sort(v, axis=-1)),
        (
            lambda v: tf.argsort(v, axis=0),
            lambda v: np.argsort(v, axis=0, kind="stable").astype("i4"),
        ),
        (lambda v: tf.math.top_k(v, 3)[0], lambda v: np.sort(v, axis=-1)[:, :-4:-1]),
        (lambda v: tf.argmax(v, axis=1), lambda v: np.argmax(v, axis=1)),
        (lambda v: tf.argmin(v, axis=0), lambda v: np.argmin(v, axis=0)),
        (lambda v: tf.cumsum(v, axis=1), lambda v: np.cumsum(v, axis=1, dtype=dtype)),
        (lambda v: tf.math.cumprod(v, axis=0), lambda v: np.cumprod(v, axis=0, dtype=dtype)),
    ]  # fmt: skip
    for ours, numpys in moves:
        same(wrapped(ours, traced)(tf.constant(x)), np.asarray(numpys(x)))


def test_one_hot_takes_numpy_floats_that_are_integers():
    """Programs read labels from files of floats, and TensorFlow takes them."""
    assert tf.one_hot(np.array([0.0, 2.0]), 3).numpy().tolist() == [[1, 0, 0], [0, 0, 1]]
    for wrong in (np.array([0.5]), np.array([np.nan]), [1.0], tf.constant([1.0])):
        with pytest.raises(TypeError, match=r"^\[one_hot\] the operand must be int8"):
            tf.one_hot(wrong, 3)


@DTYPES
def test_segments_scatter_and_one_hot(dtype):
    x, ids = numbers(dtype, (200, 3)), np.random.default_rng(0).integers(5, size=200)
    total, most = np.zeros((5, 3), dtype), np.full((5, 3), np.iinfo(dtype).min, dtype)
    np.add.at(total, ids, x)
    np.maximum.at(most, ids, x)
    same(tf.math.unsorted_segment_sum(tf.constant(x), ids, 5), total)
    same(tf.math.unsorted_segment_max(tf.constant(x), ids, 5), most)
    same(tf.scatter_nd(ids[:, None], tf.constant(x), [5, 3]), total)
    hot = tf.one_hot(tf.constant(np.array([1, 0, 2], dtype)), 3, dtype=dtype)
    same(hot, np.eye(3, dtype=dtype)[[1, 0, 2]])


@pytest.mark.parametrize("dtype", SIGNED)
@pytest.mark.parametrize(("m", "k", "n"), [(3, 1000, 5), (1, 1, 1), (0, 4, 2), (4, 0, 2)])
def test_products_of_signed_numbers_wrap_around(dtype, m, k, n):
    a, b = numbers(dtype, (m, k)), numbers(dtype, (k, n), 1)
    same(tf.matmul(tf.constant(a), tf.constant(b)), a @ b)


@pytest.mark.parametrize("dtype", SIGNED)
@pytest.mark.parametrize("replicas", [1, 2, 3])
@pytest.mark.parametrize("rows", [1, 70])
def test_products_over_the_examples_are_summed_over_the_replicas(dtype, replicas, rows):
    x = numbers(dtype, (301, rows, 3))

    def count(v):
        pairs = tf.matmul(tf.reshape(v, [-1, 3]), tf.reshape(v, [-1, 3]), transpose_a=True)
        return tf.distribute.get_replica_context().all_reduce("sum", pairs)

    flat = x.reshape(-1, 3)
    for part in local(strategy(replicas).run(count, (split(x, replicas),))):
        np.testing.assert_array_equal(part, flat.T @ flat, strict=True)


@DTYPES
def test_variables_functions_and_checkpoints_hold_them(dtype, tmp_path):
    x = numbers(dtype, (5,))
    variable = tf.Variable(x)
    assert variable.dtype == dtype
    Checkpoint(v=variable).write(str(tmp_path / "kept"))
    tf.function(lambda: variable.assign_add(tf.ones_like(variable)))()
    np.testing.assert_array_equal(variable.numpy(), x + np.array(1, dtype))
    Checkpoint(v=variable).read(str(tmp_path / "kept"))
    np.testing.assert_array_equal(variable.numpy(), x, strict=True)


@DTYPES
def test_datasets_and_runs_take_them(dtype):
    x = numbers(dtype, (12, 2))
    devices = strategy(2)
    batches = devices.experimental_distribute_dataset(
        tf.data.Dataset.from_tensor_slices(x).map(lambda v: v + v).batch(4)
    )
    seen = [devices.run(lambda v: v, (batch,)) for batch in batches]
    joined = np.concatenate([part for batch in seen for part in local(batch)])
    np.testing.assert_array_equal(joined, x + x, strict=True)


@DTYPES
def test_other_libraries_see_the_memory(dtype):
    x = numbers(dtype, (4, 3))
    np.testing.assert_array_equal(np.from_dlpack(tf.constant(x)), x, strict=True)
    same(tf.experimental.dlpack.from_dlpack(tf.experimental.dlpack.to_dlpack(tf.constant(x))), x)


@DTYPES
def test_numbers_of_python_take_the_tensors_type_or_are_refused(dtype):
    limits, one = np.iinfo(dtype), tf.constant(np.ones(2, dtype))
    assert (one + 1).dtype == dtype
    same(tf.constant([limits.min, limits.max], dtype), np.array([limits.min, limits.max], dtype))
    same(tf.fill([2], tf.constant(limits.max, dtype)), np.full(2, limits.max, dtype))
    assert int(tf.constant(limits.max, dtype)) == limits.max
    with pytest.raises(ValueError, match=f"{dtype} holds numbers from {limits.min} to"):
        tf.constant([limits.max + 1] if dtype != "uint64" else [-1], dtype)
    with pytest.raises(TypeError, match="float"):
        _ = one + 1.5


@DTYPES
def test_they_are_printed_as_numbers(dtype, capfd):
    least = np.iinfo(dtype).min
    tf.print(tf.constant(np.array([least, 65], dtype)))
    assert f"[{least} 65]" in "".join(capfd.readouterr())


@pytest.mark.parametrize(("call", "words"), [
    (lambda: tf.sqrt(tf.constant(np.int8(1))), "float32, float64, float16 or bfloat16: got int8"),
    (lambda: tf.constant(np.int16(1)) + tf.constant(np.uint16(1)), "int16 and uint16"),
    (lambda: tf.gather(tf.zeros([3]), tf.constant(np.uint64([1]))), "int32 or int64: got uint64"),
    (lambda: tf.matmul(*[tf.constant(np.ones((1, 1), np.uint32))] * 2), "got uint32"),
    (lambda: tf.random.uniform([2], 0, 5, "int8"), "int32 or int64: got int8"),
    (lambda: tf.reduce_any(tf.constant(np.uint16([1]))), "bool: got uint16"),
    (lambda: tf.nn.softmax(tf.constant(np.int16([1]))), "got int16"),
    (lambda: tf.math.logical_not(tf.constant(np.int8(1))), "bool: got int8"),
])  # fmt: skip
def test_what_is_not_defined_for_a_type_names_it(call, words):
    with pytest.raises(TypeError, match=words):
        call()


def test_a_batch_of_bytes_becomes_numbers_between_0_and_1():
    pixels = np.arange(256, dtype=np.uint8)
    same(tf.constant(pixels) / 255, pixels.astype("f4") / np.float32(255))
    same(examples(pixels[:, None])[:3] / 255, pixels[:3, None].astype("f4") / np.float32(255))
