"""Cross-entropy of smoothed labels: the loss of the one-hot rows that are never made."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from derivatives import check_derivatives
from replica_values import examples, local, shares, strategy

import samegrad as tf

HALVES = {"float16": 2e-3, "bfloat16": 2e-2}


def composed(labels: Any, logits: Any, smoothing: float) -> Any:
    """The same from one-hot rows, as the official Transformer computes it."""
    classes = int(logits.shape[-1])
    low = smoothing / (classes - 1)
    soft = tf.one_hot(labels, classes, on_value=1 - smoothing, off_value=low, dtype=logits.dtype)
    return tf.nn.softmax_cross_entropy_with_logits(labels=soft, logits=logits)


def fused(labels: Any, logits: Any, smoothing: float) -> Any:
    return tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits, label_smoothing=smoothing)


def data(*shape: int, dtype: str = "float64") -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    labels = rng.integers(0, shape[-1], size=shape[:-1])
    return labels, (3 * rng.normal(size=shape)).astype(dtype)


def with_gradient(loss: Any, smoothing: float) -> Any:
    def step(labels: Any, logits: Any) -> list[Any]:
        with tf.GradientTape() as tape:
            tape.watch(logits)
            losses = loss(labels, logits, smoothing)
            total = tf.reduce_sum(losses * losses)
        return [losses, tape.gradient(total, logits)]

    return step


@pytest.mark.parametrize("traced", [False, True])
@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.5])
@pytest.mark.parametrize("shape", [(1, 2), (5, 7), (4, 6, 33), (0, 5), (2, 9001)])
def test_it_is_the_loss_of_one_hot_rows(
    shape: tuple[int, ...], smoothing: float, traced: bool
) -> None:
    labels, logits = data(*shape)
    given = examples(labels), examples(logits)
    run = tf.function if traced else lambda f: f
    found = run(with_gradient(fused, smoothing))(*given)
    expected = with_gradient(composed, smoothing)(*given)
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-12, atol=1e-12)


def test_its_formula_is_that_of_the_official_transformer() -> None:
    labels, logits = data(50, 11)
    logs = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    at_label = np.take_along_axis(logs, labels[:, None], -1)[:, 0]
    exact = -(0.9 * at_label + 0.1 / 10 * (logs.sum(-1) - at_label))
    np.testing.assert_allclose(fused(labels, logits, 0.1).numpy(), exact, rtol=1e-13)


def test_without_smoothing_no_bit_changes() -> None:
    labels, logits = data(100, 37, dtype="float32")
    plain = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
    np.testing.assert_array_equal(fused(labels, logits, 0.0).numpy(), plain.numpy())


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_narrower_types_are_near_the_exact_loss(dtype: str) -> None:
    labels, logits = data(20, 300)
    found = with_gradient(fused, 0.1)(examples(labels), tf.cast(examples(logits), dtype))
    rounded = tf.cast(tf.cast(examples(logits), dtype), "float64")
    exact = with_gradient(fused, 0.1)(examples(labels), rounded)
    for a, b in zip(found, exact, strict=True):
        assert a.dtype.name == dtype
        tolerance = HALVES.get(dtype, 2e-6)
        scale = float(np.abs(b.numpy()).max())
        np.testing.assert_allclose(
            a.numpy().astype("float64"), b.numpy(), rtol=tolerance, atol=tolerance * scale
        )


@pytest.mark.parametrize("traced", [False, True])
def test_derivatives_of_both_orders(traced: bool) -> None:
    labels, logits = data(3, 4)
    check_derivatives(lambda x: fused(labels, x, 0.2), logits, traced=traced)


def test_no_matrix_of_labels_is_made() -> None:
    labels, logits = data(64, 1000, dtype="float32")
    plan = str(tf.function(with_gradient(fused, 0.1)).explain(examples(labels), examples(logits)))
    assert "sparse_softmax_cross_entropy_grad" in plan
    assert "one_hot" not in plan
    assert "one_hot" in str(
        tf.function(with_gradient(composed, 0.1)).explain(examples(labels), examples(logits))
    )


@pytest.mark.parametrize("counts", [(8, 8), (4, 4, 4, 4), (5, 0, 3)])
def test_replicas_have_the_bits_of_one_device(counts: tuple[int, ...]) -> None:
    labels, logits = data(sum(counts), 13, dtype="float32")

    def step(labels: Any, logits: Any) -> list[Any]:
        w = tf.constant(np.linspace(0.5, 1.5, 13, dtype=np.float32))
        with tf.GradientTape() as tape:
            tape.watch(w)
            losses = fused(labels, logits * w, 0.1)
            total = tf.reduce_sum(losses)
        context = tf.distribute.get_replica_context()
        return [losses, context.all_reduce("SUM", tape.gradient(total, w))]

    def run(counts: tuple[int, ...]) -> list[np.ndarray]:
        cuts = np.cumsum(counts)[:-1]
        parts = (shares(*np.split(x, cuts)) for x in (labels, logits))
        losses, gradient = strategy(len(counts)).run(step, args=tuple(parts))
        return [np.concatenate(local(losses)), local(gradient)[0]]

    found, expected = run(counts), run((sum(counts),))
    np.testing.assert_array_equal(found[0], expected[0])
    if len(set(counts)) == 1:  # equal shares
        np.testing.assert_array_equal(found[1], expected[1])
    else:
        np.testing.assert_allclose(found[1], expected[1], rtol=1e-5, atol=1e-6)


def test_a_class_that_cannot_be_costs_everything_or_nothing() -> None:
    """Smoothing asks for some of each class: none of it may be impossible."""
    logits = np.array([[0.0, -np.inf, 1.0]])
    for label in range(3):
        assert fused([label], logits, 0.1).numpy() == np.inf
        assert composed([label], tf.constant(logits), 0.1).numpy() == np.inf
    assert np.isnan(fused([0], np.array([[0.0, np.nan]]), 0.1).numpy()).all()


def test_a_single_class_has_no_loss() -> None:
    found = with_gradient(fused, 0.1)(examples([0, 0]), examples([[2.0], [-3.0]]))
    for value in found:
        np.testing.assert_array_equal(np.abs(value.numpy()).ravel(), [0.0, 0.0])


def test_the_number_of_classes_may_follow_from_the_examples() -> None:
    """As in contrastive losses, where the class is the example."""
    x = np.random.default_rng(0).normal(size=(5, 3))

    def loss(v: Any) -> Any:
        labels = tf.range(tf.shape(v)[0])
        return fused(labels, tf.matmul(v, v, transpose_b=True), 0.1)

    def second(v: Any) -> Any:
        with tf.GradientTape() as outer:
            outer.watch(v)
            with tf.GradientTape() as tape:
                tape.watch(v)
                total = tf.reduce_sum(loss(v))
            slope = tf.reduce_sum(tf.square(tape.gradient(total, v)))
        return outer.gradient(slope, v)

    counted = tf.function(second)(examples(x)).numpy()
    np.testing.assert_allclose(counted, second(tf.constant(x)).numpy(), rtol=1e-9)


@pytest.mark.parametrize("label", [-1, 3])
def test_a_label_that_is_no_class_is_named(label: int) -> None:
    with pytest.raises(
        tf.errors.InvalidArgumentError, match=rf"class numbers in \[0, 3\): got {label}"
    ):
        fused([0, label], np.zeros((2, 3)), 0.1)


@pytest.mark.parametrize("smoothing", [-0.1, 1.5, float("nan")])
def test_smoothing_is_a_share(smoothing: float) -> None:
    with pytest.raises(ValueError, match=r"label_smoothing must be in \[0, 1\]: got"):
        fused([0], [[0.0, 0.0]], smoothing)
