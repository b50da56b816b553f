"""Norms of tensors, and limits on them and on elements."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from samegrad import _core
from samegrad._base.dtypes import as_dtype
from samegrad._base.shown import shown
from samegrad._ops.arrays import cast
from samegrad._ops.indexed_slices import IndexedSlices, on_values
from samegrad._tensor.axes import axes_of, axis_of
from samegrad._tensor.tensor import Tensor, TensorLike, convert_to_tensor, pair

_ops = _core.ops


def root_of_squares(squares: Tensor) -> Tensor:
    """Return the root, whose derivatives of any order are 0 where it is 0, and not infinite."""
    if not as_dtype(squares._dtype).is_floating:
        return _ops.sqrt(squares)
    positive = squares > 0.0
    one = convert_to_tensor(1.0, squares._dtype)
    root = _ops.sqrt(_ops.select(positive, squares, one))
    return _ops.select(positive, root, _ops.stop_gradient(squares))  # 0 or NaN


def norm(tensor: TensorLike, ord: Any = "euclidean", axis: Any = None,
         keepdims: bool | None = None, name: str | None = None) -> Tensor:  # fmt: skip
    """Compute the norm of vectors, or of matrices if `axis` is a pair.

    The gradient of a norm of 0 is 0, as PyTorch's; TensorFlow's of a Euclidean one is NaN there.

    Args:
        tensor: A tensor of floats; also of integers for the norms 1 and infinity.
        ord: The norm. Vectors: "euclidean" (or 2), 1, infinity, or another positive p: (Σ |x|ᵖ) to
            the power 1/p. Matrices: "euclidean" or "fro" (over all elements), 1 (the largest sum of
            a column), infinity (of a row), or 2 (the largest singular value).
        axis: None: one vector of all elements; an integer: the axis of the vectors; a pair: the
            axes of the rows and the columns of matrices. With "euclidean" also a list of any
            length, whose axes form one vector.
        keepdims: Keep the reduced axes, with size 1.
        name: Ignored.

    Returns:
        A tensor without those axes (unless keepdims), in the dtype of `tensor`.

    Raises:
        ValueError: There is no such norm, or `axis` does not fit it.

    Example:
        >>> float(norm([3.0, 4.0]))
        5.0
        >>> float(norm([[1.0, 2.0], [3.0, 4.0]], ord=1, axis=(0, 1)))
        6.0
    """
    if not isinstance(ord, str | int | float):
        raise TypeError(f"[norm] ord is 'euclidean', 'fro' or a number: got {shown(ord)}.")
    x, keepdims = convert_to_tensor(tensor), bool(keepdims)
    axes = axes_of(x, axis)
    pair_of_axes = isinstance(axis, list | tuple) and len(axes) == 2
    if isinstance(axis, list | tuple) and len(axes) != 2 and ord != "euclidean":
        raise ValueError(
            "[norm] axis is None, one axis, or a pair of different ones, but for 'euclidean': got "
            f"{shown(axis)} and {shown(ord)}."
        )
    if ord == "euclidean" or (ord == "fro" and pair_of_axes) or (ord == 2 and not pair_of_axes):
        return root_of_squares(_square_sum(x, axes, keepdims))
    if pair_of_axes:
        return _matrix_norm(x, ord, [axis_of(x, a) for a in axes], keepdims)
    if ord == 1:
        return _ops.reduce_sum(_ops.abs(x), axes=axes, keepdims=keepdims)
    if ord == np.inf:
        return _ops.reduce_max(_ops.abs(x), axes=axes, keepdims=keepdims)
    if isinstance(ord, str) or not ord > 0:
        raise ValueError(
            f"[norm] of vectors ord is 'euclidean', a positive number or infinity: got {shown(ord)}"
            "; for 'fro' pass a pair of axes."
        )
    power = float(ord)
    total = _ops.reduce_sum(_power(_ops.abs(x), power), axes=axes, keepdims=keepdims)
    return _power(total, 1.0 / power)


def _power(x: Tensor, power: float) -> Tensor:
    """Return a power of numbers that are not negative, whose derivatives are 0 at 0."""
    positive = x > 0.0
    one = convert_to_tensor(1.0, x._dtype)
    found = _ops.pow(_ops.select(positive, x, one), convert_to_tensor(power, x._dtype))
    return _ops.select(positive, found, _ops.stop_gradient(x))  # 0 or NaN


def _matrix_norm(x: Tensor, ord: Any, axes: list[int], keepdims: bool) -> Tensor:
    rows, columns = axes
    if ord not in (1, 2, np.inf):
        raise ValueError(
            f"[norm] of matrices ord is 'euclidean', 'fro', 1, 2 or infinity: got {shown(ord)}."
        )
    if ord == 2:
        rest = [axis for axis in range(x._rank) if axis not in axes]
        values = _ops.singular_values(_ops.transpose(x, perm=[*rest, rows, columns]))
        largest = _ops.reduce_max(values, axes=[len(rest)], keepdims=False)
        return _ops.expand_dims(largest, axes=sorted(axes)) if keepdims else largest
    added, compared = (rows, columns) if ord == 1 else (columns, rows)
    sums = _ops.reduce_sum(_ops.abs(x), axes=[added], keepdims=True)
    largest = _ops.reduce_max(sums, axes=[compared], keepdims=True)
    return largest if keepdims else _ops.squeeze(largest, axes=sorted(axes))


def clip_by_value(t: TensorLike, clip_value_min: TensorLike, clip_value_max: TensorLike,
                  name: str | None = None) -> Tensor:  # fmt: skip
    """Clip each element to the range [clip_value_min, clip_value_max].

    Of `IndexedSlices` it clips the rows.

    Args:
        t: A tensor of numbers, or `IndexedSlices`, whose values are clipped.
        clip_value_min: The lower limit: a scalar, or a tensor that broadcasts with `t`.
        clip_value_max: The upper limit: a scalar, or a tensor that broadcasts with `t`.
        name: Ignored.

    Returns:
        A tensor of the shape and dtype of `t`, or `IndexedSlices`.

    Example:
        >>> clip_by_value([-2.0, 0.5], -1.0, 1.0).numpy()
        array([-1. ,  0.5], dtype=float32)
    """

    def clipped(x: TensorLike) -> Tensor:
        return _ops.minimum(*pair(_ops.maximum(*pair(x, clip_value_min)), clip_value_max))

    found: Tensor = on_values(clipped, t)
    return found


def clip_by_norm(t: TensorLike, clip_norm: TensorLike, axes: Any = None,
                 name: str | None = None) -> Tensor:  # fmt: skip
    """Scale a tensor down if its Euclidean norm is above `clip_norm`.

    Args:
        t: A tensor of floats, or `IndexedSlices`, whose values are scaled.
        clip_norm: The largest norm: a positive scalar, or a tensor that broadcasts.
        axes: The axes of the norm; None: all.
        name: Ignored.

    Returns:
        t * clip_norm / max(norm, clip_norm), in the dtype of `t`. The gradient of a norm of 0 is 0.

    Example:
        >>> clip_by_norm([3.0, 4.0], 1.0).numpy().round(1)
        array([0.6, 0.8], dtype=float32)
    """

    def clipped(value: TensorLike) -> Tensor:
        x = _floats("clip_by_norm", value)
        length = root_of_squares(_square_sum(x, axes_of(x, axes), keepdims=axes is not None))
        limit = cast(clip_norm, x._dtype)
        return x * limit / _ops.maximum(length, limit)

    found: Tensor = on_values(clipped, t)
    return found


def global_norm(t_list: Iterable[TensorLike | None], name: str | None = None) -> Tensor:
    """Compute the Euclidean norm of all elements of several tensors together.

    The squares are summed in float64. The gradient is 0 where the norm is 0.

    Args:
        t_list: A list of tensors of floats, `IndexedSlices` (their values count) and None, which is
            skipped.
        name: Ignored.

    Returns:
        A scalar in the dtype of the first tensor; 0.0 in float32 for no tensors.

    Raises:
        TypeError: `t_list` is not a list of tensors of floats.

    Example:
        >>> float(global_norm([[3.0], None, [[4.0]]]))
        5.0
    """
    tensors = _all_floats("global_norm", _listed("global_norm", t_list))
    return _ops.cast(_global_norm(tensors), dtype=tensors[0]._dtype if tensors else "float32")


def clip_by_global_norm(
    t_list: Iterable[TensorLike | None], clip_norm: TensorLike, use_norm: TensorLike | None = None,
    name: str | None = None,
) -> tuple[list[Tensor | None], Tensor]:  # fmt: skip
    """Scale several tensors alike if their global norm is above `clip_norm`.

    Inside `strategy.run`, gradients are terms of a sum over the replicas, and the limit applies to
    the sum. Reduce them first (`all_reduce`).

    Args:
        t_list: A list of tensors of floats, `IndexedSlices` (their values are scaled) and None,
            which stays None.
        clip_norm: The largest norm, a positive scalar.
        use_norm: The norm, if it is known already; default `global_norm(t_list)`.
        name: Ignored.

    Returns:
        A pair: the list of t * clip_norm / max(norm, clip_norm), and the norm. A norm that is not
        finite makes every element NaN, as in TensorFlow.

    Raises:
        TypeError: `t_list` is not a list of tensors of floats.
        ValueError: `use_norm` or `clip_norm` is not a scalar.

    Example:
        >>> clipped, length = clip_by_global_norm([[3.0], None, [[4.0]]], 1.0)
        >>> clipped[0].numpy().round(1), clipped[1], float(length)
        (array([0.6], dtype=float32), None, 5.0)
    """
    who = "clip_by_global_norm"
    listed = _listed(who, t_list)
    tensors = _all_floats(who, listed)
    given = None if use_norm is None else convert_to_tensor(use_norm)
    length = _global_norm(tensors) if given is None else _ops.cast(given, dtype="float64")
    limit = convert_to_tensor(clip_norm, "float64" if isinstance(clip_norm, int | float) else None)
    limit = _ops.cast(limit, dtype="float64")
    for what, number in (("use_norm", length), ("clip_norm", limit)):
        if number._rank:
            raise ValueError(f"[{who}] {what} must be one number: got shape {number._shape}.")
    scale = limit / _ops.maximum(length, limit) + (length - length)

    def scaled(value: TensorLike) -> Tensor:
        x = convert_to_tensor(value)
        return x * _ops.cast(scale, dtype=x._dtype)

    clipped = [None if x is None else on_values(scaled, x) for x in listed]
    if given is not None:
        return clipped, given
    return clipped, _ops.cast(length, dtype=tensors[0]._dtype if tensors else "float32")


def _floats(who: str, value: TensorLike) -> Tensor:
    x = convert_to_tensor(value)
    if not as_dtype(x._dtype).is_floating:
        raise TypeError(f"[{who}] tensors must hold floats: got {x._dtype}; use samegrad.cast.")
    return x


def _listed(who: str, tensors: Any) -> list[Any]:
    single = isinstance(tensors, str | bytes | Mapping | Tensor) or hasattr(tensors, "_as_tensor")
    if single or not isinstance(tensors, Iterable):
        raise TypeError(f"[{who}] t_list must be a list of tensors: got {shown(tensors)}.")
    return list(tensors)


def _all_floats(who: str, tensors: list[Any]) -> list[Tensor]:
    """Return those that are not None; of slices, the rows."""
    values = (x.values if isinstance(x, IndexedSlices) else x for x in tensors)
    return [_floats(who, x) for x in values if x is not None]


def _square_sum(x: Tensor, axes: Any, keepdims: bool = False) -> Tensor:
    return _ops.reduce_sum(_ops.square(x), axes=axes, keepdims=keepdims)


def _global_norm(tensors: list[Tensor]) -> Tensor:
    """Compute the norm in float64, summed by halves as the optimizers do."""
    sums = [_ops.cast(_square_sum(x, tuple(range(x._rank))), dtype="float64") for x in tensors]
    return root_of_squares(_joined(sums)) if sums else convert_to_tensor(0.0, "float64")


def _joined(sums: list[Tensor]) -> Tensor:
    if len(sums) == 1:
        return sums[0]
    half = (len(sums) + 1) // 2
    return _ops.add(_joined(sums[:half]), _joined(sums[half:]))
