"""Losses and what is made of the values of the examples."""

import numpy as np
import pytest
from replica_values import local, shares, split, strategy

import samegrad as tf
from samegrad.keras import activations, losses
from samegrad.keras.losses import Reduction

LOGITS = np.float32([[1.0, -2.0, 0.5], [0.0, 3.0, 1.0], [2.0, 2.0, -1.0]])
LABELS = np.array([0, 2, 1])
SOFTMAX = np.exp(LOGITS) / np.exp(LOGITS).sum(-1, keepdims=True)
CROSS_ENTROPY = -np.log(SOFTMAX[range(3), LABELS])


def test_sparse_categorical_crossentropy():
    loss = losses.SparseCategoricalCrossentropy(from_logits=True, reduction="none")
    np.testing.assert_allclose(loss(LABELS, LOGITS).numpy(), CROSS_ENTROPY, rtol=1e-5)
    of_column = loss(LABELS[:, None].astype("float32"), LOGITS)
    np.testing.assert_allclose(of_column.numpy(), CROSS_ENTROPY, rtol=1e-5)
    of_bytes = loss(LABELS.astype("uint8"), LOGITS)
    np.testing.assert_allclose(of_bytes.numpy(), CROSS_ENTROPY, rtol=1e-5)
    probabilities = losses.SparseCategoricalCrossentropy(reduction="none")
    np.testing.assert_allclose(probabilities(LABELS, SOFTMAX).numpy(), CROSS_ENTROPY, rtol=1e-5)


def test_sparse_categorical_crossentropy_of_tokens_keeps_their_axis():
    loss = losses.SparseCategoricalCrossentropy(from_logits=True, reduction="none")
    found = loss(np.stack([LABELS, LABELS]), np.stack([LOGITS, LOGITS])).numpy()
    np.testing.assert_allclose(found, [CROSS_ENTROPY, CROSS_ENTROPY], rtol=1e-5)


def test_labels_that_are_no_class_are_refused():
    loss = losses.SparseCategoricalCrossentropy(from_logits=True)
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"class numbers in \[0, 3\): got 3"):
        loss([0, 3, 1], LOGITS)
    with pytest.raises(ValueError, match="same shape up until the last dimension"):
        loss([0, 1], LOGITS)


def test_logits_behind_a_softmax_keep_small_probabilities():
    y = activations.softmax(np.float32([[0.0, 200.0]]))
    assert float(losses.SparseCategoricalCrossentropy()([0], y)) == 200.0
    with pytest.warns(UserWarning, match="produced by a Softmax activation"):
        losses.SparseCategoricalCrossentropy(from_logits=True)([0], y)


def test_categorical_crossentropy():
    z = np.float32([[0.0, 1.0, 0.0], [0.2, 0.3, 0.5], [1.0, 0.0, 0.0]])
    expected = -(z * np.log(SOFTMAX)).sum(-1)
    found = losses.CategoricalCrossentropy(from_logits=True, reduction="none")(z, LOGITS)
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-5)
    found = losses.CategoricalCrossentropy(reduction="none")(z, 5 * SOFTMAX)
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-5)
    smooth = losses.CategoricalCrossentropy(from_logits=True, label_smoothing=0.3, reduction="none")
    expected = -((z * 0.7 + 0.1) * np.log(SOFTMAX)).sum(-1)
    np.testing.assert_allclose(smooth(z, LOGITS).numpy(), expected, rtol=1e-5)


def test_binary_crossentropy():
    z, x = np.float32([[1.0, 0.0], [1.0, 1.0]]), np.float32([[0.5, -1.0], [3.0, -2.0]])
    p = 1 / (1 + np.exp(-x))
    expected = -(z * np.log(p) + (1 - z) * np.log(1 - p)).mean(-1)
    of_logits = losses.BinaryCrossentropy(from_logits=True, reduction="none")
    of_numbers = losses.BinaryCrossentropy(reduction="none")
    for loss, y in [(of_logits, x), (of_numbers, p), (of_numbers, activations.sigmoid(x))]:
        np.testing.assert_allclose(loss(z, y).numpy(), expected, rtol=1e-5)
    smooth = losses.BinaryCrossentropy(from_logits=True, label_smoothing=0.2, reduction="none")
    expected = -((z * 0.8 + 0.1) * np.log(p) + (0.9 - z * 0.8) * np.log(1 - p)).mean(-1)
    np.testing.assert_allclose(smooth(z, x).numpy(), expected, rtol=1e-5)


def test_distances():
    truth, guess = [[0.0, 1.0], [2.0, 5.0]], [[1.0, 1.0], [2.0, 1.0]]
    squares = losses.MeanSquaredError(reduction="none")(truth, guess)
    np.testing.assert_array_equal(squares.numpy(), [0.5, 8.0])
    absolutes = losses.MeanAbsoluteError(reduction="none")(truth, guess)
    np.testing.assert_array_equal(absolutes.numpy(), [0.5, 2.0])


@pytest.mark.parametrize("shapes", [((3,), (3,)), ((3,), (3, 1)), ((3, 1), (3,)), ((3, 1), (3, 1))])
def test_one_number_per_example_is_not_averaged_over_the_examples(shapes):
    truth, guess = (np.arange(3.0, dtype="float32").reshape(shape) for shape in shapes)
    found = losses.MeanSquaredError(reduction="none")(truth, guess + 2.0).numpy()
    np.testing.assert_array_equal(found, [4.0, 4.0, 4.0])


@pytest.mark.parametrize(
    ("reduction", "weight", "found"),
    [
        ("sum", None, 8.5),
        (Reduction.SUM, [2.0, 1.0], 9.0),
        (Reduction.AUTO, None, 4.25),
        (Reduction.SUM_OVER_BATCH_SIZE, [2.0, 1.0], 4.5),
        ("auto", 2.0, 8.5),
        (Reduction.AUTO, [[2.0], [0.0]], 0.5),
    ],
)
def test_reductions(reduction, weight, found):
    loss = losses.MeanSquaredError(reduction=reduction)
    assert float(loss([[0.0, 1.0], [2.0, 5.0]], [[1.0, 1.0], [2.0, 1.0]], weight)) == found


def test_a_mean_is_the_replicas_share_of_the_true_mean():
    truth = shares(np.zeros((3, 1), "float32"), np.zeros((1, 1), "float32"))
    guess = shares(np.float32([[1], [2], [3]]), np.float32([[4]]))
    loss = losses.MeanSquaredError(reduction="auto")
    assert local(strategy(2).run(loss, args=(truth, guess))) == [3.5, 4.0]
    nothing = shares(np.float32([[1], [2], [3]]), np.zeros((0, 1), "float32"))
    assert local(strategy(2).run(loss, args=(nothing, nothing))) == [0.0, 0.0]


def test_a_mean_has_the_same_bits_for_any_number_of_replicas():
    rng = np.random.default_rng(0)
    labels, logits = rng.integers(0, 10, 64), rng.normal(size=(64, 10)).astype("float32")
    loss = losses.SparseCategoricalCrossentropy(from_logits=True, reduction="auto")

    def total(replicas):
        several = strategy(replicas)
        parts = several.run(loss, args=(split(labels, replicas), split(logits, replicas)))
        return several.reduce("sum", parts, axis=None).numpy()

    local_mean = losses.SparseCategoricalCrossentropy(from_logits=True)(labels, logits).numpy()
    assert [total(n) for n in (1, 2, 3, 8)] == [local_mean] * 4


@pytest.mark.parametrize("make", [losses.MeanSquaredError, losses.SparseCategoricalCrossentropy,
                                  losses.BinaryCrossentropy])  # fmt: skip
def test_a_configuration_makes_the_same_loss(make):
    loss = make(reduction="sum")
    assert make.from_config(loss.get_config()).get_config() == loss.get_config()
