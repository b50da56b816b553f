"""Numbers of replicas, as names of devices or an integer give them."""

from __future__ import annotations

from typing import Any

import numpy as np

from samegrad._base.shown import shown
from samegrad._context.devices import device_of
from samegrad._tensor.sizes import whole

_MAX_REPLICAS = 1 << 16


def count_replicas(who: str, devices: Any, replicas: Any, default: int = 1) -> int:
    """Return the number of replicas that names of devices or a number ask for.

    Args:
        who: Name of the strategy, for messages.
        devices: List of names of devices, one per replica; None or empty: not given.
        replicas: Number of replicas, or None.
        default: The number where neither is given.

    Raises:
        TypeError: `devices` is not a list of names, or `replicas` is not an integer.
        ValueError: No replica or too many, a name that is not a device's or is a duplicate, or
            `devices` and `replicas` differ.
        InvalidArgumentError: The machine lacks a device, and soft placement is off.
    """
    if devices is None:
        return _checked_count(who, default if replicas is None else replicas)
    if not isinstance(devices, list | tuple):
        raise TypeError(
            f"[{who}] devices must be a list of names such as 'CPU:0': got {shown(devices)}; "
            f"{instead_of(who, devices)}"
        )
    if not devices:
        return count_replicas(who, None, replicas, default)
    if len({device_of(who, name, instead_of(who, devices)) for name in devices}) != len(devices):
        raise ValueError(
            f"[{who}] each device is one replica and may be named once: got {shown(devices)}; "
            f"{instead_of(who, len(devices))}"
        )
    if replicas is not None and len(devices) != replicas:
        raise ValueError(
            f"[{who}] devices and replicas must agree: got {len(devices)} devices and "
            f"replicas={shown(replicas)}; give one of them."
        )
    return _checked_count(who, len(devices))


def instead_of(who: str, devices: Any) -> str:
    """Suggest the number of replicas: the one that was given, if there is one."""
    strategy = who if who.endswith("MirroredStrategy") else "MirroredStrategy"
    if isinstance(devices, int | np.integer) and type(devices) is not bool and devices > 0:
        return f"did you mean {strategy}(replicas={devices})?"
    return f"say how many replicas instead: {strategy}(replicas=8)."


def _checked_count(who: str, replicas: Any) -> int:
    if isinstance(replicas, bool):
        raise TypeError(f"[{who}] replicas must be an integer: got {replicas}; pass an int.")
    count = whole(replicas, "replicas must be an integer", "pass an int, e.g. replicas=4")
    if count < 1:
        raise ValueError(
            f"[{who}] at least one replica is needed: got replicas={count}; pass replicas=1 or "
            "more."
        )
    if count > _MAX_REPLICAS:
        raise ValueError(
            f"[{who}] at most {_MAX_REPLICAS} replicas are supported: got replicas={count}; larger "
            "batches need no more replicas."
        )
    return count
