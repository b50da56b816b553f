"""Functions that start and stop a TPU; they raise, as TensorFlow's do without one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from samegrad._surface.boundary import guard
from samegrad._surface.missing_names import getattr_of
from samegrad.distribute._tpu import no_tpu


def initialize_tpu_system(cluster_resolver: Any = None) -> NoReturn:
    """Raise, as TensorFlow does on a machine without a TPU.

    Args:
        cluster_resolver: Resolver of the TPU.

    Raises:
        ValueError: No TPU is named.
        NotFoundError: A TPU is named.

    Example:
        >>> try:
        ...     initialize_tpu_system()
        ... except ValueError:
        ...     print("this machine has no TPU")
        this machine has no TPU
    """
    raise no_tpu("initialize_tpu_system", cluster_resolver)


def shutdown_tpu_system(cluster_resolver: Any = None) -> NoReturn:
    """Raise, as TensorFlow does on a machine without a TPU.

    Args:
        cluster_resolver: Resolver of the TPU.

    Raises:
        ValueError: No TPU is named.
        NotFoundError: A TPU is named.

    Example:
        >>> try:
        ...     shutdown_tpu_system()
        ... except ValueError:
        ...     print("this machine has no TPU")
        this machine has no TPU
    """
    raise no_tpu("shutdown_tpu_system", cluster_resolver)


__all__ = ["initialize_tpu_system", "shutdown_tpu_system"]

if not TYPE_CHECKING:
    __getattr__ = getattr_of(__name__)
guard(__name__)
