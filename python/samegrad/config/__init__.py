"""Settings of the process."""

from typing import TYPE_CHECKING

from samegrad._autodiff.loss_normalization_check import (
    get_loss_normalization_check,
    loss_normalization_check,
    set_loss_normalization_check,
)
from samegrad._autodiff.replica_dependence_check import (
    get_replica_dependence_check,
    replica_dependence_check,
    set_replica_dependence_check,
)
from samegrad._function.function import functions_run_eagerly, run_functions_eagerly
from samegrad._surface.boundary import guard
from samegrad._surface.missing_names import getattr_of
from samegrad.config import optimizer, threading

if TYPE_CHECKING:
    from samegrad.config._cluster import experimental_connect_to_cluster
    from samegrad.config._devices import (
        LogicalDevice,
        LogicalDeviceConfiguration,
        PhysicalDevice,
        get_logical_device_configuration,
        get_soft_device_placement,
        get_visible_devices,
        list_logical_devices,
        list_physical_devices,
        set_logical_device_configuration,
        set_soft_device_placement,
        set_visible_devices,
    )

__all__ = [
    "LogicalDevice",
    "LogicalDeviceConfiguration",
    "PhysicalDevice",
    "experimental",
    "experimental_connect_to_cluster",
    "functions_run_eagerly",
    "get_logical_device_configuration",
    "get_loss_normalization_check",
    "get_replica_dependence_check",
    "get_soft_device_placement",
    "get_visible_devices",
    "list_logical_devices",
    "list_physical_devices",
    "loss_normalization_check",
    "optimizer",
    "replica_dependence_check",
    "run_functions_eagerly",
    "set_logical_device_configuration",
    "set_loss_normalization_check",
    "set_replica_dependence_check",
    "set_soft_device_placement",
    "set_visible_devices",
    "threading",
]

# What is not there yet is loaded when it is asked for.
if not TYPE_CHECKING:
    _later = {name: "samegrad.config._devices" for name in __all__ if name not in globals()}
    _later["experimental_connect_to_cluster"] = "samegrad.config._cluster"
    __getattr__ = getattr_of(__name__, _later)
guard(__name__)
