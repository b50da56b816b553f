"""Rows as sets of numbers or texts, under the names of tf.sets."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from samegrad._base.shown import shown
from samegrad._surface.boundary import guard
from samegrad._surface.missing_names import getattr_of
from samegrad._tensor.sparse import SparseTensor
from samegrad._tensor.tensor import Tensor, convert_to_tensor
from samegrad._tensor.text import Text, array_of, is_text, leaf_of
from samegrad.errors import InvalidArgumentError, WrongTypeError

_KINDS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "string")
_Sets = dict[tuple[int, ...], set[Any]]


def size(a: SparseTensor, validate_indices: bool = True) -> Tensor:
    """Count the distinct values of each set.

    Args:
        a: `SparseTensor` of integers or strings, shape [..., values]: the last axis is a set.
        validate_indices: If True, indices must be in row-major order.

    Returns:
        int32 tensor of shape a.shape[:-1].

    Raises:
        TypeError: a is not a SparseTensor of integers or strings.
        InvalidArgumentError: a has one axis only, or indices are out of order.

    Example:
        >>> import samegrad as tf
        >>> tf.sets.size(tf.sparse.from_dense([[3, 3, 4], [0, 0, 0]])).numpy()
        array([2, 0], dtype=int32)
    """
    who = "tf.sets.size"
    if not isinstance(a, SparseTensor):
        raise TypeError(
            f"[{who}] a SparseTensor is needed: got {shown(a)}; see tf.sparse.from_dense."
        )
    found, shape = _rows(who, "a", a, validate_indices)
    counts = np.zeros(shape, np.int32)
    for place, values in found.items():
        counts[place] = len(values)
    return convert_to_tensor(counts)


def intersection(a: Any, b: Any, validate_indices: bool = True) -> SparseTensor:
    """Compute the intersection of sets along the last axis.

    Args:
        a: Tensor or `SparseTensor` of integers or strings, shape [..., values].
        b: Tensor or `SparseTensor` of a's dtype, and of a's shape except for the last axis.
        validate_indices: If True, indices must be in row-major order.

    Returns:
        `SparseTensor` of the sorted values of each set, shape [..., largest size].

    Raises:
        TypeError: The dtypes differ, or are neither integers nor strings.
        InvalidArgumentError: The shapes do not fit, or indices are out of order.

    Example:
        >>> import samegrad as tf
        >>> tf.sets.intersection([[1, 2, 2, 3]], [[3, 2, 9]]).values.numpy()
        array([2, 3], dtype=int32)
    """
    return _joined("tf.sets.intersection", a, b, set.intersection, validate_indices)


def difference(a: Any, b: Any, aminusb: bool = True, validate_indices: bool = True) -> SparseTensor:
    """Compute the difference of sets along the last axis.

    Args:
        a: Tensor or `SparseTensor` of integers or strings, shape [..., values].
        b: Tensor or `SparseTensor` of a's dtype, and of a's shape except for the last axis.
        aminusb: If True, return a's values without b's; otherwise b's without a's.
        validate_indices: If True, indices must be in row-major order.

    Returns:
        `SparseTensor` of the sorted values of each set, shape [..., largest size].

    Raises:
        TypeError: The dtypes differ, or are neither integers nor strings.
        InvalidArgumentError: The shapes do not fit, or indices are out of order.

    Example:
        >>> import samegrad as tf
        >>> tf.sets.difference([[1, 2, 2, 3]], [[3, 2, 9]], aminusb=False).values.numpy()
        array([9], dtype=int32)
    """
    first, second = (a, b) if aminusb else (b, a)
    return _joined("tf.sets.difference", first, second, set.difference, validate_indices)


def union(a: Any, b: Any, validate_indices: bool = True) -> SparseTensor:
    """Compute the union of sets along the last axis.

    Args:
        a: Tensor or `SparseTensor` of integers or strings, shape [..., values].
        b: Tensor or `SparseTensor` of a's dtype, and of a's shape except for the last axis.
        validate_indices: If True, indices must be in row-major order.

    Returns:
        `SparseTensor` of the sorted values of each set, shape [..., largest size].

    Raises:
        TypeError: The dtypes differ, or are neither integers nor strings.
        InvalidArgumentError: The shapes do not fit, or indices are out of order.

    Example:
        >>> import samegrad as tf
        >>> tf.sets.union([["a", "b"]], [["c", "b"]]).values.numpy().tolist()
        [b'a', b'b', b'c']
    """
    return _joined("tf.sets.union", a, b, set.union, validate_indices)


def _joined(
    who: str, a: Any, b: Any, join: Callable[[set[Any], set[Any]], set[Any]], in_order: bool
) -> SparseTensor:
    a, b = _converted(a), _converted(b)
    (first, shape), (second, other) = _rows(who, "a", a, in_order), _rows(who, "b", b, in_order)
    if _kind(a) != _kind(b):
        raise WrongTypeError(
            f"[{who}] both must have one dtype: got {_kind(a)} and {_kind(b)}; use samegrad.cast."
        )
    if shape != other:
        raise InvalidArgumentError(
            f"[{who}] a and b must have the same shape but for the last axis: got {(*shape,)} and "
            f"{(*other,)} before it."
        )
    places: list[tuple[int, ...]] = []
    values: list[Any] = []
    most = 0
    for row in np.ndindex(*shape):
        made = sorted(join(first.get(row, set()), second.get(row, set())))
        places += [(*row, i) for i in range(len(made))]
        values += made
        most = max(most, len(made))
    array = np.empty(len(values), object if _kind(a) == "string" else _kind(a))
    array[:] = values
    indices = np.array(places, np.int64).reshape(len(places), len(shape) + 1)
    return SparseTensor(indices, leaf_of(array), [*shape, most])


def _converted(value: Any) -> Any:
    if isinstance(value, SparseTensor | Tensor | Text):
        return value
    return Text(value) if is_text(value) else convert_to_tensor(value)


def _kind(value: Any) -> str:
    leaf = value.values if isinstance(value, SparseTensor) else value
    return "string" if isinstance(leaf, Text) else str(leaf._dtype)


def _rows(who: str, what: str, value: Any, in_order: bool) -> tuple[_Sets, tuple[int, ...]]:
    """The set of each row that has values, and the sizes of the axes before the last."""
    if _kind(value) not in _KINDS:
        raise WrongTypeError(
            f"[{who}] {what} must hold integers of at most 64 bits with a sign, or strings: got "
            f"{_kind(value)}; use samegrad.cast."
        )
    shape = tuple(value._shape)
    if len(shape) < 2:
        raise InvalidArgumentError(
            f"[{who}] {what} must have two axes or more, the last one of the values of a set: got "
            f"shape {shape}; use expand_dims."
        )
    places, values = _places(who, value, in_order)
    found: _Sets = {}
    for place, one in zip(places[:, :-1].tolist(), values.tolist(), strict=True):
        found.setdefault(tuple(place), set()).add(one)
    return found, shape[:-1]


def _places(who: str, value: Any, in_order: bool) -> tuple[NDArray[Any], NDArray[Any]]:
    if isinstance(value, SparseTensor):
        if in_order:
            return value.checked(who)
        return value.indices.numpy(), array_of(value.values)
    array = array_of(value)
    return np.indices(array.shape).reshape(array.ndim, -1).T, array.ravel()


__all__ = ["difference", "intersection", "size", "union"]

if not TYPE_CHECKING:
    __getattr__ = getattr_of(__name__)
guard(__name__)
