"""Helpers of keras.backend.numpy: types, axes, and values that must be known."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from keras.src.backend import config
from keras.src.backend.common.dtypes import result_type

import samegrad as tf
from samegrad._base.dtypes import is_plain_number
from samegrad._context.python_runs import need_python
from samegrad._keras.conversion import convert_to_tensor
from samegrad._tensor.conversion import Tensor, number
from samegrad._tensor.dim import Dim

# Sums and products of these are of 32 bits.
_WIDENED = {
    "bool": "int32", "int8": "int32", "int16": "int32", "uint8": "uint32", "uint16": "uint32",
}  # fmt: skip


def is_float(x: Tensor) -> bool:
    """Tell if the elements are floats."""
    return "float" in x._dtype


def kind_of(x: Any) -> Any:
    """Return the operand of type promotion: a dtype's name, or a plain number's Python type."""
    if isinstance(x, Tensor):
        return x._dtype
    if isinstance(x, Dim):
        return int
    return getattr(x, "dtype", type(x))


def number_or_tensor(x: Any) -> Any:
    """The value as a tensor, unless it is a plain number, which takes the type of what it meets."""
    return x if isinstance(x, Tensor | int | float) else convert_to_tensor(x)


@functools.cache
def _result_type(kinds: tuple[Any, ...], _: str) -> str:
    dtype: str = result_type(*kinds)
    return dtype


def _converted(x: Any, dtype: str) -> Tensor:
    if isinstance(x, Tensor) and x._dtype == dtype:
        return x
    if is_plain_number(x) and dtype in ("float32", "float64"):
        return number(x, dtype)
    return convert_to_tensor(x, dtype)


def matched(*xs: Any, more: tuple[Any, ...] = ()) -> list[Tensor]:
    """The operands as tensors of one dtype, which `more` types have a say in."""
    values = [number_or_tensor(x) for x in xs]
    kinds = (*map(kind_of, values), *more)
    dtype = _result_type(kinds, config.floatx())  # plain floats are of floatx
    return [_converted(x, dtype) for x in values]


def matched_tensors(*xs: Any, more: tuple[Any, ...] = ()) -> list[Tensor]:
    """Convert like `matched`, but plain numbers have dtypes of their own."""
    return matched(*(convert_to_tensor(x) for x in xs), more=more)


def pair(x1: Any, x2: Any, *more: Any) -> tuple[Tensor, Tensor]:
    """Two operands as tensors of one dtype, as `matched`."""
    alike = type(x1) is Tensor and type(x2) is Tensor and x1._dtype == x2._dtype
    if alike and (not more or (more == (float,) and is_float(x1))):
        return x1, x2
    first, second = number_or_tensor(x1), number_or_tensor(x2)
    dtype = _result_type((kind_of(first), kind_of(second), *more), config.floatx())
    return _converted(first, dtype), _converted(second, dtype)


def tensor_pair(x1: Any, x2: Any, *more: Any) -> tuple[Tensor, Tensor]:
    """Two operands as tensors of one dtype, as `matched_tensors`."""
    return pair(convert_to_tensor(x1), convert_to_tensor(x2), *more)


def float_of(x: Any, wide: bool = False) -> Tensor:
    """Convert to floats; integers become floatx, and with `wide` int64 becomes float64."""
    tensor = convert_to_tensor(x)
    if is_float(tensor):
        return tensor
    long = wide and tensor._dtype in ("int64", "uint64")
    return tf.cast(tensor, "float64" if long else config.floatx())


def widened(x: Any) -> Tensor:
    """Convert to the dtype of sums: small integers have 32 bits."""
    tensor = convert_to_tensor(x)
    wide = _WIDENED.get(tensor._dtype)
    return tensor if wide is None else tf.cast(tensor, wide)


def not_bool(x: Any) -> Tensor:
    """The value, with int32 in the place of bools."""
    tensor = convert_to_tensor(x)
    return tf.cast(tensor, "int32") if tensor._dtype == "bool" else tensor


def constant(value: float, like: Tensor) -> Tensor:
    """A number in the dtype of a tensor."""
    return convert_to_tensor(value, like._dtype)


def flat(x: Tensor) -> Tensor:
    """The elements along one axis."""
    return x if x._rank == 1 else tf.reshape(x, [-1])


def axes_in(axis: Any, rank: int) -> list[int]:
    """The axes, counted from the first, in the order given; None: all.

    Raises:
        ValueError: There is none such.
    """
    if axis is None:
        return list(range(rank))
    several = axis if isinstance(axis, list | tuple) else [axis]
    wrong = [a for a in several if not -rank <= int(a) < rank]
    if wrong:
        raise ValueError(f"[keras.ops] axis must lie in [{-rank}, {rank}): got {axis}.")
    return [int(a) % rank for a in several]


def axis_in(axis: Any, rank: int) -> int:
    """One axis, counted from the first."""
    return axes_in(int(axis), rank)[0]


def sliced(x: Tensor, axis: int, begin: Any, end: Any) -> Tensor:
    """The elements from `begin` to before `end` along an axis, counted from the first."""
    key = (slice(None),) * axis + (slice(begin, end),)
    return x[key]


def known(name: str, x: Any) -> np.ndarray[Any, Any]:
    """The values, for functions whose result is not known without them.

    Raises:
        TypeError: The tensor is one of a function that is being traced.
    """
    tensor = tf.convert_to_tensor(convert_to_tensor(x))
    if tensor._symbolic:
        need_python(
            f"[keras.ops.{name}] the result depends on values in a way that a traced function does "
            "not know: call it with eager tensors, outside of tf.function and compiled steps.",
            TypeError,
        )
    return np.asarray(tensor.numpy())


def made(values: Any, dtype: str) -> Tensor:
    """NumPy's values as a tensor of a dtype."""
    return tf.cast(tf.convert_to_tensor(np.asarray(values)), dtype)
