"""Losses and hits of padded sequences of tokens, and their means over tokens or sentences.

Formulas: `padded_cross_entropy_loss` and `padded_accuracy` in the metrics of the TensorFlow model
garden's Transformer, after Vaswani et al., 2017, Attention Is All You Need, section 5.4.
"""

from __future__ import annotations

from samegrad import _core
from samegrad._base.dtypes import as_dtype
from samegrad._base.shown import shown
from samegrad._ops.arrays import cast
from samegrad._ops.elementary import log
from samegrad._ops.padding import pad
from samegrad._tensor.example_axis import as_examples
from samegrad._tensor.tensor import Tensor, TensorLike, convert_to_tensor
from samegrad.math._reductions import argmax
from samegrad.nn._cross_entropy import sparse_softmax_cross_entropy_with_logits
from samegrad.nn._loss_normalization import expand_weights

_ops = _core.ops
_PAD = 0


def padded_cross_entropy_loss(
    logits: TensorLike, labels: TensorLike, smoothing: float, vocab_size: int
) -> tuple[Tensor, Tensor]:
    """Compute the cross-entropy of each token with smoothed labels, and the weights of the tokens.

    With confidence c = 1 - smoothing and low = smoothing / (V - 1), the target of a token is c at
    its label and low elsewhere (Szegedy et al., 2016). From the cross-entropy its least value is
    subtracted, -(c log c + (V - 1) low log(low + 1e-20)), so that a perfect prediction costs 0.
    Token 0 is padding and has the weight 0. The distributions [n, T, V] of the targets are never
    in memory.

    The mean per token over all replicas is
    `compute_weighted_mean_loss(losses, weights)`; that of each sentence first, then over the
    sentences of all replicas, `compute_average_loss(mean_over_tokens(losses, weights))`. Without
    a real token anywhere both, and their gradients, are 0.

    Args:
        logits: Floats of shape [n, T, V].
        labels: Token ids: integers [n, S] in [0, V). The shorter of T and S is padded: logits with
            zeros, labels with token 0.
        smoothing: The probability that the other tokens get, in [0, 1).
        vocab_size: The size V of the vocabulary.

    Returns:
        A pair (losses * weights, weights), both [n, max(T, S)], in the dtype of the logits (float32
        for 16-bit logits).

    Raises:
        ValueError: The shapes do not fit, or the smoothing is out of range.
        InvalidArgumentError: A label is not in [0, V).

    Example:
        >>> losses, weights = padded_cross_entropy_loss([[[0.0, 0.0]] * 3], [[1, 1, 0]], 0.0, 2)
        >>> losses.numpy().round(4), weights.numpy()
        (array([[0.6931, 0.6931, 0.    ]], dtype=float32), array([[1., 1., 0.]], dtype=float32))
    """
    who = "padded_cross_entropy_loss"
    scores, tokens = _to_one_length(who, logits, labels)
    if scores.shape[2] != vocab_size:
        raise ValueError(
            f"[{who}] vocab_size must be the last axis of the logits: got {shown(vocab_size)} and "
            f"shape {tuple(scores._shape)}."
        )
    if not 0 <= smoothing < 1 or (smoothing and vocab_size < 2):
        raise ValueError(
            f"[{who}] smoothing must be in [0, 1), and 0 with a single token: got "
            f"{shown(smoothing)} with {vocab_size} tokens."
        )
    losses = sparse_softmax_cross_entropy_with_logits(tokens, scores, label_smoothing=smoothing)
    losses = losses - _least(smoothing, vocab_size)
    weights = _weights(tokens, scores._dtype)
    return losses * weights, weights


def padded_accuracy(logits: TensorLike, labels: TensorLike) -> tuple[Tensor, Tensor]:
    """Compare the largest logit of each token with its label, and return the weights of the tokens.

    `keras.metrics.Mean` fed with both, `mean.update_state(hits, weights)`, computes the accuracy
    over the real tokens of all replicas.

    Args:
        logits: Floats of shape [n, T, V].
        labels: Token ids: integers [n, S]. The shorter of T and S is padded with zeros.

    Returns:
        A pair (hits, weights), both [n, max(T, S)] of 0 and 1, in the dtype of the logits (float32
        for 16-bit logits). The weights are 0 at padding, which is token 0.

    Raises:
        ValueError: The shapes do not fit.

    Example:
        >>> hits, weights = padded_accuracy([[[0.0, 1.0], [0.0, 1.0]]], [[1, 0]])
        >>> hits.numpy(), weights.numpy()
        (array([[1., 0.]], dtype=float32), array([[1., 0.]], dtype=float32))
    """
    scores, tokens = _to_one_length("padded_accuracy", logits, labels)
    best = argmax(scores, axis=-1, output_type=tokens._dtype)
    return cast(best == tokens, scores._dtype), _weights(tokens, scores._dtype)


def mean_over_tokens(losses: TensorLike, weights: TensorLike) -> Tensor:
    """Average the losses of each sentence, sum(weight * loss) / sum(weight).

    `compute_average_loss` of the result is the mean over the sentences of all replicas. Long and
    short sentences count alike, and those without a token count as 0.

    Args:
        losses: The loss of every token: floats [n, T, ...].
        weights: The weight of every token: [n, T] or [n, T, ...], 0 at padding.

    Returns:
        A tensor [n] in the dtype of the losses; 0 for a sentence without a real token.

    Raises:
        ValueError: The losses have fewer than two axes, or the weights do not fit.

    Example:
        >>> mean_over_tokens([[1.0, 3.0], [5.0, 9.0], [7.0, 7.0]], [[1, 1], [1, 0], [0, 0]]).numpy()
        array([2., 5., 0.], dtype=float32)
    """
    who = "mean_over_tokens"
    values = as_examples(losses)
    if values._rank < 2:
        raise ValueError(
            f"[{who}] losses must be [sentences, tokens, ...]: got shape {tuple(values._shape)}."
        )
    if not as_dtype(values._dtype).is_floating:
        values = _ops.cast(values, dtype="float32")
    factors = _ops.broadcast_like(expand_weights(who, weights, values), values)
    inner = tuple(range(1, values._rank))
    total = _ops.reduce_sum(factors, axes=inner)
    zero = convert_to_tensor(0.0, values._dtype)
    inverse = _ops.select(total == zero, zero, _ops.reciprocal(total))
    return _ops.reduce_sum(values * factors, axes=inner) * inverse


def _least(smoothing: float, vocab_size: int) -> float:
    """Return the cross-entropy of a prediction that is its target."""
    confidence, low = 1.0 - smoothing, smoothing / max(vocab_size - 1, 1)
    others = (vocab_size - 1) * low * float(log(low + 1e-20))
    return -(confidence * float(log(confidence)) + others)


def _weights(tokens: Tensor, dtype: str) -> Tensor:
    return cast(tokens != convert_to_tensor(_PAD, tokens._dtype), dtype)


def _to_one_length(who: str, logits: TensorLike, labels: TensorLike) -> tuple[Tensor, Tensor]:
    """Return logits [n, T, V] and labels [n, T], the shorter one padded with zeros."""
    scores, tokens = as_examples(logits), as_examples(labels)
    if scores._rank != 3 or tokens._rank != 2:
        raise ValueError(
            f"[{who}] logits must be [n, T, V] and labels [n, S]: got shapes "
            f"{tuple(scores._shape)} and {tuple(tokens._shape)}."
        )
    if as_dtype(scores._dtype) not in (as_dtype("float32"), as_dtype("float64")):
        # In 16 bits 257 tokens would count as 256.
        scores = _ops.cast(scores, dtype="float32")
    given, wanted = scores.shape[1], tokens.shape[1]
    if given == wanted:
        return scores, tokens
    if given < wanted:
        scores = pad(scores, [[0, 0], [0, wanted - given], [0, 0]])
    else:
        tokens = pad(tokens, [[0, 0], [0, given - wanted]])
    return scores, tokens
