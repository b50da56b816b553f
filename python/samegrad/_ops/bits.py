"""Bits of tensors as another dtype."""

from __future__ import annotations

import numpy as np

from samegrad._base.dtypes import DTypeLike, as_dtype
from samegrad._core import InvalidArgumentError
from samegrad._ops.host_arrays import host_arrays
from samegrad._tensor.tensor import Tensor, TensorLike, convert_to_tensor

__all__ = ["bitcast"]


def bitcast(input: TensorLike, type: DTypeLike, name: str | None = None) -> Tensor:
    """Reinterpret the bits of a tensor as another dtype.

    It needs values: functions fall back to Python. Nothing flows back through it.

    Args:
        input: A tensor of numbers.
        type: The dtype of the result. A smaller one adds a last axis; a larger one takes the last
            axis, whose size must be the ratio.
        name: Ignored.

    Returns:
        A tensor of that dtype.

    Raises:
        TypeError: A dtype is bool.
        InvalidArgumentError: The last axis does not have the size of a larger dtype.

    Example:
        >>> bitcast([1.0, 2.0], "int32").numpy()
        array([1065353216, 1073741824], dtype=int32)
    """
    kind = as_dtype(type)
    of_input = as_dtype(convert_to_tensor(input)._dtype)
    if "bool" in (kind.name, of_input.name):
        raise TypeError(
            f"[bitcast] both dtypes must be those of numbers: got {of_input.name} and {kind.name}; "
            "use samegrad.cast."
        )
    (array,) = host_arrays("bitcast", input)
    ratio, new = of_input.size / kind.size, np.dtype(kind.as_numpy_dtype)
    if ratio < 1 and array.shape[-1:] != (kind.size // of_input.size,):
        raise InvalidArgumentError(
            f"[bitcast] the last axis must hold the bytes of one {kind.name}: got shape "
            f"{array.shape} of {of_input.name}; use samegrad.reshape."
        )
    whole = np.ascontiguousarray(array).reshape(array.shape)
    if ratio < 1:
        return convert_to_tensor(whole.view(new)[..., 0])
    return convert_to_tensor((whole[..., None] if ratio > 1 else whole).view(new))
