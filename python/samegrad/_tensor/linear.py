"""Integers of a trace as sums: where a slice begins may be unknown, and its size known.

`x[i * 4 : (i + 1) * 4]` has 4 elements, whatever `i` is: the difference of its bounds as linear
functions of `i` is a constant. Operators note these functions.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from samegrad._base.dtypes import as_dtype
from samegrad._tensor.conversion import Tensor
from samegrad._tensor.dim import dims_of

# A tensor, and the index of an element of it or None, by their identity.
Key = tuple[int, int | None]


class Linear(NamedTuple):
    """Linear function of traced integers: a scalar, or a vector with a constant for each element.

    Attributes:
        terms: The tensors with their factors.
        constants: What is added: an integer, or one for each element.
    """

    terms: dict[Key, tuple[Tensor, int]]
    constants: int | tuple[int, ...]


def linear_of(value: Any) -> Linear | None:
    """Return a traced integer as a function of itself or of others; numbers are constants."""
    if isinstance(value, int):
        return Linear({}, value)
    if isinstance(value, np.ndarray) and value.ndim == 1 and value.dtype.kind in "iu":
        value = value.tolist()
    if isinstance(value, list | tuple) and all(isinstance(number, int) for number in value):
        return Linear({}, tuple(value))
    if not isinstance(value, Tensor) or value._rank > 1 or not as_dtype(value._dtype).is_integer:
        return None
    if not value._symbolic:
        return Linear({}, tuple(dims_of(value) or ()) if value._rank else int(value._item()))
    known: Linear | None = getattr(value, "_linear", None)
    if known is not None or (value._rank and not isinstance(value._shape[0], int)):
        return known
    return Linear({(id(value), None): (value, 1)}, (0,) * value._shape[0] if value._rank else 0)


def note(result: Tensor, name: str, a: Any, b: Any) -> None:
    """Note that a traced integer is the sum, the difference or the product of two values."""
    left, right = linear_of(a), linear_of(b)
    if left is None or right is None:
        return
    made = _product(left, right) if name == "mul" else _sum(left, right, 1 if name == "add" else -1)
    if made is not None:
        result._linear = made  # type: ignore[attr-defined]


def note_element(result: Tensor, vector: Tensor, index: int) -> None:
    """Note that a traced integer is an element of a traced vector."""
    whole = linear_of(vector)
    if whole is None or not isinstance(whole.constants, tuple):
        return
    at = range(len(whole.constants))[index]
    terms = {
        (key, at if tensor._rank and place is None else place): (tensor, factor)
        for (key, place), (tensor, factor) in whole.terms.items()
    }
    result._linear = Linear(terms, whole.constants[at])  # type: ignore[attr-defined]


def difference(end: Any, start: Any) -> int | None:
    """Return `end - start` if it is a constant.

    Example:
        >>> difference(7, 3)
        4
    """
    a, b = linear_of(end), linear_of(start)
    found = None if a is None or b is None else _sum(a, b, -1)
    constant = found is not None and not found.terms and isinstance(found.constants, int)
    return found.constants if constant else None  # type: ignore[union-attr,return-value]


def _sum(a: Linear, b: Linear, sign: int) -> Linear | None:
    constants = _each(operator.add, a.constants, _each(operator.mul, b.constants, sign))
    if constants is None:
        return None
    terms = dict(a.terms)
    for key, (tensor, factor) in b.terms.items():
        total = terms.get(key, (tensor, 0))[1] + sign * factor
        terms[key] = (tensor, total)
    return Linear({key: term for key, term in terms.items() if term[1]}, constants)


def _product(a: Linear, b: Linear) -> Linear | None:
    if not b.terms and isinstance(b.constants, int):
        a, b = b, a
    if a.terms or not isinstance(a.constants, int):
        return None
    by = a.constants
    constants = _each(operator.mul, b.constants, by)
    terms = {key: (tensor, factor * by) for key, (tensor, factor) in b.terms.items() if by}
    return None if constants is None else Linear(terms, constants)


def _each(operation: Callable[[int, int], int], a: Any, b: Any) -> Any:
    """Apply an operation to integers and vectors of as many; None of others."""
    if a is None or b is None:
        return None
    if isinstance(a, int) and isinstance(b, int):
        return operation(a, b)
    count = len(b) if isinstance(a, int) else len(a)
    first, second = ((x,) * count if isinstance(x, int) else x for x in (a, b))
    if len(first) != len(second):
        return None
    return tuple(map(operation, first, second))


__all__ = ["Linear", "difference", "linear_of", "note", "note_element"]
