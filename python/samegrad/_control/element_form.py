"""Dtype and shape common to the elements of a `TensorArray`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from samegrad import _core
from samegrad._context import state as _context
from samegrad._tensor import sizes as _sizes
from samegrad._tensor.tensor import Tensor, dim_of

_ops = _core.ops
_WHO = "TensorArray"


class ElementForm:
    """Spec of all elements of an array, shared by the arrays made of it."""

    def __init__(self, dtype: str, shape: Iterable[Any] | None, infer: bool) -> None:
        self.dtype, self.infer = dtype, infer
        # Numbers and lengths; None for any, or for the examples, which have `rows` rows each.
        self.sizes = None if shape is None else [_size(n) for n in shape]
        self.rows = 0

    @property
    def whole(self) -> bool:
        """True if zeros of this spec can be created."""
        return self.sizes is not None and (None not in self.sizes or bool(self.rows))

    def check(self, value: Tensor) -> None:
        """An element has this form; the first one may decide it."""
        sizes = _sizes.sizes_but_counts(value)
        if self.sizes is None:
            if self.infer:
                self.learn(value)
            return
        # The engine tells whether a count of examples is a number.
        same = len(sizes) == len(self.sizes) and all(
            a is None or b is None or a == b for a, b in zip(self.sizes, sizes, strict=True)
        )
        if not same:
            raise ValueError(
                f"[{_WHO}] elements must have one shape: got {_text(sizes)} for "
                f"{_text(self.sizes)}; with infer_shape=False and no element_shape they need not."
            )
        if self.infer and not self.whole:
            self.learn(value)

    def learn(self, value: Tensor) -> None:
        """Elements are like this one."""
        self.sizes = _sizes.sizes_but_counts(value)
        axis = value._example_axis
        self.rows = axis[1] if axis and value._shape[axis[0]] is None else 0

    def zeros(self, before: Sequence[int] = ()) -> Tensor:
        """Return zeros in the form of an element, with other axes before."""
        if not self.whole:
            raise ValueError(
                f"[{_WHO}] an element that was not written is zeros, whose shape must be known: "
                f"pass element_shape (got {_text(self.sizes)})."
            )
        assert self.sizes is not None
        sizes: list[Any] = [*before, *self.sizes]
        if not self.rows:
            return _ops.zeros(shape=_sizes.codes_of(sizes), dtype=self.dtype)
        batch = _context.current().batches[0]
        axis, rows = batch._example_axis
        count = dim_of(batch, axis) // rows * self.rows
        return _sizes.full([count if size is None else size for size in sizes], self.dtype)


def _size(value: Any) -> Any:
    return value if value is None or _sizes.is_length(value) else _sizes.whole(value)


def _text(sizes: list[Any] | None) -> str:
    return "any shape" if sizes is None else str(tuple("?" if n is None else n for n in sizes))


__all__ = ["ElementForm"]
