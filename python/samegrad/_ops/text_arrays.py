"""Functions that move, select and compare elements, for string tensors as well.

Strings are arrays of bytes that NumPy moves. Numbers go to the functions of the same names in
`arrays`, `gather` and `sequences`.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from samegrad import _core
from samegrad._base.dtypes import as_dtype, element_type, string
from samegrad._base.shown import shown
from samegrad._ops import arrays, creation, more_arrays, padding, scatter, sequences
from samegrad._ops import gather as gathers
from samegrad._tensor.composite import Composite
from samegrad._tensor.sizes import sizes_of, whole
from samegrad._tensor.tensor import Tensor, convert_to_tensor
from samegrad._tensor.text import is_text, of_bytes, text_of

_Function = TypeVar("_Function", bound=Callable[..., Any])


def _also_text(
    of_text: Callable[..., Any], several: bool = False
) -> Callable[[_Function], _Function]:
    """Return the function for numbers, and for text this one.

    Args:
        of_text: Takes the text, or the list of them, and the other arguments.
        several: Whether the first argument is a list of arrays.
    """

    def decorate(function: _Function) -> _Function:
        who = function.__name__.rstrip("_")
        called = next(iter(inspect.signature(function).parameters))

        @functools.wraps(function)
        def either(*args: Any, **options: Any) -> Any:
            first: Any = args[0] if args else options.get(called)
            if several and isinstance(first, Composite):
                raise TypeError(f"[{who}] a list of tensors is needed: got {shown(first)}.")
            if type(first) is Tensor or not is_text(first):
                return function(*args, **options)
            options.pop("name", None)
            options.pop(called, None)
            args = args[1:]
            try:
                if several:
                    parts = [text_of(part, who).encoded for part in first]
                    return of_bytes(np.asarray(of_text(parts, *args, **options), object))
                found = of_text(text_of(first, who).encoded, *args, **options)
            except (ValueError, IndexError) as error:
                raise _core.InvalidArgumentError(
                    f"[{who}] the arguments must fit the strings ({error}): got {shown(first)}."
                ) from None
            return _wrapped(found)

        return either  # type: ignore[return-value]

    return decorate


def _wrapped(found: Any) -> Any:
    if isinstance(found, list):
        return [_wrapped(part) for part in found]
    if isinstance(found, Tensor):
        return found
    return of_bytes(np.asarray(found, object))


def _axes(axis: Any) -> tuple[int, ...]:
    if isinstance(axis, Sequence | np.ndarray) or (isinstance(axis, Tensor) and axis._rank):
        return tuple(whole(a) for a in axis)
    return (whole(axis),)


def _whole_array(value: Any) -> np.ndarray[Any, Any]:
    return np.asarray(convert_to_tensor(value).numpy())


def _reshape(x: Any, shape: Any) -> Any:
    return x.reshape([int(n) for n in sizes_of(shape)])


def _expand_dims(x: Any, axis: Any) -> Any:
    return np.expand_dims(x, whole(axis))


def _squeeze(x: Any, axis: Any = None) -> Any:
    return np.squeeze(x, None if axis is None else _axes(axis))


def _transpose(x: Any, perm: Any = None, conjugate: bool = False) -> Any:
    return np.transpose(x, None if perm is None else _axes(perm))


def _split(x: Any, num_or_size_splits: Any, axis: Any = 0, num: Any = None) -> Any:
    if isinstance(num_or_size_splits, int):
        return list(np.split(x, num_or_size_splits, whole(axis)))
    sizes = [int(n) for n in sizes_of(num_or_size_splits)]
    if -1 in sizes:
        sizes[sizes.index(-1)] = x.shape[whole(axis)] - sum(sizes) - 1
    if sum(sizes) != x.shape[whole(axis)] or min(sizes, default=0) < 0:
        raise ValueError(f"the parts must add up to the axis, got {sizes}")
    return list(np.split(x, np.cumsum(sizes)[:-1], whole(axis)))


def _unstack(x: Any, num: Any = None, axis: Any = 0) -> Any:
    return [np.take(x, i, whole(axis)) for i in range(x.shape[whole(axis)])]


def _repeat(x: Any, repeats: Any, axis: Any = None) -> Any:
    return np.repeat(x, _whole_array(repeats), None if axis is None else whole(axis))


def _gather(x: Any, indices: Any, validate_indices: Any = None, axis: Any = None,
            batch_dims: Any = 0) -> Any:  # fmt: skip
    places, along = _whole_array(indices), 0 if axis is None else whole(axis)
    if whole(batch_dims):
        raise ValueError("batch_dims of strings must be 0")
    if places.size and (places.min() < 0 or places.max() >= x.shape[along]):
        raise ValueError(f"indices must lie in [0, {x.shape[along]})")
    return np.take(x, places, along)


def _gather_nd(x: Any, indices: Any, batch_dims: Any = 0) -> Any:
    places = _whole_array(indices)
    if whole(batch_dims):
        raise ValueError("batch_dims of strings must be 0")
    if places.size and (places < 0).any():
        raise ValueError("indices must not be negative")
    return x[tuple(np.moveaxis(places, -1, 0))]


def _boolean_mask(x: Any, mask: Any, axis: Any = None) -> Any:
    chosen, first = _whole_array(mask), 0 if axis is None else whole(axis)
    if chosen.dtype != bool or x.shape[first : first + chosen.ndim] != chosen.shape:
        raise ValueError(f"the mask must be bool of the shape of its axes, got {chosen.shape}")
    return x[(slice(None),) * first + (chosen,)]


def _pad(x: Any, paddings: Any, mode: str = "CONSTANT", constant_values: Any = b"") -> Any:
    kind = mode.lower()
    if kind != "constant":
        return np.pad(x, _whole_array(paddings), mode=kind)  # type: ignore[call-overload]
    value = text_of(constant_values or b"", "pad").numpy()
    return np.pad(x, _whole_array(paddings), constant_values=value)


def _unique(x: Any, out_idx: Any = "int32") -> Any:
    seen: dict[bytes, int] = {}
    places = [seen.setdefault(word, len(seen)) for word in x.tolist()]
    kind = as_dtype(out_idx).name
    words = of_bytes(np.array([*seen, None], object)[:-1])
    return sequences.Unique(words, convert_to_tensor(np.array(places, kind)))  # type: ignore[arg-type]


def _sizes(x: Any, out_type: Any = "int32") -> Tensor:
    return convert_to_tensor(np.array(x.shape, as_dtype(out_type).name))


def _count(x: Any, out_type: Any = "int32") -> Tensor:
    return convert_to_tensor(np.array(x.size, as_dtype(out_type).name))


def _dynamic_partition(x: Any, partitions: Any, num_partitions: Any) -> Any:
    numbers, count = _whole_array(partitions), whole(num_partitions)
    if x.shape[: numbers.ndim] != numbers.shape:
        raise ValueError(f"partitions must be numbers of the first axes, got {numbers.shape}")
    if numbers.size and (numbers.min() < 0 or numbers.max() >= count):
        raise ValueError(f"partitions must lie in [0, {count})")
    return [x[numbers == number] for number in range(count)]


def _updated(x: Any, indices: Any, updates: Any) -> Any:
    places, made = _whole_array(indices), x.copy()
    if places.size and (places < 0).any():
        raise ValueError("indices must not be negative")
    made[tuple(np.moveaxis(places, -1, 0))] = text_of(updates, "tensor_scatter_nd_update").encoded
    return made


reshape = _also_text(_reshape)(arrays.reshape)
expand_dims = _also_text(_expand_dims)(arrays.expand_dims)
squeeze = _also_text(_squeeze)(arrays.squeeze)
transpose = _also_text(_transpose)(arrays.transpose)
identity = _also_text(lambda x: x)(arrays.identity)
split = _also_text(_split)(arrays.split)
unstack = _also_text(_unstack)(arrays.unstack)
tile = _also_text(lambda x, multiples: np.tile(x, _whole_array(multiples)))(arrays.tile)
repeat = _also_text(_repeat)(arrays.repeat)
reverse = _also_text(lambda x, axis: np.flip(x, _axes(axis)))(arrays.reverse)
pad = _also_text(_pad)(padding.pad)
shape = _also_text(_sizes)(arrays.shape)
size = _also_text(_count)(arrays.size)
rank = _also_text(lambda x: convert_to_tensor(np.int32(x.ndim)))(arrays.rank)
broadcast_to = _also_text(
    lambda x, shape: np.broadcast_to(x, [int(n) for n in sizes_of(shape)])
)(arrays.broadcast_to)  # fmt: skip
gather = _also_text(_gather)(gathers.gather)
gather_nd = _also_text(_gather_nd)(gathers.gather_nd)
boolean_mask = _also_text(_boolean_mask)(gathers.boolean_mask)
concat = _also_text(lambda x, axis: np.concatenate(x, whole(axis)), True)(arrays.concat)
stack = _also_text(lambda x, axis=0: np.stack(x, whole(axis)), True)(arrays.stack)


dynamic_partition = _also_text(_dynamic_partition)(more_arrays.dynamic_partition)
tensor_scatter_nd_update = _also_text(_updated)(scatter.tensor_scatter_nd_update)


def _in_place_of(function: _Function) -> Callable[[Callable[..., Any]], _Function]:
    """Return the name, signature and words of the function for numbers."""
    return functools.wraps(function)  # type: ignore[return-value]


@_in_place_of(sequences.unique)
def unique(x: Any, *args: Any, **options: Any) -> Any:
    if not is_text(x):
        return sequences.unique(x, *args, **options)
    options.pop("name", None)
    return _unique(text_of(x, "unique").encoded, *args, **options)


@_in_place_of(arrays.where)
def where(condition: Any, x: Any = None, y: Any = None, name: str | None = None) -> Any:
    if not (is_text(x) or is_text(y)):
        return arrays.where(condition, x, y, name)
    holds = _whole_array(condition)
    a, b = (text_of(part, "where", "both must be strings").encoded for part in (x, y))
    try:
        return of_bytes(np.asarray(np.where(holds, a, b), object))
    except ValueError as error:
        raise _core.InvalidArgumentError(
            f"[where] shapes must fit each other: got {holds.shape}, {a.shape} and {b.shape}."
        ) from error


@_in_place_of(arrays.one_hot)
def one_hot(
    indices: Any, depth: Any, on_value: Any = None, off_value: Any = None, axis: Any = None,
    dtype: Any = None, name: str | None = None,
) -> Any:  # fmt: skip
    if not (is_text(on_value) or is_text(off_value)):
        return arrays.one_hot(indices, depth, on_value, off_value, axis, dtype, name)
    rule = "on_value and off_value must both be strings"
    on, off = (text_of(value, "one_hot", rule) for value in (on_value, off_value))
    if dtype is not None and element_type(dtype) is not string:
        raise TypeError(
            f"[one_hot] {rule} or numbers of the dtype: got strings for {shown(dtype)}."
        )
    return where(arrays.one_hot(indices, depth, axis=axis, dtype="bool"), on, off)


@_in_place_of(creation.fill)
def fill(dims: Any, value: Any, name: str | None = None) -> Any:
    if not is_text(value):
        return creation.fill(dims, value, name)
    text = text_of(value, "fill").encoded
    return of_bytes(np.broadcast_to(text, [int(n) for n in sizes_of(dims)]).copy())


@_in_place_of(creation.zeros)
def zeros(shape: Any, dtype: Any = "float32", name: str | None = None) -> Any:
    if dtype not in ("string", string):
        return creation.zeros(shape, dtype, name)
    return of_bytes(np.full([int(n) for n in sizes_of(shape)], b"", object))


@_in_place_of(creation.zeros_like)
def zeros_like(input: Any, dtype: Any = None, name: str | None = None) -> Any:
    of_text = type(input) is not Tensor and is_text(input)
    if not of_text and dtype not in ("string", string):
        return creation.zeros_like(input, dtype, name)
    sizes = (
        text_of(input, "zeros_like").encoded.shape if of_text else convert_to_tensor(input).shape
    )
    return zeros(sizes, string if dtype is None else dtype)


__all__ = [
    "boolean_mask", "broadcast_to", "concat", "expand_dims", "fill", "gather", "gather_nd",
    "identity", "one_hot", "pad", "rank", "repeat", "reshape", "reverse", "shape", "size", "split",
    "squeeze",
    "stack", "tile", "transpose", "unique", "unstack", "where", "zeros",
    "zeros_like",
]  # fmt: skip
