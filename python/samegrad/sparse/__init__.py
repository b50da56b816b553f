"""A few values in large tensors of zeros, under the names of tf.sparse."""

from typing import TYPE_CHECKING

from samegrad._surface.boundary import guard
from samegrad._surface.missing_names import getattr_of
from samegrad._tensor.sparse import SparseTensor
from samegrad.sparse._dense import from_dense, reorder, to_dense
from samegrad.sparse._products import sparse_dense_matmul

__all__ = ["SparseTensor", "from_dense", "reorder", "sparse_dense_matmul", "to_dense"]

if not TYPE_CHECKING:
    __getattr__ = getattr_of(__name__)
guard(__name__)
