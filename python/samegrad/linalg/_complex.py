"""Linear equations of complex matrices, by real matrices of twice the size.

A + iB is the real matrix [[A, -B], [B, A]], whose inverse has the same blocks.
"""

from __future__ import annotations

from typing import Any

from samegrad import _core
from samegrad._tensor.complex_calls import also_complex
from samegrad._tensor.complex_tensor import ComplexTensor, complex_pair, to_complex
from samegrad._tensor.tensor import Tensor
from samegrad.linalg import _solving
from samegrad.linalg._matrices import matrices

_ops = _core.ops


def _column(real: Tensor, imag: Tensor) -> Tensor:
    """Return one matrix above the other."""
    return _ops.concat(real, imag, axis=real._rank - 2)


def _doubled(who: str, z: ComplexTensor) -> Tensor:
    """Return the real matrices [[A, -B], [B, A]]."""
    a, b = (matrices(who, part) for part in z.parts)
    if a.shape[-2] != a.shape[-1]:
        raise ValueError(
            f"[{who}] matrices must be square: got shape {a._shape}; cut them to size."
        )
    return _ops.concat(_column(a, b), _column(_ops.neg(b), a), axis=a._rank - 1)


def _halves(column: Tensor) -> ComplexTensor:
    """Return the complex matrices whose parts are one above the other."""
    rows = int(column.shape[-2]) // 2
    return ComplexTensor(column[..., :rows, :], column[..., rows:, :])


def _inv(input: Any, adjoint: bool = False) -> ComplexTensor:
    inverse = _solving.inv(_doubled("inv", to_complex(input, "inv")), adjoint)
    return _halves(inverse[..., : int(inverse.shape[-1]) // 2])


def _solve(matrix: Any, rhs: Any, adjoint: bool = False) -> ComplexTensor:
    a, b = complex_pair(matrix, rhs, "solve")
    right = _column(*(matrices("solve", part) for part in b.parts))
    return _halves(_solving.solve(_doubled("solve", a), right, adjoint))


inv, solve = also_complex(_solving.inv, _inv), also_complex(_solving.solve, _solve, 2)

__all__ = ["inv", "solve"]
