"""Names that programs written for TensorFlow use."""

from __future__ import annotations

from samegrad._base.enums import IntChoice
from samegrad._surface.boundary import guard
from samegrad.data._nodes import INFINITE, UNKNOWN

AUTOTUNE = -1
INFINITE_CARDINALITY = INFINITE
UNKNOWN_CARDINALITY = UNKNOWN


class AutoShardPolicy(IntChoice):
    """How TensorFlow deals out files between workers; accepted and not used.

    Example:
        >>> AutoShardPolicy.DATA.name
        'DATA'
    """

    OFF = -1
    AUTO = 0
    FILE = 1
    DATA = 2
    HINT = 3


__all__ = ["AUTOTUNE", "INFINITE_CARDINALITY", "UNKNOWN_CARDINALITY", "AutoShardPolicy"]

guard(__name__)
