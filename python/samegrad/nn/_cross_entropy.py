"""Cross-entropies between labels and logits, one value per example."""

from __future__ import annotations

import math

from samegrad import _core
from samegrad._base.dtypes import as_dtype
from samegrad._base.shown import shown
from samegrad._tensor.tensor import Tensor, TensorLike, convert_to_tensor
from samegrad.math._softmax import move_axis_last

_ops = _core.ops


def sparse_softmax_cross_entropy_with_logits(
    labels: TensorLike,
    logits: TensorLike,
    name: str | None = None,
    *,
    label_smoothing: float = 0.0,
) -> Tensor:
    """Compute the softmax cross-entropy with integer labels, -log(softmax(logits)[label]).

    With label smoothing s the loss is -sum(q * log(softmax(logits))), where q is 1 - s at the label
    and s / (classes - 1) at each other class (Szegedy et al., 2016, as the official Transformer has
    it). Keras's losses distribute s over all classes, the label included. The q are never in
    memory, nor in the backward pass. A single class has loss 0.

    Args:
        labels: The classes: integers [...] in [0, classes).
        logits: Floats of shape [..., classes].
        name: Ignored.
        label_smoothing: The probability s that the other classes get, in [0, 1].

    Returns:
        The losses: a tensor [...], in the dtype of the logits.

    Raises:
        ValueError: The shapes do not fit, or the smoothing is not in [0, 1].
        InvalidArgumentError: A label is not in [0, classes).

    Example:
        >>> sparse_softmax_cross_entropy_with_logits([0], [[0.0, 0.0]]).numpy().round(4)
        array([0.6931], dtype=float32)
        >>> sparse_softmax_cross_entropy_with_logits(
        ...     [0], [[2.0, 0.0]], label_smoothing=0.1
        ... ).numpy().round(4)
        array([0.3269], dtype=float32)
    """
    if not 0.0 <= label_smoothing <= 1.0:
        raise ValueError(
            "[sparse_softmax_cross_entropy_with_logits] label_smoothing must be in [0, 1]: got "
            f"{label_smoothing}."
        )
    scores, numbers = convert_to_tensor(logits), convert_to_tensor(labels)
    return _ops.sparse_softmax_cross_entropy(scores, numbers, smoothing=float(label_smoothing))[0]


def softmax_cross_entropy_with_logits(
    labels: TensorLike, logits: TensorLike, axis: int = -1, name: str | None = None
) -> Tensor:
    """Compute the softmax cross-entropy -Σ labels * log(softmax(logits)) along an axis.

    Args:
        labels: Distributions over the classes, in the shape of the logits.
        logits: Floats of shape [..., classes].
        axis: The axis of the classes.
        name: Ignored.

    Returns:
        The losses: the shape of the logits without the axis of the classes, in their dtype.

    Raises:
        ValueError: The shapes do not fit.

    Example:
        >>> softmax_cross_entropy_with_logits([[0.5, 0.5]], [[0.0, 0.0]]).numpy().round(4)
        array([0.6931], dtype=float32)
    """
    scores = convert_to_tensor(logits)
    who = "softmax_cross_entropy_with_logits"
    moved, swap = move_axis_last(who, scores, axis)
    shares = move_axis_last(who, _as_dtype_of(labels, scores), axis)[0]
    if swap is not None:
        # Swapping put the last axis where the classes were: put it back at the end.
        rest = [i for i in range(scores._rank) if i != axis % scores._rank]
        perm = [swap[i] for i in range(scores._rank - 1)]
        losses = _ops.softmax_cross_entropy(moved, shares)
        return _ops.transpose(losses, perm=[perm.index(i) for i in rest])
    return _ops.softmax_cross_entropy(moved, shares)


def sigmoid_cross_entropy_with_logits(
    labels: TensorLike | None = None, logits: TensorLike | None = None, name: str | None = None
) -> Tensor:
    """Compute -z * log(sigmoid(x)) - (1 - z) * log(1 - sigmoid(x)) of labels z and logits x.

    The formula is max(x, 0) - x * z + log(1 + exp(-|x|)), which neither overflows nor cancels.

    Args:
        labels: Probabilities, in the shape of the logits.
        logits: Floats of any shape.
        name: Ignored.

    Returns:
        The losses, in the logits' shape and dtype.

    Raises:
        ValueError: Labels or logits are left out, or their shapes differ.

    Example:
        >>> sigmoid_cross_entropy_with_logits([1.0], [0.0]).numpy().round(4)
        array([0.6931], dtype=float32)
    """
    if labels is None or logits is None:
        raise ValueError(
            "[sigmoid_cross_entropy_with_logits] labels and logits must be given: got "
            f"{shown(labels)} and {shown(logits)}."
        )
    x = convert_to_tensor(logits)
    z = _as_dtype_of(labels, x)
    _check_same_shape("sigmoid_cross_entropy_with_logits", z, x)
    return _ops.relu(x) - x * z + _log_of_one_and(x)


def weighted_cross_entropy_with_logits(
    labels: TensorLike, logits: TensorLike, pos_weight: TensorLike, name: str | None = None
) -> Tensor:
    """Compute -w * z * log(sigmoid(x)) - (1 - z) * log(1 - sigmoid(x)) of labels z and logits x.

    A weight w above 1 lowers the number of false negatives, one below 1 that of false positives.

    Args:
        labels: Probabilities, in the shape of the logits.
        logits: Floats of any shape.
        pos_weight: The weight w of positive labels, which broadcasts to the logits.
        name: Ignored.

    Returns:
        The losses, in the logits' shape and dtype.

    Raises:
        ValueError: The shapes of labels and logits differ.

    Example:
        >>> weighted_cross_entropy_with_logits([1.0, 0.0], [0.0, 0.0], 2.0).numpy().round(4)
        array([1.3863, 0.6931], dtype=float32)
    """
    x = convert_to_tensor(logits)
    z = _as_dtype_of(labels, x)
    _check_same_shape("weighted_cross_entropy_with_logits", z, x)
    weight = (_as_dtype_of(pos_weight, x) - 1.0) * z + 1.0
    return (1.0 - z) * x + weight * (_log_of_one_and(-x) + _ops.relu(-x))


def _log_of_one_and(x: Tensor) -> Tensor:
    """Compute log(1 + exp(-|x|)), with the slope 1/2 at 0: relu, which is added, has none there."""
    return _ops.log1p(_ops.exp(_ops.minimum(x, -x)))


def log_poisson_loss(
    targets: TensorLike,
    log_input: TensorLike,
    compute_full_loss: bool = False,
    name: str | None = None,
) -> Tensor:
    """Compute exp(c) - c * z, the negative log-likelihood of counts z, given the log c of the mean.

    Args:
        targets: The counts, in the shape of `log_input`.
        log_input: Floats of any shape.
        compute_full_loss: Add Stirling's approximation of log(z!) for z > 1.
        name: Ignored.

    Returns:
        The losses, in the shape and dtype of `log_input`.

    Raises:
        ValueError: The shapes differ.

    Example:
        >>> log_poisson_loss([2.0], [0.0]).numpy()
        array([1.], dtype=float32)
    """
    c = convert_to_tensor(log_input)
    z = _as_dtype_of(targets, c)
    _check_same_shape("log_poisson_loss", z, c)
    loss = _ops.exp(c) - c * z
    if not compute_full_loss:
        return loss
    stirling = z * _ops.log(z) - z + _ops.log(z * (2.0 * math.pi)) * 0.5
    small = _ops.logical_and(z >= 0.0, z <= 1.0)
    return loss + _ops.select(small, _ops.full_like(stirling, value=0.0), stirling)


def _check_same_shape(who: str, labels: Tensor, logits: Tensor) -> None:
    pairs = zip(labels._shape, logits._shape, strict=labels._rank == logits._rank)
    if labels._rank != logits._rank or any(None not in p and p[0] != p[1] for p in pairs):
        raise ValueError(
            f"[{who}] labels and logits must have the same shape: got labels {labels.shape} and "
            f"logits {logits.shape}, which would broadcast; use tf.reshape."
        )


def _as_dtype_of(labels: TensorLike, logits: Tensor) -> Tensor:
    z = convert_to_tensor(labels)
    return z if z._dtype == logits._dtype else _ops.cast(z, dtype=as_dtype(logits._dtype).name)
