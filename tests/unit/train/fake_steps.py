"""Recorded steps without the engine: what `_core.record_steps` hands to its observer."""

from __future__ import annotations

import copy
import operator
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import samegrad as tf
from samegrad import _core

ENTRIES = [
    ("argument", "", 0, "float32", "(batch, 3)", "rows"),
    ("argument", "", 1, "float32", "(batch, 1)", "rows"),
    ("output", "", 0, "float32", "()", "replicated"),
    ("gradient", "dense/kernel", 0, "float32", "(3, 1)", "replicated"),
    ("gradient", "dense/bias", 1, "float32", "(1,)", "replicated"),
    ("variable", "dense/kernel", 0, "float32", "(3, 1)", "replicated"),
    ("variable", "dense/bias", 1, "float32", "(1,)", "replicated"),
]
OPERATIONS = [
    ("matmul", "float32 (batch, 1)", "train.py:30"),
    ("sub", "float32 (batch, 1)", "train.py:31"),
    ("matmul", "float32 (3, 1)", "train.py:32"),
    ("matmul", "float32 (3, 1)", "train.py:32"),
]


class Program(SimpleNamespace):
    """Program that is another than each other, as those of the engine."""

    __hash__ = object.__hash__
    __eq__ = object.__eq__


def program(**changes: Any) -> Program:
    """Return a program of two dense variables."""
    made = {"hash": 77, "replicas": 1, "entries": ENTRIES, "operations": OPERATIONS, "reasons": []}
    return Program(**made | {"variables": ["dense/kernel", "dense/bias"]} | changes)


def record(index: int, **changes: Any) -> SimpleNamespace:
    """Return a step of 8 examples whose hashes follow from its number."""
    examples = [(1_000 * index + n) & 0xFFFFFFFF for n in range(8)]
    made = {
        "index": index,
        "seed": 1,
        "draw": index,
        "examples": [8],
        "hashes": [(index + 1) * (n + 1) for n in range(len(ENTRIES))],
        "before": [(0, 5), (1, 6)] if index == 0 else [],
        "example_hashes": [(0, examples), (1, [value + 500 for value in examples])],
        "operations": [],
        "stored": None,
        "arguments": None,
        "variables": None,
    }
    return SimpleNamespace(**made | changes)


def steps(count: int) -> list[tuple[Any, Any]]:
    """Return a run of the same program."""
    made = program()
    return [(made, record(index)) for index in range(count)]


def detailed(step: Any, hashes: list[int] | None = None) -> None:
    """Give a record the results of its operations one by one."""
    hashes = hashes or [11, 12, 13, 14]
    inputs = [[-1, -3], [0, -2], [1, -1], [1, -3]]
    step.operations = [
        (op, kind, line, "rows" if "batch" in kind else "replicated", given, [value])
        for (op, kind, line), given, value in zip(OPERATIONS, inputs, hashes, strict=True)
    ]
    step.stored = [
        ("loop 1", op, kind, line, value)
        for (op, kind, line), value in zip(OPERATIONS[:2], hashes, strict=False)
    ]
    step.arguments = [[tf.ones((8, 3))], [tf.ones((5, 1)), tf.ones((3, 1))]]
    step.variables = [[tf.zeros((3, 1))], [tf.zeros(1)]]


Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """Return a function that writes the record of a run."""

    observers: list[Any] = []

    def record_steps(observer: Any, detail: int = -1) -> None:
        observers.append(observer)

    monkeypatch.setattr(_core, "record_steps", record_steps, raising=False)
    for name in ("hash", "replicas", "entries", "operations", "reasons", "variables"):
        monkeypatch.setattr(_core, f"step_{name}", operator.attrgetter(name), raising=False)

    def written(name: str, run: list[tuple[Any, Any]], **options: Any) -> Path:
        path = tmp_path / name
        with tf.record_run(path, **options):
            for step, one in run:
                observers[-1](step, one, one.arguments)
        assert observers[-1] is None
        return path

    return written


def changed(run: list[tuple[Any, Any]], at: int, **changes: Any) -> list[tuple[Any, Any]]:
    """Return a run whose step `at` has other fields."""
    other = copy.deepcopy(run)
    vars(other[at][1]).update(changes)
    return other
