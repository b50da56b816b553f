"""Conversion of values to tensors, strings included."""

from __future__ import annotations

from typing import Any

from samegrad._base.dtypes import DTypeLike, string
from samegrad._base.shown import shown
from samegrad._tensor import conversion
from samegrad._tensor.conversion import Tensor
from samegrad._tensor.sizes import sizes_of
from samegrad._tensor.text import Text, is_text, of_bytes, text_of


def _wants_text(value: Any, dtype: Any) -> bool:
    if dtype is None:
        return isinstance(value, Text) or is_text(value)
    return dtype is string or dtype in ("string", "str") or dtype is str


def is_tensor(value: object) -> bool:
    """Tell whether a value is a tensor, a string tensor or a variable.

    Example:
        >>> import samegrad as tf
        >>> tf.is_tensor(tf.constant(1.0)), tf.is_tensor(tf.constant("a")), tf.is_tensor(1.0)
        (True, True, False)
    """
    return isinstance(value, Text) or conversion.is_tensor(value)


def convert_to_tensor(
    value: Any, dtype: DTypeLike | None = None, dtype_hint: DTypeLike | None = None,
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """Convert a value to a tensor.

    Python floats become float32 and ints int32, as in TensorFlow. NumPy arrays keep their dtype.
    The data is copied.

    Args:
        value: A number, string, nested list, NumPy array, variable or tensor.
        dtype: The dtype of the result, which the value must fit; tensors in a list are cast to it.
        dtype_hint: The preferred dtype of a Python value, used if the value fits; others keep
            theirs.
        name: Ignored.

    Returns:
        A tensor of the shape of `value`.

    Raises:
        TypeError: The value has another dtype than `dtype`, or one that samegrad lacks.
        ValueError: Parts of a list differ in shape, or a number is too large for the dtype.

    Example:
        >>> import samegrad as tf
        >>> tf.convert_to_tensor([1.0, 2.0]).dtype, tf.convert_to_tensor("a").dtype
        (samegrad.float32, samegrad.string)
    """
    if _wants_text(value, dtype):
        return _typed(text_of(value, "convert_to_tensor"))
    return conversion.convert_to_tensor(value, dtype, dtype_hint)


def constant(
    value: Any, dtype: DTypeLike | None = None, shape: Any = None, name: str | None = None
) -> Tensor:
    """Create a tensor of a value, repeated to `shape` if that is given.

    String tensors hold bytes, as TensorFlow's do. `tf.strings` operates on them, outside of traced
    functions.

    Args:
        value: A number, string, nested list or NumPy array.
        dtype: The dtype of the result, which the value must fit.
        shape: The shape of the result; the value has one element, or as many as the shape.
        name: Ignored.

    Returns:
        A tensor.

    Raises:
        TypeError: The value has another dtype than `dtype`, or one that samegrad lacks.
        ValueError: The value does not fit the shape or the dtype.

    Example:
        >>> import samegrad as tf
        >>> tf.constant(2.0, shape=(2,)).numpy()
        array([2., 2.], dtype=float32)
        >>> tf.constant(["cat", "dog"]).numpy()
        array([b'cat', b'dog'], dtype=object)
    """
    if not _wants_text(value, dtype):
        return conversion.constant(value, dtype, shape)
    made = text_of(value, "constant")
    if shape is None:
        return _typed(made)
    sizes = tuple(int(n) for n in sizes_of(shape))
    array = made.encoded
    if array.size == 1:
        return _typed(of_bytes(array.ravel().repeat(_count(sizes)).reshape(sizes)))
    if array.size != _count(sizes):
        raise ValueError(
            f"[constant] the value must have one element or as many as the shape: got "
            f"{shown(value)} and {sizes}."
        )
    return _typed(of_bytes(array.reshape(sizes)))


def _typed(text: Any) -> Tensor:
    """Return a string tensor typed as a tensor: type checkers need not ask which it is."""
    made: Tensor = text
    return made


def _count(sizes: tuple[int, ...]) -> int:
    count = 1
    for size in sizes:
        count *= size
    return count
