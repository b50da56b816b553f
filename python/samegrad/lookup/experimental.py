"""Tables that change, under the names of tf.lookup.experimental."""

from typing import TYPE_CHECKING

from samegrad._surface.boundary import guard
from samegrad._surface.missing_names import getattr_of
from samegrad.lookup._tables import DenseHashTable, MutableHashTable

__all__ = ["DenseHashTable", "MutableHashTable"]

if not TYPE_CHECKING:
    __getattr__ = getattr_of(__name__)
guard(__name__)
