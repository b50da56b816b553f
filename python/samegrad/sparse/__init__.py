"""A few values in large tensors of zeros, under the names of tf.sparse."""

from typing import TYPE_CHECKING

from samegrad._surface.boundary import guard
from samegrad._surface.missing_names import getattr_of
from samegrad._tensor.sparse import SparseTensor
from samegrad.sparse._counting import bincount
from samegrad.sparse._dense import from_dense, reorder, to_dense
from samegrad.sparse._joined import add, concat, map_values, slice
from samegrad.sparse._products import sparse_dense_matmul
from samegrad.sparse._reduced import (
    expand_dims,
    reduce_max,
    reduce_sum,
    reshape,
    retain,
    transpose,
)
from samegrad.sparse._rows import (
    eye,
    fill_empty_rows,
    maximum,
    minimum,
    reset_shape,
    softmax,
    split,
    to_indicator,
)
from samegrad.sparse._segments import segment_mean, segment_sqrt_n, segment_sum

__all__ = [
    "SparseTensor",
    "add",
    "bincount",
    "concat",
    "expand_dims",
    "eye",
    "fill_empty_rows",
    "from_dense",
    "map_values",
    "maximum",
    "minimum",
    "reduce_max",
    "reduce_sum",
    "reorder",
    "reset_shape",
    "reshape",
    "retain",
    "segment_mean",
    "segment_sqrt_n",
    "segment_sum",
    "slice",
    "softmax",
    "sparse_dense_matmul",
    "split",
    "to_dense",
    "to_indicator",
    "transpose",
]

if not TYPE_CHECKING:
    __getattr__ = getattr_of(__name__)
guard(__name__)
