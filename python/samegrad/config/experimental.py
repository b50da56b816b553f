"""Settings of devices by their older names; there are only CPUs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from samegrad._base.shown import shown
from samegrad._surface.boundary import guard
from samegrad._surface.missing_names import getattr_of
from samegrad.config._devices import (
    LogicalDeviceConfiguration,
    get_visible_devices,
    list_logical_devices,
    list_physical_devices,
    set_visible_devices,
)
from samegrad.config._devices import LogicalDeviceConfiguration as VirtualDeviceConfiguration
from samegrad.config._devices import (
    get_logical_device_configuration as get_virtual_device_configuration,
)
from samegrad.config._devices import (
    set_logical_device_configuration as set_virtual_device_configuration,
)


def set_memory_growth(device: Any, enable: bool) -> None:
    """Raise ValueError: memory grows as it is needed on CPUs, and GPUs are not supported.

    Args:
        device: Device.
        enable: Not used.

    Raises:
        ValueError: Always, as TensorFlow's for a CPU.

    Example:
        >>> for device in list_physical_devices("GPU"):  # there are none
        ...     set_memory_growth(device, True)
    """
    raise ValueError(
        f"[set_memory_growth] memory grows as it is needed on CPUs: got {shown(device)}; leave it "
        "out."
    )


def get_memory_growth(device: Any) -> bool:
    """Return True: memory grows as it is needed.

    Args:
        device: Ignored.

    Returns:
        True.

    Example:
        >>> get_memory_growth(list_physical_devices("CPU")[0])
        True
    """
    return True


def enable_op_determinism() -> None:
    """Do nothing: operations are deterministic.

    Example:
        >>> enable_op_determinism()
    """


_tensor_float_32 = True


def enable_tensor_float_32_execution(enabled: bool) -> None:
    """Store whether GPUs may round float32 to TensorFloat-32; CPUs always compute in float32.

    Args:
        enabled: True or False.

    Raises:
        TypeError: enabled is not a bool.

    Example:
        >>> enable_tensor_float_32_execution(False)
        >>> tensor_float_32_execution_enabled()
        False
        >>> enable_tensor_float_32_execution(True)
    """
    global _tensor_float_32
    if not isinstance(enabled, bool | np.bool_):
        raise TypeError(
            "[config.experimental.enable_tensor_float_32_execution] enabled must be True or False: "
            f"got {shown(enabled)}; pass a bool."
        )
    _tensor_float_32 = bool(enabled)


def tensor_float_32_execution_enabled() -> bool:
    """Return what `enable_tensor_float_32_execution` stored, True by default."""
    return _tensor_float_32


__all__ = [
    "LogicalDeviceConfiguration", "VirtualDeviceConfiguration", "enable_op_determinism",
    "enable_tensor_float_32_execution", "get_memory_growth", "get_virtual_device_configuration",
    "get_visible_devices", "list_logical_devices", "list_physical_devices", "set_memory_growth",
    "set_virtual_device_configuration", "set_visible_devices", "tensor_float_32_execution_enabled",
]  # fmt: skip

if not TYPE_CHECKING:
    __getattr__ = getattr_of(__name__)
guard(__name__)
