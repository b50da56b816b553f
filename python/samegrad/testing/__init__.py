"""Checks of training steps: their bits, and their loss normalization.

    from samegrad.testing import assert_replica_equivalent

    def test_my_step():
        assert_replica_equivalent(step, batch)

The checks of loss normalization are those of the package samegrad-doctor, for any framework. The
engine is loaded when a comparison of bits is called.
"""

from typing import TYPE_CHECKING

from samegrad._surface.boundary import guard
from samegrad._surface.missing_names import getattr_of
from samegrad.testing._invariance import (
    DivisionOutcome,
    ReplicaInvariance,
    assert_replica_invariant,
)
from samegrad.testing._same_bits import assert_same_bits

if TYPE_CHECKING:
    from samegrad.testing._doctor import (
        CATALOGUE,
        Diagnosis,
        FailureMode,
        Layout,
        Outcome,
        ReplicaWeights,
        Situation,
        StepError,
        assert_replica_equivalent,
        diagnose,
        layout,
        unequal_sizes,
    )

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
    _OWN = {name for name in __all__ if name in globals()}
    __getattr__ = getattr_of(
        __name__, {name: "samegrad.testing._doctor" for name in __all__ if name not in _OWN}
    )
guard(__name__)
