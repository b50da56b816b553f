"""`samegrad.TensorSpec`: what is known of a tensor before it is there."""

from __future__ import annotations

from typing import Any

from samegrad._base.dtypes import DType, DTypeLike, complex_type, element_type, float32
from samegrad._tensor.complex_tensor import ComplexTensor
from samegrad._tensor.conversion import Tensor
from samegrad._tensor.shape import TensorShape
from samegrad._tensor.sizes import whole


class TensorSpec:
    """Shape and dtype of a tensor that does not exist yet.

    Args:
        shape: The sizes of the axes; None for sizes that vary. None for the whole shape: any tensor
            of the dtype.
        dtype: The dtype of the elements, or `tf.string`. A complex dtype makes two specs, those of
            the real and the imaginary part.
        name: Anything.

    Raises:
        TypeError: samegrad lacks the dtype, or a size is not an integer.

    Example:
        >>> import samegrad as tf
        >>> tf.TensorSpec((None, 28, 28), tf.float32)
        TensorSpec(shape=(None, 28, 28), dtype=samegrad.float32)
    """

    __slots__ = ("_dtype", "_name", "_shape")

    def __new__(cls, shape: Any = None, dtype: Any = float32, name: str | None = None) -> Any:
        kind = complex_type(dtype)
        if kind is None:
            return object.__new__(cls)
        return ComplexTensor(*(cls(shape, kind.real_dtype, name) for _ in range(2)))

    def __init__(self, shape: Any, dtype: DTypeLike = float32, name: str | None = None) -> None:
        given = shape if shape is None else TensorShape(shape)
        self._shape = (
            TensorShape(None)
            if given is None or given.rank is None
            else TensorShape(None if n is None else whole(n) for n in given)
        )
        self._dtype = element_type(dtype)
        self._name = name

    @classmethod
    def from_tensor(cls, tensor: Tensor, name: str | None = None) -> TensorSpec:
        """Return the spec of a tensor.

        Args:
            tensor: A tensor.
            name: The name of the spec.

        Returns:
            A `TensorSpec` of the shape and dtype of `tensor`.

        Example:
            >>> import samegrad as tf
            >>> tf.TensorSpec.from_tensor(tf.constant([1, 2]))
            TensorSpec(shape=(2,), dtype=samegrad.int32)
        """
        return cls(tensor._shape, tensor._dtype, name)

    @property
    def shape(self) -> TensorShape:
        """Sizes of the axes."""
        return self._shape

    @property
    def dtype(self) -> DType:
        """The type of the elements."""
        return self._dtype

    @property
    def name(self) -> str | None:
        """The name given."""
        return self._name

    def is_compatible_with(self, spec_or_tensor: Tensor | TensorSpec) -> bool:
        """Return True if a tensor, or every tensor of another spec, fits this spec.

        Args:
            spec_or_tensor: A tensor or a spec.

        Returns:
            A bool.

        Example:
            >>> import samegrad as tf
            >>> tf.TensorSpec((None,), tf.int32).is_compatible_with(tf.constant([1, 2]))
            True
        """
        given = spec_or_tensor
        other = given if isinstance(given, TensorSpec) else TensorSpec.from_tensor(given)
        if self._dtype != other._dtype or self._shape.rank is None:
            return self._dtype == other._dtype
        return other._shape.rank == self._shape.rank and all(
            a is None or a == b for a, b in zip(self._shape, other._shape, strict=True)
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TensorSpec) and (
            self._shape == other._shape and self._dtype == other._dtype
        )

    def __hash__(self) -> int:
        return hash((self._shape, self._dtype))

    def __repr__(self) -> str:
        return f"TensorSpec(shape={self._shape}, dtype={self._dtype!r})"
