"""Names of devices: logical CPUs, one per replica."""

from __future__ import annotations

import re
from collections.abc import Sequence

from samegrad._base.shown import shown

_DEVICE = re.compile(
    r"(/job:\w+)?(/replica:\d+)?(/task:\d+)?(/?device:)?/?(?P<kind>[A-Za-z]+):(?P<number>\d+)"
)


def check_device(who: str, name: str) -> int:
    """The number of a logical CPU.

    Raises:
        ValueError: The name of another device.
    """
    parts = _DEVICE.fullmatch(str(name))
    if parts is None or parts["kind"].upper() != "CPU":
        raise ValueError(
            f"[{who}] devices are logical CPUs such as 'CPU:0': got {shown(name)}; or say how many "
            "replicas: MirroredStrategy(replicas=8)."
        )
    return int(parts["number"])


def check_devices(devices: Sequence[str]) -> None:
    """Checks that names are of logical CPUs, one per replica, none twice.

    Raises:
        ValueError: They are not.
    """
    numbers = {check_device("MirroredStrategy", name) for name in devices}
    if len(numbers) != len(devices):
        raise ValueError(
            f"[MirroredStrategy] each device is one replica and may be named once: got "
            f"{list(devices)}."
        )
