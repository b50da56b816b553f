"""Sizes of axes, known or those that follow from the examples, as functions want them.

A traced program works for any number of examples. A size that follows from it (`x.shape[0]`,
`tf.shape(x)[0]`, what is computed from them) is a `Dim`; a shape with one has its own size on each
replica.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Mapping, Set
from typing import Any

import numpy as np

from samegrad import _core
from samegrad._base.shown import shown
from samegrad._tensor.conversion import Tensor, is_tensor
from samegrad._tensor.dim import Dim, code_of, dims_of

_ops = _core.ops
# Numbers and dims.
Sizes = list[Any]


def sizes_of(shape: Any) -> Sizes:
    """Return the sizes of a shape: a number, a list of numbers, dims and tensors, or a vector.

    Raises:
        TypeError: A size is computed in the traced function from something else than sizes.
    """
    dims = dims_of(shape) if isinstance(shape, Tensor) else None
    entries = shape if dims is None else dims
    if (
        isinstance(entries, np.ndarray | np.generic)
        and entries.dtype.kind == "f"
        and (entries.ndim < 2)
    ):
        # As in TensorFlow, arrays of floats are sizes; those of Python are not.
        entries = whole_array(entries)
    if isinstance(entries, int | Dim) or (isinstance(entries, Tensor) and not entries._rank):
        entries = [entries]
    if isinstance(entries, list | tuple):
        return [size_of(entry) for entry in entries]
    if isinstance(entries, str | bytes | Mapping | Set) or not isinstance(entries, Iterable):
        entries = [whole(entries, "a shape is integers", "pass a tuple of ints")]
    return [size_of(entry) for entry in entries]


def whole_array(array: Any) -> list[int]:
    """Return the sizes that are in an array of floats.

    Raises:
        TypeError: One is not an integer.

    Example:
        >>> whole_array(np.array([2.0, 3.0]))
        [2, 3]
    """
    found = [float(size) for size in array.reshape(-1)]
    return [int(size) if size.is_integer() else whole(size) for size in found]


def size_of(entry: Any) -> Any:
    """Return one size: a number, a dim, or a tensor of one."""
    if type(entry) is int and -(2**63) <= entry < 2**63:
        return entry
    if isinstance(entry, Tensor):
        dims = dims_of(entry)
        entry = dims[0] if dims else entry
    return entry if isinstance(entry, Dim) else whole(entry)


def places_of(places: Any) -> Sizes:
    """Return the indices where a slice begins or ends: sizes, and tensors without values."""
    if isinstance(places, Tensor) and places._rank == 1 and has_no_value(places):
        return [places[i] for i in range(len(places))]
    if not isinstance(places, list | tuple):
        return sizes_of(places)
    return [place if has_no_value(place) else size_of(place) for place in places]


def has_no_value(value: Any) -> bool:
    """Tell whether a value is a traced tensor other than a size."""
    return isinstance(value, Tensor) and value._symbolic and dims_of(value) is None


_SIZE_RULE = "a size is an integer"
INDEX_RULE = "an index is an integer, a slice, ... or None"


def whole(value: Any, rule: str = _SIZE_RULE, remedy: str = "pass an int") -> int:
    """Convert a value to a 64-bit integer.

    Raises:
        TypeError: The value is not an integer.
        ValueError: The integer does not fit into 64 bits.

    Example:
        >>> whole(True + 2)
        3
    """
    try:
        number = operator.index(value)
    except TypeError as error:
        if is_tensor(value) and str(error).startswith("["):
            raise
        if value is None and rule is _SIZE_RULE:
            remedy = (
                "read a size that is open from shape(x), and that of a ragged axis from "
                "bounding_shape() or to_tensor()"
            )
        raise TypeError(
            f"[shape] {rule}: got {type(value).__name__} {shown(value)}; {remedy}."
        ) from error
    if not -(2**63) <= number < 2**63:
        raise ValueError(f"[shape] {rule} of 64 bits: got {shown(number)}; {remedy}.")
    return number


def index_number(value: Any, rule: str, remedy: str = "pass an int") -> int:
    """Convert an index, or a bound of a slice, to an integer; reject bools, as TensorFlow does.

    Raises:
        TypeError: The value is a bool, or another value that is not an integer.
        ValueError: The integer does not fit into 64 bits.

    Example:
        >>> index_number(np.int32(3), INDEX_RULE)
        3
    """
    if isinstance(value, bool) or (
        getattr(value, "ndim", None) == 0 and getattr(value, "dtype", None) == "bool"
    ):
        raise TypeError(
            f"[shape] {rule}: got bool {shown(value)}; pass int(...) of it for the index 0 or 1, "
            "or a mask of the first axes for elements."
        )
    return whole(value, rule, remedy)


def dim_in(sizes: Iterable[Any]) -> Dim | None:
    """Return the first size that follows from the examples, if there is one."""
    return next((size for size in sizes if isinstance(size, Dim)), None)


def codes_of(sizes: Iterable[int | Dim]) -> list[int]:
    """Return the sizes as attributes of the engine's rows."""
    return [code_of(size) for size in sizes]


def is_length(size: Any) -> bool:
    """Tell whether a size follows from lengths alone, and is a number when the program runs."""
    return isinstance(size, Dim) and not size.likes


def may_be_as_large(a: Tensor, b: Tensor) -> bool:
    """Tell whether two tensors may have one shape: the engine decides about unknown sizes.

    Example:
        >>> import samegrad as tf
        >>> may_be_as_large(tf.zeros([2]), tf.zeros([1]))
        False
    """
    return a._rank == b._rank and all(
        x == y or x is None or y is None for x, y in zip(a._shape, b._shape, strict=True)
    )


def sizes_but_counts(tensor: Tensor) -> Sizes:
    """Return the sizes of a tensor: numbers and lengths; None for those that follow from examples.

    Example:
        >>> import samegrad as tf
        >>> sizes_but_counts(tf.zeros([1, 2]))
        [1, 2]
    """
    sizes, place = list(tensor._shape), tensor._example_axis
    if all(size is not None or (place and i == place[0]) for i, size in enumerate(sizes)):
        return sizes  # of a trace that has ended, too
    return [None if isinstance(size, Dim) and size.likes else size for size in tensor.shape]


def likes_of(sizes: Iterable[int | Dim]) -> list[Tensor]:
    """Return the values whose examples the sizes follow from."""
    likes = {id(t): t for size in sizes if isinstance(size, Dim) for t in size.likes}
    return list(likes.values())


def full(sizes: Sizes, dtype: str, value: float = 0.0) -> Tensor:
    """Return one number in a shape with a `Dim` in it."""
    likes = likes_of(sizes)
    if not likes:
        zeros = _ops.zeros(shape=codes_of(sizes), dtype=dtype)
        return _ops.full_like(zeros, value=value) if value else zeros
    return _ops.full_sizes(*likes, shape=codes_of(sizes), value=value, dtype=dtype)


def iota(size: int | Dim) -> Tensor:
    """Return the numbers from 0 to below the size, int64."""
    likes = size.likes if isinstance(size, Dim) else ()
    return _ops.iota(*(likes or (_ops.zeros(shape=[]),)), size=code_of(size))


def broadcast(tensor: Tensor, sizes: Sizes) -> Tensor:
    """Return the tensor repeated along axes of size 1 until it has the sizes."""
    if dim_in(sizes) is None:
        return _ops.broadcast_to(tensor, shape=sizes)
    return _ops.broadcast_like(tensor, full(sizes, tensor._dtype))


def reshape(tensor: Tensor, shape: Any) -> Tensor:
    """Return the elements in another shape; examples stay together where the sizes say so."""
    return _ops.reshape(tensor, shape=codes_of(sizes_of(shape)))


def without_rest(x: Tensor, shape: Any) -> Any:
    """The shape; of no elements, -1 is what the sizes other than 0 leave, as in TensorFlow."""
    own = x._shape
    if 0 not in own or not isinstance(shape, list | tuple) or 0 not in shape or -1 not in shape:
        return shape
    if not all(isinstance(size, int) for size in (*own, *shape)):
        return shape
    whole = math.prod(size for size in own if size)
    rest = math.prod(int(size) for size in shape if int(size) > 0)
    if shape.count(-1) > 1 or whole % rest:
        return shape
    return [whole // rest if size == -1 else size for size in shape]
