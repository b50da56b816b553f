"""Exchange of tensors with other libraries without copying."""

from __future__ import annotations

from typing import Any

from samegrad._surface.boundary import guard
from samegrad._tensor import dlpack as _dlpack
from samegrad._tensor.tensor import Tensor, TensorLike, convert_to_tensor


def to_dlpack(tf_tensor: TensorLike) -> Any:
    """A DLPack capsule with the tensor's numbers, for libraries that take bare capsules.

    Such consumers may write into what they get, so the numbers are copied; `np.from_dlpack(tensor)`
    and `torch.from_dlpack(tensor)` share the memory where their versions can be told that it is
    read-only.

    Args:
        tf_tensor: A tensor with a value.

    Raises:
        TypeError: A tensor of a function that is being traced.

    Example:
        >>> from_dlpack(to_dlpack([1.0, 2.0])).numpy()
        array([1., 2.], dtype=float32)
    """
    return _dlpack.export(convert_to_tensor(tf_tensor))


def from_dlpack(dlcapsule: Any) -> Tensor:
    """A tensor that shares the memory of a DLPack capsule or of an array with `__dlpack__`.

    The memory must not be changed as long as the tensor is used.

    Args:
        dlcapsule: A capsule, or an array of NumPy, PyTorch, JAX, … on the CPU.

    Raises:
        BufferError: The memory is on another device.
        TypeError: Something else, or a dtype that tensors cannot have.

    Example:
        >>> import numpy as np
        >>> from_dlpack(np.array([1.0, 2.0])).numpy()
        array([1., 2.])
    """
    return _dlpack.import_(dlcapsule)


__all__ = ["from_dlpack", "to_dlpack"]
guard(__name__)
