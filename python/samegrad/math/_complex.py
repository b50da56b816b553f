"""Mathematics of complex tensors: their parts, and functions that take both kinds of numbers."""

from __future__ import annotations

from typing import Any

from samegrad import _core
from samegrad._base.dtypes import as_dtype
from samegrad._ops.complex_arrays import conjugate
from samegrad._tensor import complex_rules as rules
from samegrad._tensor.complex_calls import (
    all_complex,
    also_complex,
    elementwise,
    elementwise_of_two,
    elementwise_to_real,
    linear,
)
from samegrad._tensor.complex_tensor import (
    BINARY,
    is_complex,
    own,
    power,
    to_complex,
)
from samegrad._tensor.complex_tensor import (
    equal as _equal,
)
from samegrad._tensor.tensor import Tensor, TensorLike, convert_to_tensor
from samegrad.math import _binary, _reductions, _scans, _segments, _unary

_ops = _core.ops

abs = elementwise_to_real(_unary.abs, rules.absolute)
exp, log = elementwise(_unary.exp, rules.exponential), elementwise(_unary.log, rules.logarithm)
square, sqrt = elementwise(_unary.square, rules.square), elementwise(_unary.sqrt, rules.square_root)
sin, cos = elementwise(_unary.sin, rules.sine), elementwise(_unary.cos, rules.cosine)
sign = elementwise(_unary.sign, rules.sign)
tanh = elementwise(_unary.tanh, rules.hyperbolic_tangent)
negative = elementwise(_unary.negative, lambda x: (_ops.neg(x[0]), _ops.neg(x[1])))
reduce_sum, reduce_mean = linear(_reductions.reduce_sum), linear(_reductions.reduce_mean)
cumsum = linear(_scans.cumsum)
segment_sum, segment_mean = linear(_segments.segment_sum), linear(_segments.segment_mean)
unsorted_segment_sum = linear(_segments.unsorted_segment_sum)
add = elementwise_of_two(_binary.add, BINARY["add"])
subtract = elementwise_of_two(_binary.subtract, BINARY["sub"])
multiply = elementwise_of_two(_binary.multiply, BINARY["mul"])
divide = elementwise_of_two(_binary.divide, BINARY["truediv"])
truediv = elementwise_of_two(_binary.truediv, BINARY["truediv"])
equal = also_complex(_binary.equal, lambda x, y: _equal(x, y, "equal"), 2)
not_equal = also_complex(
    _binary.not_equal, lambda x, y: _ops.logical_not(_equal(x, y, "not_equal")), 2
)
pow = also_complex(_binary.pow, lambda x, y: power(x, y, "pow"), 2)


def _reciprocal(x: Any) -> Any:
    return divide(1.0, to_complex(x, "reciprocal"))


reciprocal = also_complex(_unary.reciprocal, _reciprocal)


def _squared_difference(x: rules.Pair, y: rules.Pair) -> rules.Pair:
    real = _ops.square(x[0] - y[0]) + _ops.square(x[1] - y[1])
    return real, _ops.full_like(real, value=0.0)


squared_difference = elementwise_of_two(_binary.squared_difference, _squared_difference)


def _divided_or_zero(x: rules.Pair, y: rules.Pair) -> rules.Pair:
    zero, one = (_ops.full_like(y[0], value=value) for value in (0.0, 1.0))
    absent = _ops.logical_and(*(_ops.equal(part, zero) for part in y))
    real, imag = rules.divide(x, (_ops.select(absent, one, y[0]), y[1]))
    return _ops.select(absent, zero, real), _ops.select(absent, zero, imag)


divide_no_nan = elementwise_of_two(_binary.divide_no_nan, _divided_or_zero)


def _variance(input_tensor: Any, axis: Any = None, keepdims: bool = False) -> Any:
    values = to_complex(input_tensor, "reduce_variance")
    distances = abs(values - reduce_mean(values, axis, True))
    return reduce_mean(_ops.square(distances), axis, keepdims)


reduce_variance = also_complex(_reductions.reduce_variance, _variance)
reduce_std = also_complex(
    _reductions.reduce_std, lambda *args, **options: _ops.sqrt(_variance(*args, **options))
)


def _add_n(inputs: Any) -> Any:
    total: Any
    total, *rest = all_complex(inputs, "add_n")
    for value in rest:
        total = total + value
    return total


add_n = also_complex(_binary.add_n, _add_n)


def real(input: TensorLike, name: str | None = None) -> Tensor:
    """Return the real part of each element.

    Args:
        input: A tensor of complex or real numbers.
        name: Ignored.

    Returns:
        The real parts: float32 for complex64, float64 for complex128. A real tensor is returned as
        it is.

    Example:
        >>> import samegrad as tf
        >>> tf.math.real([1 + 2j, 3.0]).numpy()
        array([1., 3.])
    """
    if is_complex(input):
        return own(to_complex(input, "real").real)
    return convert_to_tensor(input)


def imag(input: TensorLike, name: str | None = None) -> Tensor:
    """Return the imaginary part of each element.

    Args:
        input: A tensor of complex or real numbers.
        name: Ignored.

    Returns:
        The imaginary parts: float32 for complex64, float64 for complex128; zeros for a real tensor,
        in its dtype.

    Example:
        >>> import samegrad as tf
        >>> tf.math.imag([1 + 2j, 3.0]).numpy()
        array([2., 0.])
    """
    if is_complex(input):
        return own(to_complex(input, "imag").imag)
    return _zeros(convert_to_tensor(input))


def _zeros(x: Tensor) -> Tensor:
    zeros: Tensor = _ops.cast(_ops.full_like(_ops.cast(x, dtype="float32"), value=0.0),
                              dtype=x._dtype)  # fmt: skip
    return zeros


def conj(x: TensorLike, name: str | None = None) -> Any:
    """Conjugate each element: negate its imaginary part.

    Args:
        x: A tensor of complex or real numbers.
        name: Ignored.

    Returns:
        A tensor of the same shape and dtype; a real tensor is returned as it is.

    Example:
        >>> import samegrad as tf
        >>> tf.math.conj([1 + 2j]).numpy()
        array([1.-2.j])
    """
    return conjugate(to_complex(x, "conj")) if is_complex(x) else convert_to_tensor(x)


def angle(input: TensorLike, name: str | None = None) -> Tensor:
    """Compute the angle of each element in radians, in (-π, π].

    A real number has the angle 0, or π if it is negative.

    Args:
        input: A tensor of complex numbers or floats.
        name: Ignored.

    Returns:
        A tensor of floats of the same shape.

    Raises:
        TypeError: The tensor holds integers or bools.

    Example:
        >>> import samegrad as tf
        >>> tf.math.angle([1j, -1.0]).numpy()
        array([1.57079633, 3.14159265])
    """
    if is_complex(input):
        return rules.angle(to_complex(input, "angle").parts)
    x = convert_to_tensor(input)
    if not as_dtype(x._dtype).is_floating:
        raise TypeError(f"[angle] floats are needed: got {x._dtype}; use samegrad.cast.")
    return rules.angle((_ops.stop_gradient(x), _zeros(x)))


__all__ = [
    "abs", "add", "add_n", "angle", "conj", "cos", "cumsum", "divide", "divide_no_nan", "equal",
    "exp", "imag", "log", "multiply", "negative", "not_equal", "pow", "real", "reciprocal",
    "reduce_mean", "reduce_std", "reduce_sum", "reduce_variance", "segment_mean", "segment_sum",
    "sign", "sin", "sqrt", "square", "squared_difference", "subtract", "tanh", "truediv",
    "unsorted_segment_sum",
]  # fmt: skip
