"""Activation functions: tensors of floats in, the same shape out."""

from __future__ import annotations

import math

from samegrad import _core
from samegrad._ops.arrays import cast, concat
from samegrad._tensor.tensor import Tensor, TensorLike, convert_to_tensor

_ops = _core.ops

# Klambauer et al., "Self-Normalizing Neural Networks", 2017.
_SELU_ALPHA = 1.6732632423543772848170429916717
_SELU_SCALE = 1.0507009873554804934193349852946


def relu(features: TensorLike, name: str | None = None) -> Tensor:
    """Compute max(x, 0) of each element.

    Args:
        features: A tensor of real numbers, of any shape.
        name: Ignored.

    Returns:
        A tensor of the shape and dtype of `features`.

    Example:
        >>> relu([-1.0, 2.0]).numpy()
        array([0., 2.], dtype=float32)
    """
    return _ops.relu(convert_to_tensor(features))


def crelu(features: TensorLike, axis: int = -1, name: str | None = None) -> Tensor:
    """Concatenate relu(x) and relu(-x) along an axis (Shang et al., 2016).

    Args:
        features: A tensor of real numbers with at least one axis.
        axis: The axis along which both are concatenated.
        name: Ignored.

    Returns:
        A tensor of the dtype of `features`; the size of the axis is doubled.

    Example:
        >>> crelu([-1.0, 2.0]).numpy()
        array([0., 2., 1., 0.], dtype=float32)
    """
    x = convert_to_tensor(features)
    return _ops.relu(concat([x, -x], axis))


def relu6(features: TensorLike, name: str | None = None) -> Tensor:
    """Compute min(max(x, 0), 6) of each element.

    Args:
        features: A tensor of real numbers, of any shape.
        name: Ignored.

    Returns:
        A tensor of the shape and dtype of `features`.

    Example:
        >>> relu6([-1.0, 2.0, 7.0]).numpy()
        array([0., 2., 6.], dtype=float32)
    """
    x = _ops.relu(convert_to_tensor(features))
    return _ops.minimum(convert_to_tensor(6, x._dtype), x)  # without a gradient at 6


def leaky_relu(features: TensorLike, alpha: float = 0.2, name: str | None = None) -> Tensor:
    """Compute x where it is positive, and alpha * x elsewhere.

    Args:
        features: A tensor of floats of any shape.
        alpha: The slope for negative elements.
        name: Ignored.

    Returns:
        A tensor of the shape and dtype of `features`.

    Example:
        >>> leaky_relu([-1.0, 2.0], alpha=0.5).numpy()
        array([-0.5,  2. ], dtype=float32)
    """
    x = convert_to_tensor(features)
    return _ops.select(x > 0.0, x, x * alpha)


def elu(features: TensorLike, name: str | None = None, *, alpha: float = 1.0) -> Tensor:
    """Compute x where it is positive, and alpha * (exp(x) - 1) elsewhere (Clevert et al., 2015).

    Args:
        features: A tensor of floats of any shape.
        name: Ignored.
        alpha: The negative of the limit at -infinity.

    Returns:
        A tensor of the shape and dtype of `features`.

    Example:
        >>> elu([-1.0, 2.0]).numpy().round(4)
        array([-0.6321,  2.    ], dtype=float32)
    """
    x = convert_to_tensor(features)
    y = _bent(x, 1.0)
    return y if alpha == 1.0 else _ops.select(x > 0.0, y, y * alpha)


def _bent(x: Tensor, alpha: float) -> Tensor:
    """Return the input from 0 on, where its derivative is 1; alpha * (exp(x) - 1) below."""
    # exp of large numbers would be infinite, and its gradient times zero NaN.
    below = _ops.expm1(_ops.minimum(x, convert_to_tensor(0.0, x._dtype)))
    return _ops.select(x >= 0.0, x, below if alpha == 1.0 else below * alpha)


def selu(features: TensorLike, name: str | None = None) -> Tensor:
    """Compute the scaled elu that keeps mean 0 and variance 1 (Klambauer et al., 2017).

    Args:
        features: A tensor of floats of any shape.
        name: Ignored.

    Returns:
        A tensor of the shape and dtype of `features`.

    Example:
        >>> selu([1.0]).numpy().round(4)
        array([1.0507], dtype=float32)
    """
    return _bent(convert_to_tensor(features), _SELU_ALPHA) * _SELU_SCALE


def gelu(features: TensorLike, approximate: bool = False, name: str | None = None) -> Tensor:
    """Multiply each element by its standard normal P(X <= x) (Hendrycks and Gimpel, 2016).

    Args:
        features: A tensor of floats of any shape.
        approximate: Use the formula with tanh instead of erf.
        name: Ignored.

    Returns:
        A tensor of the shape and dtype of `features`.

    Example:
        >>> gelu([1.0]).numpy().round(4), gelu([1.0], approximate=True).numpy().round(4)
        (array([0.8413], dtype=float32), array([0.8412], dtype=float32))
    """
    x = convert_to_tensor(features)
    if approximate:
        inner = (x + x * x * x * 0.044715) * math.sqrt(2 / math.pi)
        return x * 0.5 * (_ops.tanh(inner) + 1.0)
    return x * 0.5 * (_ops.erf(x * math.sqrt(0.5)) + 1.0)


def silu(features: TensorLike, beta: TensorLike = 1.0) -> Tensor:
    """Compute x * sigmoid(beta * x) of each element (Ramachandran et al., 2017).

    Args:
        features: A tensor of floats of any shape.
        beta: A number or a tensor that broadcasts with the features; it has a gradient.

    Returns:
        A tensor of the shape and dtype of features * beta.

    Example:
        >>> silu([1.0]).numpy().round(4)
        array([0.7311], dtype=float32)
    """
    x = convert_to_tensor(features)
    plain = isinstance(beta, int | float) and beta == 1.0
    return x * _ops.sigmoid(x if plain else x * cast(beta, x._dtype))


swish = silu
