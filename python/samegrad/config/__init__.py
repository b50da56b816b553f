"""Settings of the process."""

from samegrad._function import functions_run_eagerly, run_functions_eagerly
from samegrad._unknown import getattr_of
from samegrad.config import threading
from samegrad.config._devices import (
    LogicalDevice,
    LogicalDeviceConfiguration,
    PhysicalDevice,
    get_logical_device_configuration,
    get_visible_devices,
    list_logical_devices,
    list_physical_devices,
    set_logical_device_configuration,
    set_visible_devices,
)

__all__ = [
    "LogicalDevice",
    "LogicalDeviceConfiguration",
    "PhysicalDevice",
    "functions_run_eagerly",
    "get_logical_device_configuration",
    "get_visible_devices",
    "list_logical_devices",
    "list_physical_devices",
    "run_functions_eagerly",
    "set_logical_device_configuration",
    "set_visible_devices",
    "threading",
]

__getattr__ = getattr_of(__name__)
