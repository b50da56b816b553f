"""A few values in large tensors of zeros, under the names of tf.sparse."""

from typing import TYPE_CHECKING

from samegrad._surface.boundary import guard
from samegrad._surface.missing_names import getattr_of
from samegrad._tensor.sparse import SparseTensor
from samegrad.sparse._dense import from_dense, reorder, to_dense
from samegrad.sparse._joined import add, concat, map_values, slice
from samegrad.sparse._products import sparse_dense_matmul

__all__ = [
    "SparseTensor",
    "add",
    "concat",
    "from_dense",
    "map_values",
    "reorder",
    "slice",
    "sparse_dense_matmul",
    "to_dense",
]

if not TYPE_CHECKING:
    __getattr__ = getattr_of(__name__)
guard(__name__)
