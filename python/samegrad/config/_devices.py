"""Devices as programs for TensorFlow ask for them: CPUs alone.

Replicas are units of the program here, so that devices are names only: nothing is placed on them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from samegrad._base.shown import shown
from samegrad._context.devices import placement


@dataclass(frozen=True)
class _Device:
    name: str
    device_type: str


class PhysicalDevice(_Device):
    """The processors of the machine.

    Args:
        name: Its name.
        device_type: "CPU".
    """


class LogicalDevice(_Device):
    """A name that a strategy may take for a replica.

    Args:
        name: Its name.
        device_type: "CPU".
    """


@dataclass(frozen=True)
class LogicalDeviceConfiguration:
    """Configuration of a logical device; memory is shared, so limits have no effect.

    Args:
        memory_limit: Ignored.
        experimental_priority: Ignored.
        experimental_device_ordinal: Ignored.
    """

    memory_limit: int | None = None
    experimental_priority: int | None = None
    experimental_device_ordinal: int | None = None


_CPU = PhysicalDevice("/physical_device:CPU:0", "CPU")
_configurations: list[LogicalDeviceConfiguration] = [LogicalDeviceConfiguration()]


def list_physical_devices(device_type: str | None = None) -> list[PhysicalDevice]:
    """List the physical devices: one CPU (all its cores).

    Args:
        device_type: "CPU" or None; another type has no devices.

    Returns:
        List of devices.

    Example:
        >>> len(list_physical_devices("CPU")), list_physical_devices("GPU")
        (1, [])
    """
    return [_CPU] if device_type in (None, "CPU") else []


def list_logical_devices(device_type: str | None = None) -> list[LogicalDevice]:
    """List the names that `set_logical_device_configuration` made; one by default.

    Args:
        device_type: "CPU" or None; another type has no devices.

    Returns:
        List of logical devices.

    Example:
        >>> import samegrad as tf
        >>> [device.name for device in tf.config.list_logical_devices("CPU")]
        ['/device:CPU:0']
    """
    if device_type not in (None, "CPU"):
        return []
    return [LogicalDevice(f"/device:CPU:{i}", "CPU") for i in range(len(_configurations))]


def set_logical_device_configuration(
    device: PhysicalDevice, logical_devices: Sequence[LogicalDeviceConfiguration]
) -> None:
    """Create several names for the CPU; `MirroredStrategy()` has one replica for each.

    Args:
        device: The CPU, from `list_physical_devices`.
        logical_devices: Configuration of each logical device, at least one.

    Raises:
        ValueError: device is not the CPU, or logical_devices is empty.

    Example:
        >>> import samegrad.config as config
        >>> cpu = config.list_physical_devices("CPU")[0]
        >>> two = [config.LogicalDeviceConfiguration()] * 2
        >>> config.set_logical_device_configuration(cpu, two)
        >>> [device.name for device in config.list_logical_devices()]
        ['/device:CPU:0', '/device:CPU:1']
        >>> config.set_logical_device_configuration(cpu, two[:1])
    """
    _check("set_logical_device_configuration", device)
    if not logical_devices:
        raise ValueError(
            "[set_logical_device_configuration] at least one configuration is needed: got none."
        )
    _configurations[:] = list(logical_devices)
    placement.logical_cpus = len(_configurations)


def get_logical_device_configuration(device: PhysicalDevice) -> list[LogicalDeviceConfiguration]:
    """Return the configurations that were set.

    Args:
        device: The CPU, from `list_physical_devices`.

    Returns:
        List of configurations.

    Example:
        >>> import samegrad as tf
        >>> cpu = tf.config.list_physical_devices("CPU")[0]
        >>> len(tf.config.get_logical_device_configuration(cpu))
        1
    """
    _check("get_logical_device_configuration", device)
    return list(_configurations)


def get_visible_devices(device_type: str | None = None) -> list[PhysicalDevice]:
    """Return the visible devices: those of `list_physical_devices`.

    Args:
        device_type: "CPU" or None; another type has no devices.

    Returns:
        List of devices.

    Example:
        >>> import samegrad as tf
        >>> [device.device_type for device in tf.config.get_visible_devices()]
        ['CPU']
    """
    return list_physical_devices(device_type)


def set_visible_devices(devices: Any, device_type: str | None = None) -> None:
    """Check that the CPU stays visible; do nothing else.

    Args:
        devices: Device, or list of devices.
        device_type: Type of the devices. None: all types.

    Raises:
        ValueError: devices does not contain the CPU.

    Example:
        >>> import samegrad as tf
        >>> tf.config.set_visible_devices(tf.config.list_physical_devices("CPU"))
    """
    listed = devices if isinstance(devices, Sequence) else [devices]
    if device_type in (None, "CPU") and not any(
        isinstance(device, PhysicalDevice) and device == _CPU for device in listed
    ):
        raise ValueError(f"[set_visible_devices] the CPU must stay visible: got {shown(devices)}.")


def set_soft_device_placement(enabled: bool) -> None:
    """Set if the name of a device that the machine lacks means a CPU.

    Args:
        enabled: True, the default: `tf.device` and strategies take names of GPUs. False: they
            raise InvalidArgumentError for them.

    Example:
        >>> import samegrad as tf
        >>> tf.config.set_soft_device_placement(True)
    """
    placement.soft = bool(enabled)


def get_soft_device_placement() -> bool:
    """Return True if the name of a device that the machine lacks means a CPU.

    Example:
        >>> import samegrad as tf
        >>> tf.config.get_soft_device_placement()
        True
    """
    return placement.soft


def _check(who: str, device: PhysicalDevice) -> None:
    if not isinstance(device, PhysicalDevice) or device != _CPU:
        raise ValueError(
            f"[{who}] the one device is list_physical_devices('CPU')[0]: got {shown(device)}."
        )
