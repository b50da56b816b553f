"""TensorFlow's top-level functions on tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from samegrad import _core
from samegrad._dtypes import DTypeLike, as_dtype
from samegrad._tensor import Tensor, TensorLike, _truediv, convert_to_tensor, pair

_ops = _core.ops


def _unary(name: str) -> Callable[..., Tensor]:
    row = getattr(_ops, name)

    def function(x: TensorLike, name: str | None = None) -> Tensor:
        return row(convert_to_tensor(x))

    function.__name__, function.__doc__ = name, row.__doc__
    return function


def _binary(row_name: str) -> Callable[..., Tensor]:
    row = getattr(_ops, row_name)

    def function(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
        return row(*pair(x, y))

    function.__name__, function.__doc__ = row_name, row.__doc__
    return function


def _axes(x: Tensor, axis: Any) -> list[int]:
    if axis is None:
        return list(range(x.ndim))
    return [int(axis)] if not isinstance(axis, list | tuple) else [int(a) for a in axis]


def _reduction(row_name: str) -> Callable[..., Tensor]:
    row = getattr(_ops, row_name)

    def function(input_tensor: TensorLike, axis: Any = None, keepdims: bool = False,
                 name: str | None = None) -> Tensor:  # fmt: skip
        x = convert_to_tensor(input_tensor)
        return row(x, axes=_axes(x, axis), keepdims=keepdims)

    function.__name__, function.__doc__ = row_name, row.__doc__
    return function


UNARY = ("abs sign square sqrt exp sin cos tanh sigmoid floor round logical_not stop_gradient "
         "identity").split()  # fmt: skip
BINARY = {
    "add": "add", "subtract": "sub", "multiply": "mul", "pow": "pow", "maximum": "maximum",
    "minimum": "minimum", "equal": "equal", "not_equal": "not_equal", "less": "less",
    "less_equal": "less_equal", "greater": "greater", "greater_equal": "greater_equal",
    "logical_and": "logical_and", "logical_or": "logical_or",
}  # fmt: skip
REDUCTIONS = "reduce_sum reduce_prod reduce_max reduce_min reduce_any reduce_all".split()
FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{name: _unary(name) for name in UNARY},
    "negative": _unary("neg"),
    **{name: _binary(row) for name, row in BINARY.items()},
    **{name: _reduction(name) for name in REDUCTIONS},
}


def divide(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """x / y, element by element; integers become float64."""
    return _truediv(*pair(x, y))


def reduce_mean(
    input_tensor: TensorLike, axis: Any = None, keepdims: bool = False, name: str | None = None
) -> Tensor:
    """The mean over `axis` (default all) of this replica's rows.

    Example:
        >>> float(reduce_mean([1.0, 2.0, 6.0]))
        3.0
    """
    x = convert_to_tensor(input_tensor)
    axes = _axes(x, axis)
    count = _ops.cast(_ops.size_of(x, axes=axes), dtype=x._dtype)
    return _ops.div(_ops.reduce_sum(x, axes=axes, keepdims=keepdims), count)


def cast(x: TensorLike, dtype: DTypeLike, name: str | None = None) -> Tensor:
    """The tensor with its elements converted."""
    tensor = convert_to_tensor(x)
    wanted = as_dtype(dtype).name
    return tensor if tensor._dtype == wanted else _ops.cast(tensor, dtype=wanted)


def matmul(a: TensorLike, b: TensorLike, transpose_a: bool = False, transpose_b: bool = False,
           name: str | None = None) -> Tensor:  # fmt: skip
    """The product of matrices; leading axes broadcast."""
    return _ops.matmul(*pair(a, b), transpose_a=transpose_a, transpose_b=transpose_b)


def reshape(tensor: TensorLike, shape: Any, name: str | None = None) -> Tensor:
    """The same elements with other axes; one size may be -1."""
    return _ops.reshape(convert_to_tensor(tensor), shape=[int(size) for size in shape])


def transpose(a: TensorLike, perm: Any = None, name: str | None = None) -> Tensor:
    """The axes in another order; default reversed."""
    x = convert_to_tensor(a)
    return _ops.transpose(x, perm=list(reversed(range(x.ndim))) if perm is None else list(perm))


def expand_dims(input: TensorLike, axis: int, name: str | None = None) -> Tensor:  # noqa: A002
    """A new axis of size 1."""
    return _ops.expand_dims(convert_to_tensor(input), axes=[axis])


def squeeze(input: TensorLike, axis: Any = None, name: str | None = None) -> Tensor:  # noqa: A002
    """Without the axes of size 1 (or those named)."""
    x = convert_to_tensor(input)
    ones = [i for i, size in enumerate(x._shape) if size == 1]
    return _ops.squeeze(x, axes=ones if axis is None else _axes(x, axis))


def concat(values: Any, axis: int, name: str | None = None) -> Tensor:
    """The tensors one after the other along an axis."""
    return _ops.concat(*[convert_to_tensor(v) for v in values], axis=axis)


def stack(values: Any, axis: int = 0, name: str | None = None) -> Tensor:
    """The tensors along a new axis."""
    return concat([expand_dims(v, axis) for v in values], axis)


def where(condition: TensorLike, x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """x where the condition holds, else y."""
    return _ops.select(convert_to_tensor(condition), *pair(x, y))


def argmax(input: TensorLike, axis: int = 0, name: str | None = None) -> Tensor:  # noqa: A002
    """The index of the largest element along an axis, int64."""
    return _ops.arg_max(convert_to_tensor(input), axis=axis)


def zeros_like(input: TensorLike, name: str | None = None) -> Tensor:  # noqa: A002
    """Zeros of the same shape and dtype."""
    return _ops.full_like(convert_to_tensor(input), value=0.0)


def ones_like(input: TensorLike, name: str | None = None) -> Tensor:  # noqa: A002
    """Ones of the same shape and dtype."""
    return _ops.full_like(convert_to_tensor(input), value=1.0)


def zeros(shape: Any, dtype: DTypeLike = "float32", name: str | None = None) -> Tensor:
    """Zeros."""
    return _ops.zeros(shape=[int(size) for size in shape], dtype=as_dtype(dtype).name)


def ones(shape: Any, dtype: DTypeLike = "float32", name: str | None = None) -> Tensor:
    """Ones."""
    return ones_like(zeros(shape, dtype))


_PLAIN = (divide, reduce_mean, cast, matmul, reshape, transpose, expand_dims, squeeze, concat,
          stack, where, argmax, zeros_like, ones_like, zeros, ones)  # fmt: skip
FUNCTIONS.update({function.__name__: function for function in _PLAIN})
