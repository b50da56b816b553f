"""Transposed convolutions of one, two and three dimensions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import windows
from windows import check_derivatives, explicit, numbers, transposed

import samegrad as tf
from samegrad import nn

# Shape of the input, of the filter, sizes of the result, strides, dilations, padding.
Case = tuple[
    tuple[int, ...], tuple[int, ...], tuple[int, ...], tuple[int, ...], tuple[int, ...], Any
]
CASES: dict[str, Case] = {
    "images": ((3, 4, 2, 5), (3, 2, 3, 5), (7, 5), (2, 3), (1, 1), "SAME"),
    "the smallest of the sizes": ((3, 4, 2, 5), (3, 2, 3, 5), (7, 4), (2, 3), (1, 1), "SAME"),
    "valid": ((2, 3, 4, 2), (3, 2, 4, 2), (8, 8), (2, 2), (1, 1), "VALID"),
    "dilated": ((2, 3, 4, 2), (3, 2, 4, 2), (11, 7), (2, 1), (3, 3), "VALID"),
    "given padding": ((2, 3, 4, 2), (3, 2, 3, 2), (4, 5), (2, 1), (1, 2), ((1, 2), (0, 1))),
    "strides beyond the filter": ((2, 3, 2, 1), (1, 2, 17, 1), (8, 9), (3, 5), (1, 1), "SAME"),
    "one pixel": ((2, 1, 1, 3), (3, 3, 2, 3), (1, 1), (1, 1), (1, 1), "SAME"),
    "signals": ((2, 4, 3), (5, 2, 3), (11,), (3,), (1,), "SAME"),
    "signals, dilated": ((2, 4, 3), (3, 2, 3), (8,), (1,), (2,), "VALID"),
    "volumes": ((2, 2, 3, 2, 3), (2, 3, 2, 2, 3), (4, 5, 3), (2, 2, 2), (1, 1, 1), "SAME"),
    "volumes, dilated": (
        (2, 2, 3, 2, 3),
        (2, 2, 1, 2, 3),
        (5, 5, 3),
        (1, 1, 2),
        (3, 2, 1),
        "VALID",
    ),
    "groups": ((3, 4, 2, 6), (3, 2, 3, 6), (7, 5), (2, 3), (1, 1), "SAME"),
    "groups, dilated": ((2, 3, 4, 4), (3, 2, 1, 4), (11, 7), (2, 1), (3, 3), "VALID"),
    "groups, signals": ((2, 4, 6), (5, 2, 6), (11,), (3,), (1,), "SAME"),
    "groups, volumes": ((2, 2, 3, 2, 4), (2, 3, 2, 3, 4), (4, 5, 3), (2, 2, 2), (1, 1, 1), "SAME"),
    "depthwise": ((3, 4, 3, 17), (3, 3, 1, 17), (8, 6), (2, 2), (1, 1), "SAME"),
    "depthwise, three each": ((2, 4, 3, 15), (3, 2, 1, 15), (4, 5), (1, 2), (1, 1), "SAME"),
}
GROUPS = {
    "groups": 2,
    "groups, dilated": 2,
    "groups, signals": 3,
    "groups, volumes": 2,
    "depthwise": 17,
    "depthwise, three each": 5,
}
each_case = pytest.mark.parametrize("name", list(CASES))


def call(name: str, x: Any, f: Any) -> tf.Tensor:
    _, _, size, strides, dilations, padding = CASES[name]
    given = padding if isinstance(padding, str) else explicit(padding)
    function = {1: nn.conv1d_transpose, 2: nn.conv2d_transpose, 3: nn.conv3d_transpose}[len(size)]
    shape = [x.shape[0], *size, results_of(name)]
    return function(x, f, shape, strides, given, dilations=dilations)


def results_of(name: str) -> int:
    return GROUPS.get(name, 1) * CASES[name][1][-2]


def operands(name: str, dtype: str = "float64") -> tuple[np.ndarray, np.ndarray]:
    shape, filters = CASES[name][:2]
    return numbers(*shape, dtype=dtype), numbers(*filters, seed=1, dtype=dtype)


@each_case
def test_it_spreads_each_element_over_a_window(name):
    _, filters, size, strides, dilations, padding = CASES[name]
    pads = padding
    if padding == "SAME":
        pads = windows.same_padding(size, filters[:-2], strides, dilations)
    elif padding == "VALID":
        pads = [(0, 0)] * len(size)
    x, f = operands(name)
    expected = transposed(x, f, size, strides, pads, dilations, GROUPS.get(name, 1))
    np.testing.assert_allclose(call(name, x, f).numpy(), expected, rtol=1e-11, atol=1e-12)
    shape = np.array([x.shape[0], *size, results_of(name)])
    general = nn.conv_transpose(x, f, shape, strides, explicit(pads), dilations=dilations)
    np.testing.assert_array_equal(general.numpy(), call(name, x, f).numpy())


@each_case
def test_it_is_the_gradient_of_a_convolution(name):
    _, _, size, strides, dilations, padding = CASES[name]
    given = padding if isinstance(padding, str) else explicit(padding)
    y, f = map(tf.constant, operands(name, "float32"))
    x = tf.zeros((y.shape[0], *size, results_of(name)))
    with tf.GradientTape() as tape:
        tape.watch(x)
        forward = nn.convolution(x, f, strides, given, dilations=dilations)
    gradient = tape.gradient(forward, x, output_gradients=y)
    np.testing.assert_array_equal(gradient.numpy(), call(name, y, f).numpy())


@each_case
def test_derivatives_are_right_to_second_order(name):
    x, f = operands(name)
    check_derivatives(lambda x, f: call(name, x, f), [0.5 * x, 0.5 * f], traced=name == "images")


def trained(name: str, replicas: int, images: np.ndarray) -> list[np.ndarray]:
    where = tf.distribute.MirroredStrategy(replicas=replicas)
    with where.scope():
        f = tf.Variable(numbers(*CASES[name][1], seed=1, dtype="float32") / 4)

    def step(x):
        with tf.GradientTape() as tape:
            y = nn.relu(call(name, x, f))
            axes = list(range(1, len(y.shape)))
            loss = nn.compute_average_loss(tf.reduce_sum(y * y, axis=axes))
        g = tape.gradient(loss, f)
        f.assign_sub(1e-4 * tf.distribute.get_replica_context().all_reduce("SUM", g))

    (batch,) = where.experimental_distribute_dataset(
        tf.data.Dataset.from_tensor_slices(images).batch(len(images))
    )
    for _ in range(3):
        where.run(step, (batch,))
    return f.numpy()


@pytest.mark.parametrize(
    "name", ["images", "signals", "volumes", "groups", "groups, volumes", "depthwise"]
)
def test_replicas_have_the_bits_of_one_device(name):
    images = numbers(13, *CASES[name][0][1:], dtype="float32")
    one = trained(name, 1, images)
    for replicas in (2, 3, 4):
        np.testing.assert_array_equal(one, trained(name, replicas, images))


def test_any_number_of_images_runs_through_one_trace():
    traces = []

    @tf.function
    def run(x, f):
        traces.append(1)
        return nn.conv2d_transpose(x, f, [tf.shape(x)[0], 7, 5, 3], (2, 3))

    @tf.function
    def listed(x, f):
        return nn.conv2d_transpose(x, f, [x.shape[0], 7, 5, 3], (2, 3))

    f = operands("images", "float32")[1]
    for n in (3, 1000, 1, 0):
        x = numbers(n, *CASES["images"][0][1:], dtype="float32")
        given = tf.constant(x)._as_examples(0, 1)
        expected = nn.conv2d_transpose(x, f, (n, 7, 5, 3), (2, 3)).numpy()
        np.testing.assert_array_equal(listed(given, f).numpy(), expected)
        np.testing.assert_array_equal(run(given, f).numpy(), expected)
    assert len(traces) == 1


def numbers_of_torch(groups: int, each: int, results: int) -> tuple[Any, Any, Any]:
    torch = pytest.importorskip("torch")
    x = numbers(2, 4, 3, groups * each)
    f = numbers(3, 2, results, groups * each, seed=1)
    theirs = torch.nn.functional.conv_transpose2d(
        torch.tensor(np.moveaxis(x, -1, 1).copy()),
        torch.tensor(np.moveaxis(f, [-1, -2], [0, 1]).copy()),
        stride=(2, 3),
        dilation=(1, 2),
        groups=groups,
    )
    return x, f, np.moveaxis(theirs.numpy(), 1, -1)


@pytest.mark.parametrize(("groups", "each", "results"), [(1, 5, 4), (3, 2, 4), (5, 1, 1)])
def test_torch_agrees(groups, each, results):
    x, f, theirs = numbers_of_torch(groups, each, results)
    ours = nn.conv2d_transpose(x, f, theirs.shape, (2, 3), "VALID", dilations=(1, 2))
    np.testing.assert_allclose(ours.numpy(), theirs, rtol=1e-10)


@pytest.mark.parametrize("each", [1, 3])
def test_a_depthwise_convolution_is_transposed(each):
    x = tf.constant(numbers(2, 7, 5, 4))
    f = tf.constant(numbers(3, 2, 4, each, seed=1))
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = nn.depthwise_conv2d(x, f, (2, 2), "SAME", dilations=1)
    ct = tf.constant(numbers(*y.shape, seed=2))
    expected = tape.gradient(y, x, output_gradients=ct).numpy()
    found = nn.depthwise_conv2d_backprop_input(x.shape, f, ct, (2, 2), "SAME").numpy()
    np.testing.assert_array_equal(found, expected)


X = np.zeros((2, 3, 4, 5), "float32")
F = np.zeros((3, 2, 6, 5), "float32")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: nn.conv2d_transpose(X, F[..., :4], (2, 6, 8, 6), 2), "last axis of the filters"),
        (lambda: nn.conv2d_transpose(X, F, (2, 6, 8, 5), 2), r"output_shape must be \(2, sizes"),
        (lambda: nn.conv2d_transpose(X, F, (2, 6, 8, 13), 2), "6 times the groups"),
        (lambda: nn.conv2d_transpose(X, F, (2, 6, 8, 12), 2), "got 5 channels for 2 groups"),
        (
            lambda: nn.depthwise_conv2d_backprop_input((2, 6, 8, 4), F[:, :, :5, :1], X, 2, "SAME"),
            "input_sizes must end with the channels of the filter",
        ),
        (lambda: nn.conv2d_transpose(X, F, (3, 6, 8, 6), 2), r"output_shape must be \(2, sizes"),
        (lambda: nn.conv2d_transpose(X, F, (6, 8), 2), "with 4 numbers: got"),
        (lambda: nn.conv2d_transpose(X, F, (2, -6, 8, 6), 2), r"output_shape must be \(2, sizes"),
        (lambda: nn.conv2d_transpose(X, F, (2, 7, 8, 6), 2), r"got \(4, 4\) for \(7, 8\)"),
        (lambda: nn.conv2d_transpose(X, F, (2, 1, 1, 6), 2, "VALID"), "window must not be larger"),
        (lambda: nn.conv2d_transpose(X[0], F, (2, 6, 8, 6), 2), r"images must be \[n, rows"),
        (lambda: nn.conv2d_transpose(X, F[0], (2, 6, 8, 6), 2), r"columns, results, channels\]"),
        (lambda: nn.conv2d_transpose(X, F, (2, 6, 8, 6), 0), "strides must be one or two"),
        (lambda: nn.conv2d_transpose(X, F, (2, 6, 8, 6), 2, data_format="NCHW"), "channels last"),
        (lambda: nn.conv1d_transpose(X, F, (2, 6, 6), 2), r"signals must be \[n, columns"),
        (lambda: nn.conv3d_transpose(X, F, (2, 6, 6), 2), r"volumes must be \[n, depth"),
        (lambda: nn.conv_transpose(X[0, 0], F, (2, 6, 6), 2), r"\[conv_transpose\] the input"),
    ],
)
def test_wrong_arguments_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_rows_of_a_number_that_the_program_named():
    """A generator in a step draws so many rows; their reshaped images have no other number."""
    layers = tf.keras.layers
    strategy = tf.distribute.MirroredStrategy(replicas=2)
    with strategy.scope():
        model = tf.keras.Sequential(
            [
                tf.keras.Input((5,)),
                layers.Dense(12),
                layers.Reshape((2, 2, 3)),
                layers.Conv2DTranspose(4, 3, 2, "same"),
            ]
        )

    @tf.function
    def images():
        return strategy.run(lambda: model(tf.random.normal((32, 5))))

    assert [part.shape for part in strategy.experimental_local_results(images())] == 2 * [
        (32, 4, 4, 4)
    ]
