"""Queues of tensors between threads, under the names of tf.queue."""

from __future__ import annotations

import heapq
import random
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from samegrad._base.dtypes import DType, element_type, string
from samegrad._base.shown import shown
from samegrad._context.python_runs import need_python
from samegrad._context.scopes import inside_function
from samegrad._core import InvalidArgumentError
from samegrad._ops.complex_arrays import stack
from samegrad._surface.boundary import guard
from samegrad._tensor.dimension import Dimension
from samegrad._tensor.shape import TensorShape, as_shape
from samegrad._tensor.sizes import whole
from samegrad._tensor.tensor import Tensor, convert_to_tensor
from samegrad._tensor.text import Text, array_of, leaf_of, text_of
from samegrad.errors import CancelledError, OutOfRangeError

Element = tuple[Any, ...]


class _Items:
    """The elements of a queue, in the order in which they leave it."""

    def __init__(self, capacity: int) -> None:
        if capacity == 0:
            raise ValueError(
                "[queue] capacity must not be 0, as no element would fit: got 0; pass -1 for a "
                "queue without a limit."
            )
        self.capacity = capacity if capacity > 0 else None
        self.changed = threading.Condition()
        self.taking = threading.Lock()  # one thread after the other takes its elements
        self.closed = self.cancelled = False
        self.kept: list[Any] = []  # tuples that end with an element
        self.waiting = 0  # threads
        self.least = 0  # elements that stay until the queue is closed

    def put(self, element: Element) -> None:
        self.kept.append((element,))

    def take(self) -> Any:
        return self.kept.pop(0)

    def restore(self, taken: Sequence[Any]) -> None:
        """Put back what `take` returned."""
        self.kept[:0] = taken


class _Ordered(_Items):
    """The elements by their first component, equal ones in their order."""

    def __init__(self, capacity: int) -> None:
        super().__init__(capacity)
        self._count = 0

    def put(self, element: Element) -> None:
        self._count += 1
        heapq.heappush(self.kept, (int(element[0]), self._count, element))

    def take(self) -> Any:
        return heapq.heappop(self.kept)

    def restore(self, taken: Sequence[Any]) -> None:
        for each in taken:
            heapq.heappush(self.kept, each)


class _Shuffled(_Items):
    """The elements in random order."""

    def __init__(self, capacity: int, least: int, seed: int | None) -> None:
        super().__init__(capacity)
        self.least = least
        self._random = random.Random(seed)

    def take(self) -> Any:
        return self.kept.pop(self._random.randrange(len(self.kept)))


class QueueBase:
    """Base class of queues; make a `FIFOQueue` or another one.

    A queue passes elements between threads of Python: `enqueue` waits while the queue is full,
    `dequeue` while it is empty. A function that uses a queue falls back to Python.

    Args:
        dtypes: The dtype of each component of an element.
        shapes: The shape of each component; None: they may differ.
        names: A name for each component, for elements that are dicts; None: they are lists.
        queue_ref: The contents, which several objects may share.
    """

    _kind = "QueueBase"
    _pads = False

    def __init__(self, dtypes: Any, shapes: Any, names: Any, queue_ref: Any) -> None:
        given = dtypes if isinstance(dtypes, list | tuple) else [dtypes]
        self._dtypes = [element_type(dtype) for dtype in given]
        self._shapes = self._checked_shapes(shapes)
        self._names = self._checked_names(names)
        self._items: _Items = queue_ref
        self._name = self._kind

    def _checked_shapes(self, shapes: Any) -> list[TensorShape] | None:
        if shapes is None:
            return None
        if isinstance(shapes, TensorShape) or any(isinstance(n, int | Dimension) for n in shapes):
            shapes = [shapes]
        found = [as_shape(each) for each in shapes] or [TensorShape(())]
        known = all(s.rank is not None and (self._pads or s.is_fully_defined()) for s in found)
        if len(found) != len(self._dtypes) or not known:
            raise ValueError(
                f"[{self._kind}] shapes must be a known shape for each of {len(self._dtypes)} "
                f"components: got {shown(found)}; leave them out if they differ."
            )
        return found

    def _checked_names(self, names: Any) -> list[str] | None:
        if not names:
            return None
        found = [names] if isinstance(names, str) else list(names)
        if len(found) != len(self._dtypes) or len(set(found)) != len(found):
            raise ValueError(
                f"[{self._kind}] names must be one for each of {len(self._dtypes)} components: got "
                f"{shown(names)}."
            )
        return found

    @staticmethod
    def from_list(index: Any, queues: Sequence[QueueBase]) -> QueueBase:
        """Choose one of several queues.

        Args:
            index: Its number.
            queues: Queues with the same dtypes and names.

        Returns:
            The queue.

        Raises:
            TypeError: queues is not a list of queues, or their dtypes differ.
            ValueError: Their names differ.
            InvalidArgumentError: There is no such queue.
        """
        is_list = isinstance(queues, list | tuple) and bool(queues)
        if not is_list or not all(isinstance(each, QueueBase) for each in queues):
            raise TypeError(f"[QueueBase.from_list] queues must be queues: got {shown(queues)}.")
        if any(each.dtypes != queues[0].dtypes for each in queues):
            raise TypeError(
                "[QueueBase.from_list] queues must have the same dtypes: got "
                f"{shown([each.dtypes for each in queues])}."
            )
        if any(each.names != queues[0].names for each in queues):
            raise ValueError(
                "[QueueBase.from_list] queues must have the same names: got "
                f"{shown([each.names for each in queues])}."
            )
        place = whole(index)
        if not 0 <= place < len(queues):
            raise InvalidArgumentError(
                f"[QueueBase.from_list] the index must lie in [0, {len(queues)}): got {place}; "
                "pass the number of a queue."
            )
        return queues[place]

    @property
    def queue_ref(self) -> Any:
        """The contents."""
        return self._items

    @property
    def name(self) -> str:
        """The name of the queue."""
        return self._name

    @property
    def dtypes(self) -> list[DType]:
        """The dtype of each component."""
        return self._dtypes

    @property
    def shapes(self) -> list[TensorShape]:
        """The shape of each component."""
        return self._shapes or [TensorShape(None) for _ in self._dtypes]

    @property
    def names(self) -> list[str] | None:
        """The name of each component, or None."""
        return self._names

    def enqueue(self, vals: Any, name: str | None = None) -> None:
        """Put an element into the queue; wait while the queue is full.

        Args:
            vals: A tensor, a list with one for each component, or a dict by their names.
            name: Ignored.

        Raises:
            ValueError: vals do not fit the components.
            CancelledError: The queue is closed.
        """
        found = self._components(vals, "enqueue")
        for value, shape in zip(found, self.shapes, strict=True):
            self._check_shape(value._shape, shape)
        self._put([tuple(found)])

    def enqueue_many(self, vals: Any, name: str | None = None) -> None:
        """Put the rows of tensors into the queue, one after the other.

        Args:
            vals: As for `enqueue`, with one more axis at the front.
            name: Ignored.

        Raises:
            ValueError: vals do not fit the components, or have different numbers of rows.
            CancelledError: The queue is closed.
        """
        found = self._components(vals, "enqueue_many")
        counts = {int(value._shape[0]) if value._rank else None for value in found}
        if len(counts) > 1 or None in counts:
            raise ValueError(
                f"[{self._kind}.enqueue_many] components must have the same number of rows: got "
                f"shapes {shown([tuple(value._shape) for value in found])}."
            )
        for value, shape in zip(found, self.shapes, strict=True):
            self._check_shape(value._shape[1:], shape)
        self._put([tuple(value[row] for value in found) for row in range(counts.pop() or 0)])

    def dequeue(self, name: str | None = None) -> Any:
        """Take an element out of the queue; wait while the queue is empty.

        Args:
            name: Ignored.

        Returns:
            A tensor, a list of tensors, or a dict of them by their names.

        Raises:
            OutOfRangeError: The queue is closed and empty.
        """
        return self._returned(self._take(1, 1)[0])

    def dequeue_many(self, n: Any, name: str | None = None) -> Any:
        """Take elements out of the queue and stack them; wait until there are enough.

        Args:
            n: The number of elements.
            name: Ignored.

        Returns:
            As `dequeue`, with one more axis at the front.

        Raises:
            OutOfRangeError: The queue is closed and has fewer elements.
            InvalidArgumentError: The queue has no shapes, or n is negative.
        """
        count = self._count(n, "dequeue_many")
        return self._stacked(self._take(count, count))

    def dequeue_up_to(self, n: Any, name: str | None = None) -> Any:
        """Take elements out of the queue and stack them; fewer when the queue is closed.

        Args:
            n: The largest number of elements.
            name: Ignored.

        Returns:
            As `dequeue`, with one more axis at the front.

        Raises:
            OutOfRangeError: The queue is closed and empty.
            InvalidArgumentError: The queue has no shapes, or n is negative.
        """
        count = self._count(n, "dequeue_up_to")
        return self._stacked(self._take(count, min(count, 1)))

    def close(self, cancel_pending_enqueues: bool = False, name: str | None = None) -> None:
        """Close the queue: no more elements can be put into it.

        Args:
            cancel_pending_enqueues: Raise CancelledError in threads that wait to put elements.
            name: Ignored.
        """
        self._in_python()
        with self._items.changed:
            self._items.closed = True
            self._items.cancelled |= cancel_pending_enqueues
            self._items.changed.notify_all()

    def is_closed(self, name: str | None = None) -> Tensor:
        """Return whether the queue is closed, a bool scalar."""
        self._in_python()
        return convert_to_tensor(self._items.closed)

    def size(self, name: str | None = None) -> Tensor:
        """Return the number of elements, an int32 scalar."""
        self._in_python()
        return convert_to_tensor(len(self._items.kept), "int32")

    def _in_python(self) -> None:
        if inside_function():
            need_python(
                f"[{self._kind}] a queue passes elements between threads of Python, and a traced "
                "function cannot wait: use it outside of the function.",
                TypeError,
            )

    def _components(self, vals: Any, who: str) -> list[Any]:
        """Return the components of an element as tensors."""
        self._in_python()
        if isinstance(vals, Mapping) != (self._names is not None):
            rule = "must have names to" if self._names is None else "has names:"
            raise ValueError(
                f"[{self._kind}.{who}] the queue {rule} enqueue a dictionary: got {shown(vals)}."
            )
        if self._names is not None:
            if sorted(vals) != sorted(self._names):
                raise ValueError(
                    f"[{self._kind}.{who}] keys of the dictionary must match names of Queue, "
                    f"{self._names}: got {sorted(vals)}."
                )
            parts = [vals[key] for key in self._names]
        else:
            parts = list(vals) if isinstance(vals, list | tuple) else [vals]
        if len(parts) != len(self._dtypes):
            raise ValueError(
                f"[{self._kind}.{who}] an element has {len(self._dtypes)} components: got "
                f"{len(parts)} in {shown(vals)}; put one tensor into a list."
            )
        return [
            text_of(part, f"{self._kind}.{who}") if dtype is string
            else convert_to_tensor(part, dtype)
            for part, dtype in zip(parts, self._dtypes, strict=True)
        ]  # fmt: skip

    def _check_shape(self, found: Iterable[Any], shape: TensorShape) -> None:
        if not TensorShape(found).is_compatible_with(shape):
            raise ValueError(
                f"[{self._kind}] a component must have shape {shape}: got {tuple(found)}; use "
                "reshape."
            )

    def _count(self, n: Any, who: str) -> int:
        self._in_python()
        count = whole(n)
        if self._shapes is None or count < 0:
            raise InvalidArgumentError(
                f"[{self._kind}.{who}] components need specified shapes, and n must be 0 or more: "
                f"got n={count} and shapes={self._shapes}; pass shapes to the constructor."
            )
        return count

    def _wait_for(self, ready: Callable[[], bool]) -> None:
        self._items.waiting += 1
        try:
            self._items.changed.wait_for(ready)
        finally:
            self._items.waiting -= 1

    def _put(self, elements: Sequence[Element]) -> None:
        items = self._items
        with items.changed:
            was_closed = items.closed
            for element in elements:
                self._wait_for(
                    lambda: was_closed or items.cancelled or items.capacity is None
                    or len(items.kept) < items.capacity
                )  # fmt: skip
                if was_closed or items.cancelled:
                    raise CancelledError(
                        None, None, f"[{self._kind}.enqueue] the queue is closed: enqueue before "
                        "close.",
                    )  # fmt: skip
                items.put(element)
                items.changed.notify_all()

    def _take(self, most: int, least: int) -> list[Element]:
        """Take elements as they come, so that more than the capacity can be taken."""
        self._in_python()
        items = self._items
        taken: list[Any] = []
        with items.taking, items.changed:
            try:
                while len(taken) < most:
                    self._wait_for(lambda: items.closed or len(items.kept) > items.least)
                    if not items.kept:
                        break
                    taken.append(items.take())
                    items.changed.notify_all()
                if len(taken) < least:
                    raise OutOfRangeError(
                        None, None, f"[{self._kind}.dequeue] the queue is closed and has "
                        f"insufficient elements (requested {most}, current size {len(taken)}).",
                    )  # fmt: skip
            except BaseException:
                items.restore(taken)
                raise
        return [each[-1] for each in taken]

    def _stacked(self, elements: list[Element]) -> Any:
        if not elements:
            none = [_empty(dtype, shape) for dtype, shape in
                    zip(self._dtypes, self.shapes, strict=True)]  # fmt: skip
            return self._returned(none)
        return self._returned([self._stack(column) for column in zip(*elements, strict=True)])

    def _stack(self, column: Sequence[Any]) -> Any:
        return stack([*column])

    def _returned(self, parts: Sequence[Any]) -> Any:
        if self._names is not None:
            return dict(zip(self._names, parts, strict=True))
        return parts[0] if len(parts) == 1 else list(parts)


def _empty(dtype: DType, shape: TensorShape) -> Any:
    sizes = [0, *(n or 0 for n in shape)]
    if dtype is string:
        return Text(np.empty(sizes, object))
    return convert_to_tensor(np.zeros(sizes, dtype.as_numpy_dtype), dtype)


class FIFOQueue(QueueBase):
    """A queue whose elements leave it in the order in which they came.

    Args:
        capacity: The largest number of elements; -1: unlimited.
        dtypes: The dtype of each component of an element.
        shapes: The shape of each component; None: they may differ.
        names: A name for each component, for elements that are dicts.
        shared_name: Ignored: other queues do not share the elements.
        name: The name of the queue.

    Example:
        >>> import samegrad as tf
        >>> queue = tf.queue.FIFOQueue(10, tf.int32, shapes=[[]])
        >>> queue.enqueue_many([[1, 2, 3]])
        >>> int(queue.dequeue()), queue.dequeue_many(2).numpy(), int(queue.size())
        (1, array([2, 3], dtype=int32), 0)
    """

    _kind = "FIFOQueue"

    def __init__(
        self, capacity: int, dtypes: Any, shapes: Any = None, names: Any = None,
        shared_name: str | None = None, name: str = "fifo_queue",
    ) -> None:  # fmt: skip
        super().__init__(dtypes, shapes, names, _Items(whole(capacity)))
        self._name = name


class PaddingFIFOQueue(QueueBase):
    """A queue in order of arrival that fills elements of a batch up with zeros.

    Args:
        capacity: The largest number of elements; -1: unlimited.
        dtypes: The dtype of each component of an element.
        shapes: The shape of each component, None for sizes that may differ.
        names: A name for each component, for elements that are dicts.
        shared_name: Ignored: other queues do not share the elements.
        name: The name of the queue.

    Example:
        >>> import samegrad as tf
        >>> queue = tf.queue.PaddingFIFOQueue(10, [tf.int32], [[None]])
        >>> queue.enqueue([[1]])
        >>> queue.enqueue([[2, 3]])
        >>> queue.dequeue_many(2).numpy()
        array([[1, 0],
               [2, 3]], dtype=int32)
    """

    _kind = "PaddingFIFOQueue"
    _pads = True

    def __init__(
        self, capacity: int, dtypes: Any, shapes: Any, names: Any = None,
        shared_name: str | None = None, name: str = "padding_fifo_queue",
    ) -> None:  # fmt: skip
        super().__init__(dtypes, shapes, names, _Items(whole(capacity)))
        if self._shapes is None:
            raise ValueError(
                f"[{self._kind}] shapes must be a shape for each of {len(self._dtypes)} "
                "components: got None; pass None for single sizes."
            )
        self._name = name

    def _stack(self, column: Sequence[Any]) -> Any:
        if len({tuple(value._shape) for value in column}) == 1:
            return stack([*column])
        arrays = [array_of(value) for value in column]
        sizes = np.max([array.shape for array in arrays], axis=0)
        filler = b"" if arrays[0].dtype == object else 0
        made = np.full([len(arrays), *sizes], filler, arrays[0].dtype)
        for row, array in zip(made, arrays, strict=True):
            row[tuple(map(slice, array.shape))] = array
        return leaf_of(made) if made.dtype == object else convert_to_tensor(made, column[0]._dtype)


class PriorityQueue(QueueBase):
    """A queue whose element with the smallest first component leaves first.

    Args:
        capacity: The largest number of elements; -1: unlimited.
        types: The dtype of each component behind the first one, which is int64.
        shapes: The shape of each of these components; None: they may differ.
        names: A name for each component, for elements that are dicts.
        shared_name: Ignored: other queues do not share the elements.
        name: The name of the queue.

    Example:
        >>> import samegrad as tf
        >>> queue = tf.queue.PriorityQueue(10, [tf.string], [[]])
        >>> queue.enqueue([2, "later"])
        >>> queue.enqueue([1, "first"])
        >>> queue.dequeue()[1].numpy()
        b'first'
    """

    _kind = "PriorityQueue"

    def __init__(
        self, capacity: int, types: Any, shapes: Any = None, names: Any = None,
        shared_name: str | None = None, name: str = "priority_queue",
    ) -> None:  # fmt: skip
        others = types if isinstance(types, list | tuple) else [types]
        if shapes is not None:
            alone = isinstance(shapes, TensorShape) or any(isinstance(n, int) for n in shapes)
            shapes = [(), *([shapes] if alone else shapes)]
        super().__init__(["int64", *others], shapes, names, _Ordered(whole(capacity)))
        self._name = name


class RandomShuffleQueue(QueueBase):
    """A queue whose elements leave it in random order.

    Args:
        capacity: The largest number of elements; -1: unlimited.
        min_after_dequeue: The number of elements that stay until the queue is closed.
        dtypes: The dtype of each component of an element.
        shapes: The shape of each component; None: they may differ.
        names: A name for each component, for elements that are dicts.
        seed: The seed of the order; None: another order each time.
        shared_name: Ignored: other queues do not share the elements.
        name: The name of the queue.

    Example:
        >>> import samegrad as tf
        >>> queue = tf.queue.RandomShuffleQueue(10, 0, tf.int32, [[]], seed=1)
        >>> queue.enqueue_many([[1, 2, 3]])
        >>> sorted(queue.dequeue_many(3).numpy().tolist())
        [1, 2, 3]
    """

    _kind = "RandomShuffleQueue"

    def __init__(
        self, capacity: int, min_after_dequeue: int, dtypes: Any, shapes: Any = None,
        names: Any = None, seed: int | None = None, shared_name: str | None = None,
        name: str = "random_shuffle_queue",
    ) -> None:  # fmt: skip
        items = _Shuffled(whole(capacity), whole(min_after_dequeue), seed)
        super().__init__(dtypes, shapes, names, items)
        self._name = name


__all__ = ["FIFOQueue", "PaddingFIFOQueue", "PriorityQueue", "QueueBase", "RandomShuffleQueue"]
guard(__name__)
