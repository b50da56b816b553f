"""One global batch gives one loss and one gradient, however it is divided among replicas."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from replica_values import cut, shares
from transformer_batches import TOKENS, Batch, pairs, small

import samegrad as tf
from samegrad.cli._translate._blocks import Sizes
from samegrad.cli._translate._model import Transformer
from samegrad.cli._translate._steps import MEANS
from samegrad.errors import InvalidArgumentError

LENGTHS = (9, 1, 4, 7, 2, 2, 5, 8, 3, 6, 1, 1, 9, 4, 2, 7, 3, 3, 8, 5, 6, 1, 2, 9)


def train_once(
    batch: Batch, counts: Sequence[int], mean: str = "tokens", dtype: str = "float64",
    **options: Any,
) -> list[np.ndarray]:  # fmt: skip
    """The loss of all replicas, and the sums of their gradients; replicas have so many rows."""
    strategy = tf.distribute.MirroredStrategy(replicas=len(counts))
    with strategy.scope():
        model = small(dtype, **options)
    variables = model.trainable_variables

    def step(source: Any, target: Any) -> Any:
        with tf.GradientTape() as tape:
            logits = model((source, target[:, :-1]), training=True)
            loss = MEANS[mean][0](
                *tf.nn.padded_cross_entropy_loss(logits, target[:, 1:], 0.1, TOKENS)
            )
        gradients = tape.gradient(loss, variables)
        return tf.distribute.get_replica_context().all_reduce("sum", [loss, *gradients])

    found = strategy.run(step, tuple(shares(*cut(array, counts)) for array in batch))
    return [strategy.experimental_local_results(value)[0].numpy() for value in found]


def assert_close(found: list[np.ndarray], expected: list[np.ndarray], near: float) -> None:
    largest = max(float(np.abs(e).max()) for e in expected[1:])
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=near, atol=near * largest)


def even(replicas: int) -> list[int]:
    chunk = -(-len(LENGTHS) // replicas)
    return [min(chunk, max(0, len(LENGTHS) - r * chunk)) for r in range(replicas)]


@pytest.mark.parametrize("mean", MEANS)
@pytest.mark.parametrize("shared", [False, True], ids=["two tables", "shared"])
def test_loss_and_gradients_are_those_of_one_device(mean: str, shared: bool) -> None:
    batch = pairs(LENGTHS)
    expected = train_once(batch, [24], mean, shared=shared)
    assert expected[0] > 0 and any(gradient.any() for gradient in expected[1:])
    for counts in (even(2), even(3), even(4), even(8), [23, 1], [1, 20, 3], [0, 24], [5, 0, 0, 19]):
        found = train_once(batch, counts, mean, shared=shared)
        assert_close(found, expected, 1e-12)


@pytest.mark.parametrize("mean", MEANS)
@pytest.mark.parametrize("replicas", [2, 3, 8])
def test_equal_shares_have_the_bits_of_one_device(mean: str, replicas: int) -> None:
    batch = pairs(LENGTHS)
    expected = train_once(batch, [24], mean, "float32")
    found = train_once(batch, [24 // replicas] * replicas, mean, "float32")
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("mean", MEANS)
def test_five_tokens_on_one_replica_and_five_hundred_on_another(mean: str) -> None:
    lengths = [5] + [50] * 10
    batch = pairs(lengths)
    expected = train_once(batch, [11], mean)
    assert_close(train_once(batch, [1, 10], mean), expected, 1e-12)
    assert_close(train_once(batch, [10, 1], mean), expected, 1e-12)
    # The tokens of five sentences of fifty count ten times as much as the one of five.
    losses = [float(train_once(tuple(a[i : i + 1] for a in batch), [1], mean, dropout=0.0)[0])
              for i in range(11)]  # fmt: skip
    weights = lengths if mean == "tokens" else np.ones(11)
    whole = train_once(batch, [1, 10], mean, dropout=0.0)[0]
    np.testing.assert_allclose(whole, np.average(losses, weights=weights), rtol=1e-12)


@pytest.mark.parametrize("mean", MEANS)
@pytest.mark.parametrize("counts", [[3], [1, 2], [3, 0], [1, 1, 1]])
def test_a_batch_of_padding_has_no_loss_and_no_gradient(mean: str, counts: list[int]) -> None:
    source, target = pairs([4, 2, 3])
    target[:, 1:] = 0
    source[1] = 0  # and a source without a token
    for value in train_once((source, target), counts, mean):
        np.testing.assert_array_equal(value, np.zeros_like(value))


@pytest.mark.parametrize("empty", ["source", "target", "both"])
def test_an_empty_sentence_changes_no_other(empty: str) -> None:
    source, target = pairs([4, 2, 3], longest=5)
    logits = small(dropout=0.0)((source, target[:, :-1])).numpy()
    if empty != "target":
        source[1] = 0
    if empty != "source":
        target[1] = 0
    found = small(dropout=0.0)((source, target[:, :-1])).numpy()
    assert np.isfinite(found).all()
    np.testing.assert_array_equal(found[[0, 2]], logits[[0, 2]])
    assert (found[1] != logits[1]).any()


def test_padding_changes_no_real_token() -> None:
    short, long = pairs([4, 2, 3]), pairs([4, 2, 3], longest=9)
    expected = small(dropout=0.0)((short[0], short[1][:, :-1])).numpy()
    found = small(dropout=0.0)((long[0], long[1][:, :-1])).numpy()
    for i, length in enumerate([4, 2, 3]):
        np.testing.assert_allclose(found[i, :length], expected[i, :length], rtol=1e-12, atol=1e-12)


def test_no_logit_depends_on_later_tokens() -> None:
    source, target = pairs([6, 6])
    model = small(dropout=0.0)
    before = model((source, target)).numpy()
    target[:, 4:] = 5
    after = model((source, target)).numpy()
    np.testing.assert_array_equal(after[:, :4], before[:, :4])
    assert (after[:, 4:] != before[:, 4:]).any()


@pytest.mark.parametrize("which", [0, 1], ids=["source", "target"])
@pytest.mark.parametrize("token", [TOKENS, -1, 10**6])
@pytest.mark.parametrize("counts", [[3], [2, 1]])
def test_a_token_that_is_not_in_the_vocabulary_is_an_error(
    which: int, token: int, counts: list[int]
) -> None:
    batch = pairs([4, 2, 3])
    batch[which][2, 1] = token
    with pytest.raises(InvalidArgumentError, match=str(token)):
        train_once(batch, counts)


def test_sizes_that_fit_no_model_say_what_is_wanted() -> None:
    for options, message in (
        ({"width": 9}, "width must be even and a multiple of heads: got 9 and 2"),
        ({"heads": 3}, "width must be even and a multiple of heads: got 8 and 3"),
        ({"layers": 0}, "layers must be at least 1"),
        ({"dropout": 1.0}, r"dropout must be in \[0, 1\)"),
    ):
        with pytest.raises(ValueError, match=message):
            small(**options)
    with pytest.raises(ValueError, match="got 5 and 6 tokens, shared=True"):
        Transformer(5, 6, Sizes(1, 8, 8, 2, shared=True))


@pytest.mark.parametrize("options", [{}, {"shared": True, "normalize_first": False}])
def test_a_saved_model_is_the_same_model(tmp_path: Path, options: dict[str, bool]) -> None:
    source, target = pairs([4, 2, 3])
    model = small("float32", **options)
    expected = model((source, target)).numpy()
    model.save(tmp_path / "model.keras")
    model.save_weights(tmp_path / "model.weights.h5")
    found = tf.keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(found((source, target)).numpy(), expected)
    assert found.sizes == model.sizes and len(found.variables) == len(model.variables)
    again = Transformer.from_config(model.get_config())
    assert (again((source, target)).numpy() != expected).any()
    again.load_weights(tmp_path / "model.weights.h5")
    np.testing.assert_array_equal(again((source, target)).numpy(), expected)


@pytest.mark.parametrize("dropout", [0.0, 0.1])
def test_nothing_is_a_batch_too(dropout: float) -> None:
    """No sentence, no source token, no target token."""
    model = small(dropout=dropout)
    for sentences, length, tokens in ((0, 3, 3), (2, 0, 3), (2, 3, 0), (2, 0, 0)):
        given = np.zeros((sentences, length), np.int32), np.zeros((sentences, tokens), np.int32)
        logits = model(given, training=True)
        assert logits.shape == (sentences, tokens, TOKENS)
        assert np.isfinite(logits.numpy()).all()
