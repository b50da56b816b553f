"""Slices of tensors, as NumPy writes them."""

from __future__ import annotations

from typing import Any

from samegrad import _core
from samegrad._tensor import Tensor, convert_to_tensor, with_dims

_LAST = 2**63 - 1
_FIRST = -(2**63)


def get_item(tensor: Tensor, key: Any) -> Tensor:
    """tensor[key] for integers, slices, `...` and None."""
    dims = getattr(tensor, "_dims", None)
    if dims is not None and tensor._rank == 1 and isinstance(key, int | slice):
        chosen = dims[key]
        if isinstance(chosen, int):
            return convert_to_tensor(chosen, tensor._dtype)
        return with_dims(_part(tensor, key), chosen if isinstance(key, slice) else (chosen,))
    return _part(tensor, key)


def _part(tensor: Tensor, key: Any) -> Tensor:
    parts = list(key) if isinstance(key, tuple) else [key]
    given = sum(part is not None and part is not Ellipsis for part in parts)
    if given > tensor.ndim:
        raise IndexError(f"[Tensor] too many indices: got {given} for {tensor.ndim} axes.")
    if Ellipsis in [p if p is Ellipsis else None for p in parts]:
        at = next(i for i, part in enumerate(parts) if part is Ellipsis)
        parts[at : at + 1] = [slice(None)] * (tensor.ndim - given)
    parts += [slice(None)] * (tensor.ndim - sum(part is not None for part in parts))
    begin, end, strides, dropped, added = [], [], [], [], []
    axis = position = 0
    for part in parts:
        if part is None:
            added.append(position)
            position += 1
            continue
        if isinstance(part, slice):
            step = 1 if part.step is None else int(part.step)
            default = (0, _LAST) if step > 0 else (_LAST, _FIRST)
            begin.append(default[0] if part.start is None else int(part.start))
            end.append(default[1] if part.stop is None else int(part.stop))
            strides.append(step)
            position += 1
        else:
            index = int(part)
            size = tensor._shape[axis]
            if size is not None and not -size <= index < size:
                raise IndexError(
                    f"[Tensor] index must lie in [{-size}, {size}) on axis {axis}: got {index}."
                )
            begin.append(index)
            end.append(index + 1 if index != -1 else _LAST)
            strides.append(1)
            dropped.append(axis)
        axis += 1
    result = _core.ops.slice(tensor, begin=begin, end=end, strides=strides)
    if dropped:
        result = _core.ops.squeeze(result, axes=dropped)
    return _core.ops.expand_dims(result, axes=added) if added else result
