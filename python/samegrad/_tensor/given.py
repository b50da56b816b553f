"""What programs make tensors of: numbers, and text beside them."""

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
    """Whether the value is a tensor, text or a variable.

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
    """A tensor of the value: number, nested list, NumPy array, variable or tensor; text of text.

    Python floats become float32 and ints int32, as in TensorFlow; NumPy arrays keep their dtype.
    The data is copied.

    Args:
        value: What becomes a tensor.
        dtype: Of the elements, which must fit; tensors in a list are cast to it.
        dtype_hint: The dtype of a Python value that fits it; others keep theirs.
        name: Ignored.

    Raises:
        TypeError: The value has another dtype than the one asked for, or none samegrad knows.
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
    """A tensor with the value, repeated to `shape` if it is given; text of text.

    Text holds bytes, as TensorFlow's does; tf.strings works on it, outside of traced functions.

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
    """Text is no tensor to a type checker, which would ask at every call which of both it is."""
    made: Tensor = text
    return made


def _count(sizes: tuple[int, ...]) -> int:
    count = 1
    for size in sizes:
        count *= size
    return count
