"""keras.backend.nn: activation functions, each element or each row of its own."""

from __future__ import annotations

from typing import Any

import samegrad as tf
from samegrad import math, nn
from samegrad._keras.conversion import convert_to_tensor
from samegrad._tensor.tensor import Tensor


def relu(x: Any) -> Tensor:
    """The larger of x and 0."""
    return nn.relu(convert_to_tensor(x))


def relu6(x: Any) -> Tensor:
    """Return x cut to [0, 6]."""
    return nn.relu6(convert_to_tensor(x))


def sigmoid(x: Any) -> Tensor:
    """1 / (1 + exp(-x)); the result knows x, which losses compute with."""
    logits = convert_to_tensor(x)
    return _from_logits(tf.sigmoid(logits), logits)


def _from_logits(result: Tensor, logits: Tensor) -> Tensor:
    result._keras_logits = logits  # type: ignore[attr-defined]
    return result


def sparse_sigmoid(x: Any) -> Tensor:
    """(x + 1) / 2 cut to [0, 1], which has no slope outside (-1, 1)."""
    x = convert_to_tensor(x)
    middle = (x + 1.0) * 0.5
    return tf.where(x <= -1.0, tf.zeros_like(x), tf.where(x >= 1.0, tf.ones_like(x), middle))


def tanh(x: Any) -> Tensor:
    """The hyperbolic tangent."""
    return tf.tanh(convert_to_tensor(x))


def tanh_shrink(x: Any) -> Tensor:
    """Return x - tanh(x)."""
    value = convert_to_tensor(x)
    return value - tf.tanh(value)


def softplus(x: Any) -> Tensor:
    """log(1 + exp(x))."""
    return math.softplus(convert_to_tensor(x))


def softsign(x: Any) -> Tensor:
    """Return x / (1 + |x|)."""
    return nn.softsign(convert_to_tensor(x))


def soft_shrink(x: Any, threshold: float = 0.5) -> Tensor:
    """Return x moved towards 0 by the threshold, and 0 where it is nearer."""
    x = convert_to_tensor(x)
    below = tf.where(x < -threshold, x + threshold, tf.zeros_like(x))
    return tf.where(x > threshold, x - threshold, below)


def sparse_plus(x: Any) -> Tensor:
    """0 up to -1, x from 1 on, and (x + 1)² / 4 between."""
    x = convert_to_tensor(x)
    middle = tf.where(x < 1.0, tf.square(x + 1.0) * 0.25, x)
    return tf.where(x <= -1.0, tf.zeros_like(x), middle)


def silu(x: Any) -> Tensor:
    """Return x * sigmoid(x)."""
    return nn.silu(convert_to_tensor(x))


def squareplus(x: Any, b: Any = 4) -> Tensor:
    """(x + sqrt(x² + b)) / 2."""
    value = convert_to_tensor(x)
    return (value + tf.sqrt(tf.square(value) + convert_to_tensor(b, value._dtype))) * 0.5


def log_sigmoid(x: Any) -> Tensor:
    """The logarithm of the sigmoid, exact where that is tiny."""
    return math.log_sigmoid(convert_to_tensor(x))


def leaky_relu(x: Any, negative_slope: float = 0.2) -> Tensor:
    """Return x where it is positive, x * negative_slope elsewhere."""
    return nn.leaky_relu(convert_to_tensor(x), alpha=negative_slope)


def hard_sigmoid(x: Any) -> Tensor:
    """(x + 3) / 6 cut to [0, 1]."""
    return nn.relu6(convert_to_tensor(x) + 3.0) / 6.0


def hard_silu(x: Any) -> Tensor:
    """Return x * hard_sigmoid(x)."""
    value = convert_to_tensor(x)
    return value * hard_sigmoid(value)


def elu(x: Any, alpha: float = 1.0) -> Tensor:
    """Return x where it is positive, alpha * (exp(x) - 1) elsewhere."""
    return nn.elu(convert_to_tensor(x), alpha=alpha)


def selu(x: Any) -> Tensor:
    """The scaled elu that keeps mean 0 and variance 1."""
    return nn.selu(convert_to_tensor(x))


def gelu(x: Any, approximate: bool = True) -> Tensor:
    """Return x times the normal distribution's P(X <= x), by tanh where `approximate`."""
    return nn.gelu(convert_to_tensor(x), approximate=approximate)


def celu(x: Any, alpha: float = 1.0) -> Tensor:
    """max(x, 0) + alpha * (exp(min(x, 0) / alpha) - 1)."""
    x = convert_to_tensor(x)
    zero = convert_to_tensor(0.0, x._dtype)
    return tf.maximum(x, zero) + math.expm1(tf.minimum(x, zero) / alpha) * alpha


def glu(x: Any, axis: int = -1) -> Tensor:
    """The first half along an axis times the sigmoid of the second one.

    Raises:
        ValueError: The axis has no halves.
    """
    x = convert_to_tensor(x)
    if x.shape[axis] % 2:
        raise ValueError(
            f"axis size must be divisible by 2. Received: x.shape={x.shape} with axis={axis}"
        )
    first, second = tf.split(x, 2, axis=axis)
    return first * tf.sigmoid(second)


def hard_tanh(x: Any) -> Tensor:
    """Return x cut to [-1, 1]."""
    return tf.clip_by_value(convert_to_tensor(x), -1.0, 1.0)


def hard_shrink(x: Any, threshold: float = 0.5) -> Tensor:
    """Return x, and 0 where it is nearer to 0 than the threshold or as near."""
    x = convert_to_tensor(x)
    return tf.where(tf.abs(x) > threshold, x, tf.zeros_like(x))


def threshold(x: Any, threshold: Any, default_value: Any) -> Tensor:
    """Return x where it is above the threshold, the default elsewhere."""
    x = convert_to_tensor(x)
    return tf.where(x > threshold, x, convert_to_tensor(default_value, x._dtype))


def softmax(x: Any, axis: int | None = -1) -> Tensor:
    """exp(x) by its sum along an axis (None: all); the result knows x, see `sigmoid`."""
    logits = convert_to_tensor(x)
    return _from_logits(_along(nn.softmax, logits, axis), logits)


def log_softmax(x: Any, axis: int | None = -1) -> Tensor:
    """The logarithm of the softmax, exact where that is tiny."""
    return _along(nn.log_softmax, convert_to_tensor(x), axis)


def _along(function: Any, x: Tensor, axis: int | None) -> Tensor:
    if axis is None:
        flat: Tensor = function(tf.reshape(x, (-1,)), axis=-1)
        return tf.reshape(flat, tf.shape(x))
    result: Tensor = function(x, axis=axis)
    return result


def sparsemax(x: Any, axis: int = -1) -> Tensor:
    """The point of the probability simplex that is nearest to x, along an axis.

    Martins and Astudillo, "From Softmax to Sparsemax", 2016, algorithm 1.
    """
    x = convert_to_tensor(x)
    falling = tf.sort(x, axis=axis, direction="DESCENDING")
    sums = tf.cumsum(falling, axis=axis)
    shape = [1] * x._rank
    shape[axis] = -1
    places = tf.reshape(tf.cast(tf.range(1, x.shape[axis] + 1), x._dtype), shape)
    support = tf.cast(falling * places > sums - 1.0, x._dtype)
    count = tf.reduce_sum(support, axis=axis, keepdims=True)
    total = tf.reduce_sum(falling * support, axis=axis, keepdims=True)
    return nn.relu(x - (total - 1.0) / count)
