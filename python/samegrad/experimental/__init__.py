"""Functions that may still change: exchange of memory with other libraries, and ragged shapes."""

from typing import TYPE_CHECKING

from samegrad._surface.boundary import guard
from samegrad._surface.missing_names import getattr_of
from samegrad.experimental import dlpack

_LATER = {
    "DynamicRaggedShape": "samegrad.ragged._dynamic_shape",
    "RowPartition": "samegrad.ragged._row_partition",
}
__all__ = [*_LATER, "dlpack"]

if not TYPE_CHECKING:
    __getattr__ = getattr_of(__name__, _LATER)
guard(__name__)
