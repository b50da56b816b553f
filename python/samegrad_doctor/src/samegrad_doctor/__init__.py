"""Check the loss normalization of a data-parallel training step, of any framework.

    from samegrad_doctor import assert_replica_equivalent

    def test_my_step():
        assert_replica_equivalent(step, batch)

It needs NumPy only; no framework is imported.
"""

from samegrad_doctor._catalogue import CATALOGUE, FailureMode
from samegrad_doctor._diagnose import assert_replica_equivalent, diagnose
from samegrad_doctor._diagnosis import Diagnosis, ReplicaWeights
from samegrad_doctor._layouts import Layout, StepError, layout, unequal_sizes
from samegrad_doctor._situation import Situation
from samegrad_doctor._updates import Outcome

__version__ = "0.1.0"

__all__ = [
    "CATALOGUE",
    "Diagnosis",
    "FailureMode",
    "Layout",
    "Outcome",
    "ReplicaWeights",
    "Situation",
    "StepError",
    "assert_replica_equivalent",
    "diagnose",
    "layout",
    "unequal_sizes",
]
