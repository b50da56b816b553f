"""Threads share the nodes of a loop with fewer chunks than threads, with equal bits."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import samegrad as tf

# Examples, height, width, channels in and out, filter, stride, dilation, padding.
CASES = [
    (1, 40, 33, 3, 16, (3, 3), 1, 1, "SAME"),
    (1, 37, 9, 8, 33, (5, 1), 3, 1, "VALID"),
    (2, 24, 24, 17, 4, (1, 1), 2, 1, "SAME"),
    (3, 30, 12, 32, 64, (2, 4), 2, 1, "SAME"),
    (1, 29, 20, 1, 64, (5, 5), 1, 2, "VALID"),
    (4, 16, 16, 8, 16, (4, 4), 3, 1, "VALID"),
    (1, 8, 50, 8, 16, (5, 3), 1, 2, "SAME"),
]


def gradients(case: tuple, threads: int) -> list[bytes]:
    """Result and gradients of a convolution with what follows it, on so many threads."""
    n, height, width, channels, filters, window, stride, dilation, padding = case
    rng = np.random.default_rng(n + height)
    images = rng.normal(size=(n, height, width, channels)).astype(np.float32)
    tf.config.threading.set_intra_op_parallelism_threads(threads)
    strategy = tf.distribute.MirroredStrategy(replicas=1)
    with strategy.scope():
        kernel = tf.Variable(rng.normal(size=(*window, channels, filters)).astype(np.float32))
        bias = tf.Variable(np.zeros(filters, np.float32))

    def step(x: tf.Tensor) -> tuple[tf.Tensor, ...]:
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.nn.conv2d(x, kernel, strides=stride, padding=padding, dilations=dilation)
            y = tf.nn.softmax(tf.nn.relu(y + bias)) * y
            loss = tf.reduce_sum(tf.reduce_sum(y * y, axis=[1, 2, 3]))
        return (y, *tape.gradient(loss, [x, kernel, bias]))

    (batch,) = strategy.experimental_distribute_dataset(
        tf.data.Dataset.from_tensor_slices(images).batch(n)
    )
    return [result.numpy().tobytes() for result in strategy.run(step, args=(batch,))]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_threads_that_share_a_loop_change_no_bit(case: tuple) -> None:
    try:
        assert gradients(case, 4) == gradients(case, 1)
    finally:
        tf.config.threading.set_intra_op_parallelism_threads(0)


# Examples, window, stride, padding.
POOLS = [(1, 3, 2, "SAME"), (1, 2, 2, "VALID"), (2, 3, 1, "SAME"), (7, 3, 3, "VALID")]


def pooled_gradients(case: tuple, threads: int) -> list[bytes]:
    """Results and gradients of pools and of operands that broadcasting repeats along examples."""
    n, window, stride, padding = case
    rng = np.random.default_rng(n + window)
    images = rng.normal(size=(n, 45, 38, 64)).astype(np.float32)
    tf.config.threading.set_intra_op_parallelism_threads(threads)
    strategy = tf.distribute.MirroredStrategy(replicas=1)
    with strategy.scope():
        rows = tf.Variable(rng.normal(size=(45, 1, 64)).astype(np.float32))
        kernel = tf.Variable(rng.normal(size=(3, 3, 64, 8)).astype(np.float32))

    def step(x: tf.Tensor) -> tuple[tf.Tensor, ...]:
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.where(x > 0.5, x * rows, tf.cast(x > rows, tf.float32))
            largest = tf.nn.max_pool2d(y, window, stride, padding)
            mean = tf.nn.avg_pool2d(tf.nn.conv2d(y, kernel, 1, "SAME"), window, stride, padding)
            loss = tf.reduce_sum(largest**2) + tf.reduce_sum(mean**3)
        return (largest, mean, *tape.gradient(loss, [x, rows, kernel]))

    (batch,) = strategy.experimental_distribute_dataset(
        tf.data.Dataset.from_tensor_slices(images).batch(n)
    )
    return [result.numpy().tobytes() for result in strategy.run(step, args=(batch,))]


@pytest.mark.parametrize("case", POOLS, ids=str)
def test_threads_that_share_pools_change_no_bit(case: tuple) -> None:
    try:
        assert pooled_gradients(case, 4) == pooled_gradients(case, 1)
    finally:
        tf.config.threading.set_intra_op_parallelism_threads(0)


def attention_gradients(
    heads: int, queries: int, keys: int, dropout: float, threads: int
) -> list[bytes]:
    """Result and gradients of an attention with so many heads, queries and keys."""
    rng = np.random.default_rng(queries)
    tf.config.threading.set_intra_op_parallelism_threads(threads)
    tf.random.set_seed(7)
    layer = tf.keras.layers.MultiHeadAttention(heads, 8, dropout=dropout, seed=3)
    x, y = (tf.constant(rng.normal(size=(1, n, 8)).astype(np.float32)) for n in (queries, keys))
    layer.build(x.shape, y.shape)
    for weight in layer.trainable_weights:
        weight.assign(rng.normal(size=weight.shape).astype(np.float32))

    @tf.function
    def step(x: tf.Tensor, y: tf.Tensor) -> tuple[tf.Tensor, ...]:
        with tf.GradientTape() as tape:
            tape.watch([x, y])
            result = layer(x, y, use_causal_mask=queries == keys, training=True)
            loss = tf.reduce_sum(result**3)
        return (result, *tape.gradient(loss, [x, y, *layer.trainable_weights]))

    return [part.numpy().tobytes() for part in step(x, y)]


@pytest.mark.parametrize(("queries", "keys"), [(300, 300), (70, 900), (1, 40)])
@pytest.mark.parametrize("dropout", [0.0, 0.2])
@pytest.mark.parametrize(("heads", "threads"), [(1, 16), (3, 2), (7, 4), (9, 2)])
def test_threads_that_share_a_head_change_no_bit(
    heads: int, threads: int, queries: int, keys: int, dropout: float
) -> None:
    try:
        shared = attention_gradients(heads, queries, keys, dropout, threads)
        assert shared == attention_gradients(heads, queries, keys, dropout, 1)
    finally:
        tf.config.threading.set_intra_op_parallelism_threads(0)


def dense_gradients(examples: int, rows: int, threads: int) -> list[np.ndarray]:
    """Result and gradients of a dense layer over so many rows of each example."""
    rng = np.random.default_rng(rows)
    tf.config.threading.set_intra_op_parallelism_threads(threads)
    x, w = rng.normal(size=(examples, rows, 130)), rng.normal(size=(130, 290))
    weights = tf.Variable(w.astype(np.float32))
    strategy = tf.distribute.MirroredStrategy(replicas=1)
    dataset = tf.data.Dataset.from_tensor_slices(x.astype(np.float32)).batch(examples)
    (batch,) = strategy.experimental_distribute_dataset(dataset)

    def step(x: tf.Tensor) -> tuple[tf.Tensor, ...]:
        with tf.GradientTape() as tape:
            tape.watch(x)
            loss = tf.reduce_sum(tf.tensordot(x, weights, 1) ** 2, axis=[1, 2])
        return (loss, *tape.gradient(loss, [x, weights]))

    found = [result.numpy() for result in strategy.run(step, args=(batch,))]
    exact = 2 * np.einsum("erk,ern->kn", x, x @ w)
    np.testing.assert_allclose(found[2], exact, rtol=0, atol=1e-4 * np.abs(exact).max())
    return found


@pytest.mark.parametrize("rows", [1025, 4100])
@pytest.mark.parametrize("examples", [1, 2, 5])
def test_threads_that_share_a_long_product_change_no_bit(examples: int, rows: int) -> None:
    try:
        shared = dense_gradients(examples, rows, 4)
        for one, several in zip(dense_gradients(examples, rows, 1), shared, strict=True):
            assert one.tobytes() == several.tobytes()
    finally:
        tf.config.threading.set_intra_op_parallelism_threads(0)


def negative_zeros(threads: int) -> bytes:
    """Gradient of a pool, by negative zeros, of images with an odd number of rows."""
    tf.config.threading.set_intra_op_parallelism_threads(threads)
    x = tf.constant(np.random.default_rng(0).normal(size=(1, 65, 64, 64)).astype(np.float32))

    @tf.function
    def gradient(x: tf.Tensor) -> tf.Tensor:
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.nn.max_pool2d(x, 2, 2, "SAME")
        return tape.gradient(y, x, output_gradients=tf.zeros_like(y) * -1.0)

    return gradient(x).numpy().tobytes()


def integer_product(threads: int) -> bytes:
    """Product of examples with a matrix that threads could pack in parts."""
    tf.config.threading.set_intra_op_parallelism_threads(threads)
    rng = np.random.default_rng(0)
    x, w = (rng.integers(-9, 9, shape).astype(np.int32) for shape in ((6, 128), (128, 300)))
    dataset = tf.data.Dataset.from_tensor_slices(x).batch(6)
    strategy = tf.distribute.MirroredStrategy(replicas=2)
    (batch,) = strategy.experimental_distribute_dataset(dataset)
    weights = tf.Variable(w)
    parts = strategy.run(lambda rows: tf.matmul(rows, weights), args=(batch,))
    found = strategy.gather(parts, axis=0).numpy()
    np.testing.assert_array_equal(found, x @ w)
    return found.tobytes()


@pytest.mark.parametrize("program", [negative_zeros, integer_product])
def test_threads_do_not_change_zeros_or_integers(program: Callable[[int], bytes]) -> None:
    try:
        assert program(4) == program(1)
    finally:
        tf.config.threading.set_intra_op_parallelism_threads(0)
