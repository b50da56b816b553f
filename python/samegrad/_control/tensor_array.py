"""`samegrad.TensorArray`: tensors by number, written and read one by one.

Where indices are known it is a list. Where a step computes them it is one tensor with an axis of
all elements before the others, of which an iteration of a loop writes and reads single rows. The
engine does so in place, so that an iteration costs what it writes.
"""

from __future__ import annotations

from typing import Any, NoReturn

from samegrad import _core
from samegrad._base.dtypes import DType, DTypeLike, as_dtype
from samegrad._base.shown import shown
from samegrad._context.python_runs import leave_trace, need_python
from samegrad._control.carried_values import FormLearntError, Stacked
from samegrad._control.element_form import ElementForm
from samegrad._ops.arrays import concat, split, stack, unstack
from samegrad._ops.gather import gather
from samegrad._ops.scatter import tensor_scatter_nd_update
from samegrad._tensor import sizes as _sizes
from samegrad._tensor.axes import counts_examples
from samegrad._tensor.tensor import Tensor, TensorLike, TensorShape, convert_to_tensor, dim_of
from samegrad.errors import InvalidArgumentError, OutOfRangeError

_ops = _core.ops
_WHO = "TensorArray"


class TensorArray(Stacked):
    """An array of tensors: elements are written and read one by one, and stacked at the end.

    It works in eager code and in traced functions, in Python's loops, in `while_loop` and in loops
    that become part of a step. In such a loop the number of elements is `size`, a write or read
    costs no more than its element, and gradients flow through all of it. A write changes the array
    and returns it. Inside a branch or a loop of a step it returns a new one, which replaces the old
    one: `array = array.write(i, x)`.

    Args:
        dtype: The dtype of the elements.
        size: The number of elements.
        dynamic_size: Let writes after the last element extend the array (not by an index that the
            step computes).
        clear_after_read: Allow only one read of an element by a known index; default True.
        tensor_array_name: Ignored.
        handle: Ignored.
        flow: Ignored.
        infer_shape: Require all elements to have the shape of the first one.
        element_shape: The shape of the elements, if it is known before. Elements that are never
            written are zeros of it.
        colocate_with_first_write_call: Ignored.
        name: Ignored.

    Raises:
        ValueError: The size is missing or negative.
        TypeError: samegrad lacks the dtype.

    Example:
        >>> import samegrad as tf
        >>> @tf.function
        ... def powers(x, n):
        ...     array, power = tf.TensorArray(tf.float32, size=4), 1.0
        ...     for i in tf.range(n):
        ...         power *= x
        ...         array = array.write(i, power)
        ...     return array.stack()
        >>> powers(tf.constant(2.0), tf.constant(3)).numpy()
        array([2., 4., 8., 0.], dtype=float32)
    """

    def __init__(
        self,
        dtype: DTypeLike,
        size: Any = None,
        dynamic_size: bool | None = None,
        clear_after_read: bool | None = None,
        tensor_array_name: str | None = None,
        handle: Any = None,
        flow: Any = None,
        infer_shape: bool = True,
        element_shape: Any = None,
        colocate_with_first_write_call: bool = True,
        name: str | None = None,
    ) -> None:
        if size is None:
            raise ValueError(f"[{_WHO}] an array needs a size: got None; pass size, or 0.")
        count = _known(size)
        if count is None:
            need_python(
                f"[{_WHO}] the size must be known in a trace: got {shown(size)}; pass x.shape[0].",
                ValueError,
            )
        if count < 0:
            raise ValueError(f"[{_WHO}] the size must not be negative: got {count}.")
        self._form = ElementForm(as_dtype(dtype).name, element_shape, bool(infer_shape))
        self._dynamic = bool(dynamic_size)
        self._clears = clear_after_read is None or bool(clear_after_read)
        self._start([None] * count, None)

    def _start(self, elements: list[Tensor | None], rows: Tensor | None) -> None:
        self._elements, self._rows = elements, rows
        self._cleared: set[int] = set()
        self._trace = _here()
        self._lost = False  # a write in a branch or loop made another array
        self._waits = False  # in a loop: for the shape of its elements

    def _copy(self) -> TensorArray:
        new = object.__new__(TensorArray)
        new._form, new._dynamic, new._clears = self._form, self._dynamic, self._clears
        new._start(list(self._elements), self._rows)
        new._cleared, new._waits = set(self._cleared), self._waits
        return new

    # ---- what crosses the border of a branch or loop ----

    def _as_stacked(self) -> Tensor:
        self._check_current()
        if self._rows is None:
            if not self._form.whole:
                # Nothing stands for it until a round writes an element.
                return _ops.zeros(shape=[len(self._elements), 0], dtype=self._form.dtype)
            rows = self._stacked()
            if self._trace is _here():
                self._rows = rows
            return rows
        return self._rows

    def _holding(self, tensor: Tensor) -> TensorArray:
        new = self._copy()
        new._waits = self._rows is None
        new._rows = None if new._waits else tensor
        return new

    def _learns(self, form: object) -> bool:
        return self._form is form and not self._waits

    def _check_current(self) -> None:
        if self._lost and self._trace is _here():
            raise ValueError(
                f"[{_WHO}] this array was written inside a branch, a loop or a function, and what "
                "the write returned is the array since then: use that, as in "
                "array = array.write(index, value)."
            )

    def _changed(self) -> TensorArray:
        """Return the array that a write changes."""
        self._check_current()
        if self._trace is _here():
            return self
        self._lost = True
        return self._copy()

    @property
    def dtype(self) -> DType:
        """The dtype of the elements."""
        return as_dtype(self._form.dtype)

    @property
    def dynamic_size(self) -> bool:
        """True if the array grows."""
        return self._dynamic

    @property
    def element_shape(self) -> TensorShape | None:
        """The shape of the elements, with None for unknown sizes."""
        return None if self._form.sizes is None else TensorShape(self._form.sizes)

    def _count(self) -> int | None:
        """Return the number of elements; None if it follows from the examples."""
        count: int | None = len(self._elements)
        return count if self._rows is None else self._rows._shape[0]

    def size(self, name: str | None = None) -> Tensor:
        """Return the number of elements, an int32 scalar."""
        self._check_current()
        if self._rows is not None:
            return convert_to_tensor(dim_of(self._rows, 0), "int32")
        return convert_to_tensor(len(self._elements), "int32")

    def write(self, index: Any, value: TensorLike, name: str | None = None) -> TensorArray:
        """Write an element.

        Args:
            index: The index, an integer scalar.
            value: A tensor of the array's dtype.
            name: Ignored.

        Returns:
            This array; inside of a branch, a loop of a step or another function a new one.

        Raises:
            OutOfRangeError: The index is out of range, and the array does not grow.
            InvalidArgumentError: The step computes an index out of range, or the value has another
                dtype.
            ValueError: The value has another shape than other elements.

        Example:
            >>> import samegrad as tf
            >>> tf.TensorArray(tf.float32, size=2).write(1, 5.0).stack().numpy()
            array([0., 5.], dtype=float32)
        """
        row = self._element(value)
        at = _known(index)
        self._form.check(row)
        if self._waits:
            self._form.learn(row)
            raise FormLearntError(self._form)
        array = self._changed()
        if at is None:
            array._put_row(_index(index), row)
        elif array._rows is None:
            array._check_place(at, "write", grows=self._dynamic)
            array._elements.extend([None] * (at + 1 - len(array._elements)))
            array._elements[at] = row
            array._cleared.discard(at)
        else:
            array._check_place(at, "write")
            array._put_row(convert_to_tensor(at), row)
        return array

    def _put_row(self, index: Tensor, row: Tensor) -> None:
        if self._dynamic and not self._count():
            leave_trace(
                f"[{_WHO}] an array does not grow by an index that a step of replicas computes: "
                "got size=0 and dynamic_size=True; pass the most elements that it may have, as in "
                "TensorArray(dtype, size=max_length), and cut off those that were not written."
            )
        if not self._form.whole:
            self._form.learn(row)
        if self._rows is None:
            self._rows = self._stacked()
        self._rows = _ops.write_row(self._rows, index, row)

    def _element(self, value: TensorLike) -> Tensor:
        plain = not isinstance(value, Tensor) and not getattr(value, "_is_variable", False)
        row = convert_to_tensor(value, self._form.dtype if plain else None)
        if row._dtype != self._form.dtype:
            raise InvalidArgumentError(
                f"[{_WHO}] elements are {self._form.dtype}: got a value of {row._dtype}; cast it."
            )
        return row

    def _check_place(self, at: int, what: str, grows: bool = False) -> None:
        size = self._count()
        if at < 0 or (size is not None and at >= size and not grows):
            raise OutOfRangeError(
                f"[{_WHO}] {what}: an index must lie in [0, {size}): got {at}; pass a larger size"
                f"{'' if what == 'read' else ', or dynamic_size=True'}."
            )

    def read(self, index: Any, name: str | None = None) -> Tensor:
        """Read an element.

        Args:
            index: The index, an integer scalar.
            name: Ignored.

        Returns:
            The element; zeros if it was not written and the shape is known.

        Raises:
            OutOfRangeError: The index is out of range.
            InvalidArgumentError: The step computes an index out of range, or the element was read
                before and `clear_after_read` is not False.
            ValueError: The element was not written, and its shape is unknown.

        Example:
            >>> import samegrad as tf
            >>> float(tf.TensorArray(tf.float32, size=2).unstack([3.0, 4.0]).read(1))
            4.0
        """
        self._check_current()
        at = _known(index)
        if at is not None and self._rows is None:
            self._check_place(at, "read")
            element = self._present(at)
            if self._clears and self._trace is _here():
                self._elements[at] = None
                self._cleared.add(at)
            return element
        if at is not None:
            self._check_place(at, "read")
        if self._waits:
            raise ValueError(
                f"[{_WHO}] the shape of the elements is not known before one is written: pass "
                "element_shape."
            )
        return _ops.read_row(self._as_stacked(), _index(index if at is None else at))

    def _present(self, at: int) -> Tensor:
        element = self._elements[at]
        if at in self._cleared:
            raise InvalidArgumentError(
                f"[{_WHO}] element {at} was cleared when it was read: pass clear_after_read=False."
            )
        return self._form.zeros() if element is None else element

    def _stacked(self) -> Tensor:
        if all(element is None for element in self._elements) and not self._cleared:
            return self._form.zeros([len(self._elements)])
        return stack([self._present(at) for at in range(len(self._elements))])

    def stack(self, name: str | None = None) -> Tensor:
        """Stack all elements along a new first axis.

        Raises:
            ValueError: Shapes differ, or elements were not written and their shape is unknown.
            InvalidArgumentError: An element was cleared by a read.

        Example:
            >>> import samegrad as tf
            >>> tf.TensorArray(tf.int32, size=2).write(0, 3).write(1, 4).stack().numpy()
            array([3, 4], dtype=int32)
        """
        self._check_current()
        return self._stacked() if self._rows is None else self._rows

    def gather(self, indices: TensorLike, name: str | None = None) -> Tensor:
        """Stack the elements at indices along a new first axis.

        Args:
            indices: A vector of integers.
            name: Ignored.

        Returns:
            A tensor of shape [indices, ...].

        Example:
            >>> import samegrad as tf
            >>> tf.TensorArray(tf.float32, 3).unstack([1.0, 2.0, 3.0]).gather([2, 0]).numpy()
            array([3., 1.], dtype=float32)
        """
        return gather(self.stack(), indices)

    def concat(self, name: str | None = None) -> Tensor:
        """Concatenate all elements along their first axis.

        Raises:
            InvalidArgumentError: Elements have no axes.
            ValueError: Shapes differ in other axes.

        Example:
            >>> import samegrad as tf
            >>> array = tf.TensorArray(tf.float32, size=2, infer_shape=False)
            >>> array.write(0, [1.0]).write(1, [2.0, 3.0]).concat().numpy()
            array([1., 2., 3.], dtype=float32)
        """
        self._check_current()
        if self._rows is None:
            parts = [self._present(at) for at in range(len(self._elements))]
        else:
            parts = unstack(self._rows)
        if any(part._rank == 0 for part in parts):
            raise InvalidArgumentError(
                f"[{_WHO}] concat: elements must have axes: got shape (); use stack."
            )
        return concat(parts, 0) if parts else self._form.zeros([0])[..., 0]

    def unstack(self, value: TensorLike, name: str | None = None) -> TensorArray:
        """Write the slices of a tensor along its first axis as elements.

        Args:
            value: A tensor of shape [elements, ...].
            name: Ignored.

        Returns:
            This array; inside of a branch, a loop of a step or another function a new one.

        Raises:
            ValueError: There are more slices than elements, and the array does not grow.
            InvalidArgumentError: The value has another dtype.

        Example:
            >>> import samegrad as tf
            >>> array = tf.TensorArray(tf.float32, size=2).unstack([[1.0], [2.0]])
            >>> array.read(0).numpy()
            array([1.], dtype=float32)
        """
        rows = self._element(value)
        if not rows._rank:
            raise ValueError(f"[{_WHO}] unstack: the value must have rows: got shape ().")
        if counts_examples(rows, 0):
            rows = _ops.as_rows(rows)
        count = rows._shape[0]
        self._check_count("unstack", count)
        array = self._changed()
        if not rows._symbolic:
            elements = unstack(rows)
            for element in elements:
                array._form.check(element)
            array._start([*elements], None)
        else:
            if count != 0:
                array._form.check(_ops.read_row(rows, _index(0)))
            array._start([None] * (count or 0), rows)
        return array

    def _check_count(self, what: str, count: int | None) -> None:
        size = self._count()
        if count is not None and size is not None and count > size and not self._dynamic:
            raise ValueError(
                f"[{_WHO}] {what}: an array of {size} elements cannot hold {count}: pass a larger "
                "size, or dynamic_size=True."
            )

    def scatter(
        self, indices: TensorLike, value: TensorLike, name: str | None = None
    ) -> TensorArray:
        """Write the slices of a tensor along its first axis at indices.

        Args:
            indices: A vector of integers [n].
            value: A tensor of shape [n, ...].
            name: Ignored.

        Returns:
            This array; inside of a branch, a loop of a step or another function a new one.

        Raises:
            OutOfRangeError: An index is out of range, and the array does not grow.
            ValueError: The numbers of indices and slices differ.
            InvalidArgumentError: The value has another dtype.

        Example:
            >>> import samegrad as tf
            >>> tf.TensorArray(tf.float32, size=3).scatter([2, 0], [5.0, 6.0]).stack().numpy()
            array([6., 0., 5.], dtype=float32)
        """
        rows, at = self._element(value), convert_to_tensor(indices)
        if at._rank != 1 or not rows._rank or rows.shape[0] != at.shape[0]:
            raise ValueError(
                f"[{_WHO}] scatter: indices must be a vector with an index per row: got shapes "
                f"{at._shape} and {rows._shape}."
            )
        if at._symbolic:
            array = self._changed()
            self._form.check(_ops.read_row(rows, _index(0)))
            array._rows = tensor_scatter_nd_update(array._as_stacked(), at[:, None], rows)
            return array
        array = self
        for k, place in enumerate(at.numpy().tolist()):
            array = array.write(place, rows[k])
        return array

    def split(self, value: TensorLike, lengths: Any, name: str | None = None) -> TensorArray:
        """Write consecutive parts of a tensor along its first axis as elements.

        Args:
            value: A tensor of shape [n, ...].
            lengths: The length of each element; the lengths sum to n.
            name: Ignored.

        Returns:
            This array; inside of a branch, a loop of a step or another function a new one.

        Raises:
            InvalidArgumentError: The lengths do not sum to n, or are not as many as the elements.

        Example:
            >>> import samegrad as tf
            >>> array = tf.TensorArray(tf.float32, size=2, infer_shape=False)
            >>> array.split([1.0, 2.0, 3.0], [1, 2]).read(1).numpy()
            array([2., 3.], dtype=float32)
        """
        rows = self._element(value)
        sizes = [int(n) for n in _sizes.sizes_of(lengths)]
        if not rows._rank or sum(sizes) != rows.shape[0] or min(sizes, default=0) < 0:
            raise InvalidArgumentError(
                f"[{_WHO}] split: lengths must add up to the rows of the value: got {sizes} for "
                f"shape {rows._shape}."
            )
        array = self._changed()
        if len(sizes) != len(array._elements) and not self._dynamic:
            raise InvalidArgumentError(
                f"[{_WHO}] split: an array of {len(array._elements)} elements cannot hold "
                f"{len(sizes)} parts: pass dynamic_size=True."
            )
        parts = split(rows, sizes, 0)
        for part in parts:
            array._form.check(part)
        array._start([*parts], None)
        return array

    def identity(self) -> TensorArray:
        """Return another array with the same elements."""
        self._check_current()
        return self._copy()

    def grad(self, source: Any, flow: Any = None, name: str | None = None) -> NoReturn:
        """Raise an error, as in TensorFlow 2.

        Args:
            source: Ignored.
            flow: Ignored.
            name: Ignored.

        Raises:
            NotImplementedError: Always.
        """
        raise NotImplementedError(
            f"[{_WHO}] gradients flow through arrays by themselves: got grad({shown(source)}); use "
            "GradientTape."
        )

    def close(self, name: str | None = None) -> None:
        """Release all elements."""
        self._start([], None)

    def __repr__(self) -> str:
        return f"<samegrad.TensorArray: size={self._count()}, dtype={self._form.dtype}>"


def _here() -> Any:
    """Return the trace that records; None outside of functions."""
    return _core.current_trace() if _core.tracing() else None


def _known(value: Any) -> int | None:
    """Return the value of an integer, or None if the step computes it."""
    if isinstance(value, Tensor) or getattr(value, "_is_variable", False):
        tensor = convert_to_tensor(value)
        if tensor._symbolic:
            return None
        value = tensor.numpy()[()] if not tensor._rank else tensor
    return _sizes.whole(value, "an index is an integer")


def _index(value: Any) -> Tensor:
    return convert_to_tensor(value, None if isinstance(value, Tensor) else "int64")


__all__ = ["TensorArray"]
