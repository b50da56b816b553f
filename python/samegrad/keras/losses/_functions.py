"""Losses of each example."""

from __future__ import annotations

from samegrad import _core, nn
from samegrad._dtypes import as_dtype
from samegrad._examples import LOGITS, examples_axis
from samegrad._location import warn
from samegrad._tensor import Tensor, TensorLike, convert_to_tensor
from samegrad.keras.backend import epsilon

_ops = _core.ops


def mean_squared_error(y_true: TensorLike, y_pred: TensorLike) -> Tensor:
    """mean((y_true - y_pred)**2) over the last axis.

    Args:
        y_true: Numbers [n, ...].
        y_pred: Numbers [n, ...]. If one of the two has a last axis of size 1 that the other lacks,
            that is meant.

    Returns:
        The losses: the shape without the last axis. Examples are never averaged: [n] stays [n].

    Example:
        >>> mean_squared_error([[0.0, 0.0]], [[1.0, 3.0]]).numpy()
        array([5.], dtype=float32)
    """
    truth, guess = aligned(y_true, y_pred)
    return mean_last(_ops.squared_difference(guess, truth))


def mean_absolute_error(y_true: TensorLike, y_pred: TensorLike) -> Tensor:
    """mean(|y_true - y_pred|) over the last axis.

    Args:
        y_true: Numbers [n, ...].
        y_pred: Numbers [n, ...]. If one of the two has a last axis of size 1 that the other lacks,
            that is meant.

    Returns:
        The losses: the shape without the last axis. Examples are never averaged: [n] stays [n].

    Example:
        >>> mean_absolute_error([[0.0, 0.0]], [[1.0, 3.0]]).numpy()
        array([2.], dtype=float32)
    """
    truth, guess = aligned(y_true, y_pred)
    return mean_last(_ops.abs(guess - truth))


def sparse_categorical_crossentropy(
    y_true: TensorLike, y_pred: TensorLike, from_logits: bool = False
) -> Tensor:
    """-log(probability of the label).

    Args:
        y_true: Class numbers [n, ...] or [n, ..., 1].
        y_pred: Probabilities or logits [n, ..., classes].
        from_logits: Whether they are logits.

    Returns:
        The losses [n, ...].

    Raises:
        ValueError: The shapes do not fit.
        InvalidArgumentError: A label is no class number.

    Example:
        >>> sparse_categorical_crossentropy([0], [[0.5, 0.5]]).numpy().round(4)
        array([0.6931], dtype=float32)
    """
    who = "sparse_categorical_crossentropy"
    guess = _floats(convert_to_tensor(y_pred))
    labels = convert_to_tensor(y_true)
    if guess._rank == 0:
        raise ValueError(
            "[sparse_categorical_crossentropy] predictions need an axis of classes: got shape ()."
        )
    if labels._rank == guess._rank and labels._shape[-1] == 1:
        labels = _ops.squeeze(labels, axes=(-1,))
    if not as_dtype(labels._dtype).is_integer:
        labels = _ops.cast(labels, dtype="int64")
    logits = _logits_of(who, y_pred, guess, from_logits)
    if logits is None:
        logits = _ops.log(_clipped(guess))
    return nn.sparse_softmax_cross_entropy_with_logits(labels, logits)


def categorical_crossentropy(
    y_true: TensorLike,
    y_pred: TensorLike,
    from_logits: bool = False,
    label_smoothing: float = 0.0,
    axis: int = -1,
) -> Tensor:
    """-sum(label * log(probability)) over the classes.

    Args:
        y_true: Distributions over the classes [n, ..., classes].
        y_pred: Probabilities or logits [n, ..., classes]; probabilities are scaled to add up to 1.
        from_logits: Whether they are logits.
        label_smoothing: s in [0, 1]: labels become label * (1 - s) + s / classes.
        axis: The axis of the classes.

    Returns:
        The losses [n, ...].

    Raises:
        ValueError: The shapes do not fit.

    Example:
        >>> categorical_crossentropy([[0.0, 1.0]], [[0.5, 0.5]]).numpy().round(4)
        array([0.6931], dtype=float32)
    """
    who = "categorical_crossentropy"
    guess = _floats(convert_to_tensor(y_pred))
    labels = _cast_like(y_true, guess)
    fits = labels._rank == guess._rank and all(
        a is None or b is None or a == b for a, b in zip(labels._shape, guess._shape, strict=True)
    )
    if guess._rank == 0:
        raise ValueError(
            f"[{who}] predictions must have an axis of classes: got shape (); pass an array that "
            "has one."
        )
    if not fits:
        raise ValueError(
            f"[{who}] labels must have the shape of the predictions: got shapes "
            f"{tuple(labels._shape)} and {tuple(guess._shape)}; class numbers are for "
            "sparse_categorical_crossentropy."
        )
    if label_smoothing:
        classes = int(labels._shape[axis])
        labels = labels * (1.0 - label_smoothing) + label_smoothing / classes
    logits = _logits_of(who, y_pred, guess, from_logits)
    if logits is not None:
        return nn.softmax_cross_entropy_with_logits(labels, logits, axis)
    probabilities = guess / _ops.reduce_sum(guess, axes=(axis,), keepdims=True)
    return -_ops.reduce_sum(labels * _ops.log(_clipped(probabilities)), axes=(axis,))


def binary_crossentropy(
    y_true: TensorLike,
    y_pred: TensorLike,
    from_logits: bool = False,
    label_smoothing: float = 0.0,
    axis: int = -1,
) -> Tensor:
    """mean(-y * log(p) - (1 - y) * log(1 - p)) over an axis.

    Args:
        y_true: Labels, 0 or 1 (or probabilities) [n, ...].
        y_pred: Probabilities or logits [n, ...]. If one of the two has a last axis of size 1 that
            the other lacks, that is meant.
        from_logits: Whether they are logits.
        label_smoothing: s in [0, 1]: labels become label * (1 - s) + s / 2.
        axis: Which axis is averaged.

    Returns:
        The losses: the shape without the axis. Examples are never averaged: [n] stays [n].

    Example:
        >>> binary_crossentropy([[1.0, 0.0]], [[0.5, 0.5]]).numpy().round(4)
        array([0.6931], dtype=float32)
    """
    labels, guess = aligned(y_true, y_pred)
    if label_smoothing:
        labels = labels * (1.0 - label_smoothing) + label_smoothing * 0.5
    logits = _logits_of("binary_crossentropy", y_pred, guess, from_logits)
    if logits is not None:
        logits = _ops.reshape_like(logits, guess) if logits._rank != guess._rank else logits
        return mean_last(nn.sigmoid_cross_entropy_with_logits(labels, logits), axis)
    p = _clipped(guess)
    small = epsilon()
    losses = labels * _ops.log(p + small) + (1.0 - labels) * _ops.log(1.0 - p + small)
    return mean_last(-losses, axis)


def aligned(y_true: TensorLike, y_pred: TensorLike) -> tuple[Tensor, Tensor]:
    """Labels and predictions in one dtype, with as many axes.

    Example:
        >>> [t._shape for t in aligned([1, 2], [[1.0], [2.0]])]
        [(2, 1), (2, 1)]
    """
    guess = _floats(convert_to_tensor(y_pred))
    truth = _cast_like(y_true, guess)
    if truth._rank == guess._rank - 1 and guess._shape[-1] == 1:
        truth = _ops.expand_dims(truth, axes=(-1,))
    elif guess._rank == truth._rank - 1 and truth._shape[-1] == 1:
        guess = _ops.expand_dims(guess, axes=(-1,))
    return truth, guess


def mean_last(losses: Tensor, axis: int = -1) -> Tensor:
    """The mean over an axis, unless the examples lie on it.

    Example:
        >>> mean_last(convert_to_tensor([[1.0, 3.0]])).numpy()
        array([2.], dtype=float32)
    """
    if losses._rank == 0 or axis % losses._rank == examples_axis(losses):
        return losses
    size = losses._shape[axis]
    if size == 1:
        return _ops.squeeze(losses, axes=(axis,))
    return _ops.reduce_sum(losses, axes=(axis,)) / float(size)


def _logits_of(who: str, given: TensorLike, guess: Tensor, from_logits: bool) -> Tensor | None:
    """The logits if they are known; log(softmax(x)) loses small probabilities, theirs does not."""
    behind = getattr(given, LOGITS, None)
    if behind is not None:
        if from_logits:
            warn(
                f"[{who}] from_logits=True, but the predictions come from a softmax or sigmoid: "
                "its logits are used; leave out one of the two."
            )
        return behind  # type: ignore[no-any-return]
    return guess if from_logits else None


def _clipped(p: Tensor) -> Tensor:
    low, high = (convert_to_tensor(x, p._dtype) for x in (epsilon(), 1.0 - epsilon()))
    return _ops.minimum(_ops.maximum(p, low), high)


def _floats(x: Tensor) -> Tensor:
    return x if as_dtype(x._dtype).is_floating else _ops.cast(x, dtype="float32")


def _cast_like(value: TensorLike, like: Tensor) -> Tensor:
    x = convert_to_tensor(value)
    return x if x._dtype == like._dtype else _ops.cast(x, dtype=like._dtype)
