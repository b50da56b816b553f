"""Sizes of axes, known or those of the examples, as functions that take a shape want them.

A traced program works for any number of examples. A size that follows from it (`x.shape[0]`,
`tf.shape(x)[0]`, a multiple of them) is a `Dim`; a shape with one is made as the examples lie.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from samegrad import _core
from samegrad._tensor import Dim, Tensor, dims_of

_ops = _core.ops
Sizes = list["int | Dim"]


def sizes_of(shape: Any) -> Sizes:
    """The sizes of a shape: a number, a list of numbers, dims and tensors, or a vector.

    Raises:
        TypeError: A size is computed in the traced function from something else than sizes.
    """
    dims = dims_of(shape) if isinstance(shape, Tensor) else None
    entries = shape if dims is None else dims
    if isinstance(entries, int | Dim) or (isinstance(entries, Tensor) and not entries._rank):
        entries = [entries]
    return [_size_of(entry) for entry in entries]


def _size_of(entry: Any) -> int | Dim:
    if isinstance(entry, Tensor):
        dims = dims_of(entry)
        entry = dims[0] if dims else entry
    return entry if isinstance(entry, Dim) else int(entry)


def examples_in(sizes: Iterable[int | Dim]) -> Dim | None:
    """The size that counts examples, if there is one."""
    return next((size for size in sizes if isinstance(size, Dim)), None)


def only_one_dim(sizes: Sizes) -> Sizes:
    """A value has examples along one axis: further ones become numbers, and the trace is bound."""
    first = examples_in(sizes)
    return [size if size is first or isinstance(size, int) else int(size) for size in sizes]


def full_rows(sizes: Sizes, dtype: str, value: float = 0.0) -> Tensor:
    """One number in a shape with a `Dim` in it."""
    sizes = only_one_dim(sizes)
    dim = examples_in(sizes)
    assert dim is not None
    shape = [-2 if size is dim else int(size) for size in sizes]
    return _ops.full_rows(dim.tensor, shape=shape, rows=dim.rows, value=value, dtype=dtype)


def reshape(tensor: Tensor, shape: Any) -> Tensor:
    """The elements in another shape; a `Dim` keeps the examples where it stands."""
    sizes = only_one_dim(sizes_of(shape))
    dim = examples_in(sizes)
    place = tensor._example_axis
    if dim is None or place is None:
        return _ops.reshape(tensor, shape=[int(size) for size in sizes])
    fixed = [-2 if size is dim else int(size) for size in sizes]
    if -1 in fixed:
        fixed[fixed.index(-1)] = _missing(tensor._shape, place[1], fixed, dim.rows)
    return _ops.reshape(tensor, shape=fixed)


def _missing(shape: Sequence[int | None], rows: int, wanted: list[int], new_rows: int) -> int:
    """What -1 stands for, so that an example keeps its elements."""
    elements, known = rows, new_rows
    for size in shape:
        elements *= 1 if size is None else size
    for number in wanted:
        known *= 1 if number < 0 else number
    if not known or elements % known:
        raise ValueError(
            f"[reshape] an example has {elements} elements, which cannot be cut into parts of "
            f"{known} for {['examples' if n == -2 else n for n in wanted]}; the sizes must fit."
        )
    return elements // known
