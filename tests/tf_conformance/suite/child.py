"""Run one test file of TensorFlow in this process, and write a line of JSON for each test."""

from __future__ import annotations

import ast
import json
import signal
import time
import traceback
import unittest
from pathlib import Path
from typing import Any, TextIO

import cases
import stand_ins
from checkout import Checkout

_SECONDS = 20


class TooLong(BaseException):
    """A test takes too long."""


def _alarm(*_: Any) -> None:
    raise TooLong


def cause(error: BaseException) -> str:
    """Return the class of a cause."""
    if any(isinstance(x, stand_ins.InternalError) for x in _chain(error)):
        return "internal"
    if any(isinstance(x, stand_ins.LackError) for x in _chain(error)):
        return "lacks"
    if any(isinstance(x, stand_ins.RefusedError) for x in _chain(error)):
        return "refused"
    text = str(error)
    if isinstance(error, TooLong):
        return "time"
    if isinstance(error, unittest.SkipTest):
        return "skipped"
    if isinstance(error, AttributeError) and "has no attribute" in text:
        return "attribute"
    if isinstance(error, TypeError) and "unexpected keyword" in text:
        return "keyword"
    if isinstance(error, AssertionError):
        if " not raised" in text:
            return "accepts"
        if " does not match " in text or " does not accept " in text:
            return "message"
        return "value"
    return "error"


def _chain(error: BaseException) -> list[BaseException]:
    found: list[BaseException] = []
    following: BaseException | None = error
    while following is not None and following not in found:
        found.append(following)
        following = following.__cause__ or following.__context__
    return found


class _Results:
    """Writes an outcome a line."""

    def __init__(self, file: TextIO, path: str) -> None:
        self._file = file
        self._path = path

    def write(self, test: str, error: BaseException | None, seconds: float = 0.0) -> None:
        """Write the outcome of a test; None passes."""
        line: dict[str, Any] = {"test": f"{self._path}::{test}", "seconds": round(seconds, 2)}
        line["outcome"] = "passed" if error is None else cause(error)
        if error is not None:
            trace = traceback.extract_tb(error.__traceback__)
            at = [f"{x.name}:{x.lineno}: {x.line}" for x in trace if "_test" in x.filename]
            line["reason"] = f"{type(error).__name__}: {error}"[:600]
            line["at"] = at[-1] if at else ""
        self._file.write(json.dumps(line) + "\n")
        self._file.flush()

    def class_failed(self, statement: ast.stmt, error: BaseException) -> None:
        """Write an outcome for each test of a class that cannot be made."""
        for node in ast.walk(statement):
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test"):
                self.write(f"{getattr(statement, 'name', '')}.{node.name}", error)


def _run(test: unittest.TestCase, results: _Results, name: str) -> None:
    begin, error = time.monotonic(), None
    signal.alarm(_SECONDS)
    try:
        type(test).setUpClass()
        test.setUp()
        try:
            getattr(test, test._testMethodName)()
        finally:
            test.tearDown()
            test.doCleanups()
    except (Exception, TooLong, SystemExit) as raised:
        error = raised
    finally:
        signal.alarm(0)
    results.write(name, error, time.monotonic() - begin)


def run_file(checkout: Path, path: str, results: Path, tf: Any, only: set[str] | None) -> None:
    """Run the tests of a file in this process.

    Args:
        checkout: The folder of the checkout.
        path: The file in it.
        results: The file of JSON lines to append to.
        tf: The module under test.
        only: Tests to run; None runs all.
    """
    signal.signal(signal.SIGALRM, _alarm)
    found = stand_ins.StandIns(
        Checkout(checkout), tf, {**stand_ins.plain_modules(), **cases.special(tf)}
    )
    with results.open("a", encoding="utf-8") as file:
        written = _Results(file, path)
        name = path.removesuffix(".py").replace("/", ".")
        made = found.execute(name, "suite_" + name.rpartition(".")[2], written.class_failed)
        for suite in unittest.defaultTestLoader.loadTestsFromModule(made):
            for test in suite:  # type: ignore[union-attr]
                identity = f"{type(test).__name__}.{test._testMethodName}"  # type: ignore[union-attr]
                if isinstance(test, unittest.TestCase) and (
                    only is None or f"{path}::{identity}" in only
                ):
                    _run(test, written, identity)
