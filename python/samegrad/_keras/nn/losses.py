"""keras.backend.nn: classes as vectors, and cross-entropies."""

from __future__ import annotations

from typing import Any

from keras.src.backend.common.variables import standardize_dtype
from keras.src.backend.config import epsilon

import samegrad as tf
from samegrad import math, nn
from samegrad._base.location import warn
from samegrad._keras.conversion import convert_to_tensor
from samegrad._ops.elementary import LOG_10
from samegrad._tensor.dim import Dim
from samegrad._tensor.tensor import Tensor


def one_hot(
    x: Any, num_classes: int, axis: int = -1, dtype: Any = None, sparse: bool = False
) -> Tensor:
    """1 at the class along a new axis, 0 elsewhere; only 0 for a class that there is not.

    Raises:
        ValueError: `sparse`: there are no sparse tensors.
    """
    _refuse_sparse("one_hot", sparse)
    numbers = convert_to_tensor(x, "int64")
    kind = "float32" if dtype is None else standardize_dtype(dtype)
    made = tf.one_hot(
        numbers, num_classes, axis=axis % (numbers._rank + 1),
        dtype="int8" if kind == "bool" else kind,
    )  # fmt: skip
    return tf.cast(made, "bool") if kind == "bool" else made


def multi_hot(
    x: Any, num_classes: int, axis: int = -1, dtype: Any = None, sparse: bool = False
) -> Tensor:
    """1 at each of the classes of a row, 0 elsewhere.

    Raises:
        ValueError: `sparse`: there are no sparse tensors.
    """
    _refuse_sparse("multi_hot", sparse)
    numbers = convert_to_tensor(x)
    kind = standardize_dtype(dtype)
    made = one_hot(numbers, num_classes, axis=axis, dtype=kind)
    over = 1 if numbers._rank > 1 else 0
    return tf.reduce_any(made, over) if kind == "bool" else tf.reduce_max(made, over)


def _refuse_sparse(name: str, sparse: bool) -> None:
    if sparse:
        raise ValueError(f"[keras.ops.{name}] there are no sparse tensors: got sparse=True.")


def categorical_crossentropy(
    target: Any, output: Any, from_logits: bool = False, axis: int = -1
) -> Tensor:
    """-sum(target * log(output)) along an axis, the output scaled to add up to 1.

    Args:
        target: Shares of the classes.
        output: Probabilities of the classes, in the target's shape.
        from_logits: Whether the output is what a softmax would make probabilities of.
        axis: That of the classes.

    Raises:
        ValueError: The shapes differ, or there is no axis.
    """
    t, y = convert_to_tensor(target), convert_to_tensor(output)
    if not t._rank:
        raise ValueError(
            "Arguments `target` and `output` must be at least rank 1. "
            f"Received: target.shape={t.shape}, output.shape={y.shape}"
        )
    _check_same(t, y)
    y, from_logits = _logits(y, from_logits, "softmax", "categorical_crossentropy")
    if from_logits:
        return nn.softmax_cross_entropy_with_logits(labels=t, logits=y, axis=axis)
    y = _inside(y / tf.reduce_sum(y, axis, keepdims=True))
    return -tf.reduce_sum(tf.cast(t, y._dtype) * math.log(y), axis)


def sparse_categorical_crossentropy(
    target: Any, output: Any, from_logits: bool = False, axis: int = -1
) -> Tensor:
    """-log(output[class]) of each row.

    Args:
        target: The classes' numbers.
        output: Probabilities of the classes along the last axis.
        from_logits: Whether the output is what a softmax would make probabilities of.
        axis: The last one.

    Raises:
        ValueError: The shapes do not fit, or another axis.
    """
    t, y = convert_to_tensor(target, "int64"), convert_to_tensor(output)
    if axis not in (-1, y._rank - 1):
        raise ValueError(f"Only axis=-1 is currently supported. Received: axis={axis}")
    y, from_logits = _logits(y, from_logits, "softmax", "sparse_categorical_crossentropy")
    if t._rank == y._rank and y._rank and t.shape[-1] == 1:
        t = tf.squeeze(t, axis=-1)
    if not y._rank:
        raise ValueError(
            f"Argument `output` must be at least rank 1. Received: output.shape={y.shape}"
        )
    if t._rank != y._rank - 1:
        raise ValueError(
            "Argument `output` must have rank (ndim) `target.ndim - 1`. "
            f"Received: target.shape={t.shape}, output.shape={y.shape}"
        )
    if _differ(tuple(t.shape), tuple(y.shape[:-1])):
        raise ValueError(
            "Arguments `target` and `output` must have the same shape up until the last dimension: "
            f"target.shape={t.shape}, output.shape={y.shape}"
        )
    if not from_logits:
        y = math.log(_inside(y))
    return nn.sparse_softmax_cross_entropy_with_logits(labels=t, logits=y)


def binary_crossentropy(target: Any, output: Any, from_logits: bool = False) -> Tensor:
    """-target * log(output) - (1 - target) * log(1 - output) of each element.

    Args:
        target: Probabilities.
        output: Probabilities, in the target's shape.
        from_logits: Whether the output is what a sigmoid would make probabilities of.

    Raises:
        ValueError: The shapes differ.
    """
    t, y = convert_to_tensor(target), convert_to_tensor(output)
    _check_same(t, y)
    y, from_logits = _logits(y, from_logits, "sigmoid", "binary_crossentropy")
    if from_logits:
        return nn.sigmoid_cross_entropy_with_logits(labels=t, logits=y)
    y, t = _inside(y), tf.cast(t, y._dtype)
    return -(t * math.log(y) + (1.0 - t) * math.log(1.0 - y))


def _inside(probabilities: Tensor) -> Tensor:
    """The probabilities, none so near to 0 or 1 that a logarithm is infinite."""
    return tf.clip_by_value(probabilities, epsilon(), 1.0 - epsilon())


def _check_same(target: Tensor, output: Tensor) -> None:
    if target._rank != output._rank:
        raise ValueError(
            "Arguments `target` and `output` must have the same rank (ndim). "
            f"Received: target.shape={target.shape}, output.shape={output.shape}"
        )
    if _differ(tuple(target.shape), tuple(output.shape)):
        raise ValueError(
            "Arguments `target` and `output` must have the same shape. "
            f"Received: target.shape={target.shape}, output.shape={output.shape}"
        )


def _differ(one: tuple[Any, ...], other: tuple[Any, ...]) -> bool:
    """Tell if static sizes differ."""
    pairs = zip(one, other, strict=True)
    return any(not isinstance(a, Dim) and not isinstance(b, Dim) and a != b for a, b in pairs)


def _logits(output: Tensor, from_logits: bool, activation: str, who: str) -> tuple[Tensor, bool]:
    """Return the logits of an activation's probabilities, if known: their losses are exact."""
    logits = getattr(output, "_keras_logits", None)
    if logits is None:
        return output, from_logits
    if from_logits:
        warn(
            f'"`{who}` received `from_logits=True`, but the `output` argument was produced by a '
            f"{activation.capitalize()} activation and thus does not represent logits. Was this "
            "intended?"
        )
    return convert_to_tensor(logits), True


def psnr(x1: Any, x2: Any, max_val: Any) -> Tensor:
    """The peak signal-to-noise ratio in decibels: 20 log10(max_val) - 10 log10(mean squared error).

    Raises:
        ValueError: The shapes differ.
    """
    a, b = convert_to_tensor(x1), convert_to_tensor(x2)
    if tuple(a.shape) != tuple(b.shape):
        raise ValueError(f"Input shapes {a.shape} and {b.shape} must match for PSNR calculation. ")
    error = tf.reduce_mean(tf.square(a - b))
    peak = convert_to_tensor(max_val, b._dtype)
    decibels = 10.0 / LOG_10
    return (math.log(peak) * 2.0 - math.log(error)) * decibels
