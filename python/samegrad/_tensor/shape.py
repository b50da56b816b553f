"""`samegrad.TensorShape`."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator
from typing import Any, NoReturn, TypeAlias

from samegrad._base.shown import shown
from samegrad._tensor.dim import Dim

Shape: TypeAlias = Iterable[Any]


class TensorShape(tuple):  # type: ignore[type-arg]
    """The sizes of a tensor's axes: a tuple with TensorFlow's extras.

    Args:
        dims: The sizes, None where one is not known; one number: of a single axis; None: not even
            the number of axes is known.

    Example:
        >>> TensorShape((2, 3)).num_elements(), TensorShape((2, 3)) == [2, 3]
        (6, True)
    """

    __slots__ = ()

    def __new__(cls, dims: Any = ()) -> TensorShape:
        if dims is None:
            return tuple.__new__(_UnknownShape)
        return super().__new__(cls, (dims,) if isinstance(dims, int | Dim) else dims)

    @property
    def rank(self) -> int | None:
        """How many axes there are; None where that is not known."""
        return tuple.__len__(self)

    @property
    def ndims(self) -> int | None:
        """How many axes there are; None where that is not known."""
        return self.rank

    @property
    def dims(self) -> list[Any] | None:
        """The sizes as a list; None where not even their number is known."""
        return None if self.rank is None else list(self)

    def as_list(self) -> list[int | None]:
        """The sizes; None where the number of examples decides.

        Raises:
            ValueError: The number of axes is not known.
        """
        return [None if isinstance(size, Dim) else size for size in self]

    def num_elements(self) -> int | None:
        """The product of the sizes; None where one is not known."""
        product = 1
        for size in self:
            if size is None:
                return None
            product *= size
        return product

    def is_fully_defined(self) -> bool:
        """Whether all sizes are numbers."""
        return self.rank is not None and None not in self.as_list()

    def is_compatible_with(self, other: Any) -> bool:
        """Whether a tensor may have both shapes.

        Example:
            >>> TensorShape((None, 2)).is_compatible_with([5, 2])
            True
        """
        other = as_shape(other)
        if self.rank is None or other.rank is None:
            return True
        pairs = list(zip(self.as_list(), other.as_list(), strict=False))
        return self.rank == other.rank and all(a is None or b is None or a == b for a, b in pairs)

    def merge_with(self, other: Any) -> TensorShape:
        """What is known of a tensor that has both shapes.

        Raises:
            ValueError: No tensor has both.
        """
        self.assert_is_compatible_with(other)
        other = as_shape(other)
        if self.rank is None or other.rank is None:
            return self if other.rank is None else TensorShape(other)
        return TensorShape(b if a is None else a for a, b in zip(self, other, strict=True))

    def concatenate(self, other: Any) -> TensorShape:
        """These axes, and behind them the others."""
        return self.__add__(other)

    def with_rank(self, rank: int) -> TensorShape:
        """The shape, of which so many axes are known.

        Raises:
            ValueError: It has another number of axes.
        """
        return self.merge_with([None] * rank)

    def with_rank_at_least(self, rank: int) -> TensorShape:
        """The shape itself.

        Raises:
            ValueError: It has fewer axes.
        """
        if self.rank is not None and self.rank < rank:
            self._refuse(f"at least {rank} axes")
        return self

    def with_rank_at_most(self, rank: int) -> TensorShape:
        """The shape itself.

        Raises:
            ValueError: It has more axes.
        """
        if self.rank is not None and self.rank > rank:
            self._refuse(f"at most {rank} axes")
        return self

    def assert_is_compatible_with(self, other: Any) -> None:
        """Raises a ValueError unless a tensor may have both shapes."""
        if not self.is_compatible_with(other):
            raise ValueError(
                f"[TensorShape] shapes must agree where both are known: got {self} and "
                f"{as_shape(other)}; use reshape, or None for a size that may differ."
            )

    def assert_same_rank(self, other: Any) -> None:
        """Raises a ValueError unless both have the same number of axes."""
        rank = as_shape(other).rank
        if None not in (rank, self.rank) and rank != self.rank:
            self._refuse(f"{rank} axes, as many as {as_shape(other)}")

    def assert_has_rank(self, rank: int) -> None:
        """Raises a ValueError unless there are so many axes."""
        if self.rank not in (None, rank):
            self._refuse(f"{rank} axes")

    def assert_is_fully_defined(self) -> None:
        """Raises a ValueError unless all sizes are numbers."""
        if not self.is_fully_defined():
            self._refuse("sizes that are all known")

    def _refuse(self, wanted: str) -> NoReturn:
        raise ValueError(
            f"[TensorShape] the shape must have {wanted}: got {self}; use reshape or expand_dims."
        )

    def __eq__(self, other: object) -> bool:
        if isinstance(other, _UnknownShape):
            return False
        if isinstance(other, tuple | list):
            try:
                return tuple.__eq__(self, other if isinstance(other, tuple) else tuple(other))
            except ValueError:  # arrays among the sizes
                return False
        if isinstance(other, int) and not isinstance(other, bool):
            return tuple.__eq__(self, (other,))
        return NotImplemented

    def __ne__(self, other: object) -> bool:
        return not self == other if isinstance(other, tuple | list | int) else True

    __hash__ = tuple.__hash__

    def __add__(self, other: Any) -> TensorShape:
        more = as_shape(other)
        return more if more.rank is None else TensorShape((*self, *more))

    def __radd__(self, other: Any) -> TensorShape:
        return as_shape(other).concatenate(self)

    def __getitem__(self, key: Any) -> Any:
        try:
            item = super().__getitem__(key)
        except (IndexError, TypeError) as error:
            kind = IndexError if isinstance(error, IndexError) else TypeError
            raise kind(
                f"[TensorShape] a place is an integer in [{-len(self)}, {len(self)}), or a "
                f"slice: got {shown(key)}."
            ) from error
        return TensorShape(item) if isinstance(key, slice) else item


class _UnknownShape(TensorShape):
    """Of a tensor of which not even the number of axes is known: made by `TensorShape(None)`."""

    __slots__ = ()

    @property
    def rank(self) -> None:
        """Not known."""
        return None

    def num_elements(self) -> None:
        """Not known."""

    def _unknown(self, *_: Any) -> NoReturn:
        raise ValueError(
            "[TensorShape] the number of axes must be known: got TensorShape(None); look at the "
            "shape of a tensor."
        )

    def as_list(self) -> list[int | None]:
        """A ValueError: there is nothing to list."""
        self._unknown()

    def __iter__(self) -> Iterator[Any]:
        self._unknown()

    def __len__(self) -> int:
        self._unknown()

    def __getitem__(self, key: Any) -> Any:
        return self if isinstance(key, slice) else None

    def __add__(self, other: Any) -> TensorShape:
        return self

    __radd__ = __add__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _UnknownShape)

    def __hash__(self) -> int:
        return hash(_UnknownShape)

    def __bool__(self) -> bool:
        return False

    def __reduce__(self) -> Any:
        return TensorShape, (None,)

    def __repr__(self) -> str:
        return "<unknown>"


def as_shape(value: Any) -> TensorShape:
    """The value as a shape: None, a number, sizes.

    Example:
        >>> as_shape(3)
        (3,)

    Raises:
        TypeError: It is none.
        ValueError: A size is negative.
    """
    if isinstance(value, TensorShape):
        return value
    try:
        made = TensorShape(value)
        known = [n for n in made if n is not None and not isinstance(n, Dim)] if made else []
        if made.rank is None or all(operator.index(n) >= 0 for n in known):
            return made
    except TypeError as error:
        raise TypeError(
            f"[TensorShape] a shape must be None, a number or sizes: got {shown(value)}; pass "
            "the shape of a tensor."
        ) from error
    raise ValueError(
        f"[TensorShape] sizes must not be negative: got {shown(value)}; pass None where one is not "
        "known."
    )
