"""Where the number of examples is an ordinary size, each replica has its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from replica_values import both_ways, cut, distributed, results

import samegrad as tf

SHARES = [(4, 3), (1, 2), (1, 300), (3, 0), (2, 1, 1), (1, 0), (5,)]
RNG = np.random.default_rng(5)
DATA = RNG.normal(size=(301, 6)).astype(np.float32)
Step = Callable[..., Any]


def split(shares: tuple[int, ...]) -> list[np.ndarray]:
    return cut(DATA, shares)


def run(step: Step, shares: tuple[int, ...], traced: bool) -> list[Any]:
    return results(step, split(shares), traced)


of_shares = pytest.mark.parametrize("shares", SHARES, ids=str)


def count(v: Any) -> Any:
    return tf.shape(v)[0]


def cast(x: Any) -> Any:
    return tf.cast(x, "float32")


CASES: dict[str, tuple[Step, Callable[[np.ndarray], np.ndarray]]] = {
    "gram": (lambda v: v @ tf.transpose(v), lambda v: v @ v.T),
    "sum of the gram": (
        lambda v: tf.reduce_sum(v @ tf.transpose(v)),
        lambda v: (v @ v.T).sum(),
    ),
    "eye": (lambda v: tf.eye(v.shape[0]) * 2.0, lambda v: 2 * np.eye(len(v))),
    "eye of two": (lambda v: tf.eye(count(v), 3), lambda v: np.eye(len(v), 3)),
    "ones": (lambda v: tf.ones([count(v), v.shape[0]]), lambda v: np.ones((len(v), len(v)))),
    "zeros": (lambda v: tf.zeros([2, count(v) + 1]), lambda v: np.zeros((2, len(v) + 1))),
    "fill": (lambda v: tf.fill([v.shape[0] * 2], 3.0), lambda v: np.full(2 * len(v), 3.0)),
    "range": (lambda v: tf.range(count(v)), lambda v: np.arange(len(v))),
    "range of three": (
        lambda v: tf.range(1, count(v) + 4, 3),
        lambda v: np.arange(1, len(v) + 4, 3),
    ),
    "linspace": (
        lambda v: tf.linspace(0.0, 1.0, count(v)),
        lambda v: np.linspace(0, 1, len(v)),
    ),
    "one_hot": (
        lambda v: tf.one_hot([0, 2], count(v)),
        lambda v: np.float32([np.arange(len(v)) == 0, np.arange(len(v)) == 2]),
    ),
    "minus the first row": (lambda v: v - v[:1], lambda v: v - v[:1]),
    "the first row minus all": (lambda v: v[:1] - v, lambda v: v[:1] - v),
    "plus the first row for each": (
        lambda v: 0.5 * v + tf.tile(v[:1], [count(v), 1]),
        lambda v: 0.5 * v + np.tile(v[:1], (len(v), 1)),
    ),
    "even and odd rows": (
        lambda v: v[::2][: count(v) // 2] - v[1::2] * 3.0,
        lambda v: v[::2][: len(v) // 2] - v[1::2] * np.float32(3),
    ),
    "squares of all minus the first": (
        lambda v: tf.reduce_sum(tf.square(v - v[:1]), axis=1),
        lambda v: np.square(v - v[:1]).sum(1),
    ),
    "tile": (lambda v: tf.tile(v, [2, 1]), lambda v: np.tile(v, (2, 1))),
    "tile by n": (
        lambda v: tf.tile(v[:, :2], [1, count(v)]),
        lambda v: np.tile(v[:, :2], (1, len(v))),
    ),
    "tile n by n": (
        lambda v: tf.tile(v[:, :1], [count(v), 2]),
        lambda v: np.tile(v[:, :1], (len(v), 2)),
    ),
    "repeat": (
        lambda v: tf.repeat(v[:, :2], count(v), axis=0),
        lambda v: np.repeat(v[:, :2], len(v), axis=0),
    ),
    "repeat columns": (
        lambda v: tf.repeat(v[:, :2], count(v), axis=1),
        lambda v: np.repeat(v[:, :2], len(v), axis=1),
    ),
    "pad": (
        lambda v: tf.pad(v, [[1, count(v)], [0, 2]], constant_values=7.0),
        lambda v: np.pad(v, [(1, len(v)), (0, 2)], constant_values=7),
    ),
    "pad rows": (lambda v: tf.pad(v, [[1, 2], [0, 0]]), lambda v: np.pad(v, [(1, 2), (0, 0)])),
    "split": (
        lambda v: tf.split(v, [count(v) // 2, -1])[1] * 2.0,
        lambda v: v[len(v) // 2 :] * 2,
    ),
    "halves": (
        lambda v: tf.subtract(*tf.split(tf.concat([v, v * 3.0], 0), 2)),
        lambda v: v - v * np.float32(3),
    ),
    "reshape": (lambda v: tf.reshape(v, [6, count(v)]), lambda v: v.reshape(6, len(v))),
    "reshape a gram": (
        lambda v: tf.reshape(v @ tf.transpose(v), [-1]),
        lambda v: (v @ v.T).reshape(-1),
    ),
    "broadcast_to": (
        lambda v: tf.broadcast_to(v[:, :1], [count(v), v.shape[0]]),
        lambda v: np.broadcast_to(v[:, :1], (len(v), len(v))),
    ),
    "divided": (
        lambda v: tf.reduce_sum(v, 0) / v.shape[0],
        lambda v: v.sum(0) / np.float32(len(v)),
    ),
    "all pairs": (
        lambda v: tf.reduce_sum(tf.square(v[:, None] - v[None]), -1),
        lambda v: np.square(v[:, None] - v[None]).sum(-1),
    ),
    "means of products": (
        lambda v: tf.reduce_mean(tf.reduce_mean(v[:, None] * v[None], axis=1), axis=1),
        lambda v: (v[:, None] * v[None]).sum(1).mean(1) / np.float32(len(v)),
    ),
    "means of a product's elements": (
        lambda v: tf.reduce_sum(v, axis=1) * tf.reduce_mean(v @ tf.transpose(v), axis=[0, 1]),
        lambda v: v.sum(1) * ((v @ v.T).sum() / np.float32(len(v) ** 2)),
    ),
    "all but one": (lambda v: v[: count(v) - 1] * 2.0, lambda v: v[:-1] * 2),
    "differences": (lambda v: v[1:] - v[:-1], lambda v: v[1:] - v[:-1]),
    "off the diagonal": (
        lambda v: (v @ tf.transpose(v)) * (1.0 - tf.eye(count(v))),
        lambda v: (v @ v.T) * (1 - np.eye(len(v), dtype=np.float32)),
    ),
    "first half": (lambda v: v[: count(v) // 2] + 1.0, lambda v: v[: len(v) // 2] + 1),
    "softmax of a gram": (
        lambda v: tf.nn.softmax(v @ tf.transpose(v)),
        lambda v: np.exp(v @ v.T - logsumexp(v @ v.T)[:, None]),
    ),
    "rows and columns": (
        lambda v: tf.concat([v @ tf.transpose(v), v], axis=1),
        lambda v: np.concatenate([v @ v.T, v], axis=1),
    ),
    "above the diagonal": (
        lambda v: v @ tf.transpose(v) * cast(tf.range(count(v))[:, None] < tf.range(count(v))),
        lambda v: np.triu(v @ v.T, 1),
    ),
    "gathered": (
        lambda v: tf.gather(v, tf.range(count(v) - count(v) // 2)) - v[: count(v) - count(v) // 2],
        lambda v: np.zeros_like(v[: len(v) - len(v) // 2]),
    ),
    "a while loop": (
        lambda v: tf.while_loop(
            lambda i, g: i < 3, lambda i, g: (i + 1, g * 0.5), (0, v @ tf.transpose(v))
        )[1],
        lambda v: v @ v.T / 8,
    ),
    "a branch": (
        lambda v: tf.cond(
            tf.reduce_sum(v) > 0.0, lambda: tf.eye(count(v)), lambda: v @ tf.transpose(v)
        ),
        lambda v: np.eye(len(v)) if v.sum() > 0 else v @ v.T,
    ),
}


def logsumexp(x: np.ndarray) -> np.ndarray:
    top = x.max(-1, initial=-np.inf, keepdims=True) if x.size else np.zeros((len(x), 1))
    return (top + np.log(np.exp(x - top).sum(-1, keepdims=True)))[:, 0]


@both_ways
@of_shares
@pytest.mark.parametrize("name", CASES)
def test_each_replica_has_its_own_sizes(name: str, shares: tuple[int, ...], traced: bool) -> None:
    step, reference = CASES[name]
    with np.errstate(all="ignore"):
        for part, got in zip(split(shares), run(step, shares, traced), strict=True):
            expected = reference(part)
            assert got.shape == expected.shape
            np.testing.assert_allclose(got, expected, rtol=2e-4, atol=2e-4)


@both_ways
@pytest.mark.parametrize("shares", [(4, 3), (1, 300), (2, 1, 1)], ids=str)
@pytest.mark.parametrize("name", ["gram", "all pairs", "softmax of a gram", "halves", "tile"])
def test_a_replica_has_the_bits_of_one_device_with_its_share(
    name: str, shares: tuple[int, ...], traced: bool
) -> None:
    step = CASES[name][0]
    for size, part, got in zip(shares, split(shares), run(step, shares, traced), strict=True):
        strategy = tf.distribute.MirroredStrategy(replicas=1)
        alone = strategy.run(step, (tf.constant(part)._as_examples(0, 1),))
        assert len(part) == size
        np.testing.assert_array_equal(got, alone.numpy())


@both_ways
def test_a_variable_is_cut_to_the_count_of_each_replica(traced: bool) -> None:
    w = tf.Variable(DATA[:9, :2])

    def step(v: Any) -> Any:
        with tf.GradientTape() as tape:
            total = tf.reduce_sum(w[1 : count(v) + 1] * v[:, :2])
        return tape.gradient(total, w)

    for part, got in zip(split((4, 3)), run(step, (4, 3), traced), strict=True):
        expected = np.zeros((9, 2), np.float32)
        expected[1 : len(part) + 1] = part[:, :2]
        np.testing.assert_array_equal(got, expected)


def test_rows_drawn_by_replicas_are_all_different() -> None:
    drawn = run(lambda v: tf.random.normal([count(v) * 2 + 1, 3]), (4, 3), True)
    rows = np.concatenate(drawn)
    assert rows.shape == (16, 3)
    assert len(np.unique(rows[:, 0])) == 16


def contrastive(v: Any, w: Any) -> Any:
    z = v @ w
    z = z / tf.sqrt(tf.reduce_sum(tf.square(z), axis=1, keepdims=True) + 1e-6)
    logits = z @ tf.transpose(z) / 0.5
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(tf.range(count(v)), logits)
    return tf.reduce_sum(losses) / v.shape[0]


W = RNG.normal(size=(6, 3))


def reference_loss(v: np.ndarray, w: np.ndarray) -> float:
    z = v @ w
    z = z / np.sqrt(np.square(z).sum(1, keepdims=True) + 1e-6)
    logits = z @ z.T / 0.5
    return float((logsumexp(logits) - np.diag(logits)).mean())


def difference(fn: Callable[[np.ndarray], Any], w: np.ndarray, step: float) -> np.ndarray:
    """The derivative by central differences."""
    result = []
    for i in range(w.size):
        e = np.zeros(w.size)
        e[i] = step
        e = e.reshape(w.shape)
        result.append((np.asarray(fn(w + e)) - np.asarray(fn(w - e))) / (2 * step))
    return np.asarray(result)


@both_ways
@pytest.mark.parametrize("shares", [(4, 3), (1, 30), (2, 1, 1)], ids=str)
def test_gradients_of_a_contrastive_loss(shares: tuple[int, ...], traced: bool) -> None:
    def step(v: Any) -> Any:
        v = tf.cast(v, "float64")
        w = tf.constant(W)
        with tf.GradientTape() as outer:
            outer.watch(w)
            with tf.GradientTape() as tape:
                tape.watch(w)
                loss = contrastive(v, w)
            gradient = tape.gradient(loss, w)
            total = tf.reduce_sum(tf.square(gradient))
        second = outer.gradient(total, w)
        flat = [tf.reshape(x, [-1]) for x in (loss, gradient, second)]
        return tf.concat(flat, 0)

    for part, got in zip(split(shares), run(step, shares, traced), strict=True):
        v = part.astype(np.float64)
        np.testing.assert_allclose(got[0], reference_loss(v, W), rtol=1e-6)
        first = difference(lambda w: reference_loss(v, w), W, 1e-5)  # noqa: B023
        np.testing.assert_allclose(got[1:19], first, rtol=1e-4, atol=1e-7)
        squares = difference(
            lambda w: np.square(difference(lambda u: reference_loss(v, u), w, 1e-4)).sum(),  # noqa: B023
            W,
            1e-3,
        )
        np.testing.assert_allclose(got[19:], squares, rtol=2e-2, atol=1e-4)


GRADIENTS = [name for name in CASES if name not in (
    "eye", "eye of two", "ones", "zeros", "fill", "range", "range of three", "linspace", "one_hot",
)]  # fmt: skip


@pytest.mark.parametrize("shares", [(4, 3), (1, 2), (1, 9), (3, 0), (2, 1, 1)], ids=str)
@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients_are_those_of_each_replica(name: str, shares: tuple[int, ...]) -> None:
    fn, reference = CASES[name]

    def step(v: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(v)
            total = tf.reduce_sum(fn(v) * fn(v))
        return tape.gradient(total, v)

    with np.errstate(all="ignore"):
        for part, got in zip(split(shares), run(step, shares, True), strict=True):
            assert got.shape == part.shape
            if name == "a branch" or not len(part):
                continue
            v = part.astype(np.float64)
            expected = difference(lambda u: np.square(reference(u)).sum(), v, 1e-6)
            np.testing.assert_allclose(got.reshape(-1), expected, rtol=2e-2, atol=2e-2)


@pytest.mark.parametrize("replicas", [1, 2, 3, 4])
def test_a_short_last_batch_of_a_dataset_has_its_own_sizes(replicas: int) -> None:
    strategy = tf.distribute.MirroredStrategy(replicas=replicas)
    dataset = tf.data.Dataset.from_tensor_slices(DATA[:13]).batch(5)
    traces = []

    @tf.function
    def step(v: Any) -> Any:
        def fn(u: Any) -> Any:
            traces.append(1)
            return tf.reduce_sum((u @ tf.transpose(u)) * tf.eye(count(u)))

        return strategy.run(fn, (v,))

    at = 0
    for batch in strategy.experimental_distribute_dataset(dataset):
        parts = [p.numpy() for p in strategy.experimental_local_results(batch)]
        results = strategy.experimental_local_results(step(batch))
        for part, got in zip(parts, results, strict=True):
            np.testing.assert_allclose(got.numpy(), np.square(part).sum(), rtol=1e-5)
            at += len(part)
    assert at == 13
    assert len(traces) == 1


def test_a_contrastive_loss_trains_on_unequal_shares() -> None:
    strategy = tf.distribute.MirroredStrategy(replicas=2)
    with strategy.scope():
        w = tf.Variable(W)
        optimizer = tf.keras.optimizers.SGD(0.5)

    def step(v: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = contrastive(tf.cast(v, "float64"), w)
        optimizer.apply_gradients([(tape.gradient(loss, w), w)])
        return loss

    train = tf.function(lambda v: strategy.run(step, (v,)))
    expected = W.copy()
    for shares in ((4, 3), (7, 2), (2, 9)):
        with tf.config.replica_dependence_check("off"):  # pairs of a replica's own examples
            results = train(distributed(strategy, split(shares)))
        losses = strategy.experimental_local_results(results)
        parts = [part.astype(np.float64) for part in split(shares)]
        for loss, v in zip(losses, parts, strict=True):
            np.testing.assert_allclose(float(loss), reference_loss(v, expected), rtol=1e-6)
        slopes = [
            difference(lambda u: reference_loss(v, u), expected, 1e-5)  # noqa: B023
            for v in parts
        ]
        expected = expected - 0.5 * sum(slopes).reshape(W.shape)
        np.testing.assert_allclose(w.numpy(), expected, rtol=1e-5, atol=1e-7)


@both_ways
def test_a_question_with_one_answer_is_answered(traced: bool) -> None:
    got = run(lambda v: v * (2.0 if v.shape[0] > 1 else 3.0), (4, 3), traced)
    for part, result in zip(split((4, 3)), got, strict=True):
        np.testing.assert_array_equal(result, part * 2)


def test_values_of_unequal_shares_are_not_added_elementwise() -> None:
    strategy = tf.distribute.MirroredStrategy(replicas=2)

    def step(v: Any) -> Any:
        return tf.distribute.get_replica_context().all_reduce("sum", v)

    with pytest.raises(ValueError, match="different numbers of examples"):
        strategy.run(step, (distributed(strategy, split((4, 3))),))
    total = strategy.run(step, (distributed(strategy, split((3, 3))),))
    for part in strategy.experimental_local_results(total):
        np.testing.assert_array_equal(part.numpy(), DATA[:3] + DATA[3:6])


@pytest.mark.parametrize("size", [0, 1, 7])
def test_examples_without_elements_are_reshaped(size: int) -> None:
    fn = tf.function(lambda x: tf.reshape(x, [-1, 3]))
    (batch,) = tf.data.Dataset.from_tensor_slices(np.zeros((7, 0, 3), np.float32)).batch(7)
    again = tf.function(lambda x: x * 2.0)
    assert again(fn(batch)).shape == (0, 3)
    empty = tf.constant(np.zeros((size, 0, 3), np.float32))._as_examples(0, 1)
    assert again(fn(empty)).shape == (0, 3)


def test_the_gradient_of_tile_of_one_example_on_a_later_axis() -> None:
    x = tf.constant(DATA[:2, None])._as_examples(1, 1)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.reduce_sum(tf.tile(x, [1, 3, 1]) * tf.tile(x, [1, 3, 1]))
    np.testing.assert_allclose(tape.gradient(y, x).numpy(), 6 * DATA[:2, None], rtol=1e-6)


SIZES = {
    "stack": lambda n: tf.stack([n, 1, 2]),
    "stack with a tensor": lambda n: tf.stack([n, tf.constant(1), 2]),
    "concat": lambda n: tf.concat([[n], [1, 2]], 0),
    "concat of a new axis": lambda n: tf.concat([tf.expand_dims(n, -1), tf.constant([1, 2])], 0),
    "reshape": lambda n: tf.reshape(tf.stack([n, 1, 2]), [3]),
    "squeeze": lambda n: tf.stack([tf.squeeze(tf.expand_dims(n, 0)), 1, 2]),
    "list": lambda n: tf.convert_to_tensor([n, 1, 2]),
    "other type": lambda n: tf.cast(tf.stack([n, 1, 2]), tf.int64),
    "Keras": lambda n: tf.keras.ops.concatenate(
        [tf.keras.ops.expand_dims(n, -1), tf.keras.ops.convert_to_tensor([1, 2])], 0
    ),
}


@pytest.mark.parametrize("name", SIZES)
@pytest.mark.parametrize("of_shape", [True, False])
def test_a_vector_of_sizes_says_how_often_rows_are_repeated(name: str, of_shape: bool) -> None:
    traces = []

    @tf.function
    def repeated(x: Any) -> Any:
        traces.append(1)
        n = tf.shape(x)[0] if of_shape else x.shape[0]
        tiled = tf.keras.ops.tile if name == "Keras" else tf.tile
        return tiled(tf.ones((1, 2, 2)), SIZES[name](n)) * x[:, None, None]

    for batch in tf.data.Dataset.from_tensor_slices(np.arange(5.0, dtype=np.float32)).batch(3):
        y = repeated(batch)
        assert y.shape == (len(batch), 2, 4)
        np.testing.assert_array_equal(y[:, 1, 3], batch)
    assert len(traces) == 1


def test_printing_a_class_in_a_traced_function_prints_its_name(capfd: Any) -> None:
    @tf.function
    def step(x):
        print(type(x.shape[0]), x.shape[0] * 2)
        return x

    for batch in tf.data.Dataset.from_tensor_slices(np.ones((3, 1))).batch(3):
        step(batch)
    shown = "".join(capfd.readouterr())
    assert "Dim'> " in shown
