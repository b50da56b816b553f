"""`samegrad.TensorShape`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias

from samegrad._base.shown import shown
from samegrad._tensor.dim import Dim

Shape: TypeAlias = Iterable[Any]


class TensorShape(tuple):  # type: ignore[type-arg]
    """The sizes of a tensor's axes: a tuple with TensorFlow's extras.

    Example:
        >>> TensorShape((2, 3)).num_elements()
        6
    """

    __slots__ = ()

    def __new__(cls, dims: Shape = ()) -> TensorShape:
        return super().__new__(cls, dims)

    @property
    def rank(self) -> int:
        """How many axes there are."""
        return len(self)

    @property
    def ndims(self) -> int:
        """How many axes there are."""
        return len(self)

    def as_list(self) -> list[int | None]:
        """The sizes; None where the number of examples decides."""
        return [None if isinstance(size, Dim) else size for size in self]

    def num_elements(self) -> int:
        """The product of the sizes."""
        product = 1
        for size in self:
            product *= size
        return product

    def __getitem__(self, key: Any) -> Any:
        try:
            item = super().__getitem__(key)
        except (IndexError, TypeError) as error:
            kind = IndexError if isinstance(error, IndexError) else TypeError
            raise kind(
                f"[TensorShape] a place is a whole number in [{-len(self)}, {len(self)}), or a "
                f"slice: got {shown(key)}."
            ) from error
        return TensorShape(item) if isinstance(key, slice) else item
