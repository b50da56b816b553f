"""What Keras's test files import and is not installed, so that an import does not lose a file.

A test file that imports a package that is not there gets a stand-in; a test that calls something
of it is skipped with that reason. TensorFlow's stand-in is samegrad, as in users' programs.
"""

from __future__ import annotations

import builtins
import functools
import importlib
import importlib.util
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

# What the test files import outside of a `try`.
PACKAGES = ("tensorflow", "jax", "torch", "scipy", "pandas", "grain", "sklearn", "onnxruntime")
# Where Keras's own files, and some tests, take TensorFlow from.
_KERAS_TENSORFLOW = "keras.src.utils.module_utils"
_running = False


def set_running(running: bool) -> None:
    """Whether a test runs now: calls while files are imported give stand-ins."""
    global _running
    _running = running


class Absent(type):
    """The class of the stand-ins, which are classes, as test files inherit from some."""

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _absent(f"{cls.__qualname__}.{name}")

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        if _running:
            package = cls.__mro__[-2].__qualname__.partition(".")[0]
            pytest.skip(f"needs {package}, which is not installed")
        return cls

    def __instancecheck__(cls, instance: Any) -> bool:
        return False


@functools.cache
def _absent(name: str) -> Any:
    return Absent(name.rpartition(".")[2], (), {"__qualname__": name, "__module__": "absent"})


def _reset_devices() -> None:
    """What tests of distribution begin with: one logical CPU."""
    import samegrad as tf

    cpu = tf.config.list_physical_devices("CPU")[0]
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()])


class _Python:
    """`tensorflow.python`, of which tests of distribution take the context of devices."""

    eager = types.SimpleNamespace(context=types.SimpleNamespace(_reset_context=_reset_devices))

    def __getattr__(self, name: str) -> Any:
        return _absent(f"tensorflow.python.{name}")


class _TensorFlow:
    """samegrad under TensorFlow's name; what it has not is absent."""

    python = _Python()

    @property
    def types(self) -> Any:
        """Where TensorFlow has the class of values that replicas have of their own."""
        from samegrad.distribute import PerReplica

        distributed = types.SimpleNamespace(PerReplica=PerReplica)
        return types.SimpleNamespace(experimental=types.SimpleNamespace(distributed=distributed))

    def __getattr__(self, name: str) -> Any:
        from samegrad._keras import tensorflow

        if name.startswith("__") and name != "__internal__":
            raise AttributeError(name)
        if name in ("core", "python", "compat"):
            return _Inner(f"tensorflow.{name}", getattr(tensorflow, name, None))
        try:
            return getattr(tensorflow, name)
        except AttributeError:
            return _absent(f"tensorflow.{name}")


class _Inner:
    """A part of TensorFlow of which some is stood in for, see `_PARTS`."""

    def __init__(self, name: str, real: Any) -> None:
        self._name, self._real = name, real

    def __getattr__(self, name: str) -> Any:
        whole = f"{self._name}.{name}"
        if whole in _PARTS:
            return _PARTS[whole]()
        if any(part.startswith(f"{whole}.") for part in _PARTS):
            return _Inner(whole, getattr(self._real, name, None))
        return _absent(whole) if self._real is None else getattr(self._real, name)


def _records(path: str) -> Iterator[bytes]:
    """The records of a file: a length of 8 bytes, its checksum of 4, content, its checksum."""
    content, place = Path(path).read_bytes(), 0
    while place < len(content):
        size = int.from_bytes(content[place : place + 8], "little")
        yield content[place + 12 : place + 12 + size]
        place += 16 + size


def _proto(module: str) -> Any:
    return importlib.import_module(f"tensorboardX.proto.{module}")


_PARTS = {
    # Devices can be divided at any time.
    "tensorflow.python.eager.context": lambda: types.SimpleNamespace(_reset_context=lambda: None),
    # Files of TensorBoard.
    "tensorflow.core.util.event_pb2": lambda: _proto("event_pb2"),
    "tensorflow.compat.v1.SummaryMetadata": lambda: _proto("summary_pb2").SummaryMetadata,
    "tensorflow.python.lib.io.tf_record": lambda: types.SimpleNamespace(
        tf_record_iterator=_records
    ),
}


def _part(root: Any, dotted: str) -> Any:
    for name in dotted.split(".")[1:]:
        root = getattr(root, name)
    return root


def install(samegrad_is_tensorflow: bool) -> None:
    """From here on test files get stand-ins for what is not installed."""
    roots = {name: _absent(name) for name in PACKAGES if importlib.util.find_spec(name) is None}
    if samegrad_is_tensorflow:
        roots["tensorflow"] = _TensorFlow()
    original = builtins.__import__

    def imported(
        name: str, globals: Any = None, locals: Any = None, fromlist: Any = (), level: int = 0
    ) -> Any:
        top = name.partition(".")[0]
        if level or not (globals or {}).get("__file__", "").endswith("_test.py"):
            return original(name, globals, locals, fromlist, level)
        if name == _KERAS_TENSORFLOW and samegrad_is_tensorflow and "tensorflow" in fromlist:
            return types.SimpleNamespace(tensorflow=roots["tensorflow"])
        if top not in roots:
            return original(name, globals, locals, fromlist, level)
        return _part(roots[top], name) if fromlist else roots[top]

    builtins.__import__ = imported
