"""Functions that may still change: exchange of memory with other libraries, and row partitions."""

from typing import TYPE_CHECKING

from samegrad._surface.boundary import guard
from samegrad._surface.missing_names import getattr_of
from samegrad.experimental import dlpack

_LATER = {"RowPartition": "samegrad.ragged._row_partition"}
__all__ = [*_LATER, "dlpack"]

if not TYPE_CHECKING:
    __getattr__ = getattr_of(__name__, _LATER)
guard(__name__)
