"""Broadcasting of operands to the values of ragged tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from samegrad import _core
from samegrad._base.dtypes import is_plain_number
from samegrad._base.shown import shown
from samegrad._context.python_runs import need_python
from samegrad._core import InvalidArgumentError
from samegrad._tensor.conversion import Tensor, match
from samegrad._tensor.ragged_nested import OfDivisions
from samegrad._tensor.ragged_places import in_rows
from samegrad._tensor.text import Text, is_text, text_of

_REMEDY = "a number, one for each row, [rows, 1], or rows of the same lengths"


def beside(operand: Any, values: Any, who: str) -> Any:
    """Convert an operand to a tensor or strings; Python's numbers take the values' dtype."""
    if isinstance(values, Text) or is_text(operand):
        return text_of(operand, who)
    return match(operand, values)


def fitted(
    operands: Sequence[Any], who: str, convert: Callable[[Any, Any, str], Any] = beside
) -> tuple[list[Any], Any]:
    """Match operands, some of which are ragged, for a function of single values.

    Args:
        operands: Ragged tensors, tensors, strings and numbers.
        who: The name of the op, for errors.
        convert: Converts an operand to a tensor or string tensor that matches the values.

    Returns:
        The flat values, the operands matched to each of them, and the ragged tensor whose rows the
        result has.

    Raises:
        InvalidArgumentError: Rows differ in their lengths, or an operand does not broadcast to
            them.
    """
    ragged = [value for value in operands if isinstance(value, OfDivisions)]
    rows: Any = next((value for value in ragged if value._uniform is None), ragged[0])

    def one(operand: Any) -> Any:
        if isinstance(operand, OfDivisions):
            if np.array_equal(operand._ends, rows._ends) and operand._rank == rows._rank:
                return operand.flat_values
            if operand._uniform is None:
                raise _mismatch(rows, operand, who)
            operand = operand.to_tensor()  # rows of one length are a matrix, too
        elif is_plain_number(operand) and convert is not beside:
            return operand
        return _of_dense(convert(operand, rows.flat_values, who), rows, who)

    return [one(operand) for operand in operands], rows


def check_same_rows(first: Any, other: Any, who: str) -> None:
    """Raise an InvalidArgumentError unless rows have the same lengths."""
    if not np.array_equal(first._ends, other._ends):
        raise _mismatch(first, other, who)


def _mismatch(a: Any, b: Any, who: str) -> InvalidArgumentError:
    lengths = [shown(np.diff(rows._ends).tolist()) for rows in (a, b)]
    return InvalidArgumentError(
        f"[{who}] rows must have the same lengths and axes: got shapes {a.shape} and {b.shape} "
        f"with the lengths {lengths[0]} and {lengths[1]}."
    )


def _of_dense(given: Any, rows: Any, who: str) -> Any:
    """Return the part of a tensor that goes with each value of rows."""
    values, sizes = rows.flat_values, tuple(given._shape)
    if given._rank < values._rank:  # for each value, or for its parts
        return given
    lengths = np.diff(rows._ends)
    padded = (1,) * (rows._rank - given._rank) + sizes
    if given._rank <= rows._rank and padded[:2] == (1, 1):
        return _reshaped(given, padded[2:])
    if given._rank == rows._rank and sizes[0] == rows.nrows():
        if sizes[1] == 1:
            column = _reshaped(given, (sizes[0], *sizes[2:]))
            return in_rows(column, np.repeat(np.arange(rows.nrows()), lengths))
        if isinstance(sizes[1], int) and (lengths == sizes[1]).all():
            return _reshaped(given, (sizes[0] * sizes[1], *sizes[2:]))
    _check_known(given, who)
    raise InvalidArgumentError(
        f"[{who}] beside {rows.nrows()} rows of the lengths {shown(lengths.tolist())} must be "
        f"{_REMEDY}: got shape {sizes}; see map_flat_values and to_tensor."
    )


def _reshaped(given: Any, sizes: Sequence[int]) -> Any:
    if isinstance(given, Text):
        return Text(given.encoded.reshape(sizes))
    return _core.ops.reshape(given, shape=list(sizes))


def _check_known(given: Any, who: str) -> None:
    """Raise a TypeError for a tensor of a traced function."""
    if isinstance(given, Tensor) and not all(isinstance(size, int) for size in given._shape[:2]):
        need_python(
            f"[{who}] the lengths of rows are not part of a traced function: got shape "
            f"{given.shape} with a ragged tensor; join them before the function, and "
            "pass to_tensor() and row_lengths().",
            TypeError,
        )


def dense_rows(given: Any, who: str) -> tuple[Any, list[int]]:
    """Return the values of a tensor's rows, one after the other, and their lengths.

    Raises:
        TypeError: They are those of a function that is being traced for any sizes.
    """
    _check_known(given, who)
    sizes = tuple(given._shape)
    return _reshaped(given, (sizes[0] * sizes[1], *sizes[2:])), [sizes[1]] * sizes[0]
