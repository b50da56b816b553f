"""Devices as programs for TensorFlow ask for them: CPUs, and no other kind.

Replicas are units of the program here, so that devices are names only: nothing is placed on them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from samegrad._base.shown import shown


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
    """What a logical device is given; memory is shared, so that limits are of no use.

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
    """The processors: one CPU (all its cores), and none of another type.

    Example:
        >>> len(list_physical_devices("CPU")), list_physical_devices("GPU")
        (1, [])
    """
    return [_CPU] if device_type in (None, "CPU") else []


def list_logical_devices(device_type: str | None = None) -> list[LogicalDevice]:
    """The names that `set_logical_device_configuration` made; one by default."""
    if device_type not in (None, "CPU"):
        return []
    return [LogicalDevice(f"/device:CPU:{i}", "CPU") for i in range(len(_configurations))]


def set_logical_device_configuration(
    device: PhysicalDevice, logical_devices: Sequence[LogicalDeviceConfiguration]
) -> None:
    """Makes several names for the CPU; a strategy of N replicas needs none of them.

    Raises:
        ValueError: Another device, or no configuration.

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


def get_logical_device_configuration(device: PhysicalDevice) -> list[LogicalDeviceConfiguration]:
    """The configurations that were set."""
    _check("get_logical_device_configuration", device)
    return list(_configurations)


def get_visible_devices(device_type: str | None = None) -> list[PhysicalDevice]:
    """As `list_physical_devices`."""
    return list_physical_devices(device_type)


def set_visible_devices(devices: Any, device_type: str | None = None) -> None:
    """Does nothing where the CPU stays visible.

    Raises:
        ValueError: The CPU is left out.
    """
    listed = devices if isinstance(devices, Sequence) else [devices]
    if device_type in (None, "CPU") and not any(
        isinstance(device, PhysicalDevice) and device == _CPU for device in listed
    ):
        raise ValueError(f"[set_visible_devices] the CPU must stay visible: got {shown(devices)}.")


def _check(who: str, device: PhysicalDevice) -> None:
    if not isinstance(device, PhysicalDevice) or device != _CPU:
        raise ValueError(
            f"[{who}] the one device is list_physical_devices('CPU')[0]: got {shown(device)}."
        )
