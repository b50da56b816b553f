"""Names of the package samegrad-doctor, which runs on all processes of samegrad's jobs.

Import them from here: without the package, the error names the command that installs it.
"""

import os
import sys

from samegrad._base.user_files import add_library
from samegrad.testing._joined import current, met

try:
    from samegrad_doctor import (
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
except ImportError as error:
    if error.name != "samegrad_doctor":
        raise
    raise ImportError(
        "[samegrad.testing] checks of loss normalization need the package samegrad-doctor: got "
        "none; run pip install ./python/samegrad_doctor in the folder of samegrad's sources.",
        name="samegrad_doctor",
    ) from None

from samegrad_doctor._layouts import rows_of, take
from samegrad_doctor._over_processes import Job, register_job
from samegrad_doctor.cli import run as command

__all__ = [
    "CATALOGUE",
    "Diagnosis",
    "FailureMode",
    "Job",
    "Layout",
    "Outcome",
    "ReplicaWeights",
    "Situation",
    "StepError",
    "assert_replica_equivalent",
    "command",
    "diagnose",
    "layout",
    "rows_of",
    "take",
    "unequal_sizes",
]


def _job() -> Job | None:
    job = current()
    return None if job is None else Job(job.rank, job.size, met)


register_job(_job)
add_library(os.path.dirname(str(sys.modules["samegrad_doctor"].__file__)))
