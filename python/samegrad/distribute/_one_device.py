"""The strategies of one device, and of variables on one device."""

from __future__ import annotations

from collections.abc import Sequence

from samegrad._context.counted_numbers import counted, questions
from samegrad._context.devices import device_of
from samegrad.distribute._device_names import count_replicas, instead_of
from samegrad.distribute._strategy import Strategy


class OneDeviceStrategy(Strategy):
    """One replica on all threads: to test a distributed program without distribution.

    Args:
        device: The name of a device such as "/gpu:0". The replica runs on the CPUs; the first name
            of another device is warned of.

    Raises:
        ValueError: The name is not that of a device.
        InvalidArgumentError: The machine lacks the device, and soft placement is off.

    Example:
        >>> OneDeviceStrategy("/cpu:0").num_replicas_in_sync
        1
    """

    def __init__(self, device: str) -> None:
        device_of("OneDeviceStrategy", device, instead_of("OneDeviceStrategy", device))

    @property
    def num_replicas_in_sync(self) -> int:
        """One."""
        return questions.ask_one()


class CentralStorageStrategy(Strategy):
    """Synchronous training on N replicas whose variables are in one place, as all are here.

    Args:
        compute_devices: Names of devices, one per replica, as for `MirroredStrategy`. None or an
            empty list: one replica.
        parameter_device: The name of the device of the variables.

    Raises:
        TypeError: `compute_devices` is not a list of names.
        ValueError: A name is not that of a device, or is a duplicate.
        InvalidArgumentError: The machine lacks a device, and soft placement is off.

    Example:
        >>> CentralStorageStrategy(["/cpu:0", "/cpu:1"], "/cpu:0").num_replicas_in_sync
        2
    """

    def __init__(
        self, compute_devices: Sequence[str] | None = None, parameter_device: str | None = None
    ) -> None:
        count = count_replicas("CentralStorageStrategy", compute_devices, None)
        device_of("CentralStorageStrategy", parameter_device)
        self._replicas = counted(count, replicas=1)

    @property
    def num_replicas_in_sync(self) -> int:
        """Number of replicas that train together."""
        return questions.ask(self._replicas)
