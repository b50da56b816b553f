"""Diagonals and bands of matrices."""

from __future__ import annotations

from typing import Any

from samegrad import _core
from samegrad._tensor import sizes as _sizes
from samegrad._tensor.complex_calls import linear, padded
from samegrad._tensor.tensor import Tensor, TensorLike, convert_to_tensor
from samegrad.errors import InvalidArgumentError
from samegrad.linalg import _diagonal_bands as _bands

_ops = _core.ops


def _places(rows: Any, columns: Any) -> tuple[Tensor, Tensor]:
    """Return the row and the column of each element, shaped to broadcast."""
    return _ops.expand_dims(_sizes.iota(rows), axes=[1]), _sizes.iota(columns)


def _on_diagonal(rows: Any, columns: Any, k: int) -> Tensor:
    row, column = _places(rows, columns)
    return _ops.equal(row + k, column)


def _matrix(who: str, value: TensorLike) -> Tensor:
    x = convert_to_tensor(value)
    if x._rank < 2:
        raise ValueError(
            f"[{who}] a matrix has at least 2 axes: got shape {x._shape}; add axes with reshape."
        )
    return x


def _left_out(size: Any) -> bool:
    return isinstance(size, int) and size == -1


def _matrix_sizes(
    x: Tensor, band: tuple[int, int], num_rows: Any, num_cols: Any
) -> tuple[Any, Any]:
    """Return the rows and columns of matrices that have these diagonals."""
    n, count = x.shape[-1], band[1] - band[0] + 1
    if count > 1 and (x._rank < 2 or x.shape[-2] != count):
        raise InvalidArgumentError(
            f"[diag] the axis before the last one is that of {count} diagonals: got shape "
            f"{x._shape} for k={band}."
        )
    least = [n - min(band[1], 0), n + max(band[0], 0)]
    rows, columns = _sizes.sizes_of([num_rows, num_cols])
    if _left_out(rows) and _left_out(columns):
        rows = columns = n + max(max(band[0], 0), -min(band[1], 0))
    rows, columns = (
        own if _left_out(size) else size for size, own in zip((rows, columns), least, strict=True)
    )
    fits = rows >= least[0] and columns >= least[1]
    if not fits or not (rows == least[0] or columns == least[1]):
        which = band[0] if count == 1 else band
        raise InvalidArgumentError(
            f"[diag] diagonal {which} of {rows} rows and {columns} columns does not have {n} "
            "elements: leave out num_rows and num_cols, or change one."
        )
    return rows, columns


@padded
def diag(diagonal: TensorLike, name: str | None = None, k: Any = 0, num_rows: Any = -1,
         num_cols: Any = -1, padding_value: TensorLike = 0,
         align: str = "RIGHT_LEFT") -> Tensor:  # fmt: skip
    """Create matrices with the given diagonals, and `padding_value` elsewhere.

    Args:
        diagonal: The elements of the diagonal: a tensor [..., n]; of several diagonals a tensor
            [..., diagonals, n], the highest one first.
        name: Ignored.
        k: The diagonal: 0 the main one, positive above it, negative below it. A pair: the lowest
            and the highest of several.
        num_rows: The number of rows; -1: as few as hold the diagonal. Without num_rows and num_cols
            the matrix is square.
        num_cols: The number of columns; -1: as few as hold the diagonal.
        padding_value: The scalar elsewhere.
        align: The sides that the diagonals above and below the main one are aligned to where they
            are shorter than n: "RIGHT_LEFT", "LEFT_RIGHT", "LEFT_LEFT" or "RIGHT_RIGHT".

    Returns:
        A tensor [..., rows, columns], in the dtype of `diagonal`.

    Raises:
        ValueError: The diagonal does not fit into the matrix.

    Example:
        >>> diag([1.0, 2.0]).numpy()
        array([[1., 0.],
               [0., 2.]], dtype=float32)
        >>> diag([1.0], k=1).numpy()
        array([[0., 1.],
               [0., 0.]], dtype=float32)
    """
    x = convert_to_tensor(diagonal)
    if x._rank < 1:
        raise ValueError(f"[diag] a diagonal has at least 1 axis: got shape {x._shape}.")
    band, align = _bands.limits("diag", k), _bands.checked_alignment("diag", align)
    rows, columns = _matrix_sizes(x, band, num_rows, num_cols)
    other = convert_to_tensor(padding_value, x._dtype)
    if band[0] != band[1]:
        return _bands.placed(x, band, rows, columns, other, align)
    n, k = x.shape[-1], band[0]
    # Along the rows, or along the columns, with zeros behind the diagonal.
    size, axis = (rows, x._rank) if k >= 0 else (columns, x._rank - 1)
    more = size - n
    if not (isinstance(more, int) and more == 0):
        behind = _sizes.broadcast(convert_to_tensor(0, x._dtype), [*x.shape[:-1], more])
        x = _ops.concat(x, behind, axis=x._rank - 1)
    return _ops.select(_on_diagonal(rows, columns, k), _ops.expand_dims(x, axes=[axis]), other)


@padded
def diag_part(input: TensorLike, name: str | None = None, k: Any = 0,
              padding_value: TensorLike = 0, align: str = "RIGHT_LEFT") -> Tensor:  # fmt: skip
    """Extract a diagonal of matrices.

    Args:
        input: A tensor of numbers of shape [..., rows, columns].
        name: Ignored.
        k: The diagonal: 0 the main one, positive above it, negative below it. A pair: the lowest
            and the highest of several.
        padding_value: The scalar beside diagonals that are shorter than the longest one.
        align: The sides that these are aligned to, as `diag` takes it.

    Returns:
        A tensor [..., length of the diagonal], in the dtype of `input`; of several diagonals
        [..., diagonals, length of the longest one], the highest one first.

    Raises:
        ValueError: The matrices have no such diagonal.

    Example:
        >>> diag_part([[1.0, 2.0], [3.0, 4.0]]).numpy()
        array([1., 4.], dtype=float32)
    """
    x = _matrix("diag_part", input)
    band, align = _bands.limits("diag_part", k), _bands.checked_alignment("diag_part", align)
    rows, columns = x.shape[-2:]
    for each in band:
        if not -rows < each < columns and not (each == 0 and 0 in (rows, columns)):
            raise InvalidArgumentError(
                f"[diag_part] k must lie between {1 - rows} and {columns - 1}: got {each} for "
                f"{rows} rows and {columns} columns."
            )
    if band[0] != band[1]:
        return _bands.band_part_of(x, band, padding_value, align)
    k = band[0]
    # Each row has one element of it, or, below the main one, each column.
    part = x[..., : min(rows, columns - k), :] if k >= 0 else x[..., : min(columns, rows + k)]
    on_it = _on_diagonal(part.shape[-2], part.shape[-1], k)
    found = _ops.select(on_it, part, convert_to_tensor(0, x._dtype))
    return _ops.reduce_sum(found, axes=[-1 if k >= 0 else -2], keepdims=False)


def trace(x: TensorLike, name: str | None = None) -> Tensor:
    """Sum the main diagonals of matrices.

    Args:
        x: A tensor of numbers of shape [..., rows, columns].
        name: Ignored.

    Returns:
        A tensor [...], in the dtype of `x`.

    Raises:
        ValueError: x has fewer than 2 axes.

    Example:
        >>> float(trace([[1.0, 2.0], [3.0, 4.0]]))
        5.0
    """
    return _ops.reduce_sum(diag_part(_matrix("trace", x)), axes=[-1], keepdims=False)


@linear
def band_part(input: TensorLike, num_lower: int, num_upper: int,
              name: str | None = None) -> Tensor:  # fmt: skip
    """Set the elements outside of a band around the main diagonal to 0.

    Args:
        input: A tensor of numbers of shape [..., rows, columns].
        num_lower: The number of diagonals to keep below the main one; negative: all.
        num_upper: The number of diagonals to keep above the main one; negative: all.
        name: Ignored.

    Returns:
        A tensor of the shape and dtype of `input`.

    Raises:
        ValueError: The input has fewer than 2 axes.

    Example:
        >>> band_part([[1.0, 2.0], [3.0, 4.0]], 0, -1).numpy()
        array([[1., 2.],
               [0., 4.]], dtype=float32)
    """
    x = _matrix("band_part", input)
    lower = _sizes.whole(num_lower, "num_lower is an integer")
    upper = _sizes.whole(num_upper, "num_upper is an integer")
    row, column = _places(*x.shape[-2:])
    inside = _ops.equal(row, row)  # everything
    inside = _ops.logical_and(inside, row - column <= lower) if lower >= 0 else inside
    inside = _ops.logical_and(inside, column - row <= upper) if upper >= 0 else inside
    return _ops.select(inside, x, convert_to_tensor(0, x._dtype))
