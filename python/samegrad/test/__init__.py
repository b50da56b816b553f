"""Tests of programs, under the names of tf.test; queries for GPUs say that there are none."""

from typing import TYPE_CHECKING

from samegrad._surface.boundary import guard
from samegrad._surface.missing_names import getattr_of
from samegrad.test._case import TestCase, main
from samegrad.test._gradients import compute_gradient


def is_gpu_available(
    cuda_only: bool = False, min_cuda_compute_capability: tuple[int, int] | None = None
) -> bool:
    """Return False: replicas run on CPUs.

    Args:
        cuda_only: Ignored.
        min_cuda_compute_capability: Ignored.

    Returns:
        False.

    Example:
        >>> is_gpu_available()
        False
    """
    return False


def gpu_device_name() -> str:
    """Return an empty string: replicas run on CPUs.

    Example:
        >>> gpu_device_name()
        ''
    """
    return ""


def is_built_with_cuda() -> bool:
    """Return False: replicas run on CPUs.

    Example:
        >>> is_built_with_cuda()
        False
    """
    return False


def is_built_with_gpu_support() -> bool:
    """Return False: replicas run on CPUs.

    Example:
        >>> is_built_with_gpu_support()
        False
    """
    return False


def is_built_with_rocm() -> bool:
    """Return False: replicas run on CPUs.

    Example:
        >>> is_built_with_rocm()
        False
    """
    return False


def is_built_with_xla() -> bool:
    """Return False: samegrad has a compiler of its own.

    Example:
        >>> is_built_with_xla()
        False
    """
    return False


__all__ = [
    "TestCase",
    "compute_gradient",
    "gpu_device_name",
    "is_built_with_cuda",
    "is_built_with_gpu_support",
    "is_built_with_rocm",
    "is_built_with_xla",
    "is_gpu_available",
    "main",
]

if not TYPE_CHECKING:
    __getattr__ = getattr_of(__name__)
guard(__name__)
