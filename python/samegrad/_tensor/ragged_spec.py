"""`samegrad.RaggedTensorSpec`: the shape and dtype of ragged tensors."""

from __future__ import annotations

from typing import Any

from samegrad._base.dtypes import DType, DTypeLike, element_type, float32
from samegrad._base.dtypes import int64 as _int64
from samegrad._base.shown import shown
from samegrad._tensor.ragged import RaggedTensor
from samegrad._tensor.shape import TensorShape
from samegrad._tensor.sizes import whole


class RaggedTensorSpec:
    """Shape and dtype of a ragged tensor, for the results of `tf.map_fn`.

    Signatures of functions and of datasets take dense tensors alone.

    Args:
        shape: Sizes of the axes; None where they differ.
        dtype: The type of the values, or `tf.string`.
        ragged_rank: The number of ragged axes: 1, or 0 for a row of such rows; None: one fewer than
            axes.
        row_splits_dtype: Ignored; row splits are int64.

    Raises:
        NotImplementedError: More than one axis has different sizes.

    Example:
        >>> import samegrad as tf
        >>> spec = tf.RaggedTensorSpec([None], tf.int32)
        >>> tf.map_fn(tf.range, tf.constant([1, 0, 3]), fn_output_signature=spec).to_list()
        [[0], [], [0, 1, 2]]
    """

    def __init__(
        self, shape: Any = None, dtype: DTypeLike = float32, ragged_rank: int | None = None,
        row_splits_dtype: DTypeLike = _int64,
    ) -> None:  # fmt: skip
        self._shape = TensorShape(shape)
        self._dtype = element_type(dtype)
        rank = self._shape.rank
        if ragged_rank is None and rank is None:
            raise ValueError(
                "[RaggedTensorSpec] the number of axes or ragged_rank must be known: got "
                f"shape={shown(shape)}; pass one None for each axis."
            )
        self._ragged_rank = max((rank or 0) - 1, 0) if ragged_rank is None else whole(ragged_rank)
        if self._ragged_rank not in (0, 1):
            raise NotImplementedError(
                "[RaggedTensorSpec] one axis has different sizes: got shape "
                f"{self._shape} and ragged_rank={self._ragged_rank}; pass ragged_rank=1 if the "
                "inner sizes are the same, or fill them up."
            )

    @property
    def shape(self) -> TensorShape:
        """Sizes of the axes."""
        return self._shape

    @property
    def dtype(self) -> DType:
        """The type of the values."""
        return self._dtype

    @property
    def ragged_rank(self) -> int:
        """The number of ragged axes."""
        return self._ragged_rank

    @property
    def row_splits_dtype(self) -> DType:
        """`tf.int64`."""
        return _int64

    def __repr__(self) -> str:
        return (
            f"RaggedTensorSpec(shape={self._shape}, dtype={self._dtype!r}, "
            f"ragged_rank={self._ragged_rank})"
        )


class RaggedShape:
    """Base class of `DynamicRaggedShape`, a layer above."""


# What the rules of `samegrad.ragged` are for.
KINDS = (RaggedTensor, RaggedTensorSpec, RaggedShape)
