"""Reductions over segments of the first axis."""

from __future__ import annotations

from typing import Any

import numpy as np

from samegrad import _core
from samegrad._base.dtypes import as_dtype
from samegrad._context.python_runs import need_python
from samegrad._ops.gather import zeros_of
from samegrad._tensor import sizes as _sizes
from samegrad._tensor.tensor import Tensor, TensorLike, convert_to_tensor, pair
from samegrad.errors import InvalidArgumentError
from samegrad.math._binary import truediv, truncatediv
from samegrad.math._unary import sqrt

_ops = _core.ops


class _Segments:
    """Data beside the segment of each of its rows.

    Args:
        data: Numbers.
        ids: Segments, of a shape that begins that of the data; negative: in none.
        count: How many segments there are.
    """

    def __init__(self, data: TensorLike, ids: TensorLike, count: Any) -> None:
        self.data = convert_to_tensor(data)
        self.count = _sizes.size_of(count)
        own = convert_to_tensor(ids)
        index = _ops.expand_dims(own, axes=[own._rank])
        # Rows of no segment go to one behind the last.
        self.ids = _ops.ravel_index(index, zeros_of([self.count], "int32"), absent=True)
        sizes = list(self.data.shape)
        if len(sizes) < own._rank or any(a != b for a, b in zip(sizes, own.shape, strict=False)):
            raise ValueError(
                "[segments] the shape of data must begin with that of segment_ids: got "
                f"{tuple(sizes)} and {tuple(own.shape)}; give each row its segment."
            )
        self.rest = sizes[own._rank :]
        self.table = zeros_of([self.count + 1, *self.rest], self.data._dtype)

    def real(self, table: Tensor) -> Tensor:
        """Return the rows of the segments."""
        return table[: self.count]

    def sums(self) -> Tensor:
        return self.real(_ops.segment_sum(self.data, self.ids, self.table, axis=0))

    def sizes(self) -> Tensor:
        """Return the number of elements of each segment, shaped to broadcast to the results."""
        ones = _ops.full_like(self.ids, value=1)
        rows = _ops.segment_sum(ones, self.ids, zeros_of([self.count + 1], "int64"), axis=0)
        return _ops.expand_dims(self.real(rows), axes=list(range(1, 1 + len(self.rest))))

    def divisors(self) -> Tensor:
        """Return the sizes, but 1 for empty segments."""
        return _ops.cast(_ops.maximum(*pair(self.sizes(), 1)), dtype=self.data._dtype)

    def means(self) -> Tensor:
        whole = as_dtype(self.data._dtype).is_integer
        divide = truncatediv if whole else _ops.div
        return divide(self.sums(), self.divisors())

    def largest(self, of_none: Any) -> Tensor:
        found = self.real(_ops.segment_max(self.data, self.ids, self.table))
        return self.filled(found, of_none)

    def smallest(self, of_none: Any) -> Tensor:
        found = self.real(_ops.segment_min(self.data, self.ids, self.table))
        return self.filled(found, of_none)

    def filled(self, found: Tensor, of_none: Any) -> Tensor:
        none = _ops.equal(*pair(self.sizes(), 0))
        return _ops.select(none, convert_to_tensor(of_none, found._dtype), found)

    def products(self) -> Tensor:
        """Return the running products of the rows of each segment, in the order of segments."""
        count = np.prod(self.ids.shape, dtype=object) if self.ids._rank else 1
        ids = _sizes.reshape(self.ids, [count])
        order = _ops.arg_sort(ids, axis=0)
        ids = _ops.gather(ids, order, axis=0)
        rows = _ops.gather(_sizes.reshape(self.data, [count, *self.rest]), order, axis=0)
        place = _ops.cast(_sizes.iota(count), dtype="int32")
        spread = list(range(1, 1 + len(self.rest)))
        first = _ops.expand_dims(_ops.equal(_ops.search_sorted(ids, ids), place), axes=spread)
        none = _ops.full_like(rows, value=0)
        before = _ops.affine_scan(
            _ops.select(first, none, rows), _ops.select(first, rows, none), axis=0
        )
        running = _ops.select(first, rows, rows * before)
        # The product that ends a segment; a row in front is that of no elements.
        segments = _sizes.iota(self.count)
        begin, end = (_ops.search_sorted(ids, segments, right=right) for right in (False, True))
        last = _ops.select(_ops.greater(end, begin), end, _ops.full_like(end, value=0))
        one = zeros_of([1, *self.rest], rows._dtype) + 1
        return _ops.gather(_ops.concat(one, running, axis=0), last, axis=0)


def _limit(dtype: str, least: bool) -> Any:
    """Return the least or largest finite number of a dtype."""
    kind = as_dtype(dtype)
    return np.asarray(kind.min if least else kind.max, kind._numpy)


def _sorted_segments(who: str, data: TensorLike, segment_ids: TensorLike) -> _Segments:
    """Return ascending segments, whose last id gives their number."""
    ids = convert_to_tensor(segment_ids)
    if ids._symbolic:
        need_python(
            f"[{who}] the number of segments depends on the values, which a traced function does "
            f"not know: use unsorted_{who} with num_segments.",
            TypeError,
        )
    numbers = ids.numpy()
    if numbers.ndim != 1 or numbers.dtype.kind not in "iu":
        raise ValueError(
            f"[{who}] segment_ids are integers on one axis: got {numbers.dtype.name} of shape "
            f"{numbers.shape}; use unsorted_{who} for others."
        )
    down = np.flatnonzero(np.diff(numbers, prepend=numbers.dtype.type(0)) < 0)
    if down.size or (numbers.size and numbers[0] < 0):
        raise InvalidArgumentError(
            f"[{who}] segment_ids must be 0 or more and ascend: got {numbers[down[0]]} at position "
            f"{down[0]}; use unsorted_{who}."
        )
    return _Segments(data, ids, int(numbers[-1]) + 1 if numbers.size else 0)


def segment_sum(data: TensorLike, segment_ids: TensorLike, name: str | None = None) -> Tensor:
    """Sum the elements of each segment along the first axis; empty segments give 0.

    Args:
        data: A tensor of numbers, of shape [n, ...].
        segment_ids: The segment of each element of the first axis: integers [n] in ascending order.
        name: Ignored.

    Returns:
        A tensor of shape [last segment + 1, ...].

    Raises:
        TypeError: In `Strategy.run` on several replicas, where the number of segments is unknown;
            a `function` falls back to Python.
        InvalidArgumentError: The segment ids do not ascend, or are negative.

    Example:
        >>> segment_sum([1.0, 2.0, 3.0], [0, 0, 1]).numpy()
        array([3., 3.], dtype=float32)
    """
    return _sorted_segments("segment_sum", data, segment_ids).sums()


def segment_mean(data: TensorLike, segment_ids: TensorLike, name: str | None = None) -> Tensor:
    """Compute the mean of each segment along the first axis; empty segments give 0.

    Args:
        data: A tensor of numbers, of shape [n, ...].
        segment_ids: The segment of each element of the first axis: integers [n] in ascending order.
        name: Ignored.

    Returns:
        A tensor of shape [last segment + 1, ...].

    Raises:
        TypeError: In `Strategy.run` on several replicas, where the number of segments is unknown;
            a `function` falls back to Python.
        InvalidArgumentError: The segment ids do not ascend, or are negative.

    Example:
        >>> segment_mean([1.0, 2.0, 3.0], [0, 0, 1]).numpy()
        array([1.5, 3. ], dtype=float32)
    """
    return _sorted_segments("segment_mean", data, segment_ids).means()


def segment_max(data: TensorLike, segment_ids: TensorLike, name: str | None = None) -> Tensor:
    """Compute the maximum of each segment along the first axis; empty segments give 0.

    Ties share the gradient.

    Args:
        data: A tensor of numbers, of shape [n, ...].
        segment_ids: The segment of each element of the first axis: integers [n] in ascending order.
        name: Ignored.

    Returns:
        A tensor of shape [last segment + 1, ...].

    Raises:
        TypeError: In `Strategy.run` on several replicas, where the number of segments is unknown;
            a `function` falls back to Python.
        InvalidArgumentError: The segment ids do not ascend, or are negative.

    Example:
        >>> segment_max([1.0, 2.0, 3.0], [0, 0, 1]).numpy()
        array([2., 3.], dtype=float32)
    """
    return _sorted_segments("segment_max", data, segment_ids).largest(0)


def segment_min(data: TensorLike, segment_ids: TensorLike, name: str | None = None) -> Tensor:
    """Compute the minimum of each segment along the first axis; empty segments give 0.

    Ties share the gradient.

    Args:
        data: A tensor of numbers, of shape [n, ...].
        segment_ids: The segment of each element of the first axis: integers [n] in ascending order.
        name: Ignored.

    Returns:
        A tensor of shape [last segment + 1, ...].

    Raises:
        TypeError: In `Strategy.run` on several replicas, where the number of segments is unknown;
            a `function` falls back to Python.
        InvalidArgumentError: The segment ids do not ascend, or are negative.

    Example:
        >>> segment_min([1.0, 2.0, 3.0], [0, 0, 1]).numpy()
        array([1., 3.], dtype=float32)
    """
    return _sorted_segments("segment_min", data, segment_ids).smallest(0)


def segment_prod(data: TensorLike, segment_ids: TensorLike, name: str | None = None) -> Tensor:
    """Multiply the elements of each segment along the first axis; empty segments give 1.

    Derivatives of any order are right where elements are 0 as well.

    Args:
        data: A tensor of numbers, of shape [n, ...].
        segment_ids: The segment of each element of the first axis: integers [n] in ascending order.
        name: Ignored.

    Returns:
        A tensor of shape [last segment + 1, ...].

    Raises:
        TypeError: In `Strategy.run` on several replicas, where the number of segments is unknown;
            a `function` falls back to Python.
        InvalidArgumentError: The segment ids do not ascend, or are negative.

    Example:
        >>> segment_prod([1.0, 2.0, 3.0], [0, 0, 1]).numpy()
        array([2., 3.], dtype=float32)
    """
    return _sorted_segments("segment_prod", data, segment_ids).products()


def unsorted_segment_sum(data: TensorLike, segment_ids: TensorLike, num_segments: Any,
                         name: str | None = None) -> Tensor:  # fmt: skip
    """Sum the elements of each segment; empty segments give 0.

    Args:
        data: A tensor of numbers whose shape begins with that of `segment_ids`.
        segment_ids: The segment of each element, integers in any order; negative ones are left out.
        num_segments: The number of segments.
        name: Ignored.

    Returns:
        A tensor of shape [num_segments, ...].

    Raises:
        ValueError: The shapes do not fit.
        InvalidArgumentError: A segment id is not below `num_segments`.

    Example:
        >>> unsorted_segment_sum([1.0, 2.0, 3.0], [1, 0, 0], 2).numpy()
        array([5., 1.], dtype=float32)
    """
    found = _Segments(data, segment_ids, num_segments)
    return found.sums()


def unsorted_segment_mean(data: TensorLike, segment_ids: TensorLike, num_segments: Any,
                          name: str | None = None) -> Tensor:  # fmt: skip
    """Compute the mean of each segment; empty segments give 0.

    Args:
        data: A tensor of numbers whose shape begins with that of `segment_ids`.
        segment_ids: The segment of each element, integers in any order; negative ones are left out.
        num_segments: The number of segments.
        name: Ignored.

    Returns:
        A tensor of shape [num_segments, ...]; integers give the dtype of `truediv`.

    Raises:
        ValueError: The shapes do not fit.
        InvalidArgumentError: A segment id is not below `num_segments`.

    Example:
        >>> unsorted_segment_mean([1.0, 2.0, 3.0], [1, 0, 0], 2).numpy()
        array([2.5, 1. ], dtype=float32)
    """
    found = _Segments(data, segment_ids, num_segments)
    return truediv(found.sums(), found.divisors())


def unsorted_segment_max(data: TensorLike, segment_ids: TensorLike, num_segments: Any,
                         name: str | None = None) -> Tensor:  # fmt: skip
    """Compute the maximum of each segment; empty segments give the lowest finite number.

    Ties share the gradient.

    Args:
        data: A tensor of numbers whose shape begins with that of `segment_ids`.
        segment_ids: The segment of each element, integers in any order; negative ones are left out.
        num_segments: The number of segments.
        name: Ignored.

    Returns:
        A tensor of shape [num_segments, ...].

    Raises:
        ValueError: The shapes do not fit.
        InvalidArgumentError: A segment id is not below `num_segments`.

    Example:
        >>> unsorted_segment_max([1.0, 2.0, 3.0], [1, 0, 0], 2).numpy()
        array([3., 1.], dtype=float32)
    """
    found = _Segments(data, segment_ids, num_segments)
    return found.largest(_limit(found.data._dtype, least=True))


def unsorted_segment_min(data: TensorLike, segment_ids: TensorLike, num_segments: Any,
                         name: str | None = None) -> Tensor:  # fmt: skip
    """Compute the minimum of each segment; empty segments give the largest finite number.

    Ties share the gradient.

    Args:
        data: A tensor of numbers whose shape begins with that of `segment_ids`.
        segment_ids: The segment of each element, integers in any order; negative ones are left out.
        num_segments: The number of segments.
        name: Ignored.

    Returns:
        A tensor of shape [num_segments, ...].

    Raises:
        ValueError: The shapes do not fit.
        InvalidArgumentError: A segment id is not below `num_segments`.

    Example:
        >>> unsorted_segment_min([1.0, 2.0, 3.0], [1, 0, 0], 2).numpy()
        array([2., 1.], dtype=float32)
    """
    found = _Segments(data, segment_ids, num_segments)
    return found.smallest(_limit(found.data._dtype, least=False))


def unsorted_segment_prod(data: TensorLike, segment_ids: TensorLike, num_segments: Any,
                          name: str | None = None) -> Tensor:  # fmt: skip
    """Multiply the elements of each segment; empty segments give 1.

    Derivatives of any order are right where elements are 0 as well.

    Args:
        data: A tensor of numbers whose shape begins with that of `segment_ids`.
        segment_ids: The segment of each element, integers in any order; negative ones are left out.
        num_segments: The number of segments.
        name: Ignored.

    Returns:
        A tensor of shape [num_segments, ...].

    Raises:
        ValueError: The shapes do not fit.
        InvalidArgumentError: A segment id is not below `num_segments`.

    Example:
        >>> unsorted_segment_prod([1.0, 2.0, 3.0], [1, 0, 0], 2).numpy()
        array([6., 1.], dtype=float32)
    """
    found = _Segments(data, segment_ids, num_segments)
    return found.products()


def unsorted_segment_sqrt_n(data: TensorLike, segment_ids: TensorLike, num_segments: Any,
                            name: str | None = None) -> Tensor:  # fmt: skip
    """Divide the sum of each segment by the square root of its size; empty segments give 0.

    Args:
        data: A tensor of numbers whose shape begins with that of `segment_ids`.
        segment_ids: The segment of each element, integers in any order; negative ones are left out.
        num_segments: The number of segments.
        name: Ignored.

    Returns:
        A tensor of shape [num_segments, ...].

    Raises:
        ValueError: The shapes do not fit.
        InvalidArgumentError: A segment id is not below `num_segments`.

    Example:
        >>> unsorted_segment_sqrt_n([1.0, 2.0, 2.0, 2.0, 2.0], [1, 0, 0, 0, 0], 2).numpy()
        array([4., 1.], dtype=float32)
    """
    found = _Segments(data, segment_ids, num_segments)
    return found.sums() / sqrt(found.divisors())
