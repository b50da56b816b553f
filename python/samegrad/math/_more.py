"""Functions of elements that programs ask for by TensorFlow's names, made of the engine's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from samegrad import _core
from samegrad._base.dtypes import as_dtype
from samegrad._ops.arrays import cast
from samegrad._ops.more_arrays import invert_permutation, scalar_mul
from samegrad._tensor.tensor import Tensor, TensorLike, convert_to_tensor, pair
from samegrad.math._binary import add_n, divide_no_nan
from samegrad.math._reductions import reduce_all, reduce_mean

_ops = _core.ops


def accumulate_n(inputs: Sequence[TensorLike], shape: Any = None, tensor_dtype: Any = None,
                 name: str | None = None) -> Tensor:  # fmt: skip
    """The sum of tensors; see `add_n`.

    Example:
        >>> float(accumulate_n([1.0, 2.0]))
        3.0
    """
    return add_n(inputs)


def multiply_no_nan(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """X times y, 0 where y is 0, even if x is infinite or no number.

    Example:
        >>> multiply_no_nan([float("nan"), 2.0], [0.0, 3.0]).numpy()
        array([0., 6.], dtype=float32)
    """
    return _ops.multiply_no_nan(*pair(x, y))


def reciprocal_no_nan(x: TensorLike, name: str | None = None) -> Tensor:
    """1 / x, 0 where x is 0.

    Example:
        >>> reciprocal_no_nan([2.0, 0.0]).numpy()
        array([0.5, 0. ], dtype=float32)
    """
    tensor = convert_to_tensor(x)
    return divide_no_nan(_ops.full_like(tensor, value=1.0), tensor)


def xdivy(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """X / y, 0 where x is 0.

    Example:
        >>> xdivy([0.0, 1.0], [0.0, 2.0]).numpy()
        array([0. , 0.5], dtype=float32)
    """
    return _ops.xdivy(*pair(x, y))


def xlog1py(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """X log(1 + y), 0 where x is 0.

    Example:
        >>> xlog1py([0.0, 1.0], [-1.0, 0.0]).numpy()
        array([0., 0.], dtype=float32)
    """
    a, b = pair(x, y)
    return _ops.multiply_no_nan(_ops.log1p(b), a)


def rint(x: TensorLike, name: str | None = None) -> Tensor:
    """The nearest whole number, halves to the even one, as a float.

    Example:
        >>> rint([0.5, 1.5, -2.4]).numpy()
        array([ 0.,  2., -2.], dtype=float32)
    """
    return _ops.round(convert_to_tensor(x))


def softsign(features: TensorLike, name: str | None = None) -> Tensor:
    """X / (1 + |x|).

    Example:
        >>> softsign([1.0, -3.0]).numpy()
        array([ 0.5 , -0.75], dtype=float32)
    """
    x = convert_to_tensor(features)
    return x / (_ops.abs(x) + 1.0)


def _normalized(name: str, logits: TensorLike, axis: int | None) -> Tensor:
    x = convert_to_tensor(logits)
    along = -1 if axis is None else int(axis)
    if not -x._rank <= along < x._rank:
        raise ValueError(
            f"[{name}] axis must be one of the tensor's: got {along} for shape {tuple(x._shape)}."
        )
    order = [*range(x._rank)]
    order[along], order[-1] = order[-1], order[along]
    if order[-1] == x._rank - 1:
        found: Tensor = getattr(_ops, name)(x)
        return found
    turned = getattr(_ops, name)(_ops.transpose(x, perm=order))
    return _ops.transpose(turned, perm=order)


def softmax(logits: TensorLike, axis: int | None = -1, name: str | None = None) -> Tensor:
    """Exponentials that sum to 1 along an axis; as `nn.softmax`.

    Example:
        >>> softmax([0.0, 0.0]).numpy()
        array([0.5, 0.5], dtype=float32)
    """
    return _normalized("softmax", logits, axis)


def log_softmax(logits: TensorLike, axis: int | None = -1, name: str | None = None) -> Tensor:
    """The logarithm of `softmax`; as `nn.log_softmax`.

    Example:
        >>> log_softmax([0.0, 0.0]).numpy().round(4)
        array([-0.6931, -0.6931], dtype=float32)
    """
    return _normalized("log_softmax", logits, axis)


def zero_fraction(value: TensorLike, name: str | None = None) -> Tensor:
    """The share of the elements that are 0; no number of none.

    Example:
        >>> float(zero_fraction([0.0, 1.0]))
        0.5
    """
    x = convert_to_tensor(value)
    zero = convert_to_tensor(0, x._dtype)
    return reduce_mean(cast(_ops.equal(x, zero), "float32"))


def polyval(coeffs: Sequence[TensorLike], x: TensorLike, name: str | None = None) -> Tensor:
    """The polynomial of these coefficients, that of the highest power first (Horner's rule).

    Example:
        >>> float(polyval([1.0, 2.0, 3.0], 2.0))
        11.0
    """
    if not isinstance(coeffs, list | tuple):
        raise ValueError(
            f"[polyval] coeffs must be a list: got {type(coeffs).__name__}; put it into a list."
        )
    at = convert_to_tensor(x)
    if not coeffs:
        return _ops.full_like(at, value=0.0)
    total = convert_to_tensor(coeffs[0], dtype_hint=as_dtype(at._dtype))
    for coefficient in coeffs[1:]:
        total = total * at + coefficient
    return total


def _steps(x: TensorLike) -> tuple[Tensor, Tensor]:
    flat = _ops.reshape(convert_to_tensor(x), shape=[-1])
    return flat[:-1], flat[1:]


def is_non_decreasing(x: TensorLike, name: str | None = None) -> Tensor:
    """Whether no element is below the one before it.

    Example:
        >>> bool(is_non_decreasing([1, 1, 2]))
        True
    """
    before, after = _steps(x)
    return reduce_all(_ops.less_equal(before, after))


def is_strictly_increasing(x: TensorLike, name: str | None = None) -> Tensor:
    """Whether each element is above the one before it.

    Example:
        >>> bool(is_strictly_increasing([1, 1, 2]))
        False
    """
    before, after = _steps(x)
    return reduce_all(_ops.less(before, after))


def nextafter(x1: TensorLike, x2: TensorLike, name: str | None = None) -> Tensor:
    """The float next to x1 on the way to x2; for eager code.

    Example:
        >>> float(nextafter(1.0, 2.0)) > 1.0
        True
    """
    a, b = pair(x1, x2)
    return convert_to_tensor(np.nextafter(a.numpy(), b.numpy()))


__all__ = [
    "accumulate_n", "invert_permutation", "is_non_decreasing", "is_strictly_increasing",
    "log_softmax", "multiply_no_nan", "nextafter", "polyval", "reciprocal_no_nan", "rint",
    "scalar_mul", "softmax", "softsign", "xdivy", "xlog1py", "zero_fraction",
]  # fmt: skip
