"""What metrics take the mean of: values of each example."""

from __future__ import annotations

from samegrad import _core
from samegrad._dtypes import as_dtype
from samegrad._tensor import Tensor, TensorLike, convert_to_tensor
from samegrad.keras.backend import floatx
from samegrad.keras.losses._functions import aligned, mean_last

_ops = _core.ops


def accuracy(y_true: TensorLike, y_pred: TensorLike) -> Tensor:
    """1 where label and prediction are equal, else 0.

    Example:
        >>> accuracy([1, 2], [1, 3]).numpy()
        array([1., 0.], dtype=float32)
    """
    truth, guess = convert_to_tensor(y_true), convert_to_tensor(y_pred)
    if truth._rank == guess._rank + 1 and truth._shape[-1] == 1:
        truth = _ops.squeeze(truth, axes=(-1,))
    return _hits(truth, guess)


def binary_accuracy(y_true: TensorLike, y_pred: TensorLike, threshold: float = 0.5) -> Tensor:
    """How many of an example's labels are predicted on the right side of the threshold.

    Args:
        y_true: Labels, 0 or 1 [n, ...].
        y_pred: Probabilities [n, ...].
        threshold: Above it, 1 is predicted.

    Returns:
        The mean over the last axis; examples are never averaged.

    Example:
        >>> binary_accuracy([[1, 0]], [[0.7, 0.6]]).numpy()
        array([0.5], dtype=float32)
    """
    truth, guess = aligned(y_true, y_pred)
    return mean_last(_hits(truth, _ops.cast(guess > threshold, dtype=truth._dtype)))


def categorical_accuracy(y_true: TensorLike, y_pred: TensorLike) -> Tensor:
    """1 where the largest prediction is that of the largest label, else 0.

    Example:
        >>> categorical_accuracy([[0, 1]], [[0.2, 0.8]]).numpy()
        array([1.], dtype=float32)
    """
    return _hits(*(_ops.arg_max(convert_to_tensor(y), axis=-1) for y in (y_true, y_pred)))


def sparse_categorical_accuracy(y_true: TensorLike, y_pred: TensorLike) -> Tensor:
    """1 where the largest prediction is that of the label, a class number, else 0.

    Example:
        >>> sparse_categorical_accuracy([1], [[0.2, 0.8]]).numpy()
        array([1.], dtype=float32)
    """
    truth, guess = convert_to_tensor(y_true), convert_to_tensor(y_pred)
    if guess._rank == 0:
        raise ValueError(
            "[sparse_categorical_accuracy] predictions need an axis of classes: got shape ()."
        )
    if truth._rank == guess._rank and truth._shape[-1] == 1:
        truth = _ops.squeeze(truth, axes=(-1,))
    return _hits(truth, _ops.arg_max(guess, axis=-1))


def _hits(truth: Tensor, guess: Tensor) -> Tensor:
    if truth._dtype != guess._dtype:
        # Never to a smaller type, in which different numbers may become equal.
        floats = [t for t in (truth, guess) if as_dtype(t._dtype).is_floating]
        common = floats[0]._dtype if floats else "int64"
        truth, guess = (_ops.cast(t, dtype=common) for t in (truth, guess))
    return _ops.cast(truth == guess, dtype=floatx())
