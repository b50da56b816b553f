"""Keras's own tests on samegrad: the part of a few minutes, judged by what passes on TensorFlow."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest


def _command() -> ModuleType:
    spec = importlib.util.spec_from_file_location("keras_run", Path(__file__).with_name("run.py"))
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.timeout(900)
def test_what_passes_on_tensorflow_passes_or_is_listed_with_its_reason() -> None:
    command = _command()
    verdict = command.judge(command.run(command.QUICK), command.QUICK)
    assert not verdict.new_failures and not verdict.now_passing, verdict.report()


def test_every_listed_failure_has_a_reason_and_passes_on_tensorflow() -> None:
    command = _command()
    listed = command.expected_failures()
    assert all(listed.values())
    assert set(listed) <= set(command.reference())
    assert not [test for test in listed if command.OTHER_TYPES.search(test)]
