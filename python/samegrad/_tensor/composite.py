"""Base class of tensors that consist of several tensors."""

from __future__ import annotations

from typing import Any

from samegrad._base.dtypes import DType, as_dtype
from samegrad._tensor.shape import TensorShape


class Composite:
    """A tensor that is kept as values and where they belong.

    Attributes:
        values: A tensor or text, in which the values are one after the other.
    """

    values: Any

    @property
    def dtype(self) -> DType:
        """The dtype of the values."""
        kind = self.values.dtype
        return kind if isinstance(kind, DType) else as_dtype(kind)

    @property
    def shape(self) -> TensorShape:
        """The sizes of the axes."""
        raise NotImplementedError

    def get_shape(self) -> TensorShape:
        """Return the sizes of the axes."""
        return self.shape

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return self._rank

    @property
    def _shape(self) -> tuple[Any, ...]:
        return tuple(self.shape)

    @property
    def _rank(self) -> int:
        return len(self.shape)

    @property
    def _dtype(self) -> str:
        return self.dtype.name
