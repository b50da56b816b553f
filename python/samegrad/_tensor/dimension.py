"""`tf.compat.v1.Dimension`: the size of an axis, as `TensorShape.dims` holds it."""

from __future__ import annotations

import operator
from typing import Any, NoReturn

from samegrad._base.shown import shown
from samegrad._tensor.dim import Dim


class Dimension:
    """The size of an axis, which may be unknown.

    Sums, products and quotients with an unknown size are unknown, and comparisons with it are None.

    Args:
        value: An integer of 0 or more, another `Dimension`, or None if the size is unknown.

    Raises:
        TypeError: value is not an integer.
        ValueError: value is negative.

    Example:
        >>> Dimension(3) + 4, Dimension(3) * Dimension(None), Dimension(3) == 3
        (Dimension(7), Dimension(None), True)
    """

    def __init__(self, value: Any) -> None:
        self._value = _size(value)

    @property
    def value(self) -> int | None:
        """The size, or None if it is unknown."""
        return self._value

    def is_compatible_with(self, other: Any) -> bool:
        """Tell whether two sizes can be those of one axis.

        Args:
            other: A size.

        Returns:
            True where they are equal, or one is unknown.
        """
        size = _size(other)
        return self._value is None or size is None or self._value == size

    def assert_is_compatible_with(self, other: Any) -> None:
        """Raise unless two sizes can be those of one axis.

        Args:
            other: A size.

        Raises:
            ValueError: Both are known and differ.
        """
        if not self.is_compatible_with(other):
            raise ValueError(
                "[Dimension] Dimensions of one axis must be equal: got "
                f"{self._value} and {_size(other)}, which are not compatible; pass None for a size "
                "that may differ."
            )

    def merge_with(self, other: Any) -> Dimension:
        """Combine what is known of the size of one axis.

        Args:
            other: A size.

        Returns:
            The known size.

        Raises:
            ValueError: Both are known and differ.
        """
        self.assert_is_compatible_with(other)
        return Dimension(_size(other) if self._value is None else self._value)

    def _with(self, other: Any, op: Any, swapped: bool = False) -> Any:
        size = _operand(other)
        if size is NotImplemented or self._value is None or size is None:
            return size if size is NotImplemented else Dimension(None)
        return Dimension(op(size, self._value) if swapped else op(self._value, size))

    def _compared(self, other: Any, op: Any) -> Any:
        size = _operand(other)
        if size is NotImplemented or self._value is None or size is None:
            return size if size is NotImplemented else None
        return op(self._value, size)

    def __add__(self, other: Any) -> Any:
        return self._with(other, operator.add)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        return self._with(other, operator.sub)

    def __rsub__(self, other: Any) -> Any:
        return self._with(other, operator.sub, swapped=True)

    def __mul__(self, other: Any) -> Any:
        return self._with(other, operator.mul)

    __rmul__ = __mul__

    def __floordiv__(self, other: Any) -> Any:
        return self._with(other, operator.floordiv)

    def __rfloordiv__(self, other: Any) -> Any:
        return self._with(other, operator.floordiv, swapped=True)

    def __mod__(self, other: Any) -> Any:
        return self._with(other, operator.mod)

    def __rmod__(self, other: Any) -> Any:
        return self._with(other, operator.mod, swapped=True)

    def __truediv__(self, other: Any) -> NoReturn:
        _refuse_fraction(self, other)

    def __rtruediv__(self, other: Any) -> NoReturn:
        _refuse_fraction(other, self)

    def __eq__(self, other: object) -> Any:
        return self._compared(other, operator.eq)

    def __ne__(self, other: object) -> Any:
        return self._compared(other, operator.ne)

    def __lt__(self, other: Any) -> Any:
        return self._compared(other, operator.lt)

    def __le__(self, other: Any) -> Any:
        return self._compared(other, operator.le)

    def __gt__(self, other: Any) -> Any:
        return self._compared(other, operator.gt)

    def __ge__(self, other: Any) -> Any:
        return self._compared(other, operator.ge)

    __hash__ = None  # type: ignore[assignment]

    def __int__(self) -> int:
        if self._value is None:
            raise TypeError(
                "[Dimension] the size must be known for int: got Dimension(None); read tf.shape."
            )
        return self._value

    __index__ = __int__

    def __bool__(self) -> bool:
        return bool(self._value)

    def __reduce__(self) -> Any:
        return Dimension, (self._value,)

    def __repr__(self) -> str:
        return f"Dimension({self._value})"

    def __str__(self) -> str:
        return "?" if self._value is None else str(self._value)


def _size(value: Any) -> int | None:
    """Return a size as a number, or None if it is unknown."""
    if isinstance(value, Dimension):
        return value._value
    if value is None or isinstance(value, Dim):
        return None
    try:
        size = operator.index(value)
    except TypeError:
        raise TypeError(
            "[Dimension] Dimension value must be integer or None: got "
            f"{type(value).__name__} {shown(value)}; pass an int."
        ) from None
    if size < 0:
        raise ValueError(
            f"[Dimension] Dimension value must be >= 0: got {size}; pass None for an unknown size."
        )
    return size


def _operand(other: object) -> Any:
    try:
        return _size(other)
    except TypeError:
        return NotImplemented


def _refuse_fraction(x: Any, y: Any) -> NoReturn:
    kinds = " and ".join(repr(type(value).__name__) for value in (x, y))
    raise TypeError(
        f"[Dimension] sizes are integers: unsupported operand type(s) for /: {kinds}, please use "
        "// instead."
    )


__all__ = ["Dimension"]
