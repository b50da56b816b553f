"""Images of another size, and blocks of pixels as channels."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from record_tensorflow_resize import image
from replica_values import local, split
from windows import check_derivatives, numbers

import samegrad as tf
from samegrad import nn

SIZES = [((5, 7), (9, 4)), ((4, 4), (8, 8)), ((6, 9), (3, 3)), ((1, 1), (3, 2)), ((3, 2), (1, 1)),
         ((5, 7), (5, 7)), ((5, 3), (5, 8))]  # fmt: skip
each_size = pytest.mark.parametrize(("old", "new"), SIZES, ids=str)


def resized(x: np.ndarray, new: tuple[int, int], method: str) -> np.ndarray:
    """Pixel by pixel."""
    n, h, w, c = x.shape
    y = np.zeros((n, *new, c))
    for i in range(new[0]):
        for j in range(new[1]):
            a, b = (i + 0.5) * h / new[0], (j + 0.5) * w / new[1]
            if method == "nearest":
                y[:, i, j] = x[:, int(a), int(b)]
                continue
            for di in (0, 1):
                for dj in (0, 1):
                    row, column = int(np.floor(a - 0.5)) + di, int(np.floor(b - 0.5)) + dj
                    share = (1 - abs(a - 0.5 - row)) * (1 - abs(b - 0.5 - column))
                    at = np.clip(row, 0, h - 1), np.clip(column, 0, w - 1)
                    y[:, i, j] += share * x[:, at[0], at[1]]
    return y


@each_size
@pytest.mark.parametrize("method", ["bilinear", "nearest"])
def test_pixels_come_from_where_their_centres_lie(old, new, method):
    x = numbers(3, *old, 2)
    y = tf.image.resize(x, new, method).numpy()
    np.testing.assert_allclose(y, resized(x, new, method), rtol=1e-12, atol=1e-12)
    assert y.dtype == np.float64
    one = tf.image.resize(x[1], new, method).numpy()
    np.testing.assert_array_equal(one, y[1])


# What TensorFlow's documentation shows of a 4 x 4 identity and of 2 x 2 pixels.
def test_numbers_of_tensorflow():
    x = np.eye(5, dtype="float32")[None, ..., None]
    y = tf.image.resize(x, [3, 5], method=tf.image.ResizeMethod.NEAREST_NEIGHBOR).numpy()
    np.testing.assert_array_equal(y[0, ..., 0], np.eye(5, dtype="float32")[[0, 2, 4]])
    x = np.array([[0.0, 1.0], [2.0, 3.0]], "float32")[..., None]
    y = tf.image.resize(x, [4, 4]).numpy()[..., 0]
    np.testing.assert_allclose(y[0], [0, 0.25, 0.75, 1])
    np.testing.assert_allclose(y[:, 0], [0, 0.5, 1.5, 2])


def test_types_of_images():
    x = np.arange(12, dtype="uint8").reshape(1, 2, 2, 3)
    assert tf.image.resize(x, (4, 4), "nearest").dtype == tf.uint8
    assert tf.image.resize(x, (4, 4)).dtype == tf.float32
    assert tf.image.resize(x, (2, 2)).dtype == tf.float32


def test_rows_and_columns_are_scaled_alike_if_asked_to():
    x = numbers(1, 4, 6, 1)
    assert tf.image.resize(x, (8, 6), preserve_aspect_ratio=True).shape == (1, 4, 6, 1)
    assert tf.image.resize(x, (8, 18), preserve_aspect_ratio=True).shape == (1, 8, 12, 1)


@each_size
@pytest.mark.parametrize("method", ["bilinear", "nearest"])
def test_derivatives_are_right_to_second_order(old, new, method):
    x = numbers(2, *old, 2)
    check_derivatives(lambda x: tf.image.resize(x, new, method), [x], traced=old == (6, 9))


def test_space_to_depth_and_back():
    x = numbers(3, 4, 6, 5, dtype="float32")
    y = nn.space_to_depth(x, 2).numpy()
    assert y.shape == (3, 2, 3, 20)
    np.testing.assert_array_equal(y[1, 1, 2, 5:10], x[1, 2, 5])
    np.testing.assert_array_equal(y[1, 1, 2, 10:15], x[1, 3, 4])
    np.testing.assert_array_equal(nn.depth_to_space(y, 2).numpy(), x)
    check_derivatives(lambda x: nn.space_to_depth(x, 2), [numbers(2, 4, 2, 3)], traced=True)
    check_derivatives(lambda x: nn.depth_to_space(x, 3), [numbers(2, 2, 1, 18)])


FUNCTIONS = {
    "bilinear": lambda x: tf.image.resize(x, (7, 3)),
    "nearest": lambda x: tf.image.resize(x, (7, 3), "nearest"),
    "space to depth": lambda x: nn.space_to_depth(x, 2),
    "depth to space": lambda x: nn.depth_to_space(x, 2),
}
each_function = pytest.mark.parametrize("name", list(FUNCTIONS))


@each_function
@pytest.mark.parametrize("n", [0, 1, 1000])
def test_any_number_of_images(name, n):
    x = numbers(n, 4, 6, 8, dtype="float32")
    eager = FUNCTIONS[name](x).numpy()
    traced = tf.function(FUNCTIONS[name])(tf.constant(x)._as_examples(0, 1)).numpy()
    assert len(eager) == n
    np.testing.assert_array_equal(eager, traced)


@each_function
def test_replicas_have_the_bits_of_one_device(name):
    images = numbers(13, 4, 6, 8, dtype="float32")

    def trained(replicas: int) -> np.ndarray:
        where = tf.distribute.MirroredStrategy(replicas=replicas)
        with where.scope():
            w = tf.Variable(numbers(8, dtype="float32"))

        def step(x):
            with tf.GradientTape() as tape:
                y = FUNCTIONS[name](x * w)
                loss = nn.compute_average_loss(tf.reduce_sum(y * y, axis=[1, 2, 3]))
            g = tape.gradient(loss, w)
            w.assign_sub(1e-3 * tf.distribute.get_replica_context().all_reduce("SUM", g))

        (batch,) = where.experimental_distribute_dataset(
            tf.data.Dataset.from_tensor_slices(images).batch(13)
        )
        for _ in range(3):
            where.run(step, (batch,))
        return w.numpy()

    for replicas in (2, 3, 4):
        np.testing.assert_array_equal(trained(1), trained(replicas))


X = np.zeros((2, 4, 6, 3), "float32")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: tf.image.resize(X[0, 0], (2, 2)), r"\[resize\] images must be \[n, rows"),
        (lambda: tf.image.resize(X, 2), "size must be two positive integers"),
        (lambda: tf.image.resize(X, (2, 0)), r"size must be two positive .* got \(2, 0\)"),
        (lambda: tf.image.resize(X, (2, 2), "cubic"), "method must be one of .* got 'cubic'"),
        (lambda: tf.image.resize(X, (2, 2), antialias="a"), "antialias must be True or False"),
        (lambda: tf.image.resize(X[:, :0], (2, 2)), "images must have pixels: got 0 x 6"),
        (lambda: nn.space_to_depth(X, 4), "divisible by block_size: got shape"),
        (lambda: nn.space_to_depth(X, 1), "block_size must be at least 2: got 1"),
        (lambda: nn.space_to_depth(X, 2, "NCHW"), "channels last"),
        (lambda: nn.depth_to_space(X, 2), "channels must be divisible by block_size"),
        (lambda: nn.depth_to_space(X[0], 2), r"\[depth_to_space\] images must be"),
    ],
)
def test_wrong_arguments_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_what_there_is_not_of_images_says_what_to_use():
    with pytest.raises(AttributeError, match="prepare images with NumPy or Pillow"):
        _ = tf.image.adjust_jpeg_quality


RECORDED = json.loads((Path(__file__).parent / "tensorflow_resize.json").read_text())
KERNELS = ("bicubic", "area", "lanczos3", "lanczos5", "gaussian", "mitchellcubic")


@pytest.mark.parametrize("case", list(RECORDED))
def test_every_method_gives_tensorflows_numbers(case):
    method, rows, columns, antialias = case.split()
    y = tf.image.resize(image(), (int(rows), int(columns)), method, antialias=antialias == "True")
    assert y.shape == (1, int(rows), int(columns), 2)
    np.testing.assert_allclose(y.numpy().ravel(), RECORDED[case], atol=5e-6)


@pytest.mark.parametrize("method", ["bilinear", *KERNELS])
def test_gradients_of_kernels(method):
    check_derivatives(
        lambda x: tf.image.resize(x, (3, 7), method, antialias=True), [numbers(2, 4, 5, 2)]
    )


@pytest.mark.parametrize("method", KERNELS)
def test_kernels_keep_equal_pixels_and_know_one_image_none_and_large_ones(method):
    x = np.full((1, 300, 4, 1), 3.0)
    y = tf.image.resize(x, (1, 900), method, antialias=True).numpy()
    np.testing.assert_allclose(y, np.full((1, 1, 900, 1), 3.0), rtol=1e-12)
    assert tf.image.resize(np.zeros((0, 5, 5, 1)), (2, 2), method).shape == (0, 2, 2, 1)
    assert tf.image.resize(np.zeros((5, 5, 1), "uint8"), (2, 2), method).dtype == tf.float32
    traced = tf.function(lambda x: tf.image.resize(x, (3, 8), method))(
        tf.constant(numbers(2, 5, 5, 1))
    )
    eager = tf.image.resize(numbers(2, 5, 5, 1), (3, 8), method)
    np.testing.assert_array_equal(traced.numpy(), eager.numpy())


def test_replicas_resize_their_own_images():
    x = numbers(8, 5, 6, 2).astype("float32")
    whole = tf.image.resize(x, (3, 4), "lanczos3", antialias=True).numpy()
    for replicas in (1, 2, 3):
        s = tf.distribute.MirroredStrategy(replicas=replicas)
        parts = s.run(lambda x: tf.image.resize(x, (3, 4), "lanczos3", antialias=True),
                      args=(split(x, replicas),))  # fmt: skip
        np.testing.assert_array_equal(np.concatenate(local(parts)), whole)
