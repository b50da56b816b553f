"""Matrices with three diagonals."""

from __future__ import annotations

from typing import Any

from samegrad._base.shown import shown
from samegrad._ops.complex_arrays import (
    concat,
    conjugate,
    expand_dims,
    ones_like,
    pad,
    squeeze,
    stack,
)
from samegrad._tensor.complex_tensor import is_complex
from samegrad._tensor.tensor import Tensor, TensorLike, alike, convert_to_tensor
from samegrad.errors import InvalidArgumentError
from samegrad.linalg._diagonals import diag, diag_part
from samegrad.linalg._products import matrix_transpose
from samegrad.linalg._solving import solve

_FORMATS = ("matrix", "sequence", "compact")
_BAND, _ALIGN = (-1, 1), "LEFT_RIGHT"


def tridiagonal_solve(
    diagonals: Any, rhs: TensorLike, diagonals_format: str = "compact",
    transpose_rhs: bool = False, conjugate_rhs: bool = False, name: str | None = None,
    partial_pivoting: bool = True, perturb_singular: bool = False,
) -> Tensor:  # fmt: skip
    """Solve systems of equations whose matrices have three diagonals.

    It computes with the full matrices: time grows with the third power of their size.

    Args:
        diagonals: "compact": a tensor [..., 3, n] of the diagonal above the main one, the main one
            and the one below; the last element of the first and the first of the last are ignored.
            "sequence": a list of them, the outer ones with n or n - 1 elements. "matrix": matrices
            [..., n, n], whose other elements are ignored.
        rhs: The right-hand sides: a tensor [..., n] or [..., n, k].
        diagonals_format: The format of the diagonals.
        transpose_rhs: Transpose the right-hand sides first.
        conjugate_rhs: Conjugate the right-hand sides first.
        name: Ignored.
        partial_pivoting: Ignored: rows are exchanged where it is needed.
        perturb_singular: Must be False.

    Returns:
        The solutions, in the shape of `rhs`, transposed where it is.

    Raises:
        InvalidArgumentError: A matrix has no inverse.
        NotImplementedError: perturb_singular is True.
        ValueError: The shapes do not fit, or the format is unknown.

    Example:
        >>> tridiagonal_solve([[1.0, 0.0], [2.0, 2.0], [0.0, 1.0]], [3.0, 3.0]).numpy()
        array([1., 1.], dtype=float32)
    """
    who = "tridiagonal_solve"
    if perturb_singular:
        raise NotImplementedError(f"[{who}] matrices are not changed: leave perturb_singular out.")
    right: Any
    diagonals, right = _alike(diagonals, diagonals_format, rhs)
    band = _packed(who, diagonals, diagonals_format)
    if not is_complex(band) and is_complex(right):
        raise ValueError(f"[{who}] diagonals and rhs must have one dtype: got a complex rhs.")
    is_vector = len(right.shape) == len(band.shape) - 1
    right = expand_dims(right, -1) if is_vector else right
    right = matrix_transpose(right) if transpose_rhs and not is_vector else right
    right = conjugate(right) if conjugate_rhs and is_complex(right) else right
    if len(right.shape) < 2 or right.shape[-2] != band.shape[-1]:
        raise InvalidArgumentError(
            f"[{who}] rhs has a row for each of the {band.shape[-1]} equations: got shape "
            f"{tuple(right.shape)}."
        )
    found = solve(diag(band, k=_BAND, align=_ALIGN), right)
    return squeeze(found, -1) if is_vector else found


def tridiagonal_matmul(
    diagonals: Any, rhs: TensorLike, diagonals_format: str = "compact", name: str | None = None
) -> Tensor:
    """Multiply matrices that have three diagonals by matrices.

    Args:
        diagonals: The matrices, as `tridiagonal_solve` takes them.
        rhs: The other matrices: a tensor [..., n, k] of the same dtype.
        diagonals_format: "compact", "sequence" or "matrix".
        name: Ignored.

    Returns:
        The products, [..., n, k].

    Raises:
        ValueError: The shapes do not fit, or the format is unknown.

    Example:
        >>> tridiagonal_matmul([[1.0, 0.0], [2.0, 2.0], [0.0, 1.0]], [[1.0], [1.0]]).numpy()
        array([[3.],
               [3.]], dtype=float32)
    """
    who = "tridiagonal_matmul"
    diagonals, right = _alike(diagonals, diagonals_format, rhs)
    band = _packed(who, diagonals, diagonals_format)
    if len(right.shape) < 2 or right.shape[-2] != band.shape[-1]:
        raise InvalidArgumentError(
            f"[{who}] rhs has {band.shape[-1]} rows: got shape {tuple(right.shape)}."
        )
    above, main, below = (expand_dims(band[..., i, :], -1) for i in range(3))
    none = ones_like(right[..., :1, :]) * 0
    following = concat([right[..., 1:, :], none], -2)
    previous = concat([none, right[..., :-1, :]], -2)
    last = ones_like(main)
    # The ignored elements may be anything.
    found: Tensor = (
        _without(above, last, -1) * following + main * right + _without(below, last, 0) * previous
    )
    return found


def _without(line: Any, ones: Any, place: int) -> Any:
    """Return a column with 0 at its first or last place."""
    rest = line[..., 1:, :] if place == 0 else line[..., :-1, :]
    zero = ones[..., :1, :] * 0
    return concat([zero, rest] if place == 0 else [rest, zero], -2)


def _alike(diagonals: Any, form: str, rhs: Any) -> tuple[Any, Any]:
    """Return operands of one dtype; complex numbers stay."""
    several = form == "sequence" and isinstance(diagonals, list | tuple)
    *parts, right = [*diagonals, rhs] if several else [diagonals, rhs]
    if any(is_complex(x) for x in (*parts, right)):
        return diagonals, right if is_complex(right) else convert_to_tensor(right)
    *parts, right = alike(*parts, right)
    return parts if several else parts[0], right


def _packed(who: str, diagonals: Any, form: str) -> Any:
    """Return the three diagonals as a tensor [..., 3, n]."""
    if form not in _FORMATS:
        raise ValueError(f"[{who}] diagonals_format must be one of {_FORMATS}: got {shown(form)}.")
    if form == "sequence":
        if not isinstance(diagonals, list | tuple) or len(diagonals) != 3:
            raise ValueError(f"[{who}] three diagonals are needed: got {shown(diagonals)}.")
        above, main, below = (x if is_complex(x) else convert_to_tensor(x) for x in diagonals)
        if above.shape[-1] == main.shape[-1] - 1:
            above = pad(above, [[0, 0]] * (len(above.shape) - 1) + [[0, 1]])
        if below.shape[-1] == main.shape[-1] - 1:
            below = pad(below, [[0, 0]] * (len(below.shape) - 1) + [[1, 0]])
        return stack([above, main, below], -2)
    given: Any = diagonals if is_complex(diagonals) else convert_to_tensor(diagonals)
    sizes = tuple(given.shape)
    if len(sizes) < 2 or (form == "compact" and sizes[-2] != 3) or (
            form == "matrix" and sizes[-1] != sizes[-2]):  # fmt: skip
        wanted = "[..., 3, n]" if form == "compact" else "[..., n, n]"
        raise InvalidArgumentError(f"[{who}] diagonals have shape {wanted}: got {sizes}.")
    if form == "matrix" and sizes[-1] == 1:
        return pad(given, [[0, 0]] * (len(sizes) - 2) + [[1, 1], [0, 0]])
    return diag_part(given, k=_BAND, align=_ALIGN) if form == "matrix" else given


__all__ = ["tridiagonal_matmul", "tridiagonal_solve"]
