"""A function of each row, called by Python: rows of different lengths are no loop of the engine."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from samegrad._base.dtypes import any_dtype
from samegrad._base.shown import shown
from samegrad._base.tree import flatten, map_structure
from samegrad._context.user_code import converted
from samegrad._core import InvalidArgumentError
from samegrad._ops import complex_arrays as arrays
from samegrad._tensor.ragged import RaggedTensor
from samegrad._tensor.ragged_rows import stacked
from samegrad._tensor.ragged_spec import RaggedTensorSpec
from samegrad._tensor.spec import TensorSpec
from samegrad.ragged._each import plain
from samegrad.ragged._moved import another_axis

_WHO = "map_fn"


def map_fn(
    function: Callable[..., Any], fn: Any, elems: Any, dtype: Any = None,
    parallel_iterations: Any = None, back_prop: Any = True, swap_memory: Any = False,
    infer_shape: Any = True, name: Any = None, fn_output_signature: Any = None,
) -> Any:  # fmt: skip
    """The results of all rows: stacked, or as rows of different lengths."""
    if not callable(fn):
        raise TypeError(f"[{_WHO}] fn must be a function: got {shown(fn)}.")
    given = map_structure(lambda x: x if isinstance(x, RaggedTensor) else plain(x), elems)
    counts = [x.nrows() if isinstance(x, RaggedTensor) else _count(x) for x in flatten(given)]
    if len(set(counts)) > 1:
        raise ValueError(f"[{_WHO}] elems must have as many rows: got {counts}.")
    signature = dtype if fn_output_signature is None else fn_output_signature
    if not counts[0]:
        return _of_no_rows(given, signature)
    called = converted(fn)
    made = [called(map_structure(lambda x, row=row: x[row], given)) for row in range(counts[0])]
    first = map_structure(_result, made[0])
    columns = zip(*(map(_result, flatten(result)) for result in made), strict=True)
    kinds = _kinds(first, signature)
    joined: Iterator[Any] = map(_joined, columns, kinds)
    joined = (arrays.stop_gradient(x) if not back_prop else x for x in joined)
    return map_structure(lambda _: next(joined), first)


def _count(value: Any) -> int:
    size = value._shape[0] if value._rank else None
    if not isinstance(size, int):
        raise ValueError(
            f"[{_WHO}] with ragged tensors elems must have a known number of rows: "
            f"got shape {tuple(value.shape)}."
        )
    return size


def _result(value: Any) -> Any:
    if isinstance(value, RaggedTensor):
        what = f"a result of shape {value.shape} for each row"
        raise another_axis(_WHO, what, "return its flat_values or to_tensor()")
    return plain(value)


def _kinds(first: Any, signature: Any) -> list[Any]:
    """What is asked for of each result."""
    leaves = flatten(first)
    kinds = [None] * len(leaves) if signature is None else flatten(signature)
    deep = [kind for kind in kinds if isinstance(kind, RaggedTensorSpec) and kind.ragged_rank]
    if deep:
        raise another_axis(_WHO, f"{deep[0]} for each row", "return tensors of one length")
    if len(kinds) != len(leaves):
        raise ValueError(
            f"[{_WHO}] fn_output_signature must have the structure of the results: got "
            f"{shown(signature)} for {len(leaves)}."
        )
    return kinds


def _joined(column: tuple[Any, ...], kind: Any) -> Any:
    """The results of all rows; without a signature those of axes and lengths of their own."""
    dense = kind is not None and not isinstance(kind, RaggedTensorSpec)
    wanted = None if kind is None else any_dtype(getattr(kind, "dtype", kind))
    for result in column:
        if wanted is not None and result.dtype != wanted:
            raise TypeError(
                f"[{_WHO}] results must be {wanted.name}, as fn_output_signature has it: got "
                f"{result.dtype.name}."
            )
    shapes = {tuple(x._shape) for x in column}
    if len(shapes) > 1 and (dense or () in shapes):
        raise InvalidArgumentError(
            f"[{_WHO}] results must have one shape, as fn_output_signature has it: got "
            f"{sorted(shapes)}; leave it out, and they become rows."
        )
    if column[0]._rank and not dense:
        return stacked(column, _WHO)
    return arrays.stack(list(column))


def _of_no_rows(elems: Any, signature: Any) -> Any:
    if signature is None:
        return elems

    def none(kind: Any) -> Any:
        if isinstance(kind, RaggedTensorSpec):
            inner = [size or 0 for size in list(kind.shape)[1:]]
            return RaggedTensor(arrays.zeros([0, *inner], kind.dtype), [])
        sizes = list(kind.shape) if isinstance(kind, TensorSpec) else []
        return arrays.zeros([0, *(size or 0 for size in sizes)], getattr(kind, "dtype", kind))

    return map_structure(none, signature)
