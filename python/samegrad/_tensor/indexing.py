"""Slices of tensors, as NumPy writes them."""

from __future__ import annotations

from typing import Any

import numpy as np

from samegrad import _core
from samegrad._context import state as _context
from samegrad._tensor.conversion import Tensor, convert_to_tensor
from samegrad._tensor.dim import Dim, code_of, dim_of, dims_of, with_dims
from samegrad._tensor.linear import difference, note_element
from samegrad._tensor.sizes import INDEX_RULE, index_number, iota

_BOUND = "the bounds and the step of a slice are integers"
_LAST = 2**63 - 1
_FIRST = -(2**63)


def get_item(tensor: Tensor, key: Any) -> Tensor:
    """Evaluate tensor[key] for integers, slices, `...`, None and masks."""
    dims = getattr(tensor, "_dims", None)
    if dims is not None and tensor._rank == 1 and (type(key) is int or isinstance(key, slice)):
        chosen = dims[key]
        if isinstance(chosen, int):
            return convert_to_tensor(chosen, tensor._dtype)
        return with_dims(_part(tensor, key), chosen if isinstance(key, slice) else (chosen,))
    if type(key) is int and tensor._rank:
        return _row(tensor, key)
    return _masked(tensor, key) if _is_mask(key) else _part(tensor, key)


def _is_mask(key: Any) -> bool:
    if isinstance(key, Tensor):
        return key._dtype == "bool" and key._rank > 0
    return isinstance(key, np.ndarray) and key.dtype == bool and key.ndim > 0


def _masked(tensor: Tensor, mask: Any) -> Tensor:
    """Return the elements where the mask is true, which must have values."""
    chosen = np.asarray(mask)
    shape = tuple(int(size) for size in tensor.shape[: chosen.ndim])
    if chosen.shape != shape:
        raise _core.InvalidArgumentError(
            f"[Tensor] a mask has the shape of the first axes: got {chosen.shape} for shape "
            f"{tuple(tensor.shape)}; see samegrad.boolean_mask for other axes."
        )
    rest = [int(size) for size in tensor.shape[chosen.ndim :]]
    rows = _core.ops.reshape(tensor, shape=[chosen.size, *rest])
    return _core.ops.gather(rows, Tensor(np.flatnonzero(chosen)), axis=0)


def _row(tensor: Tensor, index: int) -> Tensor:
    """Evaluate tensor[index], the most frequent case."""
    _check_index(tensor, index, 0)
    rest = tensor._rank - 1
    end = index + 1 if index != -1 else _LAST
    part = _core.ops.slice(
        tensor, begin=[index, *[0] * rest], end=[end, *[_LAST] * rest], strides=[1] * (rest + 1)
    )
    row = _dropped(tensor, part, {0: index})
    if not rest and row._symbolic:
        note_element(row, tensor, index)
    return row


def _dropped(tensor: Tensor, part: Tensor, indices: dict[int, Any]) -> Tensor:
    """Return the part without the axes that have an index of the tensor each."""
    try:
        return _core.ops.squeeze(part, axes=list(indices))
    except ValueError:
        for axis, index in indices.items():
            size = int(dim_of(tensor, axis))  # a number of examples, or a length
            if not -size <= int(index) < size:
                raise _outside(int(index), axis, size) from None
        raise


def _outside(index: int, axis: int, size: int) -> IndexError:
    return IndexError(f"[Tensor] index must lie in [{-size}, {size}) on axis {axis}: got {index}.")


def _check_index(tensor: Tensor, index: int, axis: int) -> None:
    size = tensor._shape[axis]
    if size is not None and not -size <= index < size:
        raise _outside(index, axis, size)


def _relative(tensor: Tensor, part: Any, parts: list[Any], place: int) -> Any:
    """Return the part with bounds counted from the end of their axis where the sizes allow it."""
    if part is None:
        return part
    axis = place - sum(p is None for p in parts[:place])
    if isinstance(part, slice):
        return slice(
            _from_end(tensor, part.start, axis, None),
            _from_end(tensor, part.stop, axis, None),
            part.step,
        )
    return _from_end(tensor, part, axis, part)


def _from_end(tensor: Tensor, bound: Any, axis: int, at_end: Any) -> Any:
    """Count a bound from the end: n - 1 of size n is -1, and n itself is the end."""
    if isinstance(bound, Tensor) and bound._symbolic:
        dims = dims_of(bound)
        bound = dims[0] if dims and not bound._rank else bound
    if not isinstance(bound, Dim):
        return bound
    distance = bound - dim_of(tensor, axis)
    if isinstance(distance, Dim) or distance > 0:
        return bound
    return at_end if distance == 0 else distance


def _counted(part: Any) -> bool:
    if isinstance(part, slice):
        dims = [bound for bound in (part.start, part.stop) if isinstance(bound, Dim)]
        return any(bound.likes for bound in dims) or (bool(dims) and part.step not in (None, 1))
    return (isinstance(part, Dim) and bool(part.likes)) or (
        isinstance(part, Tensor) and part._symbolic and not part._looks and not part._rank
    )


def _gathered(tensor: Tensor, parts: list[Any], place: int) -> Tensor:
    """Return a part whose bounds follow from the number of examples, by its indices."""
    part, axis = parts[place], place - sum(p is None for p in parts[:place])
    size = dim_of(tensor, axis)
    rest = list(parts)
    if isinstance(part, slice):
        if part.step not in (None, 1):
            raise TypeError(
                "[Tensor] a slice whose bounds follow from the number of examples has a step of 1: "
                f"got {part.step}; take the steps in a second slice."
            )
        first, last = (_positive(b, size, d) for b, d in ((part.start, 0), (part.stop, size)))
        indices = iota(last - first)
        rest[place] = slice(None)
    else:
        first, indices = part, None
    start = _core.ops.cast(convert_to_tensor(first), dtype="int64")
    at = start if indices is None else indices + start
    taken = _core.ops.gather(tensor, at, axis=axis)
    if indices is None:
        del rest[place]
    return _part(taken, tuple(rest))


def _size_at_place(part: Any) -> int | None:
    """Return the size of a slice whose bounds have no values, where their distance is known."""
    if not isinstance(part, slice) or not any(map(_is_traced, (part.start, part.stop))):
        return None
    step = 1 if part.step is None else part.step
    if part.start is None or part.stop is None or type(step) is not int or step < 1:
        return None
    size = difference(part.stop, part.start)
    return None if size is None else max(0, -(-size // step))


def _is_traced(bound: Any) -> bool:
    return isinstance(bound, Tensor) and bound._symbolic and not bound._looks


def _at_place(tensor: Tensor, parts: list[Any], place: int, size: int) -> Tensor:
    """Return a part of known size that begins where a value says.

    The step fails if the part leaves the axis, which would make it smaller: Python runs it then.
    """
    arguments = _context.current().arguments
    if arguments is not None:
        arguments.takes_parts = True
    part, axis = parts[place], place - sum(p is None for p in parts[:place])
    start = _core.ops.cast(convert_to_tensor(part.start), dtype="int64")
    at = iota(size) * (part.step or 1) + start
    rest = list(parts)
    rest[place] = slice(None)
    return _part(_core.ops.gather(tensor, at, axis=axis), tuple(rest))


def _positive(bound: Any, size: Any, default: Any) -> Any:
    if bound is None:
        return default
    return size + bound if isinstance(bound, int) and bound < 0 else bound


def _bound(value: Any) -> int:
    """Return a bound of a slice; beyond 64 bits it is as far away as the end, as in Python."""
    if isinstance(value, Dim):  # a length
        return value.code
    if type(value) is int:
        return min(max(value, _FIRST), _LAST)
    return index_number(value, _BOUND)


def _part(tensor: Tensor, key: Any) -> Tensor:
    parts = list(key) if isinstance(key, tuple) else [key]
    given = sum(part is not None and part is not Ellipsis for part in parts)
    if given > tensor.ndim:
        raise IndexError(f"[Tensor] too many indices: got {given} for {tensor.ndim} axes.")
    if Ellipsis in [p if p is Ellipsis else None for p in parts]:
        at = next(i for i, part in enumerate(parts) if part is Ellipsis)
        parts[at : at + 1] = [slice(None)] * (tensor.ndim - given)
    parts += [slice(None)] * (tensor.ndim - sum(part is not None for part in parts))
    begin, end, strides, added = [], [], [], []
    dropped: dict[int, Any] = {}
    parts = [_relative(tensor, part, parts, i) for i, part in enumerate(parts)]
    for i, part in enumerate(parts):
        if _counted(part):
            return _gathered(tensor, parts, i)
        if (size := _size_at_place(part)) is not None:
            return _at_place(tensor, parts, i, size)
    axis = position = 0
    for part in parts:
        if part is None:
            added.append(position)
            position += 1
            continue
        if isinstance(part, slice):
            step = 1 if part.step is None else index_number(part.step, _BOUND)
            if step == 0:
                raise ValueError("[Tensor] the step of a slice is not 0: got 0; leave it out.")
            default = (0, _LAST) if step > 0 else (_LAST, _FIRST)
            begin.append(default[0] if part.start is None else _bound(part.start))
            end.append(default[1] if part.stop is None else _bound(part.stop))
            strides.append(step)
            position += 1
        else:
            if isinstance(part, Dim):
                begin.append(part.code)
                end.append(code_of(part + 1))
                dropped[axis] = part
            else:
                index = index_number(part, INDEX_RULE, "see samegrad.gather for several")
                _check_index(tensor, index, axis)
                begin.append(index)
                end.append(index + 1 if index != -1 else _LAST)
                dropped[axis] = index
            strides.append(1)
        axis += 1
    result = _core.ops.slice(tensor, begin=begin, end=end, strides=strides)
    if dropped:
        result = _dropped(tensor, result, dropped)
    return _core.ops.expand_dims(result, axes=added) if added else result
