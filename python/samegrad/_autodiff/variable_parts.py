"""Changes of some of a variable's elements: `v[1:].assign(x)`, `v.scatter_add(slices)`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from samegrad import _core
from samegrad._autodiff.aggregation import aggregated, aggregated_rows
from samegrad._ops import gather, scatter
from samegrad._ops.gather import Places
from samegrad._ops.indexed_slices import IndexedSlices
from samegrad._tensor.tensor import Tensor, TensorLike, convert_to_tensor, match
from samegrad.math import divide, multiply, unsorted_segment_prod

if TYPE_CHECKING:
    from samegrad._autodiff.variable import Variable


def _slices(name: str, slices: Any) -> IndexedSlices:
    if not isinstance(slices, IndexedSlices):
        raise TypeError(
            f"[Variable.{name}] rows and their numbers are needed: got "
            f"{type(slices).__name__}; pass tf.IndexedSlices(values, indices)."
        )
    return slices


def scattered(how: str, variable: Variable, slices: Any) -> Variable:
    """Change the elements of a variable that `IndexedSlices` name.

    Raises:
        TypeError: The value is not `IndexedSlices`.
    """
    rows = _slices(f"scatter_{how}", slices).indices
    indices = _core.ops.expand_dims(rows, axes=(-1,))
    return scattered_nd(how, variable, indices, slices.values)


def scattered_nd(
    how: str, variable: Variable, indices: TensorLike, updates: TensorLike
) -> Variable:
    """Return the same of elements or slices at any places."""
    old = variable._as_tensor()
    places, values = aggregated_rows(
        variable, f"scatter_{how}", convert_to_tensor(indices), match(updates, old)
    )
    if how in _BY_FACTORS:
        return variable._store(_BY_FACTORS[how](old, _factors(old, places, values)))
    change = getattr(scatter, f"tensor_scatter_nd_{how}")
    return variable._store(change(old, places, values))


def _factors(old: Tensor, indices: TensorLike, values: Tensor) -> Tensor:
    """Return the product of each element's updates; 1 for elements without one."""
    places = Places("Variable.scatter", old, indices)
    places.check(values)
    rows = unsorted_segment_prod(values, places.rows, places.table.shape[0])
    return places.whole(rows)


def assign_part(part: Tensor, value: TensorLike) -> Variable:
    """Assign a value to the part of a variable that `v[key]` returned.

    Args:
        part: The tensor `v[key]`.
        value: A tensor that broadcasts to the shape of the part, of the variable's dtype.

    Returns:
        The variable.

    Raises:
        AttributeError: The tensor is not a part of a variable.
    """
    origin = getattr(part, "_part_of", None)
    if origin is None:
        raise AttributeError(
            "[Tensor.assign] a tensor never changes: got a tensor that is not part of a variable; "
            "make a samegrad.Variable, whose v[i].assign(x) changes it."
        )
    variable, key = origin
    old = variable._as_tensor()
    value = match(value, old)
    entries = key if isinstance(key, tuple) else (key,)
    if any(isinstance(entry, Tensor) and entry._symbolic for entry in entries):
        index, rows = _element(old, entries, value)
        if _is_engine_variable(variable):
            return scattered_nd("update", variable, index, rows)
        made: Variable = variable.assign(scatter.tensor_scatter_nd_update(old, index, rows))
        return made
    sizes = [int(size) for size in old.shape]
    places = np.arange(old._numpy().size if not old._symbolic else int(np.prod(sizes)))
    chosen = places.reshape(sizes)[key]
    values = _core.ops.broadcast_to(value, shape=list(chosen.shape))
    if _is_engine_variable(variable):
        values = aggregated(variable, values)
    flat = _core.ops.reshape(old, shape=[places.size])
    rows = _core.ops.reshape(values, shape=[chosen.size])
    changed = scatter.tensor_scatter_nd_update(flat, chosen.reshape(-1, 1), rows)
    store = variable._store if _is_engine_variable(variable) else variable.assign
    whole: Variable = store(_core.ops.reshape(changed, shape=sizes))
    return whole


def _is_engine_variable(variable: Any) -> bool:
    """Return whether parts are aggregated; Keras's variables aggregate what they become."""
    return hasattr(variable, "_cell")


def _element(old: Tensor, entries: tuple[Any, ...], value: Tensor) -> tuple[Tensor, Tensor]:
    """Return the index and the row of an element, or slice of the last axes, that a step computes.

    Raises:
        TypeError: An entry is neither a number nor a tensor of one.
    """
    places = []
    for entry, size in zip(entries, old.shape, strict=False):
        if isinstance(entry, slice) or entry is None or entry is ...:
            raise TypeError(
                "[Variable.assign] beside a place that the step computes there must be places: "
                f"got {entry!r}; assign the whole with tensor_scatter_nd_update."
            )
        place = _core.ops.cast(convert_to_tensor(entry), dtype="int32")
        places.append(_core.ops.select(place < 0, place + int(size), place))
    index = _core.ops.concat(*[_core.ops.reshape(p, shape=[1, 1]) for p in places], axis=1)
    rest = [int(size) for size in old.shape[len(places) :]]
    rows = _core.ops.reshape(_core.ops.broadcast_to(value, shape=rest), shape=[1, *rest])
    return index, rows


def install(cls: type[Variable]) -> None:
    """Give variables these methods, and their parts `assign`."""

    def of_rows(how: str) -> Any:
        def method(self: Variable, sparse_delta: IndexedSlices, use_locking: bool = False,
                   name: str | None = None) -> Variable:  # fmt: skip
            return scattered(how, self, sparse_delta)

        method.__doc__ = f"""{_DOES[how]} slices of the variable along its first axis.

        Args:
            sparse_delta: `IndexedSlices`: updates of shape [n, ...] and their n indices.
            use_locking: Ignored.
            name: Ignored.

        Returns:
            The variable.

        Raises:
            TypeError: `sparse_delta` is not `IndexedSlices`.
        """
        return method

    def of_places(how: str) -> Any:
        def method(self: Variable, indices: TensorLike, updates: TensorLike,
                   name: str | None = None) -> Variable:  # fmt: skip
            return scattered_nd(how, self, indices, updates)

        method.__doc__ = f"""{_DOES[how]} elements or slices of the variable.

        Args:
            indices: Integers of shape [..., k]: k indices into the first k axes.
            updates: A tensor of shape [..., *variable.shape[k:]], in the variable's dtype.
            name: Ignored.

        Returns:
            The variable.

        Raises:
            InvalidArgumentError: An index is outside of its axis.
        """
        return method

    for how in _DOES:
        for prefix, made in (("scatter_", of_rows(how)), ("scatter_nd_", of_places(how))):
            made.__name__ = f"{prefix}{how}"
            made.__qualname__ = f"Variable.{prefix}{how}"
            setattr(cls, made.__name__, made)
    owner: Any = cls
    owner.sparse_read, owner.gather_nd = _rows, _elements
    owner.batch_scatter_update = _update_in_batches
    tensor: Any = Tensor
    tensor.assign = assign_part


def _rows(self: Variable, indices: TensorLike, name: str | None = None) -> Tensor:
    """Gather slices of the variable along its first axis, as `tf.gather` does.

    Args:
        self: The variable.
        indices: Integers of any shape.
        name: Ignored.

    Returns:
        A tensor of shape indices.shape + variable.shape[1:].

    Raises:
        InvalidArgumentError: An index is outside of the axis.
    """
    return gather.gather(self._as_tensor(), indices)


def _update_in_batches(
    self: Variable, sparse_delta: IndexedSlices, use_locking: bool = False, name: str | None = None
) -> Variable:
    """Replace slices of the variable, with other indices in each batch.

    Args:
        self: The variable.
        sparse_delta: `IndexedSlices`: indices [..., n] name the n slices of each batch.
        use_locking: Ignored.
        name: Ignored.

    Returns:
        The variable.

    Raises:
        TypeError: `sparse_delta` is not `IndexedSlices`.
    """
    rows = _slices("batch_scatter_update", sparse_delta).indices
    places = _core.ops.cast(_core.ops.expand_dims(rows, axes=(-1,)), dtype="int64")
    if rows._rank > 1:
        batches = np.indices([int(size) for size in rows.shape])[:-1]
        own = convert_to_tensor(np.moveaxis(batches, 0, -1), "int64")
        places = _core.ops.concat(own, places, axis=rows._rank)
    return scattered_nd("update", self, places, sparse_delta.values)


def _elements(self: Variable, indices: TensorLike, name: str | None = None) -> Tensor:
    """Gather elements or slices of the variable, as `tf.gather_nd` does.

    Args:
        self: The variable.
        indices: Integers of shape [..., k]: k indices into the first k axes.
        name: Ignored.

    Returns:
        A tensor of shape [..., *variable.shape[k:]].

    Raises:
        InvalidArgumentError: An index is outside of its axis.
    """
    return gather.gather_nd(self._as_tensor(), indices)


_DOES = {
    "add": "Add updates to", "sub": "Subtract updates from", "update": "Replace",
    "max": "Take the maximum of updates and", "min": "Take the minimum of updates and",
    "mul": "Multiply by updates", "div": "Divide by updates",
}  # fmt: skip
_BY_FACTORS = {"mul": multiply, "div": divide}
