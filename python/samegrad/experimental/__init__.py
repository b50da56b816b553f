"""Functions that may still change: exchange of memory with other libraries, and row partitions."""

from typing import TYPE_CHECKING

from samegrad._surface.boundary import guard
from samegrad._surface.missing_names import getattr_of
from samegrad.experimental import dlpack
from samegrad.ragged._row_partition import RowPartition

__all__ = ["RowPartition", "dlpack"]

if not TYPE_CHECKING:
    __getattr__ = getattr_of(__name__)
guard(__name__)
