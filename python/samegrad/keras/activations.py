"""Activation functions by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from samegrad import _core, nn
from samegrad._boundary import guard as _guard
from samegrad._examples import LOGITS
from samegrad._tensor import Tensor, TensorLike, convert_to_tensor
from samegrad.keras._registry import find as _find

_ops = _core.ops
Activation = Callable[[Tensor], Tensor]


def linear(x: TensorLike) -> Tensor:
    """The input itself.

    Example:
        >>> linear([-1.0]).numpy()
        array([-1.], dtype=float32)
    """
    return convert_to_tensor(x)


def relu(
    x: TensorLike, alpha: float = 0.0, max_value: float | None = None, threshold: float = 0.0
) -> Tensor:
    """max(x, 0), with a slope below, a maximum and a threshold if wanted.

    Args:
        x: Tensor of floats.
        alpha: Slope below the threshold.
        max_value: Larger results are cut to it.
        threshold: Below it, the result is alpha * (x - threshold).

    Returns:
        A tensor of the same shape.

    Example:
        >>> relu([-2.0, 3.0, 9.0], alpha=0.5, max_value=6.0).numpy()
        array([-1.,  3.,  6.], dtype=float32)
    """
    tensor = convert_to_tensor(x)
    if alpha == 0.0 and threshold == 0.0:
        y = _ops.relu(tensor)
    else:
        y = _ops.select(tensor > threshold, tensor, (tensor - threshold) * alpha)
    return y if max_value is None else _ops.minimum(y, convert_to_tensor(max_value, y._dtype))


def leaky_relu(x: TensorLike, alpha: float = 0.2) -> Tensor:
    """The input where it is positive, alpha * x elsewhere.

    Example:
        >>> leaky_relu([-1.0]).numpy()
        array([-0.2], dtype=float32)
    """
    return nn.leaky_relu(x, alpha)


def elu(x: TensorLike, alpha: float = 1.0) -> Tensor:
    """The input where it is positive, alpha * (exp(x) - 1) elsewhere.

    Example:
        >>> elu([2.0]).numpy()
        array([2.], dtype=float32)
    """
    return nn.elu(x, alpha)


def exponential(x: TensorLike) -> Tensor:
    """exp(x).

    Example:
        >>> exponential([0.0]).numpy()
        array([1.], dtype=float32)
    """
    return _ops.exp(convert_to_tensor(x))


def hard_sigmoid(x: TensorLike) -> Tensor:
    """0.2 * x + 0.5, cut to [0, 1].

    Example:
        >>> hard_sigmoid([0.0, 9.0]).numpy()
        array([0.5, 1. ], dtype=float32)
    """
    y = convert_to_tensor(x) * 0.2 + 0.5
    zero, one = (convert_to_tensor(number, y._dtype) for number in (0.0, 1.0))
    return _ops.minimum(_ops.maximum(y, zero), one)


def sigmoid(x: TensorLike) -> Tensor:
    """1 / (1 + exp(-x)); losses find the logits in the result.

    Example:
        >>> sigmoid([0.0]).numpy()
        array([0.5], dtype=float32)
    """
    return _with_logits(nn.sigmoid, x)


def softmax(x: TensorLike, axis: int = -1) -> Tensor:
    """exp(x) divided by its sum along an axis; losses find the logits in the result.

    Example:
        >>> softmax([[0.0, 0.0]]).numpy()
        array([[0.5, 0.5]], dtype=float32)
    """
    if axis == -1:
        return _with_logits(nn.softmax, x)
    return nn.softmax(x, axis)


def _with_logits(function: Callable[[Tensor], Tensor], x: TensorLike) -> Tensor:
    """Cross-entropies of the logits do not lose the small probabilities."""
    logits = convert_to_tensor(x)
    result = function(logits)
    setattr(result, LOGITS, logits)
    return result


def get(identifier: Any) -> Activation:
    """The activation that an argument asks for.

    Args:
        identifier: A name, a function, or None for `linear`.

    Returns:
        The function.

    Raises:
        ValueError: There is no such name.

    Example:
        >>> get("relu") is relu
        True
    """
    if identifier is None:
        return linear
    makers = {name: _maker(function) for name, function in _ACTIVATIONS.items()}
    return _find("activation", makers, identifier)


def serialize(activation: Activation) -> str | Activation:
    """The name of an activation; a function without one stays itself.

    Example:
        >>> serialize(relu)
        'relu'
    """
    for name, function in _ACTIVATIONS.items():
        if function is activation:
            return name
    return activation


def _maker(function: Activation) -> Callable[[], Activation]:
    return lambda: function


_guard(__name__)

_ACTIVATIONS: dict[str, Activation] = {
    "elu": elu,
    "exponential": exponential,
    "gelu": nn.gelu,
    "hard_sigmoid": hard_sigmoid,
    "leaky_relu": leaky_relu,
    "linear": linear,
    "relu": relu,
    "selu": nn.selu,
    "sigmoid": sigmoid,
    "silu": nn.silu,
    "softmax": softmax,
    "softplus": nn.softplus,
    "softsign": nn.softsign,
    "swish": nn.silu,
    "tanh": nn.tanh,
}
gelu, selu, silu, softplus, softsign, swish, tanh = (
    _ACTIVATIONS[_name]
    for _name in ("gelu", "selu", "silu", "softplus", "softsign", "swish", "tanh")
)
