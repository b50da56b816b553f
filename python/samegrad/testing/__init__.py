"""Checks of training steps: their loss normalization, for any framework, and their bits.

    from samegrad.testing import assert_replica_equivalent

    def test_my_step():
        assert_replica_equivalent(step, batch)

It needs only NumPy: neither the engine nor a framework is imported. The comparisons of bits load
the engine when they are called.
"""

from typing import TYPE_CHECKING

from samegrad._surface.boundary import guard
from samegrad._surface.missing_names import getattr_of
from samegrad.testing._catalogue import CATALOGUE, FailureMode
from samegrad.testing._diagnose import assert_replica_equivalent, diagnose
from samegrad.testing._diagnosis import Diagnosis, ReplicaWeights
from samegrad.testing._invariance import (
    DivisionOutcome,
    ReplicaInvariance,
    assert_replica_invariant,
)
from samegrad.testing._layouts import Layout, StepError, layout, unequal_sizes
from samegrad.testing._same_bits import assert_same_bits
from samegrad.testing._situation import Situation
from samegrad.testing._updates import Outcome

__all__ = [
    "CATALOGUE",
    "Diagnosis",
    "DivisionOutcome",
    "Layout",
    "FailureMode",
    "Outcome",
    "ReplicaInvariance",
    "ReplicaWeights",
    "Situation",
    "StepError",
    "assert_replica_equivalent",
    "assert_replica_invariant",
    "assert_same_bits",
    "diagnose",
    "layout",
    "unequal_sizes",
]

if not TYPE_CHECKING:
    __getattr__ = getattr_of(__name__)
guard(__name__)
