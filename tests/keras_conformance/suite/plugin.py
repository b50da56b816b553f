"""A pytest plugin: the tests in Keras's wheel run on samegrad.

The wheel has its tests but not the conftest that they import; what they take from it is here.
`run.py` is the command that uses it. With KERAS_BACKEND=tensorflow in the environment the tests
run on TensorFlow, for the record that samegrad is judged by.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import os
import sys
import types
from pathlib import Path
from typing import Any

import absent
import pytest
import run

ON_TENSORFLOW = os.environ.get("KERAS_BACKEND") == "tensorflow"
# Tests for TensorFlow alone also run for samegrad.
_ONLY_TENSORFLOW = 'backend.backend() != "tensorflow"'
_OR_SAMEGRAD = 'backend.backend() not in ("tensorflow", "samegrad")'
# Where a test file names every backend, or expects a value of TensorFlow: old text, new text.
_NAMED_BACKENDS = {
    # Shapes are tuples, and a variable has one copy for all replicas.
    "keras.src.backend.tensorflow.distribute_test": (
        *((f"[{sizes}]", f"({sizes})") for sizes in ("8, 16", "8, 4", "8, 2", "2, 16", "2, 4")),
        ("shape, [8])", "shape, (8,))"),
        ("shape, [2])", "shape, (2,))"),
        (
            "        self.assertIsInstance(\n"
            "            dense.kernel.value, tf.distribute.DistributedValues\n        )\n\n"
            "        def input_fn",
            "        def input_fn",
        ),
    ),
    "keras.src.trainers.trainer_test": (
        (
            'elif backend.backend() == "numpy":\n'
            "    from keras.src.backend.numpy.trainer import NumpyTrainer as Trainer",
            'elif backend.backend() == "samegrad":\n'
            "    from samegrad._keras.trainer import Trainer",
        ),
        ('"tensorflow": "CPU:0"', '"samegrad": "CPU:0"'),
    ),
    "keras.src.ops.math_test": (
        ('in ("tensorflow", "openvino")', 'in ("tensorflow", "samegrad")'),
    ),
    "keras.src.ops.numpy_test": (
        (
            'if backend.backend() == "tensorflow":\n            import tensorflow as tf\n\n'
            "            x1 = tf.Variable",
            'if backend.backend() == "samegrad":\n            import tensorflow as tf\n\n'
            "            x1 = tf.Variable",
        ),
        ('not in ("tensorflow", "jax", "torch")', 'not in ("samegrad",)'),
    ),
}


class _Loader(importlib.machinery.SourceFileLoader):
    """Loads a test file as if samegrad's name stood beside that of TensorFlow."""

    def get_code(self, fullname: str) -> Any:
        source = self.get_data(self.path).decode().replace(_ONLY_TENSORFLOW, _OR_SAMEGRAD)
        for old, new in _NAMED_BACKENDS.get(fullname, ()):
            source = source.replace(old, new)
        return compile(source, self.path, "exec", dont_inherit=True)


class _Finder(importlib.abc.MetaPathFinder):
    """Finds Keras's test files."""

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> Any:
        if not (fullname.startswith("keras.src.") and fullname.endswith("_test")):
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if spec is None or spec.origin is None:
            return None
        loader = _Loader(fullname, spec.origin)
        return importlib.util.spec_from_file_location(fullname, spec.origin, loader=loader)


def _skip_if_backend(backend: str, reason: str) -> Any:
    import keras

    return pytest.mark.skipif(keras.config.backend() == backend, reason=reason)


def _open_tests_of_the_backend() -> None:
    """Lets test files beside TensorFlow's backend be imported, with samegrad's in its place."""
    from keras.src import backend

    from samegrad._keras.epochs import EpochIterator, shares

    class TFEpochIterator(EpochIterator):
        """Under the name and with the argument that a test uses."""

        def __init__(self, *args: Any, distribute_strategy: Any = None, **kwargs: Any) -> None:
            self._strategy = distribute_strategy
            super().__init__(*args, **kwargs)

        def __next__(self) -> Any:
            begin, end, batches = super().__next__()
            return begin, end, iter([shares(batch, self._strategy) for batch in batches])

    served = importlib.import_module("keras.src.backend.tensorflow")
    served.__path__ = [str(Path(backend.common.__file__).parents[1] / "tensorflow")]
    trainer = types.ModuleType("keras.src.backend.tensorflow.trainer")
    trainer.TFEpochIterator = TFEpochIterator  # type: ignore[attr-defined]
    sys.modules[trainer.__name__] = served.trainer = trainer  # type: ignore[attr-defined]


def pytest_addoption(parser: Any) -> None:
    """--results: where a line for each test is written."""
    parser.addoption("--results", default=None)


def pytest_configure(config: Any) -> None:
    """Registers the backend before anything of Keras is imported."""
    if not ON_TENSORFLOW:
        from samegrad._keras import register

        register.load()
        sys.meta_path.insert(0, _Finder())
        _open_tests_of_the_backend()
    absent.install(samegrad_is_tensorflow=not ON_TENSORFLOW)
    conftest = types.ModuleType("conftest")
    conftest.skip_if_backend = _skip_if_backend  # type: ignore[attr-defined]
    sys.modules["conftest"] = conftest
    for mark in ("requires_trainable_backend", "multi_device"):
        config.addinivalue_line("markers", f"{mark}: of Keras's tests")
    path = config.getoption("--results")
    if path is not None and not hasattr(config, "workerinput"):
        config.pluginmanager.register(_Results(path))


def pytest_collection_modifyitems(config: Any, items: list[Any]) -> None:
    """Leave out the tests that judge nothing: half of the time is that of quantized layers."""
    passes = set() if ON_TENSORFLOW else set(run.reference())
    judging, rest = [], []
    for item in items:
        test = item.nodeid
        judges = not run.NOT_ASKED.search(test) if ON_TENSORFLOW else test in passes
        (judging if judges else rest).append(item)
    config.hook.pytest_deselected(items=rest)
    items[:] = judging


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: Any) -> Any:
    """Stand-ins that a test calls skip it."""
    absent.set_running(True)
    try:
        return (yield)
    finally:
        absent.set_running(False)


class _Results:
    """Writes `outcome<TAB>test<TAB>reason` for every test, as soon as it is known."""

    def __init__(self, path: str) -> None:
        self._path = Path(path)
        self._path.write_text("", encoding="utf-8")
        self._bad: dict[str, tuple[str, str]] = {}

    def pytest_runtest_logreport(self, report: Any) -> None:
        """The three reports of a test: one that is bad is its outcome."""
        if report.outcome != "passed":
            self._bad.setdefault(report.nodeid, (report.outcome, _reason(report)))
        if report.when == "teardown" or (report.when == "???"):
            self._write(report.nodeid, *self._bad.pop(report.nodeid, ("passed", "")))

    def pytest_collectreport(self, report: Any) -> None:
        """A file that cannot be imported is a result of its own."""
        if report.outcome != "passed" and report.nodeid.endswith(".py"):
            self._write(report.nodeid, report.outcome, _reason(report))

    def pytest_unconfigure(self) -> None:
        """Tests that took their process with them have no last report."""
        for nodeid, (outcome, reason) in self._bad.items():
            self._write(nodeid, outcome, reason)

    def _write(self, nodeid: str, outcome: str, reason: str) -> None:
        line = " ".join(reason.split())[:300]
        with self._path.open("a", encoding="utf-8") as file:
            file.write(f"{outcome}\t{nodeid}\t{line}\n")


def _reason(report: Any) -> str:
    text = report.longrepr
    if isinstance(text, tuple):
        return str(text[2])
    crash = getattr(text, "reprcrash", None)
    return str(text)[-300:] if crash is None else str(crash.message)
