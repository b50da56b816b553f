"""Matrices, under the names of tf.linalg; leading axes are those of many matrices."""

from typing import TYPE_CHECKING

from samegrad._ops.arrays import matmul
from samegrad._ops.contractions import einsum, tensordot
from samegrad._ops.creation import eye
from samegrad._ops.norms import global_norm, norm
from samegrad._surface.boundary import guard
from samegrad._surface.missing_names import getattr_of
from samegrad.linalg._diagonals import band_part, diag, diag_part, trace
from samegrad.math import l2_normalize

__all__ = [
    "band_part",
    "diag",
    "diag_part",
    "einsum",
    "eye",
    "global_norm",
    "l2_normalize",
    "matmul",
    "norm",
    "tensordot",
    "trace",
]

if not TYPE_CHECKING:
    __getattr__ = getattr_of(__name__)
guard(__name__)
