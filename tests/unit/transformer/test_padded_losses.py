"""Losses and hits of padded tokens: values, gradients, means over replicas, bad input."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from derivatives import check_derivatives
from replica_values import cut, local, on, shares, strategy

import samegrad as tf
from samegrad.errors import InvalidArgumentError

V = 7


def numbers(n: int, length: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Logits [n, length, V] and labels [n, length], of which some are padding."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(1, V, (n, length))
    for row in labels[1:]:
        row[rng.integers(1, length + 1) :] = 0
    return rng.normal(size=(n, length, V)) * 3, labels


def by_one_hot(
    logits: np.ndarray, labels: np.ndarray, smoothing: float
) -> tuple[np.ndarray, np.ndarray]:
    """The published formula, with the distributions of all targets."""
    length = max(logits.shape[1], labels.shape[1])
    logits = np.pad(logits, [(0, 0), (0, length - logits.shape[1]), (0, 0)])
    labels = np.pad(labels, [(0, 0), (0, length - labels.shape[1])])
    confidence, low = 1.0 - smoothing, smoothing / (V - 1)
    targets = np.where(np.arange(V) == labels[..., None], confidence, low)
    chances = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    constant = -(confidence * np.log(confidence) + (V - 1) * low * np.log(low + 1e-20))
    weights = (labels != 0).astype(np.float64)
    return (-(targets * chances).sum(-1) - constant) * weights, weights


def both_means(logits: Any, labels: Any) -> tuple[Any, Any]:
    """A replica's shares of the means per token and per sentence."""
    losses, weights = tf.nn.padded_cross_entropy_loss(logits, labels, 0.1, V)
    tokens = tf.nn.compute_weighted_mean_loss(losses, weights)
    return tokens, tf.nn.compute_average_loss(tf.nn.mean_over_tokens(losses, weights))


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.9])
@pytest.mark.parametrize("lengths", [(5, 5), (5, 3), (3, 5), (1, 1), (0, 2), (2, 0), (0, 0)])
def test_losses_and_weights_are_those_of_the_published_formula(
    smoothing: float, lengths: tuple[int, int]
) -> None:
    logits, labels = numbers(4, 5)
    logits, labels = logits[:, : lengths[0]], labels[:, : lengths[1]]
    losses, weights = tf.nn.padded_cross_entropy_loss(logits, labels, smoothing, V)
    expected, real = by_one_hot(logits, labels, smoothing)
    assert losses.shape == weights.shape == (4, max(lengths))
    np.testing.assert_allclose(losses.numpy(), expected, rtol=0, atol=1e-13)
    np.testing.assert_array_equal(weights.numpy(), real)
    assert losses.dtype == weights.dtype == tf.float64


def test_a_prediction_that_is_its_target_costs_nothing() -> None:
    targets = np.where(np.arange(V) == 3, 0.9, 0.1 / (V - 1))
    losses, _ = tf.nn.padded_cross_entropy_loss(np.log(targets)[None, None], [[3]], 0.1, V)
    assert abs(float(losses[0, 0])) < 1e-12


@pytest.mark.parametrize("traced", [False, True])
def test_derivatives_are_those_of_differences(traced: bool) -> None:
    logits, labels = numbers(3, 2)

    def smoothed(x: Any) -> Any:
        return tf.nn.padded_cross_entropy_loss(x, labels, 0.1, V)[0]

    def per_sentence(x: Any) -> Any:
        losses, weights = tf.nn.padded_cross_entropy_loss(x, labels, 0.1, V)
        return tf.nn.mean_over_tokens(losses, weights)

    for fn in (smoothed, per_sentence):
        check_derivatives(fn, logits, traced=traced)


def test_no_distribution_of_targets_is_made() -> None:
    """The largest value of the plan is the logits; a one-hot matrix would be another."""
    logits, labels = numbers(4, 5)
    plan = str(
        tf.function(lambda x: tf.nn.padded_cross_entropy_loss(x, labels, 0.1, V)[0]).explain(
            tf.constant(logits)
        )
    )
    assert "sparse_softmax_cross_entropy" in plan
    assert "one_hot" not in plan


def test_accuracy_is_that_of_the_real_tokens() -> None:
    logits, labels = numbers(4, 5)
    hits, weights = tf.nn.padded_accuracy(logits, labels)
    best = logits.argmax(-1)
    np.testing.assert_array_equal(hits.numpy(), best == labels)
    np.testing.assert_array_equal(weights.numpy(), labels != 0)
    longer, more = tf.nn.padded_accuracy(logits[:, :3], labels)
    assert longer.shape == more.shape == (4, 5)
    # Logits that are not there are zeros: the first token, padding, is their largest.
    np.testing.assert_array_equal(longer[:, 3:].numpy(), labels[:, 3:] == 0)


@pytest.mark.parametrize("counts", [(4, 0), (1, 3), (2, 2), (0, 4)])
def test_accuracy_is_global(counts: tuple[int, int]) -> None:
    logits, labels = numbers(4, 5)
    replicas = strategy(2)
    with replicas.scope():
        mean = tf.keras.metrics.Mean(dtype="float64")

    def step(pair: Any) -> None:
        mean.update_state(*tf.nn.padded_accuracy(*pair))

    replicas.run(step, ((shares(*cut(logits, counts)), shares(*cut(labels, counts))),))
    real = labels != 0
    expected = ((logits.argmax(-1) == labels) & real).sum() / real.sum()
    np.testing.assert_allclose(float(mean.result()), expected, rtol=1e-12)


COUNTS = [
    (6,),
    (3, 3),
    (1, 5),
    (6, 0),
    (0, 6),
    (2, 2, 2),
    (4, 1, 1),
    (2, 1, 2, 1),
    (1,) * 6 + (0, 0),
]


@pytest.mark.parametrize("counts", COUNTS)
@pytest.mark.parametrize("traced", [False, True], ids=["run", "function"])
def test_both_means_are_those_of_one_device(counts: tuple[int, ...], traced: bool) -> None:
    logits, labels = numbers(6, 5)
    labels[2] = 0  # a sentence without a real token
    losses, weights = by_one_hot(logits, labels, 0.1)
    each = losses.sum(1) / np.maximum(weights.sum(1), 1)
    expected = losses.sum() / weights.sum(), each.sum() / 6
    replicas = strategy(len(counts))
    pair = shares(*cut(logits, counts)), shares(*cut(labels, counts))
    found = on(replicas, lambda given: both_means(*given), traced)(pair)
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(sum(map(float, local(ours))), theirs, rtol=1e-12)


@pytest.mark.parametrize("counts", [(4,), (2, 2), (4, 0), (1, 1, 2)])
def test_without_a_real_token_loss_and_gradients_are_zero(counts: tuple[int, ...]) -> None:
    logits, _ = numbers(4, 5)
    replicas = strategy(len(counts))

    def step(x: Any) -> list[Any]:
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(x)
            means = both_means(x, tf.zeros(x.shape[:2], "int64"))
        return [*means, *(tape.gradient(mean, x) for mean in means)]

    for value in replicas.run(step, (shares(*cut(logits, counts)),)):
        for part in local(value):
            np.testing.assert_array_equal(part, np.zeros_like(part))


def test_a_mean_of_sentences_without_tokens_counts_them_as_zero() -> None:
    found = tf.nn.mean_over_tokens([[1.0, 3.0], [5.0, 9.0], [7.0, 7.0]], [[1, 1], [1, 0], [0, 0]])
    np.testing.assert_array_equal(found.numpy(), [2.0, 5.0, 0.0])
    empty = tf.nn.mean_over_tokens(np.zeros((0, 3)), np.zeros((0, 3)))
    assert empty.shape == (0,)
    assert tf.nn.mean_over_tokens(np.zeros((2, 0)), np.zeros((2, 0))).numpy().tolist() == [0, 0]
    inner = tf.nn.mean_over_tokens(np.arange(8.0).reshape(1, 2, 4), [[1, 3]])
    np.testing.assert_allclose(inner.numpy(), [(1.5 + 3 * 5.5) / 4])


@pytest.mark.parametrize("half", ["float16", "bfloat16"])
def test_tokens_are_counted_in_more_than_sixteen_bits(half: str) -> None:
    logits, labels = numbers(1, 5000)
    scores = tf.cast(logits, half)
    losses, weights = tf.nn.padded_cross_entropy_loss(scores, labels, 0.1, V)
    hits, same = tf.nn.padded_accuracy(scores, labels)
    assert {x.dtype.name for x in (losses, weights, hits, same)} == {"float32"}
    assert float(tf.reduce_sum(weights)) == float(tf.reduce_sum(same)) == 5000.0
    expected, _ = by_one_hot(tf.cast(scores, "float64").numpy(), labels, 0.1)
    np.testing.assert_allclose(losses.numpy(), expected, rtol=1e-5, atol=1e-5)


LOGITS, LABELS = numbers(2, 3)
BAD = {
    "a vocabulary of another size": (LOGITS, LABELS, 0.1, V + 1, r"vocab_size .* got 8"),
    "too much smoothing": (LOGITS, LABELS, 1.0, V, r"smoothing must be in \[0, 1\).*got 1.0"),
    "negative smoothing": (LOGITS, LABELS, -0.1, V, r"smoothing must be in \[0, 1\)"),
    "not a number": (LOGITS, LABELS, float("nan"), V, r"smoothing must be in \[0, 1\)"),
    "labels of one axis": (LOGITS, LABELS[0], 0.1, V, r"labels \[n, S\]: got shapes"),
    "logits of two axes": (LOGITS[0], LABELS, 0.1, V, r"logits must be \[n, T, V\]"),
    "one token that is smoothed": (LOGITS[..., :1], LABELS, 0.1, 1, "0 with a single token"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_arguments_say_what_is_wanted(name: str) -> None:
    *arguments, message = BAD[name]
    with pytest.raises(ValueError, match=rf"(?s)\[padded_cross_entropy_loss\].*{message}"):
        tf.nn.padded_cross_entropy_loss(*arguments)


@pytest.mark.parametrize("label", [-1, V, 2**40])
def test_a_label_that_is_no_token_is_an_error(label: int) -> None:
    labels = LABELS.astype(np.int64).copy()
    labels[1, 0] = label
    with pytest.raises((InvalidArgumentError, ValueError), match=str(label)):
        tf.nn.padded_cross_entropy_loss(LOGITS, labels, 0.1, V)


def test_losses_of_one_axis_are_no_tokens() -> None:
    with pytest.raises(ValueError, match=r"\[mean_over_tokens\].*got shape \(2,\)"):
        tf.nn.mean_over_tokens([1.0, 2.0], [1.0, 1.0])
    with pytest.raises(ValueError, match="weights must have the shape of the losses"):
        tf.nn.mean_over_tokens([[1.0, 2.0]], [[1.0, 1.0, 1.0]])
