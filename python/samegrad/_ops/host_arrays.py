"""Values of tensors for what only Python computes."""

from __future__ import annotations

from typing import Any

import numpy as np

from samegrad._context.python_runs import leave_trace
from samegrad._tensor.tensor import convert_to_tensor

__all__ = ["host_arrays"]


def host_arrays(who: str, *values: Any) -> list[np.ndarray[Any, Any]]:
    """Return the values of tensors as arrays; a function that is traced falls back to Python.

    Raises:
        RuntimeError: Inside `Strategy.run`, a step computes one of them.

    Example:
        >>> host_arrays("edit_distance", 2.0, [1])
        [array(2., dtype=float32), array([1], dtype=int32)]
    """
    tensors = [convert_to_tensor(value) for value in values]
    if any(tensor._symbolic for tensor in tensors):
        leave_trace(
            f"[{who}] Python computes it from values, which a step of replicas has not: got "
            f"{', '.join(str(tuple(tensor._shape)) for tensor in tensors)}; call it outside of "
            "run, or in Dataset.map."
        )
    return [np.asarray(tensor.numpy()) for tensor in tensors]
