"""Rows of different lengths, under the names of tf.ragged: for preparing data."""

from typing import TYPE_CHECKING

from samegrad._surface.boundary import guard
from samegrad._surface.missing_names import getattr_of
from samegrad.ragged._made import boolean_mask, constant, map_flat_values, range, stack

__all__ = ["boolean_mask", "constant", "map_flat_values", "range", "stack"]

if not TYPE_CHECKING:
    __getattr__ = getattr_of(__name__)
guard(__name__)
