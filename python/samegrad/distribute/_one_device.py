"""The strategy of one device."""

from __future__ import annotations

from samegrad._context.counted_numbers import questions
from samegrad.distribute._device_names import check_device
from samegrad.distribute._strategy import Strategy


class OneDeviceStrategy(Strategy):
    """One replica on all threads: to test a distributed program without distribution.

    Args:
        device: The name of a logical CPU.

    Raises:
        ValueError: The name of another device.

    Example:
        >>> OneDeviceStrategy("/cpu:0").num_replicas_in_sync
        1
    """

    def __init__(self, device: str) -> None:
        check_device("OneDeviceStrategy", device)
        self._device = device

    @property
    def num_replicas_in_sync(self) -> int:
        """One."""
        return questions.ask_one()

    @property
    def devices(self) -> tuple[str, ...]:
        """The device that was named."""
        return (self._device,)
