"""Tensors in DLPack's form: the same memory in NumPy, PyTorch and JAX.

NumPy knows the format and its versions, so it does the work on a view of the tensor's memory.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from samegrad._base.dtypes import as_dtype
from samegrad._base.shown import shown
from samegrad._tensor.conversion import Tensor

_CPU = 1
# Since this version a capsule can say that its memory must not be written.
_READ_ONLY_SINCE = (1, 0)


def export(
    tensor: Tensor,
    *,
    stream: Any = None,
    max_version: tuple[int, int] | None = None,
    dl_device: tuple[int, int] | None = None,
    copy: bool | None = None,
) -> Any:
    """Return the capsule of a tensor's memory, or of a copy where the consumer could write into it.

    Raises:
        BufferError: Another device than the CPU, or copy=False to a consumer that cannot be told
            that tensors are read-only.
    """
    if dl_device is not None and dl_device[0] != _CPU:
        raise BufferError(f"[Tensor.__dlpack__] tensors are on the CPU: got device {dl_device}.")
    knows = max_version is not None and tuple(max_version) >= _READ_ONLY_SINCE
    if copy is False and not knows:
        raise BufferError(
            "[Tensor.__dlpack__] tensors are read-only, which versions before 1.0 cannot tell: got "
            f"copy=False and max_version={max_version}; let it be copied."
        )
    if knows and not copy:
        try:
            return tensor._view().__dlpack__(max_version=max_version)
        except (BufferError, TypeError):  # an older NumPy
            if copy is False:
                raise
    return tensor._numpy().__dlpack__()


def device(tensor: Tensor) -> tuple[int, int]:
    """Return DLPack's device of the memory: the CPU."""
    return _CPU, 0


class _Capsule:
    """A bare capsule as an object that NumPy asks."""

    def __init__(self, capsule: Any) -> None:
        self._capsule = capsule

    def __dlpack__(self, **options: Any) -> Any:
        return self._capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return _CPU, 0


def import_(source: Any) -> Tensor:
    """Return a tensor that shows the memory of a capsule, or of an object with `__dlpack__`.

    Raises:
        BufferError: The memory is not the CPU's.
        TypeError: Neither a capsule nor such an object, or a dtype that tensors cannot have.
    """
    if hasattr(source, "__dlpack_device__"):
        place = source.__dlpack_device__()
        if int(place[0]) != _CPU:
            raise BufferError(
                f"[from_dlpack] the memory must be the CPU's: got device {tuple(map(int, place))}; "
                "move the array to the CPU first."
            )
    elif type(source).__name__ == "PyCapsule":
        source = _Capsule(source)
    else:
        raise TypeError(
            "[from_dlpack] a capsule or an object with __dlpack__ is needed: got "
            f"{type(source).__name__}."
        )
    try:
        array = np.from_dlpack(source)
    except BufferError as error:
        raise BufferError(
            f"[from_dlpack] the memory must be one that NumPy can view ({error}): got "
            f"{shown(source)}; pass a copy of native byte order."
        ) from error
    as_dtype(array.dtype)
    return Tensor(array, copy=False)


__all__ = ["device", "export", "import_"]
