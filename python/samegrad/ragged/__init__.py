"""Rows of different lengths, under the names of tf.ragged: for preparing data."""

from typing import TYPE_CHECKING

from samegrad._surface.boundary import guard
from samegrad._surface.missing_names import getattr_of
from samegrad.ragged._made import boolean_mask, constant, map_flat_values, range, stack
from samegrad.ragged._row_ids import row_splits_to_segment_ids, segment_ids_to_row_splits

__all__ = [
    "boolean_mask",
    "constant",
    "map_flat_values",
    "range",
    "row_splits_to_segment_ids",
    "segment_ids_to_row_splits",
    "stack",
]

if not TYPE_CHECKING:
    __getattr__ = getattr_of(__name__)
guard(__name__)
