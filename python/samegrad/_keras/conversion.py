"""keras.backend.core: values as tensors, their shapes and types."""

from __future__ import annotations

from typing import Any

import numpy as np
from keras.src.backend.common.keras_tensor import KerasTensor
from keras.src.backend.common.variables import Variable as _Variable
from keras.src.backend.common.variables import is_int_dtype, standardize_dtype

import samegrad as tf
from samegrad._base.dtypes import is_plain_number
from samegrad._base.shown import shown
from samegrad._tensor.complex_tensor import ComplexTensor
from samegrad._tensor.conversion import Tensor, number
from samegrad._tensor.conversion import is_tensor as _is_tensor
from samegrad._tensor.ragged import RaggedTensor
from samegrad._tensor.text import Text, is_text

# Types that hold plain numbers of Python's types as they are, or rounded once.
_PLAIN: dict[type, tuple[str, ...]] = {
    float: ("float32", "float64"),
    int: ("float32", "float64", "int32", "int64"),
}


def convert_to_tensor(
    x: Any, dtype: Any = None, sparse: bool | None = None, ragged: bool | None = None
) -> Tensor:
    """The value as a tensor; with a dtype, cast to it.

    Args:
        x: Number, nested list, array, variable or tensor.
        dtype: A name; None: that of `x`, float32 and int32 of Python's numbers.
        sparse: True is refused: there are no sparse tensors.
        ragged: False makes a ragged tensor dense, with zeros; other values change nothing.

    Returns:
        A dense tensor, or a ragged one.

    Raises:
        ValueError: `sparse`.

    Example:
        >>> convert_to_tensor([1, 2], "float64").dtype
        samegrad.float64
    """
    if type(x) is Tensor and not sparse and (dtype is None or dtype == x._dtype):
        return x
    if isinstance(x, _Variable) and dtype is None and not sparse:
        return x._as_tensor()  # type: ignore[no-any-return]
    if sparse:
        raise ValueError(
            "[keras.ops.convert_to_tensor] there are no sparse tensors: got sparse=True."
        )
    wanted = None if dtype is None else standardize_dtype(dtype)
    if isinstance(x, RaggedTensor):
        rows: Any = x.to_tensor() if ragged is False else x
        return rows if wanted in (None, rows._dtype) else tf.cast(rows, wanted)
    if isinstance(x, Text) or (isinstance(x, str | np.ndarray | list | tuple) and is_text(x)):
        if wanted not in (None, "string"):
            raise TypeError(
                f"[keras.ops.convert_to_tensor] numbers are needed for dtype {wanted!r}: got "
                f"{shown(x)}; use tf.strings.to_number."
            )
        return x if isinstance(x, Text) else Text(x)  # type: ignore[return-value]
    if wanted == "string":
        raise TypeError(
            f"[keras.ops.convert_to_tensor] strings are needed: got {shown(x)}; pass strings, or "
            "use tf.strings.as_string before the model."
        )
    if is_plain_number(x) and wanted in _PLAIN[type(x)]:
        return number(x, wanted)
    if _is_tensor(x):
        tensor = x if isinstance(x, Tensor) else x._as_tensor()
        return tensor if wanted in (None, tensor._dtype) else tf.cast(tensor, wanted)
    if wanted is not None and (wanted == "bool" or is_int_dtype(wanted)):
        tensor = tf.convert_to_tensor(x)
        return tensor if tensor._dtype == wanted else tf.cast(tensor, wanted)
    if isinstance(x, np.ndarray | np.generic) and wanted is not None:
        return tf.cast(tf.convert_to_tensor(x), wanted)
    try:
        return tf.convert_to_tensor(x, wanted)
    except TypeError:
        if wanted is None or not isinstance(x, list | tuple):
            raise
        return tf.cast(
            tf.convert_to_tensor([convert_to_tensor(part, wanted) for part in x]), wanted
        )


def convert_to_numpy(x: Any) -> np.ndarray[Any, Any]:
    """The value as a NumPy array of its own."""
    return np.array(x)


def is_tensor(x: Any) -> bool:
    """Return whether the value is a dense, complex, ragged or string tensor."""
    return isinstance(x, Tensor | ComplexTensor | RaggedTensor | Text)


def shape(x: Any) -> tuple[Any, ...]:
    """The sizes, those that follow from the number of examples as samegrad's `Dim`."""
    if isinstance(x, KerasTensor):
        sizes: tuple[Any, ...] = x.shape
        return sizes
    return tuple(convert_to_tensor(x).shape)


def cast(x: Any, dtype: Any) -> Tensor:
    """The value in another dtype; a number of Python is a float32 before, as in TensorFlow."""
    wanted = standardize_dtype(dtype)
    tensor = convert_to_tensor(x)
    return tensor if tensor._dtype == wanted else tf.cast(tensor, wanted)
