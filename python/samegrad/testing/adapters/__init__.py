"""Steps of frameworks in the form that `diagnose` takes. Each imports its framework when called."""

from typing import TYPE_CHECKING

from samegrad._surface.boundary import guard
from samegrad._surface.missing_names import getattr_of
from samegrad.testing.adapters._samegrad import samegrad_step
from samegrad_doctor.adapters import (
    accelerate_step,
    ddp_step,
    ddp_workers,
    jax_devices_step,
    jax_step,
    lightning_step,
    loop_step,
    tensorflow_step,
    torch_step,
)

__all__ = [
    "accelerate_step",
    "ddp_step",
    "ddp_workers",
    "jax_devices_step",
    "jax_step",
    "lightning_step",
    "loop_step",
    "samegrad_step",
    "tensorflow_step",
    "torch_step",
]

if not TYPE_CHECKING:
    __getattr__ = getattr_of(__name__)
guard(__name__)
