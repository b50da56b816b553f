"""Gradients by the tape compared with differences of values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from samegrad._autodiff.tape import GradientTape
from samegrad._base.dtypes import as_dtype
from samegrad._base.shown import shown
from samegrad._ops.arrays import cast
from samegrad._tensor.tensor import Tensor, convert_to_tensor

_Matrix: TypeAlias = np.ndarray[Any, Any]
_STEP = 1.0 / 1024
_HALVES = ("float16", "bfloat16")


def compute_gradient(
    f: Callable[..., Any], x: Sequence[Any], delta: float | None = None
) -> tuple[tuple[_Matrix, ...], tuple[_Matrix, ...]]:
    """Compute the Jacobians of a function twice: by the tape, and by differences of its values.

    Args:
        f: A function of the tensors of `x` that returns one float tensor.
        x: A list or tuple of float tensors.
        delta: The step of the differences; None: 1/1024.

    Returns:
        Two tuples with a matrix [elements of the result, elements of the argument] per argument:
        those by the tape, and those by differences.

    Raises:
        ValueError: `x` is not a list or tuple.
        TypeError: An argument or the result does not hold floats.

    Example:
        >>> import numpy as np
        >>> by_tape, by_differences = compute_gradient(lambda x: x * x, [[1.0, 3.0]])
        >>> by_tape[0]
        array([[2., 0.],
               [0., 6.]], dtype=float32)
        >>> bool(np.allclose(by_tape, by_differences, atol=1e-2))
        True
    """
    if not isinstance(x, list | tuple):
        raise ValueError(
            f"[compute_gradient] x must be a list or tuple of tensors: got {shown(x)}; write [x]."
        )
    inputs = [_floats("x", convert_to_tensor(value)) for value in x]
    by_tape = _jacobians(f, inputs)
    step = _STEP if delta is None else delta
    return tuple(by_tape), tuple(_differences(f, inputs, k, step) for k in range(len(inputs)))


def _floats(name: str, tensor: Tensor) -> Tensor:
    if not as_dtype(tensor.dtype).is_floating:
        raise TypeError(
            f"[compute_gradient] {name} must hold floats: got {tensor.dtype.name}; use "
            "samegrad.cast."
        )
    return tensor


def _jacobians(f: Callable[..., Any], inputs: list[Tensor]) -> list[_Matrix]:
    """Return the Jacobians by the tape, a row for each element of the result."""
    with GradientTape(persistent=True) as tape:
        tape.watch(inputs)
        result = _floats("the result", convert_to_tensor(f(*inputs)))
    value = result.numpy()
    found = [np.zeros((value.size, x.numpy().size), x.numpy().dtype) for x in inputs]
    for row in range(value.size):
        weights = np.zeros(value.shape, value.dtype)
        weights.reshape(-1)[row] = 1
        gradients = tape.gradient(result, inputs, output_gradients=convert_to_tensor(weights))
        for matrix, gradient in zip(found, gradients, strict=True):
            if gradient is not None:
                matrix[row] = convert_to_tensor(gradient).numpy().reshape(-1)
    return found


def _differences(f: Callable[..., Any], inputs: list[Tensor], which: int, step: float) -> _Matrix:
    """Return a Jacobian by central differences, a column for each element of an argument."""
    narrow = inputs[which].dtype
    given = cast(inputs[which], "float32") if narrow.name in _HALVES else inputs[which]
    values = given.numpy().copy()
    columns = []

    def result() -> _Matrix:
        changed = convert_to_tensor(values.copy())
        operands = [*inputs[:which], cast(changed, narrow), *inputs[which + 1 :]]
        found = convert_to_tensor(f(*operands))
        return np.array(cast(found, given.dtype).numpy()).reshape(-1)

    flat = values.reshape(-1)
    for place in range(flat.size):
        old = flat[place]
        flat[place] = old + step
        above = result()
        flat[place] = old - step
        columns.append((above - result()) / (2 * step))
        flat[place] = old
    if not columns:
        return np.zeros((result().size, 0), values.dtype)
    return np.stack(columns, axis=1).astype(values.dtype)


__all__ = ["compute_gradient"]
