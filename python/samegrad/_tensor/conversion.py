"""Conversion of numbers, lists, arrays and variables to tensors."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterable
from typing import Any, TypeAlias

import numpy as np

from samegrad import _core
from samegrad._base.dtypes import DTypeLike, as_dtype, is_plain_number, kind_of
from samegrad._base.shown import shown
from samegrad._base.tree import MAX_AXES, first_leaf, is_one_value
from samegrad._context.counted_numbers import Counted, counts_of
from samegrad._surface import argument_rules
from samegrad._tensor.dim import Dim, dims_of, with_dims
from samegrad._tensor.shape import TensorShape

# The engine's class: `samegrad._tensor.tensor` gives it Python's operators.
Tensor = _core.Tensor
TensorLike: TypeAlias = Any
_ops = _core.ops
make = Tensor.__init__  # of the engine: `samegrad._tensor.tensor` puts checks before it


def is_tensor(value: object) -> bool:
    """Tell whether a value is a tensor or a variable.

    Example:
        >>> is_tensor(constant(1.0)), is_tensor(1.0)
        (True, False)
    """
    return isinstance(value, Tensor) or hasattr(type(value), "_as_tensor")


def _numbers(value: Any) -> np.ndarray[Any, Any]:
    """Return NumPy's array of numbers."""
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise ValueError(
            f"[convert_to_tensor] the parts of a list must have one shape: got {shown(value)} "
            f"({error}); pad the shorter ones."
        ) from error
    if array.dtype.kind == "c":
        raise _complex(array.dtype.name, array.shape)
    if kind_of(array.dtype) not in "fiub":
        has_none = isinstance(value, list | tuple) and any(entry is None for entry in value)
        remedy = (
            "; replace None by a number, or if it is the size of a ragged axis, use to_tensor() or "
            "bounding_shape()"
        )
        raise TypeError(
            f"[convert_to_tensor] a number, an array or a tensor is needed: got "
            f"{type(value).__name__} {value!r:.80}{remedy if has_none else ''}."
        )
    return array


def _complex(dtype: str, sizes: Any) -> TypeError:
    return TypeError(
        f"[convert_to_tensor] real numbers are needed: got {dtype} of shape {tuple(sizes)}; take "
        "samegrad.math.real, samegrad.math.imag or samegrad.abs of it. Beside a complex tensor a "
        f"real one needs samegrad.cast(x, samegrad.{dtype})."
    )


def _cast_exactly(array: np.ndarray[Any, Any], wanted: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """Return the array in another dtype that can hold its numbers."""
    if kind_of(array.dtype) == "f" and wanted.kind in "iub" and array.size:
        raise TypeError(
            f"[convert_to_tensor] the values are {array.dtype}: got dtype={wanted.name}, which "
            "would lose their fractions; use samegrad.cast."
        )
    whole = array.dtype.kind in "iu" and wanted.kind in "iu"
    if whole and array.size and not np.can_cast(array.dtype, wanted):
        minimum, maximum = array.min(), array.max()
        limits = np.iinfo(wanted)
        if minimum < limits.min or maximum > limits.max:
            raise ValueError(
                f"[convert_to_tensor] {wanted.name} holds numbers from {limits.min} to "
                f"{limits.max}: got {minimum} to {maximum}; use another dtype."
            )
    with np.errstate(over="ignore"):  # what is too large is infinite
        return array.astype(wanted, copy=False)


def _large_whole(value: Any, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return integers beyond int64, which NumPy converted to floats, as uint64."""
    exact = np.asarray(value, dtype=object)
    if all(type(n) is int and 0 <= n < 2**64 for n in exact.ravel()):
        return exact.astype(np.uint64)
    return array


def _default_array(value: Any, dtype: DTypeLike | None) -> np.ndarray[Any, Any]:
    """Convert a value to a NumPy array, with TensorFlow's defaults for Python numbers."""
    # Tables of pandas, too, have a dtype that was chosen.
    typed = isinstance(value, np.ndarray | np.generic) or hasattr(type(value), "__array__")
    if dtype is not None:
        wanted = as_dtype(dtype)._numpy
        array = _numbers(value)
        if wanted == np.uint64 and array.dtype == np.float64 and not typed:
            array = _large_whole(value, array)
        return _cast_exactly(array, wanted)
    array = _numbers(value)
    if isinstance(value, TensorShape) and not value:
        return array.astype(np.int32)  # the shape of a scalar has sizes, too: none
    if not typed and array.dtype == np.float64 and not _holds_float64(value):
        return array.astype(np.float32)
    if not typed and array.dtype == np.int64:
        fits = array.size == 0 or (array.min() >= -(2**31) and array.max() < 2**31)
        return array.astype(np.int32) if fits else array
    return array


def _holds_float64(value: Any) -> bool:
    """Tell whether a (nested) list holds NumPy's float64 numbers rather than Python's."""
    return isinstance(first_leaf(value), np.ndarray | np.float64)


def _holds_tensors(value: Any, around: tuple[Any, ...] = ()) -> bool:
    """Tell whether a value is a list with a tensor in it, at any depth.

    Args:
        value: Any object.
        around: The lists around it.

    Raises:
        ValueError: The list holds itself: NumPy would go through it without an end.
    """
    if not isinstance(value, list | tuple):
        return False
    if is_one_value(value):
        raise _complex(value._dtype, value._shape)  # type: ignore[union-attr]
    kinds = set(map(type, value))  # few, where there are many numbers
    if any(issubclass(kind, Tensor) or hasattr(kind, "_as_tensor") for kind in kinds):
        return True
    if not any(issubclass(kind, list | tuple) for kind in kinds):
        return False
    if any(value is outer for outer in around):
        raise ValueError(f"[convert_to_tensor] a list must not hold itself: got {shown(value)}.")
    return any(_holds_tensors(part, (*around, value)) for part in value)


def _first_dtype(value: Any, seen: set[int] | None = None) -> str | None:
    """Return the dtype of the first tensor in a list; sizes count as Python's numbers."""
    if not isinstance(value, list | tuple):
        counts = is_tensor(value) and not isinstance(value, Dim)
        return convert_to_tensor(value)._dtype if counts else None
    seen = set() if seen is None else seen
    if id(value) in seen:  # it holds itself, or has been looked at
        return None
    seen.add(id(value))
    return next(filter(None, (_first_dtype(part, seen) for part in value)), None)


def _packed(value: Any, dtype: str, asked: bool, depth: int = 0) -> Tensor:
    """Return a tensor of a list that holds tensors, through which derivatives go.

    Args:
        value: The list.
        dtype: Of the result; Python's and NumPy's numbers take it if they fit.
        asked: Whether the program named the dtype: tensors are cast to it, as in TensorFlow.
        depth: Of the list in other ones.
    """
    if depth > MAX_AXES:
        raise ValueError(
            f"[convert_to_tensor] lists may be nested {MAX_AXES} deep: got {shown(value)}."
        )
    made = [_part(part, dtype, asked, depth + 1) for part in value]
    kinds = sorted({part._dtype for part in made})
    if len(kinds) > 1:
        raise TypeError(
            f"[convert_to_tensor] the parts of a list must have one dtype: got "
            f"{' and '.join(kinds)} in {shown(value)}; use samegrad.cast."
        )
    try:
        joined: Tensor = _ops.concat(*[_ops.expand_dims(part, axes=(0,)) for part in made], axis=0)
    except ValueError as error:
        raise ValueError(
            f"[convert_to_tensor] the parts of a list must have one shape: got shapes "
            f"{shown([tuple(part._shape) for part in made])}; pad the shorter ones."
        ) from error
    sizes = [dims_of(part) if isinstance(part, Tensor) else (part,) for part in value]
    known = None not in sizes and joined._rank == 1
    return with_dims(joined, [n for part in sizes for n in part or ()] if known else None)


def _part(part: Any, dtype: str, asked: bool, depth: int) -> Tensor:
    if _holds_tensors(part):
        return _packed(part, dtype, asked, depth)
    if is_tensor(part):
        found = convert_to_tensor(part)
        cast = found._dtype != dtype and (asked or isinstance(part, Dim))
        return _ops.cast(found, dtype=dtype) if cast else found
    with contextlib.nullcontext() if asked else contextlib.suppress(TypeError, ValueError):
        return convert_to_tensor(part, dtype)
    return convert_to_tensor(part)


def convert_to_tensor(
    value: TensorLike, dtype: DTypeLike | None = None, dtype_hint: DTypeLike | None = None,
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """Return a tensor of the value: number, nested list, NumPy array, variable or tensor.

    Python floats become float32 and ints int32, as in TensorFlow; NumPy arrays keep their dtype.
    The data is copied.

    Args:
        value: What becomes a tensor.
        dtype: Of the elements, which must fit; tensors in a list are cast to it.
        dtype_hint: The dtype of a Python value that fits it; others keep theirs.
        name: Ignored.

    Raises:
        TypeError: The value has another dtype than the one asked for, or none samegrad knows.
        ValueError: Parts of a list differ in shape, or a number is too large for the dtype.

    Example:
        >>> convert_to_tensor([1.0, 2.0]).dtype
        samegrad.float32
    """
    if dtype is None and type(value) is Tensor:
        return value
    if isinstance(value, Dim):
        size = value._as_tensor()
        if dtype is None or size._dtype == as_dtype(dtype).name:
            return size
        return _ops.cast(size, dtype=as_dtype(dtype).name)
    if hasattr(type(value), "_as_tensor"):
        value = value._as_tensor()
    if isinstance(value, Tensor):
        if dtype is not None and value._dtype != as_dtype(dtype).name:
            raise TypeError(
                f"[convert_to_tensor] the tensor is {value._dtype}: got dtype="
                f"{as_dtype(dtype).name}; use samegrad.cast."
            )
        return value
    if _holds_tensors(value):
        first = None if dtype is not None else _first_dtype(value)
        return _packed(value, as_dtype(dtype or first or "int32").name, dtype is not None)
    typed = isinstance(value, np.ndarray | np.generic | TensorShape)
    if dtype is None and dtype_hint is not None and not typed:
        with contextlib.suppress(TypeError, ValueError):
            return convert_to_tensor(value, dtype_hint)
    array = _default_array(value, dtype)
    as_dtype(array.dtype)
    made_of = counts_of(value)
    return Tensor(array) if made_of is None else Tensor(array)._of_counts(*made_of)


def constant(
    value: TensorLike, dtype: DTypeLike | None = None, shape: Any = None, name: str | None = None
) -> Tensor:
    """Return a tensor with the value, repeated to `shape` if it is given.

    Example:
        >>> constant(2.0, shape=(2,)).numpy()
        array([2., 2.], dtype=float32)
    """
    known = is_tensor(value) or _holds_tensors(value) or isinstance(value, Counted)
    found = convert_to_tensor(value, dtype) if known else _default_array(value, dtype)
    if shape is None:
        return convert_to_tensor(found, dtype)
    sizes = tuple(shape) if isinstance(shape, Iterable) else (shape,)
    if any(isinstance(size, int) and size < 0 for size in sizes):
        raise ValueError(
            "[constant] shape must be a tuple of sizes, which are not negative: got "
            f"{shown(shape)}; pass one, and use reshape for -1."
        )
    count = math.prod(found._shape if isinstance(found, Tensor) else found.shape)
    if count not in (1, math.prod(sizes)):
        raise ValueError(
            f"[constant] the value must have one element or as many as the shape: got "
            f"{count} and {sizes}."
        )
    if isinstance(found, Tensor):
        wanted = [int(size) for size in sizes]
        one: Tensor = _ops.reshape(found, shape=[] if count == 1 else wanted)
        return _ops.broadcast_to(one, shape=wanted) if count == 1 else one
    array = np.broadcast_to(found, sizes) if count == 1 else found.reshape(sizes)
    return convert_to_tensor(array, dtype)


def number(value: float, dtype: str) -> Tensor:
    """Convert a plain number (`is_plain_number`) to a tensor of a dtype, without checks.

    Example:
        >>> number(0.5, "float64").dtype
        samegrad.float64
    """
    made = Tensor.__new__(Tensor)
    make(made, np.array(value, dtype), True, None, 1)
    return made


def match(value: TensorLike, like: Tensor | _core.StateVariable) -> Tensor:
    """Return the operand of an operator as a tensor with the dtype of the other one."""
    if is_plain_number(value) and like._dtype in ("float32", "float64"):
        return number(value, like._dtype)
    if is_tensor(value) and not isinstance(value, Dim):
        return convert_to_tensor(value)
    if isinstance(value, np.ndarray):
        return convert_to_tensor(value, like._dtype)
    if isinstance(value, float) and as_dtype(like._dtype).is_integer:
        raise TypeError(
            f"[tensor] a float and a tensor of {like._dtype} do not mix: got {value}; "
            "use samegrad.cast."
        )
    return convert_to_tensor(value, like._dtype)


def pair(a: TensorLike, b: TensorLike) -> tuple[Tensor, Tensor]:
    """Return both operands as tensors; a Python number takes the dtype of the other one."""
    if is_tensor(a) and not (isinstance(a, Dim) and is_tensor(b)):
        a = convert_to_tensor(a)
        return a, match(b, a)
    if is_tensor(b):
        b = convert_to_tensor(b)
        return match(a, b), b
    first = convert_to_tensor(a)
    return first, match(b, first)


def alike(*values: TensorLike) -> list[Tensor]:
    """Return operands as tensors; what is none takes the dtype of the first that is; see `pair`."""
    tensors = [v for v in values if is_tensor(v)]
    leader = next((v for v in tensors if not isinstance(v, Dim)), (*tensors, *values)[0])
    like = convert_to_tensor(leader)
    return [like if value is leader else match(value, like) for value in values]


argument_rules.set_conversion(convert_to_tensor)
