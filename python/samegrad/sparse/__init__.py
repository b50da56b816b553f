"""A few values in large tensors of zeros, under the names of tf.sparse."""

from typing import TYPE_CHECKING

from samegrad._surface.boundary import guard
from samegrad._surface.missing_names import getattr_of
from samegrad._tensor.sparse import SparseTensor
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

__all__ = [
    "SparseTensor",
    "add",
    "concat",
    "expand_dims",
    "from_dense",
    "map_values",
    "reduce_max",
    "reduce_sum",
    "reorder",
    "reshape",
    "retain",
    "slice",
    "sparse_dense_matmul",
    "to_dense",
    "transpose",
]

if not TYPE_CHECKING:
    __getattr__ = getattr_of(__name__)
guard(__name__)
