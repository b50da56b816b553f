"""Names of devices: whatever a program names, its replicas and ops run on the CPUs."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any

from samegrad._base.location import warn
from samegrad._base.shown import shown
from samegrad._surface.boundary import guard
from samegrad.errors import InvalidArgumentError

_TYPES = ("CPU", "GPU", "TPU")
_NUMBER = re.compile(r"-?\d+")
_REMEDY = "name one such as '/cpu:0'."


@dataclass(frozen=True, repr=False)
class DeviceSpec:
    """Parts of the name of a device; those that are None are left open.

    Args:
        job: Name of the job.
        replica: Index of the replica.
        task: Index of the task.
        device_type: "CPU", "GPU" or "TPU".
        device_index: Index among the devices of this type.

    Example:
        >>> import samegrad as tf
        >>> spec = tf.DeviceSpec(job="worker", device_type="cpu")
        >>> spec.to_string()
        '/job:worker/device:CPU:*'
    """

    job: str | None = None
    replica: int | None = None
    task: int | None = None
    device_type: str | None = None
    device_index: int | None = None

    def __post_init__(self) -> None:
        if self.device_type is not None:
            object.__setattr__(self, "device_type", str(self.device_type).upper())

    @classmethod
    def from_string(cls, spec: str) -> DeviceSpec:
        """Parse a name such as "/job:worker/task:1/gpu:0".

        Args:
            spec: Name of a device; an empty one leaves all parts open.

        Returns:
            `DeviceSpec`.

        Raises:
            ValueError: The name has an unknown part, two types or a part without its index.

        Example:
            >>> import samegrad as tf
            >>> tf.DeviceSpec.from_string("/gpu:1").device_index
            1
        """
        return cls(**_parts_of("DeviceSpec", spec, _REMEDY))

    def parse_from_string(self, spec: str) -> DeviceSpec:
        """Parse a name, as `from_string` does.

        Args:
            spec: Name of a device.

        Returns:
            `DeviceSpec`.

        Example:
            >>> import samegrad as tf
            >>> tf.DeviceSpec().parse_from_string("/cpu:0").to_string()
            '/device:CPU:0'
        """
        return self.from_string(spec)

    def to_string(self) -> str:
        """Return the name of the device.

        Example:
            >>> import samegrad as tf
            >>> tf.DeviceSpec(device_type="GPU", device_index=1).to_string()
            '/device:GPU:1'
        """
        parts = [(name, getattr(self, name)) for name in ("job", "replica", "task")]
        text = "".join(f"/{name}:{value}" for name, value in parts if value is not None)
        if self.device_type is None:
            return text
        return f"{text}/device:{self.device_type}:{_index_text(self.device_index)}"

    def make_merged_spec(self, dev: DeviceSpec) -> DeviceSpec:
        """Return this spec with the parts that another one has.

        Args:
            dev: `DeviceSpec` whose parts win.

        Returns:
            `DeviceSpec`.

        Example:
            >>> import samegrad as tf
            >>> worker = tf.DeviceSpec(job="worker")
            >>> worker.make_merged_spec(tf.DeviceSpec(task=2)).to_string()
            '/job:worker/task:2'
        """
        return self.replace(**{k: value for k, value in vars(dev).items() if value is not None})

    def replace(self, **kwargs: Any) -> DeviceSpec:
        """Return this spec with other values of the parts that are named.

        Args:
            **kwargs: New values of the parts.

        Returns:
            `DeviceSpec`.

        Example:
            >>> import samegrad as tf
            >>> tf.DeviceSpec(device_type="CPU").replace(device_index=1).to_string()
            '/device:CPU:1'
        """
        return replace(self, **kwargs)

    def __repr__(self) -> str:
        parts = ", ".join(f"{name}={value}" for name, value in vars(self).items())
        return f"<DeviceSpec({parts})>"


def _index_text(index: int | None) -> str:
    return "*" if index is None else str(index)


def _parts_of(op_name: str, spec: str, remedy: str) -> dict[str, Any]:
    """Return the parts of a name such as "/job:worker/task:1/gpu:0"."""
    found: dict[str, Any] = {}
    for part in filter(None, spec.split("/")):
        name, *values = part.split(":")
        if name == "device" and values:
            name, *values = values
        value = values[0] if len(values) == 1 else None
        is_type = name.upper() in _TYPES and len(values) < 2 and "device_type" not in found
        if name == "job" and value is not None:
            found["job"] = value
        elif name in ("replica", "task") and value is not None and _NUMBER.fullmatch(value):
            found[name] = int(value)
        elif is_type and (value in (None, "*") or _NUMBER.fullmatch(str(value))):
            found["device_type"] = name
            found["device_index"] = None if value in (None, "*") else int(str(value))
        else:
            raise ValueError(
                f"[{op_name}] a device is a CPU, GPU or TPU such as '/gpu:0': got {shown(spec)}; "
                f"{remedy}"
            )
    return found


class Placement:
    """Settings of devices: the logical CPUs, and if a name of another device means a CPU."""

    soft = True
    logical_cpus = 1
    _warned = False

    def warn_once(self, op_name: str, name: Any) -> None:
        """Warn at the first device that is not a CPU."""
        if not self._warned:
            self._warned = True
            warn(
                f"[{op_name}] samegrad has no GPUs or TPUs: got {shown(name)}; replicas and ops "
                "run on the CPUs of this machine. This warning is given once."
            )


placement = Placement()


def device_of(op_name: str, name: Any, remedy: str = _REMEDY) -> DeviceSpec:
    """Return the device of a name; one without a type is a CPU, one without an index the first.

    Args:
        op_name: Public function, for messages.
        name: Name of a device, an object with one, a `DeviceSpec` or None.
        remedy: End of the message about another name.

    Returns:
        `DeviceSpec`.

    Raises:
        ValueError: The name is not that of a device.
        InvalidArgumentError: The machine lacks the device, and soft placement is off.
    """
    given = getattr(name, "name", name)
    if given is not None and not isinstance(given, str | DeviceSpec):
        raise ValueError(f"[{op_name}] a device is named by a string: got {shown(name)}; {remedy}")
    if isinstance(given, DeviceSpec):
        spec = given
    else:
        spec = DeviceSpec(**_parts_of(op_name, given or "", remedy))
    spec = spec.replace(device_type=spec.device_type or "CPU", device_index=spec.device_index or 0)
    is_cpu = spec.device_type == "CPU"
    if not placement.soft and not (is_cpu and (spec.device_index or 0) < placement.logical_cpus):
        raise InvalidArgumentError(
            f"[{op_name}] without soft placement a device of this machine is needed: got "
            f"{shown(name)}, and {placement.logical_cpus} CPUs; call "
            "tf.config.set_soft_device_placement(True)."
        )
    if not is_cpu:
        placement.warn_once(op_name, given)
    return spec


__all__ = ["DeviceSpec", "device_of", "placement"]
guard(__name__)
