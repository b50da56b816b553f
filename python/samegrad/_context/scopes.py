"""Scopes that TensorFlow's programs enter: names, devices, dependencies of control."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from samegrad import _core
from samegrad._base.shown import shown
from samegrad._context import state as _context
from samegrad._context.devices import device_of


def get_current_name_scope() -> str:
    """Return the path of the name scopes that are entered, without the last "/".

    Example:
        >>> with name_scope("a"), name_scope("b"):
        ...     get_current_name_scope()
        'a/b'
    """
    return _context.current().name_scope.rstrip("/")


class name_scope:  # noqa: N801  # TensorFlow's name
    """Scope in which the names of new variables begin with `name/`; scopes nest.

    Args:
        name: The name of the scope. A name that ends with `/`, as the scope's own string does,
            starts anew there; an empty one leaves all scopes.

    Raises:
        ValueError: The name is not a string.

    Example:
        >>> import samegrad as tf
        >>> with tf.name_scope("encoder") as scope:
        ...     scope, tf.Variable(1.0, name="scale").name
        ('encoder/', 'encoder/scale:0')
    """

    def __init__(self, name: str) -> None:
        if not isinstance(name, str):
            raise ValueError(f"[name_scope] name must be a string: got {shown(name)}; pass one.")
        self.name = name
        self._guards: list[_core.Guard] = []

    def __enter__(self) -> str:
        absolute = not self.name or self.name.endswith("/")
        path = self.name if absolute else f"{_context.current().name_scope}{self.name}/"
        guard = _context.changed(name_scope=path)
        self._guards.append(guard)
        guard.__enter__()
        return path

    def __exit__(self, *error: Any) -> None:
        if not self._guards:
            raise RuntimeError(
                f"[name_scope] a scope ends once for each time it began: got {self.name!r}, which "
                "is over; use it in a with statement."
            )
        self._guards.pop().__exit__(*error)


def device(device_name: Any) -> _core.Guard:
    """Return a scope that names a device; ops run on the CPUs of this machine anyway.

    Args:
        device_name: A name such as "/CPU:0" or "/GPU:1", a `DeviceSpec`, or None. As in
            TensorFlow, ops for a device that the machine lacks run on its CPUs. The first name of
            another device than a CPU is warned of.

    Returns:
        A context manager.

    Raises:
        ValueError: The name is not that of a device.
        InvalidArgumentError: The machine lacks the device, and soft placement is off.

    Example:
        >>> import samegrad as tf
        >>> with tf.device("/CPU:0"):
        ...     float(tf.constant(1.0) + 1.0)
        2.0
    """
    device_of("device", device_name)
    return _context.changed()


def control_dependencies(control_inputs: Iterable[Any] | None) -> _core.Guard:
    """Return a scope that changes nothing: writes happen in the order of their lines.

    Args:
        control_inputs: The ops that run first in TensorFlow, or None; ignored.

    Returns:
        A context manager.

    Example:
        >>> import samegrad as tf
        >>> v = tf.Variable(1.0)
        >>> with tf.control_dependencies([v.assign_add(1.0)]):
        ...     float(v)
        2.0
    """
    return _context.changed()


def executing_eagerly() -> bool:
    """Return True if tensors have values: outside of traced functions.

    Example:
        >>> import samegrad as tf
        >>> tf.executing_eagerly()
        True
    """
    return not _core.tracing() or _context.settings.functions_run_eagerly


def inside_function() -> bool:
    """Return True while a function is traced.

    Example:
        >>> import samegrad as tf
        >>> tf.inside_function()
        False
    """
    return not executing_eagerly()


__all__ = [
    "control_dependencies", "device", "executing_eagerly", "get_current_name_scope",
    "inside_function", "name_scope",
]  # fmt: skip
