"""`samegrad.TensorShape`."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator
from typing import Any, NoReturn, TypeAlias

from samegrad._base.shown import shown
from samegrad._tensor.dim import Dim
from samegrad._tensor.dimension import Dimension

Shape: TypeAlias = Iterable[Any]


class TensorShape(tuple):  # type: ignore[type-arg]
    """The sizes of a tensor's axes: a tuple with TensorFlow's methods.

    Args:
        dims: The sizes, None for unknown ones; an integer: a single axis; None: an unknown number
            of axes.

    Example:
        >>> TensorShape((2, 3)).num_elements(), TensorShape((2, 3)) == [2, 3]
        (6, True)
    """

    __slots__ = ()
    _is_leaf = True

    def __new__(cls, dims: Any = ()) -> TensorShape:
        if dims is None:
            return tuple.__new__(_UnknownShape)
        if isinstance(dims, int | Dim | Dimension):
            dims = (dims,)
        made = super().__new__(cls, dims)
        if Dimension not in map(type, made):
            return made
        return super().__new__(cls, (n.value if isinstance(n, Dimension) else n for n in made))

    @property
    def rank(self) -> int | None:
        """The number of axes; None if it is unknown."""
        return tuple.__len__(self)

    @property
    def ndims(self) -> int | None:
        """The number of axes; None if it is unknown."""
        return self.rank

    @property
    def dims(self) -> list[Dimension] | None:
        """The sizes as a list of `Dimension`; None if the number of axes is unknown."""
        return None if self.rank is None else [Dimension(size) for size in self]

    def as_list(self) -> list[int | None]:
        """Return the sizes as a list, with None for those that depend on the number of examples.

        Raises:
            ValueError: The number of axes is unknown.
        """
        return [None if isinstance(size, Dim) else size for size in self]

    def num_elements(self) -> int | None:
        """Return the product of the sizes, or None if one is unknown."""
        product = 1
        for size in self:
            if size is None:
                return None
            product *= size
        return product

    def is_fully_defined(self) -> bool:
        """Tell whether all sizes are numbers."""
        return self.rank is not None and None not in self.as_list()

    def is_compatible_with(self, other: Any) -> bool:
        """Tell whether a tensor may have both shapes.

        Args:
            other: A shape, or sizes.

        Returns:
            A bool.

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
        """Combine the known sizes of two shapes of one tensor.

        Args:
            other: A shape, or sizes.

        Returns:
            The shape with the sizes that either one knows.

        Raises:
            ValueError: The shapes are incompatible.
        """
        self.assert_is_compatible_with(other)
        other = as_shape(other)
        if self.rank is None or other.rank is None:
            return self if other.rank is None else TensorShape(other)
        return TensorShape(b if a is None else a for a, b in zip(self, other, strict=True))

    def is_subtype_of(self, other: Any) -> bool:
        """Tell whether every tensor of this shape is one of another shape.

        Args:
            other: A shape.

        Returns:
            A bool.

        Example:
            >>> TensorShape([1, 2]).is_subtype_of(TensorShape([None, 2]))
            True
        """
        if not isinstance(other, TensorShape):
            return False
        if other.rank is None or self.rank is None:
            return other.rank is None
        pairs = zip(self.as_list(), other.as_list(), strict=False)
        return self.rank == other.rank and all(b is None or a == b for a, b in pairs)

    def most_specific_compatible_shape(self, other: Any) -> TensorShape:
        """Return the narrowest shape that tensors of both shapes have.

        Args:
            other: A shape, or sizes.

        Returns:
            The shape with None where sizes differ; unknown where the numbers of axes differ.

        Example:
            >>> TensorShape([1, 2, 3]).most_specific_compatible_shape([1, 5, 3])
            (1, None, 3)
        """
        other = as_shape(other)
        if self.rank is None or self.rank != other.rank:
            return TensorShape(None)
        pairs = zip(self.as_list(), other.as_list(), strict=True)
        return TensorShape(a if a == b else None for a, b in pairs)

    def most_specific_common_supertype(self, others: Iterable[Any]) -> TensorShape | None:
        """Return the narrowest shape that tensors of all shapes have.

        Args:
            others: Shapes.

        Returns:
            The shape; None where one of others is not a `TensorShape`.
        """
        found = self
        for other in others:
            if not isinstance(other, TensorShape):
                return None
            found = found.most_specific_compatible_shape(other)
        return found

    def concatenate(self, other: Any) -> TensorShape:
        """Append the axes of another shape.

        Args:
            other: A shape, or sizes.

        Returns:
            The shape with the axes of both.
        """
        return self.__add__(other)

    def with_rank(self, rank: int) -> TensorShape:
        """Return the shape with a known number of axes.

        Args:
            rank: The number of axes.

        Returns:
            The shape, whose number of axes is `rank`.

        Raises:
            ValueError: The shape has another number of axes.
        """
        return self.merge_with([None] * rank)

    def with_rank_at_least(self, rank: int) -> TensorShape:
        """Check that the shape has at least `rank` axes, and return it.

        Args:
            rank: The least number of axes.

        Returns:
            The shape itself.

        Raises:
            ValueError: The shape has fewer axes.
        """
        if self.rank is not None and self.rank < rank:
            self._refuse(f"at least {rank} axes")
        return self

    def with_rank_at_most(self, rank: int) -> TensorShape:
        """Check that the shape has at most `rank` axes, and return it.

        Args:
            rank: The largest number of axes.

        Returns:
            The shape itself.

        Raises:
            ValueError: The shape has more axes.
        """
        if self.rank is not None and self.rank > rank:
            self._refuse(f"at most {rank} axes")
        return self

    def assert_is_compatible_with(self, other: Any) -> None:
        """Raise unless a tensor may have both shapes.

        Args:
            other: A shape, or sizes.

        Raises:
            ValueError: The shapes are incompatible.
        """
        if not self.is_compatible_with(other):
            raise ValueError(
                f"[TensorShape] shapes must agree where both are known: got {self} and "
                f"{as_shape(other)}; use reshape, or None for a size that may differ."
            )

    def assert_same_rank(self, other: Any) -> None:
        """Raise unless both shapes have the same number of axes.

        Args:
            other: A shape, or sizes.

        Raises:
            ValueError: The numbers of axes differ.
        """
        rank = as_shape(other).rank
        if None not in (rank, self.rank) and rank != self.rank:
            self._refuse(f"{rank} axes, as many as {as_shape(other)}")

    def assert_has_rank(self, rank: int) -> None:
        """Raise unless the shape has `rank` axes.

        Args:
            rank: The number of axes.

        Raises:
            ValueError: The shape has another number of axes.
        """
        if self.rank not in (None, rank):
            self._refuse(f"{rank} axes")

    def assert_is_fully_defined(self) -> None:
        """Raise unless all sizes are numbers.

        Raises:
            ValueError: A size is unknown.
        """
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
    """Shape with an unknown number of axes: made by `TensorShape(None)`."""

    __slots__ = ()

    @property
    def rank(self) -> None:
        """Not known."""
        return None

    def num_elements(self) -> None:
        """Return None: the number is unknown."""

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
    """Convert None, a number or sizes to a shape.

    Example:
        >>> as_shape(3)
        (3,)

    Raises:
        TypeError: The value is not a shape.
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


def broadcast_static_shape(shape_x: TensorShape, shape_y: TensorShape) -> TensorShape:
    """Return the shape that two broadcast shapes have, as far as it is known.

    Args:
        shape_x: A shape, which may have unknown sizes.
        shape_y: Another one.

    Returns:
        A `TensorShape`; a size is None where both are unknown, or one is and the other is 1.

    Raises:
        ValueError: Two sizes differ, and neither is 1.

    Example:
        >>> broadcast_static_shape(TensorShape([2, 1]), TensorShape([None, 3]))
        (2, 3)
    """
    x, y = as_shape(shape_x), as_shape(shape_y)
    if x.rank is None or y.rank is None:
        return TensorShape(None)
    rank = max(x.rank, y.rank)
    pairs = [((1,) * (rank - len(shape)) + tuple(shape)) for shape in (x, y)]
    return TensorShape([_broadcast_size(a, b, x, y) for a, b in zip(*pairs, strict=True)])


def _broadcast_size(a: Any, b: Any, x: TensorShape, y: TensorShape) -> Any:
    if a is None or b is None:
        known = b if a is None else a
        return None if known == 1 else known
    if a == b or b == 1:
        return a
    if a == 1:
        return b
    raise ValueError(
        f"[broadcast_static_shape] sizes on one axis must be equal or 1: got {a} and {b} of shapes "
        f"{x} and {y}."
    )
