"""Functions of neural networks, and the denominators of losses."""

import math
import warnings

import numpy as np
import pytest
from replica_values import examples, local, shares, split, strategy

import samegrad as tf
from samegrad import nn


def random(*shape, dtype="float32", seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(dtype)


ACTIVATIONS = {
    "relu": lambda x: np.maximum(x, 0),
    "relu6": lambda x: np.clip(x, 0, 6),
    "leaky_relu": lambda x: np.where(x > 0, x, 0.2 * x),
    "elu": lambda x: np.where(x > 0, x, np.expm1(x)),
    "selu": lambda x: 1.05070098 * np.where(x > 0, x, 1.67326324 * np.expm1(x)),
    "gelu": lambda x: x * 0.5 * (1 + np.vectorize(math.erf)(x / math.sqrt(2))),
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "silu": lambda x: x / (1 + np.exp(-x)),
    "tanh": np.tanh,
    "softplus": lambda x: np.log1p(np.exp(x)),
    "softsign": lambda x: x / (1 + abs(x)),
}


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations_are_their_formulas(name):
    x = 3 * random(40, dtype="float64")
    np.testing.assert_allclose(getattr(nn, name)(x).numpy(), ACTIVATIONS[name](x), rtol=1e-7)


def test_elu_of_large_numbers_has_a_finite_gradient():
    x = tf.Variable([1e4, -1e4])
    with tf.GradientTape() as tape:
        y = nn.elu(x)
    np.testing.assert_array_equal(tape.gradient(y, x).numpy(), [1.0, 0.0])


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_softmax_runs_along_any_axis(axis):
    x = random(3, 4, 5)
    y = np.exp(x) / np.exp(x).sum(axis, keepdims=True)
    np.testing.assert_allclose(nn.softmax(x, axis).numpy(), y, rtol=1e-5)
    np.testing.assert_allclose(nn.log_softmax(x, axis).numpy(), np.log(y), rtol=1e-4)


def test_softmax_names_the_axis_that_does_not_exist():
    with pytest.raises(ValueError, match=r"\[softmax\] axis must be one of the tensor's 2 axes"):
        nn.softmax([[1.0]], axis=2)


@pytest.mark.parametrize("axis", [0, 1, 2, -1])
def test_softmax_cross_entropy_runs_along_any_axis(axis):
    x, z = random(3, 4, 5, 2), random(3, 4, 5, 2, seed=1)
    logs = x - np.log(np.exp(x).sum(axis, keepdims=True))
    found = nn.softmax_cross_entropy_with_logits(z, x, axis).numpy()
    np.testing.assert_allclose(found, -(z * logs).sum(axis), rtol=1e-4, atol=1e-5)


def test_sigmoid_cross_entropy_neither_overflows_nor_cancels():
    found = nn.sigmoid_cross_entropy_with_logits([0.0, 1.0, 1.0], [200.0, 200.0, -30.0]).numpy()
    np.testing.assert_allclose(found, [200.0, 0.0, 30.0])


def test_sparse_cross_entropy_refuses_numbers_that_are_no_class():
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"class numbers in \[0, 2\): got 2"):
        nn.sparse_softmax_cross_entropy_with_logits([2], [[0.0, 0.0]])


def naive_conv2d(x, w, stride, top, left, rows, columns):
    padded = np.zeros((len(x), 40, 40, x.shape[3]))
    padded[:, top : top + x.shape[1], left : left + x.shape[2]] = x
    y = np.zeros((len(x), rows, columns, w.shape[3]))
    for i in range(rows):
        for j in range(columns):
            at = padded[
                :, i * stride : i * stride + w.shape[0], j * stride : j * stride + w.shape[1]
            ]
            y[:, i, j] = np.tensordot(at, w, 3)
    return y


def test_conv2d_with_each_padding():
    x, w = random(2, 7, 6, 3, dtype="float64"), random(3, 2, 3, 4, dtype="float64")
    valid = nn.conv2d(x, w, 1, "VALID").numpy()
    np.testing.assert_allclose(valid, naive_conv2d(x, w, 1, 0, 0, 5, 5), rtol=1e-10)
    # 4 rows need 3 more than there are: 1 above, 1 below; columns fit.
    same = nn.conv2d(x, w, (2, 2), "SAME").numpy()
    np.testing.assert_allclose(same, naive_conv2d(x, w, 2, 1, 0, 4, 3), rtol=1e-10)
    pads = [[0, 0], [2, 1], [1, 0], [0, 0]]
    given = nn.conv2d(x, w, [1, 1, 1, 1], pads).numpy()
    np.testing.assert_allclose(given, naive_conv2d(x, w, 1, 2, 1, 8, 6), rtol=1e-10)


def test_pooling_with_padding():
    x = np.arange(1.0, 10.0).reshape(1, 3, 3, 1)
    largest = nn.max_pool2d(-x, 2, 2, "SAME").numpy()[0, ..., 0]
    np.testing.assert_array_equal(largest, [[-1, -3], [-7, -9]])
    means = nn.avg_pool2d(x, 2, 2, "SAME").numpy()[0, ..., 0]
    np.testing.assert_array_equal(means, [[3, 4.5], [7.5, 9]])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: nn.conv2d(x[0], x, 1, "SAME"), r"\[conv2d\] images must be \[n, rows"),
        (lambda x: nn.conv2d(x, x[0], 1, "SAME"), r"filters must be \[rows, columns"),
        (lambda x: nn.conv2d(x, x, 0, "SAME"), "strides must be one or two positive"),
        (lambda x: nn.conv2d(x, x, 1, "FULL"), "padding must be 'valid' or 'same': got 'FULL'"),
        (lambda x: nn.conv2d(x, x, 1, "SAME", "NCHW"), "channels last: got data_format='NCHW'"),
        (lambda x: nn.conv2d(x, x, 1, "SAME", dilations=0), "dilations must be one or two pos"),
        (lambda x: nn.max_pool2d(x, 9, 1, "VALID"), "window must not be larger than the image"),
        (lambda x: nn.max_pool2d(x, (1, 2, 3), 1, "SAME"), "ksize must be one or two"),
        (lambda x: nn.bias_add(x, [1.0, 2.0, 3.0]), r"\[bias_add\] the bias must be as long"),
        (lambda x: nn.dropout(x, 1.0), r"rate must be in \[0, 1\): got 1.0"),
        (lambda x: nn.dropout(x, 0.5, noise_shape=(1,)), "noise_shape must give for each axis"),
    ],
)
def test_wrong_arguments_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call(np.zeros((2, 2, 2, 2), "float32"))


def test_dropout_scales_what_it_keeps():
    y = nn.dropout(np.ones((200, 50), "float32"), 0.25).numpy()
    assert set(np.unique(y)) == {0.0, np.float32(1 / 0.75)}
    assert abs((y == 0).mean() - 0.25) < 0.02


def test_dropout_with_one_decision_for_a_whole_axis():
    x = examples(np.ones((20, 6, 5), "float32"))
    y = nn.dropout(x, 0.5, noise_shape=(None, 1, 5)).numpy()
    assert (y == y[:, :1]).all()
    assert 0 < (y == 0).mean() < 1


# What a TensorFlow user relies on, in numbers.


def test_average_of_one_replica():
    assert float(nn.compute_average_loss([1.0, 2, 3, 4, 5], global_batch_size=10)) == pytest.approx(
        1.5
    )
    assert float(nn.compute_average_loss([2.5, 6.2, 5.0])) == pytest.approx(4.56667, abs=1e-5)


@pytest.mark.parametrize(
    ("losses", "weights", "mean"),
    [
        ([2.0, 4.0, 6.0], 2.0, 8.0),
        ([2.0, 4.0, 6.0], [0.3, 0.5, 0.2], 3.8 / 3),
        ([[2.0, 0.5], [4.0, 1.0]], [[0.3, 0.7], [0.2, 0.8]], 1.275),
        ([[2.0, 0.5], [4.0, 1.0]], [1.0, 2.0], 6.25),
        ([2.0, 4.0], [[1.0], [2.0]], 5.0),
    ],
)
def test_weights_are_factors_and_the_batch_divides(losses, weights, mean):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = nn.compute_average_loss(losses, weights)
    assert float(found) == pytest.approx(mean, rel=1e-6)


def test_average_of_inner_axes_is_left_to_the_user_with_a_warning():
    with pytest.warns(UserWarning, match="has 2 axes and is divided by the number of examples"):
        assert float(nn.compute_average_loss([[1.0, 2.0], [3.0, 4.0]])) == 5.0


@pytest.mark.parametrize(
    ("parts", "global_batch_size", "found"),
    [
        (([1.0, 2.0, 3.0], [10.0]), None, [1.5, 2.5]),  # TensorFlow: 1.0, 5.0
        (([8.0], []), None, [8.0, 0.0]),  # TensorFlow: 4.0, 0.0
        (([2.0, 3.0], [4.0, 5.0]), 4, [1.25, 2.25]),
        (([], []), None, [0.0, 0.0]),
    ],
)
def test_shares_add_up_to_the_mean_over_all(parts, global_batch_size, found):
    losses = shares(*(np.array(part, "float32") for part in parts))
    average = strategy(2).run(
        lambda x: nn.compute_average_loss(x, global_batch_size=global_batch_size), args=(losses,)
    )
    assert local(average) == found


def test_a_constant_belongs_to_each_replica():
    two = strategy(2)
    halves = local(two.run(lambda: nn.compute_average_loss([2.5, 6.2, 5.0])))
    np.testing.assert_allclose(halves, [2.28333, 2.28333], atol=1e-5)
    parts = local(two.run(lambda: nn.scale_regularization_loss([2.5, 6.2, 5.0])))
    np.testing.assert_allclose(parts, [6.85, 6.85], rtol=1e-6)


def test_regularization_of_one_replica():
    assert float(nn.scale_regularization_loss([2.5, 6.2, 5.0])) == pytest.approx(13.7)
    assert float(nn.scale_regularization_loss([tf.constant(1.0), tf.constant(2.0)])) == 3.0
    assert float(nn.scale_regularization_loss([])) == 0.0


def test_weighted_mean_divides_by_the_weights_of_all():
    losses = shares(np.float32([1, 5, 100]), np.float32([6]))
    weights = shares(np.float32([1, 1, 0]), np.float32([2]))
    found = strategy(2).run(nn.compute_weighted_mean_loss, args=(losses, weights))
    assert local(found) == [1.5, 3.0]
    assert float(nn.compute_weighted_mean_loss([1.0, 2.0], [0.0, 0.0])) == 0.0
    tokens = nn.compute_weighted_mean_loss([[1.0, 2.0], [3.0, 4.0]], [1.0, 0.0])
    assert float(tokens) == 1.5


def test_the_reported_loss_has_the_same_bits_for_any_number_of_replicas():
    losses, weights = abs(random(96)) + 0.1, abs(random(96, seed=1))

    def total(replicas, function, *values):
        several = strategy(replicas)
        parts = several.run(function, args=tuple(split(value, replicas) for value in values))
        return several.reduce("sum", parts, axis=None).numpy()

    for function, values in [
        (nn.compute_average_loss, (losses,)),
        (lambda x: nn.compute_average_loss(x, global_batch_size=96), (losses,)),
        (nn.compute_average_loss, (losses, weights)),
        (nn.compute_weighted_mean_loss, (losses, weights)),
    ]:
        one = function(*values).numpy()
        assert [total(n, function, *values) for n in (1, 2, 4, 8, 16)] == [one] * 5


def test_batch_size_must_be_a_whole_number():
    loss = [1.0, 2.0]
    assert float(nn.compute_average_loss(loss, global_batch_size=0)) == 0.0
    assert float(nn.compute_average_loss(loss, global_batch_size=tf.constant(4))) == 0.75
    for size, error in [(-1, ValueError), (4.0, TypeError), ([4], ValueError)]:
        with pytest.raises(error, match="global_batch_size"):
            nn.compute_average_loss(loss, global_batch_size=size)
    for size, error in [(4.0, TypeError), ([4], ValueError), (-4, ValueError)]:
        with pytest.raises(error, match="global_batch_size"):
            nn.compute_average_loss(loss, global_batch_size=tf.constant(size))


def test_losses_must_have_examples_and_weights_must_fit():
    with pytest.raises(ValueError, match="a loss per example is needed: got a scalar"):
        nn.compute_average_loss(3.0)
    with pytest.raises(ValueError, match=r"weights must have the shape.*\(2,\) and \(3,\)"):
        nn.compute_average_loss([1.0, 2.0, 3.0], [1.0, 2.0])
    with pytest.raises(ValueError, match="compute_weighted_mean_loss"):
        nn.compute_weighted_mean_loss([1.0, 2.0, 3.0], [1.0, 2.0])


def test_dtypes_stay():
    assert nn.compute_average_loss(np.array([1.0, 2.0])).dtype == tf.float64
    assert nn.compute_average_loss([1, 2]).dtype == tf.float32


def test_cross_replica_context_is_refused():
    with strategy(2).scope():
        for call in (
            lambda: nn.compute_average_loss([2.0, 3.0]),
            lambda: nn.scale_regularization_loss([2.0]),
            lambda: nn.compute_weighted_mean_loss([2.0], [1.0]),
        ):
            with pytest.raises(RuntimeError, match="in cross-replica context"):
                call()
        assert float(nn.compute_average_loss([2.0, 3.0], global_batch_size=4)) == 1.25


def test_the_derivative_of_a_cross_entropy_is_that_of_the_loss_for_labels_of_any_sum():
    labels, logits = np.array([[0.2, 1.5, 0.7]]), np.array([[0.3, -1.0, 0.5]])
    shares = np.exp(logits) / np.exp(logits).sum()
    for loss in (
        lambda z: nn.softmax_cross_entropy_with_logits(labels, z),
        lambda z: tf.keras.losses.categorical_crossentropy(tf.constant(labels), nn.softmax(z)),
    ):
        z = tf.constant(logits)
        with tf.GradientTape() as tape:
            tape.watch(z)
            y = loss(z)
        expected = labels.sum() * shares - labels
        np.testing.assert_allclose(tape.gradient(y, z), expected, rtol=1e-6)
