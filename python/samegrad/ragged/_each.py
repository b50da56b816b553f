"""Functions of single values: they go over the values of all rows."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from samegrad._base.shown import shown
from samegrad._core import InvalidArgumentError
from samegrad._ops import complex_arrays as arrays
from samegrad._tensor.ragged import RaggedTensor
from samegrad._tensor.ragged_broadcast import check_same_rows, fitted
from samegrad._tensor.ragged_places import known
from samegrad._tensor.tensor import Tensor, convert_to_tensor
from samegrad._tensor.text import Text, is_text, text_of

Function = Callable[..., Any]


def name_of(function: Function) -> str:
    """Return the function's name for messages."""
    return function.__name__.rstrip("_")


def plain(value: Any) -> Any:
    """A tensor or text."""
    return text_of(value, "RaggedTensor") if is_text(value) else convert_to_tensor(value)


def as_rows(like: RaggedTensor, values: Any, who: str) -> RaggedTensor:
    """The same rows of what a function has made of their values.

    Raises:
        NotImplementedError: They are complex numbers.
    """
    if not isinstance(values, Tensor | Text):
        raise NotImplementedError(
            f"[{who}] the values of rows are real numbers or strings: got {shown(values.dtype)}; "
            "take flat_values."
        )
    made: RaggedTensor = like._like(values)
    return made


def only(rule: Function, place: int = 0) -> Function:
    """A rule for one ragged argument, the first one or that place; others are refused."""

    @functools.wraps(rule)
    def either(function: Function, *args: Any, **options: Any) -> Any:
        bound = inspect.signature(function).bind(*args, **options)
        name = list(bound.signature.parameters)[place]
        if not isinstance(bound.arguments.get(name), RaggedTensor):
            raise _misplaced(function, [name], bound.arguments.get(name))
        return rule(function, *args, **options)

    return either


def _misplaced(function: Function, names: list[str], value: Any) -> TypeError:
    return TypeError(
        f"[{name_of(function)}] {' and '.join(names)} may be ragged, other arguments may not: "
        f"got {shown(value)} beside a ragged tensor; pass to_tensor() or flat_values."
    )


def _flat(
    function: Function, count: int, args: Any, options: Any
) -> tuple[inspect.BoundArguments, Any]:
    """The call with the values of rows in the places of the first operands, and the rows."""
    bound = inspect.signature(function).bind(*args, **options)
    names = [name for name in list(bound.signature.parameters)[:count] if name in bound.arguments]
    given = [bound.arguments[name] for name in names]
    if not any(isinstance(value, RaggedTensor) for value in given):
        raise _misplaced(function, names, given[0])
    values, rows = fitted(given, name_of(function))
    bound.arguments.update(zip(names, values, strict=True))
    return bound, rows


def each(count: int) -> Function:
    """The rule of a function whose first operands are broadcast, and the others for all values."""

    def rule(function: Function, *args: Any, **options: Any) -> Any:
        bound, rows = _flat(function, count, args, options)
        made = as_rows(rows, function(*bound.args, **bound.kwargs), name_of(function))
        if made._rank > rows._rank or made.flat_values._shape[:1] != rows.flat_values._shape[:1]:
            raise InvalidArgumentError(
                f"[{name_of(function)}] the other arguments must be one for all values of a "
                f"ragged tensor: got {shown((args, options))}; pass scalars."
            )
        return made

    return rule


def checked(function: Function, *args: Any, **options: Any) -> Any:
    """The rule of an assertion of two operands."""
    bound, _ = _flat(function, 2, args, options)
    return function(*bound.args, **bound.kwargs)


def of_list(function: Function, inputs: Any, *args: Any, **options: Any) -> Any:
    """The rule of a function of a list of operands."""
    if isinstance(inputs, RaggedTensor):
        raise TypeError(
            f"[{name_of(function)}] a list of operands is needed: got one, of shape "
            f"{inputs.shape}; see reduce_sum and strings.reduce_join."
        )
    values, rows = fitted(list(inputs), name_of(function))
    return as_rows(rows, function(values, *args, **options), name_of(function))


def size(function: Function, input: Any, *args: Any, **options: Any) -> Any:
    """Return the number of all values."""
    return function(input.flat_values, *args, **options)


def rank(function: Function, input: Any, name: str | None = None) -> Any:
    """Return the rank: that of the values, plus one."""
    return function(input.flat_values) + 1


def _of_condition(operand: Any, values: Any, who: str) -> Any:
    if isinstance(values, Text) and not is_text(operand):
        return convert_to_tensor(operand)
    return plain(operand)


def where(
    function: Function, condition: Any, x: Any = None, y: Any = None, name: str | None = None
) -> Any:
    """Places of what is true, or values of x and y."""
    if (x is None) != (y is None):
        raise ValueError(f"[where] x and y must both be given, or neither: got {shown((x, y))}.")
    if x is None:
        return _places(condition)
    values, rows = fitted([condition, x, y], "where", _of_condition)
    return as_rows(rows, function(*values), "where")


def _places(condition: RaggedTensor) -> Tensor:
    found = np.argwhere(known(condition.flat_values, "places"))
    rows = np.repeat(np.arange(condition.nrows()), np.diff(condition._ends))[found[:, 0]]
    within = found[:, 0] - condition._ends[rows]
    return convert_to_tensor(np.column_stack([rows, within, found[:, 1:]]).astype(np.int64))


def one_hot(
    function: Function, indices: Any, depth: Any, on_value: Any = None, off_value: Any = None,
    axis: Any = None, dtype: Any = None, name: str | None = None,
) -> Any:  # fmt: skip
    """Insert the new axis within the values."""
    inner = -1 if axis is None else int(axis)
    if inner in (0, 1):
        raise ValueError(
            f"[one_hot] the new axis must be after the ragged one: got axis={inner} for "
            f"shape {indices.shape}; pass 2 or more, or -1."
        )
    inner -= inner > 0
    made = function(indices.flat_values, depth, on_value, off_value, inner, dtype)
    return as_rows(indices, made, "one_hot")


def dropout(
    function: Function, x: Any, rate: Any, noise_shape: Any = None, seed: Any = None,
    name: str | None = None,
) -> Any:  # fmt: skip
    """A mask of its own for each value."""
    if noise_shape is not None:
        raise ValueError(
            f"[dropout] noise_shape is for tensors of one length: got {shown(noise_shape)} for "
            f"rows of shape {x.shape}; leave it out."
        )
    return as_rows(x, function(x.flat_values, rate, None, seed), "dropout")


def embedding_lookup(
    function: Function, params: Any, ids: Any, max_norm: Any = None, name: str | None = None
) -> Any:
    """The rows of a table that values name."""
    return as_rows(ids, function(params, ids.flat_values, max_norm), "embedding_lookup")


def boolean_mask(data: Any, mask: Any) -> Any:
    """`tf.ragged.boolean_mask`."""
    who = "tf.ragged.boolean_mask"
    chosen: Any = mask if isinstance(mask, RaggedTensor) else plain(mask)
    if chosen.dtype != "bool" or chosen._rank == 0:
        raise ValueError(
            f"[{who}] mask must be bool with one axis or more: got {chosen.dtype} of shape "
            f"{tuple(chosen.shape)}; write a comparison."
        )
    given = data if isinstance(data, RaggedTensor) else plain(data)
    if chosen._rank > 2:
        raise NotImplementedError(
            f"[{who}] one axis has different sizes, so that the mask has at most two: got shape "
            f"{tuple(chosen.shape)}; mask flat_values or a tensor."
        )
    if chosen._rank == 1:
        return _of_whole_rows(given, chosen, who)
    return _of_values(given, chosen, who)


def _of_whole_rows(given: Any, chosen: Tensor, who: str) -> Any:
    keep = known(chosen, "a mask")
    if len(keep) != given.shape[0]:
        raise ValueError(f"[{who}] mask must say of {given.shape[0]} rows: got {len(keep)}.")
    if isinstance(given, RaggedTensor):
        return given._chosen(np.flatnonzero(keep), slice(None))
    return arrays.boolean_mask(given, chosen)


def _of_values(given: Any, chosen: Any, who: str) -> RaggedTensor:
    rows, mask = (
        value if isinstance(value, RaggedTensor) else RaggedTensor.from_tensor(value)
        for value in (given, chosen)
    )
    check_same_rows(rows, mask, who)
    keep = known(mask.flat_values, "a mask")
    kept = np.concatenate([[0], np.cumsum(keep)])[rows._ends]
    return RaggedTensor(arrays.boolean_mask(rows.flat_values, keep), np.diff(kept).tolist())
