"""Exchange of tensors with other libraries without copying."""

from __future__ import annotations

from typing import Any

from samegrad._surface.boundary import guard
from samegrad._tensor import dlpack as _dlpack
from samegrad._tensor.tensor import Tensor, TensorLike, convert_to_tensor


def to_dlpack(tf_tensor: TensorLike) -> Any:
    """Copy a tensor to a DLPack capsule, for libraries that take bare capsules.

    Such libraries may write into the memory, so it is a copy. `np.from_dlpack(tensor)` and
    `torch.from_dlpack(tensor)` share the memory where their versions can be told that it is
    read-only.

    Args:
        tf_tensor: Tensor with a value.

    Returns:
        DLPack capsule.

    Raises:
        TypeError: tf_tensor is a tensor of a function that is being traced.

    Example:
        >>> from_dlpack(to_dlpack([1.0, 2.0])).numpy()
        array([1., 2.], dtype=float32)
    """
    return _dlpack.export(convert_to_tensor(tf_tensor))


def from_dlpack(dlcapsule: Any) -> Tensor:
    """Create a tensor that shares the memory of a DLPack capsule or of an array.

    The memory must not be changed as long as the tensor is used.

    Args:
        dlcapsule: Capsule, or an array with `__dlpack__` (NumPy, PyTorch, JAX, …) on the CPU.

    Returns:
        Tensor of the array's shape and dtype.

    Raises:
        BufferError: The memory is on another device.
        TypeError: dlcapsule is something else, or has a dtype that tensors do not support.

    Example:
        >>> import numpy as np
        >>> from_dlpack(np.array([1.0, 2.0])).numpy()
        array([1., 2.])
    """
    return _dlpack.import_(dlcapsule)


__all__ = ["from_dlpack", "to_dlpack"]
guard(__name__)
