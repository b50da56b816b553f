"""The examples of the docstrings run and print what they say."""

from __future__ import annotations

import builtins
import doctest
import importlib
import pkgutil
from collections.abc import Iterator

import pytest

import samegrad as tf
import samegrad_doctor

MODULES = sorted(
    module.name
    for package in (tf, samegrad_doctor)
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
    if not module.name.endswith("__main__") and "libsamegrad" not in module.name
)


@pytest.fixture(autouse=True)
def _settings_as_before() -> Iterator[None]:
    yield
    tf.keras.backend.set_floatx("float32")
    tf.config.threading.set_intra_op_parallelism_threads(0)


@pytest.mark.parametrize("name", ["samegrad", *MODULES])
def test_examples_print_what_they_say(name: str, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    tf.random.set_seed(0)
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    module = importlib.import_module(name)
    names = {**vars(module), "tf": tf}
    if module is tf:  # a name that was loaded would hide Python's: tf.round and round
        names = {key: value for key, value in names.items() if not hasattr(builtins, key)}
    assert doctest.testmod(module, globs=names, optionflags=flags).failed == 0
