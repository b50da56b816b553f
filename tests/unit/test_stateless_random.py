"""Draws by a seed that is a tensor: functions of (seed, global row, place in the row)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import philox
import pytest
from replica_values import both_ways, cut, distributed, results

import samegrad as tf
from samegrad._tensor.per_replica import PerReplica

KEY = (7, 4_000_000_000)
SEED = np.array(KEY, np.uint32)
# Elements 0, 16, 63 and 69 of row 0 of the seed [1, 2], as bits.
GOLDEN = [1018371008, 1058591360, 1063741107, 1051482110]
DRAWS = {
    "uniform": tf.random.stateless_uniform,
    "normal": tf.random.stateless_normal,
    "truncated_normal": tf.random.stateless_truncated_normal,
}
of_draws = pytest.mark.parametrize("name", list(DRAWS))
SHARES = [(7,), (4, 3), (3, 2, 2), (1, 4, 0, 2)]
of_shares = pytest.mark.parametrize("shares", SHARES, ids=str)


def test_the_reference_gives_the_published_answers_of_philox() -> None:
    given = [0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344]
    words = philox.philox(given, (0xA4093822, 0x299F31D0))  # type: ignore[arg-type]
    assert [int(w) for w in words] == [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1]


@of_draws
@pytest.mark.parametrize(("dtype", "parts"), [("float32", 4), ("float64", 2)])
@pytest.mark.parametrize("n", [1, 3, 16, 17, 64, 65, 200])
def test_numbers_are_those_of_the_formula(name: str, dtype: str, parts: int, n: int) -> None:
    drawn = DRAWS[name]((5, n), SEED, dtype=dtype).numpy()
    wanted = getattr(philox, name)(KEY, range(5), n, parts)
    if name == "uniform":
        np.testing.assert_array_equal(drawn, wanted)
    else:
        rounding = 2e-6 if dtype == "float32" else 1e-14
        np.testing.assert_allclose(drawn, wanted, rtol=rounding, atol=rounding)


@pytest.mark.parametrize(
    ("dtype", "low", "high"),
    [
        ("int32", -3, 9),
        ("int64", -(2**62), 2**62),
        ("uint32", 5, 2**32),
        ("uint64", 0, 2**63 - 1),
        ("int32", None, None),
        ("uint32", None, None),
        ("int64", None, None),
        ("uint64", None, None),
    ],
)
def test_whole_numbers_are_those_of_the_formula(dtype: str, low: Any, high: Any) -> None:
    drawn = tf.random.stateless_uniform((4, 40), SEED, low, high, dtype).numpy()
    if low is None:
        bits = np.iinfo(dtype).bits
        low = np.iinfo(dtype).min if bits == 32 else 0
        high = low + 2**32 if bits == 32 else 0
    wanted = philox.integers(KEY, range(4), 40, low, high)
    assert drawn.dtype == dtype
    np.testing.assert_array_equal(drawn.astype(object) % 2**64, wanted % 2**64)


def test_the_numbers_of_a_seed_never_change() -> None:
    drawn = tf.random.stateless_uniform((2, 70), [1, 2]).numpy()[:, [0, 16, 63, 69]]
    np.testing.assert_array_equal(drawn[0].view("u4"), GOLDEN)
    np.testing.assert_array_equal(
        tf.random.stateless_uniform((6,), [1, 3], 0, 10, "int32"), [1, 2, 4, 6, 4, 9]
    )
    np.testing.assert_allclose(
        tf.random.stateless_normal((3,), [1, 2]), [-2.2676373, -0.33814818, 0.6585906], rtol=1e-6
    )


@pytest.mark.parametrize(
    "seed",
    [
        [-1, 2**40 + 9],
        (2**32 - 1, 9),
        np.array([-1, 9], np.int32),
        np.array([-1, 2**40 + 9], np.int64),
        np.array([2**64 - 1, 9], np.uint64),
        [np.int64(-1), 9],
    ],
    ids=str,
)
def test_seeds_of_all_types_are_taken_modulo_2_to_the_32(seed: Any) -> None:
    wanted = tf.random.stateless_uniform((3,), np.array([2**32 - 1, 9], np.uint32))
    np.testing.assert_array_equal(tf.random.stateless_uniform((3,), seed), wanted)
    tensors = [tf.constant(-1, "int64"), 9]
    np.testing.assert_array_equal(tf.random.stateless_uniform((3,), tensors), wanted)


@of_draws
def test_a_shape_says_rows_and_places_in_them(name: str) -> None:
    draw = DRAWS[name]
    whole = draw((6, 5, 4), SEED).numpy()
    np.testing.assert_array_equal(draw((6, 20), SEED).numpy(), whole.reshape(6, 20))
    np.testing.assert_array_equal(draw((2, 3), SEED).numpy(), whole.reshape(6, 20)[:2, :3])
    np.testing.assert_array_equal(draw((6,), SEED).numpy(), whole[:, 0, 0])
    assert float(draw((), SEED)) == whole[0, 0, 0]


@of_draws
@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0), (1,), ()])
def test_draws_of_nothing_and_of_one(name: str, shape: tuple[int, ...]) -> None:
    drawn = DRAWS[name](shape, SEED)
    assert tuple(drawn.shape) == shape
    assert np.isfinite(drawn.numpy()).all()


@of_draws
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_functions_draw_what_is_drawn_eagerly(name: str, dtype: str) -> None:
    draw = lambda seed: DRAWS[name]((40, 30), seed, 2.0, 3.0, dtype)  # noqa: E731
    eager = draw(SEED)
    assert eager.dtype == dtype
    np.testing.assert_array_equal(tf.function(draw)(tf.constant(SEED)), eager)
    np.testing.assert_array_equal(draw(SEED), eager)
    assert not np.array_equal(draw(SEED + np.uint32(1)), eager)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_uniform_numbers_of_16_bits_are_below_one(dtype: str) -> None:
    half = tf.cast(tf.random.stateless_uniform((1000, 100), SEED, dtype=dtype), "float32").numpy()
    whole = tf.random.stateless_uniform((1000, 100), SEED).numpy()
    assert half.max() < 1
    assert (half <= whole).all()
    np.testing.assert_allclose(half, whole, rtol=2**-7)


def test_neither_the_global_seed_nor_other_draws_matter() -> None:
    tf.random.set_seed(1)
    first = tf.random.stateless_normal((50,), SEED).numpy()
    after = tf.random.normal((3,)).numpy()
    tf.random.set_seed(1)
    np.testing.assert_array_equal(tf.random.normal((3,)), after)  # no step was counted
    tf.random.set_seed(2)
    tf.random.normal((3,))
    np.testing.assert_array_equal(tf.random.stateless_normal((50,), SEED), first)


def noise(v: Any, seed: Any) -> Any:
    rows = tf.shape(v)[0]
    return tf.concat(
        [
            tf.random.stateless_normal((rows, 5), seed),
            tf.random.stateless_uniform([v.shape[0], 70], seed),
            tf.random.stateless_truncated_normal((rows, 2), seed),
            tf.cast(tf.random.stateless_uniform((rows, 3), seed, 0, 99, "int32"), "float32"),
        ],
        axis=1,
    )


DATA = np.zeros((7, 2), np.float32)
# What one device draws for the seven examples.
WHOLE = np.concatenate(
    [
        tf.random.stateless_normal((7, 5), SEED),
        tf.random.stateless_uniform((7, 70), SEED),
        tf.random.stateless_truncated_normal((7, 2), SEED),
        tf.random.stateless_uniform((7, 3), SEED, 0, 99, "int32").numpy().astype("f4"),
    ],
    axis=1,
)


@both_ways
@of_shares
def test_replicas_draw_the_rows_of_one_device(shares: tuple[int, ...], traced: bool) -> None:
    got = results(lambda v: noise(v, SEED), cut(DATA, shares), traced)
    np.testing.assert_array_equal(np.concatenate(got), WHOLE)


@both_ways
@of_shares
def test_rows_of_counts_that_python_knows_are_those_of_one_device(
    shares: tuple[int, ...], traced: bool
) -> None:
    def step(v: Any) -> Any:
        return tf.random.stateless_uniform((len(v), 70), SEED)

    got = results(step, cut(DATA, shares), traced)
    np.testing.assert_array_equal(np.concatenate(got), WHOLE[:, 5:75])


@pytest.mark.parametrize("replicas", [1, 2, 3, 4])
@pytest.mark.parametrize("size", [3, 32, 1000])
def test_batches_of_a_dataset_draw_the_rows_of_one_device(replicas: int, size: int) -> None:
    strategy = tf.distribute.MirroredStrategy(replicas=replicas)
    dataset = tf.data.Dataset.from_tensor_slices(np.zeros((size, 2), np.float32)).batch(size)
    (batch,) = strategy.experimental_distribute_dataset(dataset)
    parts = strategy.run(lambda v: noise(v, SEED), (batch,))
    drawn = np.concatenate([p.numpy() for p in strategy.experimental_local_results(parts)])
    np.testing.assert_array_equal(drawn, noise(DATA[:1].repeat(size, axis=0), SEED))


def test_a_plain_number_of_rows_is_drawn_replica_by_replica() -> None:
    strategy = tf.distribute.MirroredStrategy(replicas=3)
    parts = strategy.run(lambda: tf.random.stateless_normal((2, 5), SEED))
    drawn = np.concatenate([p.numpy() for p in strategy.experimental_local_results(parts)])
    np.testing.assert_array_equal(drawn, WHOLE[:6, :5])


def test_replicas_draw_with_their_own_seeds_where_they_differ() -> None:
    strategy = tf.distribute.MirroredStrategy(replicas=2)
    seeds = PerReplica((tf.constant([1, 2]), tf.constant([3, 4])))
    parts = distributed(strategy, cut(DATA, (4, 3)))
    drawn = strategy.run(
        lambda v, s: tf.random.stateless_uniform((tf.shape(v)[0], 5), s), (parts, seeds)
    )
    first, second = strategy.experimental_local_results(drawn)
    np.testing.assert_array_equal(first, tf.random.stateless_uniform((7, 5), [1, 2])[:4])
    np.testing.assert_array_equal(second, tf.random.stateless_uniform((7, 5), [3, 4])[4:])


@pytest.mark.parametrize("replicas", [1, 2, 3])
def test_a_seed_that_the_step_advances_goes_on_from_a_checkpoint(
    replicas: int, tmp_path: Any
) -> None:
    strategy = tf.distribute.MirroredStrategy(replicas=replicas)
    with strategy.scope():
        state = tf.Variable(np.array([5, 0], np.uint32), trainable=False)
    dataset = tf.data.Dataset.from_tensor_slices(np.zeros((6, 3), np.float32)).batch(6)
    (batch,) = strategy.experimental_distribute_dataset(dataset)

    @tf.function
    def step(v: Any) -> Any:
        drawn = strategy.run(lambda x: x + tf.random.stateless_normal(tf.shape(x), state), (v,))
        state.assign_add(tf.constant([0, 1], "uint32"))
        return drawn

    def advance() -> np.ndarray:
        parts = strategy.experimental_local_results(step(batch))
        return np.concatenate([p.numpy() for p in parts])

    checkpoint = tf.train.Checkpoint(state=state)
    first = advance()
    checkpoint.write(str(tmp_path / "kept"))
    more = [advance(), advance()]
    for i, drawn in enumerate([first, *more]):
        np.testing.assert_array_equal(drawn, tf.random.stateless_normal((6, 3), [5, i]))
    checkpoint.read(str(tmp_path / "kept"))
    for wanted in more:
        np.testing.assert_array_equal(advance(), wanted)
    assert state.numpy().tolist() == [5, 3]


def test_gradients_meet_what_was_drawn_and_none_flows_to_the_seed() -> None:
    x = tf.Variable(np.ones((30, 4), np.float32))
    seed = tf.Variable(SEED, trainable=False)

    def loss() -> Any:
        return tf.reduce_sum(x * x * tf.random.stateless_uniform((30, 4), seed))

    for fn in (loss, tf.function(loss)):
        with tf.GradientTape() as tape:
            value = fn()
        slope = tape.gradient(value, x)
        np.testing.assert_array_equal(slope, 2 * tf.random.stateless_uniform((30, 4), SEED).numpy())


def distance(sample: np.ndarray, cumulative: np.ndarray) -> float:
    """Of Kolmogorov and Smirnov, times the root of the size."""
    n = len(sample)
    steps = np.arange(n + 1) / n
    gap = max(abs(cumulative - steps[1:]).max(), abs(cumulative - steps[:-1]).max())
    return float(gap * math.sqrt(n))


@pytest.mark.parametrize("shape", [(1_000_000,), (1000, 1000)], ids=str)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_million_numbers_have_their_distribution(shape: tuple[int, ...], dtype: str) -> None:
    phi = np.vectorize(lambda v: 0.5 * math.erfc(-v / math.sqrt(2)))
    edge = float(phi(-2.0))
    moments = {"uniform": (0.5, 1 / 12), "normal": (0, 1), "truncated_normal": (0, 0.7737413)}
    cumulative = {
        "uniform": lambda v: v,
        "normal": phi,
        "truncated_normal": lambda v: (phi(v) - edge) / (1 - 2 * edge),
    }
    for name, draw in DRAWS.items():
        drawn = draw(shape, SEED, dtype=dtype).numpy().ravel().astype(float)
        mean, variance = moments[name]
        assert abs(drawn.mean() - mean) < 4.5 * math.sqrt(variance / drawn.size)
        assert abs(drawn.var() - variance) < 0.005
        some = np.sort(drawn[::10])
        assert distance(some, cumulative[name](some)) < 1.95, name  # one in a thousand
        assert drawn.min() >= {"uniform": 0, "normal": -7, "truncated_normal": -2}[name]
        assert drawn.max() <= {"uniform": 1, "normal": 7, "truncated_normal": 2}[name]


def test_a_million_whole_numbers_are_equally_frequent() -> None:
    drawn = tf.random.stateless_uniform((1000, 1000), SEED, -5, 5, "int32").numpy()
    counts = np.bincount(drawn.ravel() + 5, minlength=10)
    assert ((counts - 1e5) ** 2 / 1e5).sum() < 27.9  # one in a thousand of nine degrees of freedom
    assert len(counts) == 10


@pytest.mark.parametrize(
    ("call", "error", "said"),
    [
        (lambda f: f((3,), [1, 2, 3]), ValueError, r"of shape \(2,\).*got shape \(3,\).*pass"),
        (lambda f: f((3,), [[1, 2]]), ValueError, r"got shape \(1, 2\)"),
        (lambda f: f((3,), 5), ValueError, r"got shape \(\)"),
        (lambda f: f((3,), []), ValueError, r"got shape \(0,\)"),
        (lambda f: f((3,), [1.0, 2.0]), TypeError, "must be int32.*got float32.*cast"),
        (lambda f: f((3,), np.zeros(2, np.int8)), TypeError, "got int8"),
        (lambda f: f((3,), [tf.constant(1.0), 2]), TypeError, "got float32"),
        (lambda f: f((3,), [True, "a"]), (TypeError, ValueError), "seed|tensor"),
        (lambda f: f((3,), None), (TypeError, ValueError), "seed|tensor"),
        (lambda f: f((-1,), [1, 2]), ValueError, "negative"),
        (lambda f: f((3,), [1, 2], dtype="bool"), TypeError, "got bool"),
        (lambda f: f((3,), [1, 2], alg="threefry"), ValueError, "'philox'.*got 'threefry'"),
    ],
)
@of_draws
def test_what_is_wrong_is_said(name: str, call: Any, error: Any, said: str) -> None:
    with pytest.raises(error, match=said) as caught:
        call(DRAWS[name])
    assert "stateless_" in str(caught.value) or "tensor" in str(caught.value)


@pytest.mark.parametrize(
    ("minval", "maxval", "dtype", "error", "said"),
    [
        (5, 5, "int32", ValueError, "low must be below high.*low=5, high=5"),
        (0, None, "int32", ValueError, "two ends.*minval=0, maxval=None"),
        (None, 3, "int64", ValueError, "two ends"),
        (None, None, "float32", ValueError, "got dtype=float32; pass a number"),
        (0, 2**40, "int32", ValueError, "below 2147483648"),
        (-1, 5, "uint32", ValueError, "from 0 to below 4294967296"),
        (0, 2**64, "uint64", ValueError, "64 bits"),
        (0.5, 2, "int32", TypeError, "integers.*pass ints"),
        (0, 5, "int8", TypeError, "got int8"),
    ],
)
def test_a_range_that_is_none_is_said(
    minval: Any, maxval: Any, dtype: str, error: Any, said: str
) -> None:
    with pytest.raises(error, match=said):
        tf.random.stateless_uniform((3,), [1, 2], minval, maxval, dtype)


def test_a_seed_with_examples_is_refused() -> None:
    seeds = tf.data.Dataset.from_tensor_slices(np.array([1, 2], np.int32)).batch(2)
    (seed,) = seeds
    with pytest.raises(ValueError, match="without examples"):
        tf.function(lambda s: tf.random.stateless_uniform((3,), s))(seed)
