"""Functions that may still change: exchange of memory with other libraries."""

from typing import TYPE_CHECKING

from samegrad._surface.boundary import guard
from samegrad._surface.missing_names import getattr_of
from samegrad.experimental import dlpack

__all__ = ["dlpack"]

if not TYPE_CHECKING:
    __getattr__ = getattr_of(__name__)
guard(__name__)
