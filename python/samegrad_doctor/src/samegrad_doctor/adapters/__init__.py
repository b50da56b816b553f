"""Steps of frameworks in the form that `diagnose` takes. Each imports its framework when called."""

from samegrad_doctor.adapters._ddp import ddp_step, ddp_workers
from samegrad_doctor.adapters._jax import jax_devices_step, jax_step
from samegrad_doctor.adapters._loops import accelerate_step, lightning_step, loop_step
from samegrad_doctor.adapters._tensorflow import tensorflow_step
from samegrad_doctor.adapters._torch import torch_step

__all__ = [
    "accelerate_step",
    "ddp_step",
    "ddp_workers",
    "jax_devices_step",
    "jax_step",
    "lightning_step",
    "loop_step",
    "tensorflow_step",
    "torch_step",
]
