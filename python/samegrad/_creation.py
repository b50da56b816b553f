"""Functions that make tensors out of numbers and shapes, under TensorFlow's names."""

from __future__ import annotations

from typing import Any

import numpy as np

from samegrad import _core, _sizes
from samegrad._arrays import cast
from samegrad._dtypes import DTypeLike, as_dtype
from samegrad._tensor import Tensor, TensorLike, convert_to_tensor

_ops = _core.ops


def zeros(shape: Any, dtype: DTypeLike = "float32", name: str | None = None) -> Tensor:
    """Zeros.

    Example:
        >>> zeros((2,)).numpy()
        array([0., 0.], dtype=float32)
    """
    sizes = _sizes.sizes_of(shape)
    if _sizes.examples_in(sizes) is not None:
        return _sizes.full_rows(sizes, as_dtype(dtype).name)
    return _ops.zeros(shape=[int(size) for size in sizes], dtype=as_dtype(dtype).name)


def ones(shape: Any, dtype: DTypeLike = "float32", name: str | None = None) -> Tensor:
    """Ones.

    Example:
        >>> ones((2,)).numpy()
        array([1., 1.], dtype=float32)
    """
    return _ops.full_like(zeros(shape, dtype), value=1.0)


def fill(dims: Any, value: TensorLike, name: str | None = None) -> Tensor:
    """One number in a shape.

    Example:
        >>> fill((2,), 7.0).numpy()
        array([7., 7.], dtype=float32)
    """
    number = convert_to_tensor(value)
    return _ops.broadcast_like(number, zeros(dims, number._dtype))


def zeros_like(input: TensorLike, dtype: DTypeLike | None = None,
               name: str | None = None) -> Tensor:  # fmt: skip
    """Zeros in the shape of a tensor.

    Example:
        >>> zeros_like([1.0]).numpy()
        array([0.], dtype=float32)
    """
    x = convert_to_tensor(input)
    return _ops.full_like(x if dtype is None else cast(x, dtype), value=0.0)


def ones_like(input: TensorLike, dtype: DTypeLike | None = None,
              name: str | None = None) -> Tensor:  # fmt: skip
    """Ones in the shape of a tensor.

    Example:
        >>> ones_like([2.0]).numpy()
        array([1.], dtype=float32)
    """
    x = convert_to_tensor(input)
    return _ops.full_like(x if dtype is None else cast(x, dtype), value=1.0)


def eye(num_rows: int, num_columns: int | None = None, dtype: DTypeLike = "float32",
        name: str | None = None) -> Tensor:  # fmt: skip
    """A matrix with ones on the diagonal.

    Example:
        >>> eye(2).numpy()
        array([[1., 0.],
               [0., 1.]], dtype=float32)
    """
    return Tensor(np.eye(num_rows, num_columns, dtype=np.dtype(as_dtype(dtype).name)))


def range_(start: Any, limit: Any = None, delta: Any = 1, dtype: DTypeLike | None = None,
           name: str | None = None) -> Tensor:  # fmt: skip
    """The numbers start, start + delta, … below the limit (with one number: from 0 to below it).

    Raises:
        TypeError: A bound is a tensor of a function that is being traced: the shape would not be
            known.

    Example:
        >>> range_(3).numpy()
        array([0, 1, 2], dtype=int32)
    """
    first, last = (0, start) if limit is None else (start, limit)
    numbers = [n.numpy() if isinstance(n, Tensor) else n for n in (first, last, delta)]
    if dtype is None:  # the widest of the bounds': the numbers may be none
        dtypes = {convert_to_tensor(n)._dtype for n in numbers}
        dtype = max(dtypes, key=("int32", "int64", "float32", "float64").index)
    return Tensor(np.arange(*numbers).astype(as_dtype(dtype).name))


def linspace(start: float, stop: float, num: int, name: str | None = None) -> Tensor:
    """`num` numbers from start to stop, equally far apart, both ends included.

    Example:
        >>> linspace(0.0, 1.0, 3).numpy()
        array([0. , 0.5, 1. ], dtype=float32)
    """
    return convert_to_tensor(np.linspace(start, stop, num).tolist())
