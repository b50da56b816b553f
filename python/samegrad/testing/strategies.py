"""Hypothesis strategies for per-replica batch sizes, splits of a batch, and masks."""

from samegrad._surface.boundary import guard
from samegrad.testing._doctor import rows_of as _rows_of  # noqa: F401  # its error comes first
from samegrad_doctor.strategies import masks, shard_sizes, splits

__all__ = ["masks", "shard_sizes", "splits"]

guard(__name__)
