"""Rows of different lengths made of tensors and of texts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from samegrad import _core
from samegrad._tensor.ragged import RaggedTensor
from samegrad._tensor.text import Text, leaf_of


def stacked(column: Sequence[Any], who: str) -> RaggedTensor:
    """Stack tensors or strings as rows, which may differ in their first sizes.

    Raises:
        ValueError: They differ in other sizes.
    """
    shapes = {row._shape[1:] for row in column}
    if len(shapes) > 1:
        raise ValueError(
            f"[{who}] rows may differ in their first sizes only: got shapes "
            f"{sorted(row._shape for row in column)}; see padded_batch."
        )
    kinds = sorted({row._dtype for row in column})
    if len(kinds) > 1:
        raise ValueError(f"[{who}] values must have one dtype: got {' and '.join(kinds)}.")
    if isinstance(column[0], Text):
        flat: Any = leaf_of(np.concatenate([row.encoded for row in column]))
    else:
        flat = _core.ops.concat(*column, axis=0)
    return RaggedTensor(flat, [row._shape[0] for row in column])


def check_rows(shape: tuple[int, ...]) -> None:
    """Check that strings are a scalar or a vector, whose parts have at most one ragged axis."""
    if len(shape) > 1:
        raise ValueError(
            f"[tf.strings] strings are split one by one or row by row: got shape {shape}; "
            "reshape them to one axis."
        )


def rows_of(values: Any, parts: Callable[[bytes], Sequence[bytes]]) -> Any:
    """Split each string: a scalar gives a vector, a vector a ragged tensor."""
    array = Text(values).encoded
    if not array.ndim:
        one: bytes = Text(values).numpy()
        return Text(np.array(list(parts(one)), object))
    check_rows(array.shape)
    encoded: list[bytes] = array.tolist()
    rows = [parts(value) for value in encoded]
    return RaggedTensor(Text(np.array([x for row in rows for x in row], object)), [*map(len, rows)])
