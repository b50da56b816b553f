"""Patched modules of Keras name the lines of Keras's files, in tracebacks as in debuggers."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import itertools
import traceback
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FunctionType, ModuleType

import pytest

import samegrad as tf
from samegrad._keras import patches, patching
from samegrad._keras.line_tables import LineNumbers

MODULES = sorted(patches.PATCHES)


def _path(module: str) -> Path:
    spec = importlib.util.find_spec(module)
    assert spec is not None and spec.origin is not None
    return Path(spec.origin)


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for value in code.co_consts:
        if isinstance(value, CodeType):
            yield from _codes(value)


def _compiled(text: str, path: Path) -> CodeType:
    code = compile(text, str(path), "exec", dont_inherit=True)
    assert isinstance(code, CodeType)
    return code


def _lines(code: CodeType) -> list[int | None]:
    return [line for line, *_ in code.co_positions()]


@pytest.mark.parametrize("module", MODULES)
def test_keras_lines_of_code_are_those_of_the_file(module: str) -> None:
    """Positions are those of the same text, or between the lines of the file around an edit."""
    path = _path(module)
    file = path.read_text()
    patched = patching.patched(module, file, patches.PATCHES[module])
    after = _compiled(patched.text, path)
    moved = LineNumbers(patched, file).moved(after)
    old, new = (["", *text.split("\n")] for text in (file, patched.text))
    ranges = _ranges(old, new)
    for ours, theirs in zip(_codes(moved), _codes(after), strict=True):
        assert ours.co_code == theirs.co_code
        assert ours.co_firstlineno in ranges[theirs.co_firstlineno], ours.co_qualname
        pairs = zip(ours.co_positions(), theirs.co_positions(), strict=True)
        for (line, end, *columns), (new_line, new_end, *new_columns) in set(pairs):
            if not new_line or not new_end:
                assert line == new_line
                continue
            assert line is not None and end is not None
            assert line in ranges[new_line] and end in ranges[new_end], ours.co_qualname
            same = old[line] == new[new_line] and old[end] == new[new_end]
            assert columns == (new_columns if same else [None, None]), ours.co_qualname


@pytest.mark.parametrize("module", MODULES)
def test_keras_functions_begin_where_the_file_defines_them(module: str) -> None:
    path = _path(module)
    file = path.read_text()
    defined = {code.co_qualname for code in _codes(_compiled(file, path))}
    names = _definitions(file)
    for function in _functions(importlib.import_module(module), str(path)):
        for code in _codes(function.__code__):
            if code.co_qualname in defined and not code.co_name.startswith("<"):
                assert names[code.co_firstlineno] == code.co_name, code.co_qualname


def _definitions(file: str) -> dict[int, str]:
    """Names of functions and classes by the lines of their `def` and of their first decorator."""
    nodes = [
        node for node in ast.walk(ast.parse(file))
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
    ]  # fmt: skip
    return {
        line: node.name
        for node in nodes
        for line in (node.lineno, *(each.lineno for each in node.decorator_list[:1]))
    }


def _functions(module: ModuleType, path: str) -> Iterator[FunctionType]:
    """The functions of a module's file, behind decorators."""
    open_values = [*vars(module).values()]
    seen: set[int] = set()
    while open_values:
        value = open_values.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        if isinstance(value, type) and value.__module__ == module.__name__:
            open_values += vars(value).values()
        elif isinstance(value, property):
            open_values += [value.fget, value.fset]
        elif isinstance(value, (classmethod, staticmethod)):
            open_values.append(value.__func__)
        elif isinstance(value, FunctionType):
            if value.__code__.co_filename == path:
                yield value
            open_values += [cell.cell_contents for cell in value.__closure__ or ()]


def test_keras_tracebacks_show_the_calls_of_the_file() -> None:
    layer = tf.keras.layers.Dense(2)
    tf.keras.config.disable_traceback_filtering()
    try:
        layer.add_weight(shape=(2, 3), initializer=lambda shape, dtype: 1 / 0)
    except ZeroDivisionError as error:
        frames = traceback.extract_tb(error.__traceback__)
    finally:
        tf.keras.config.enable_traceback_filtering()
    shown = {(Path(frame.filename).name, frame.name): frame.line for frame in frames}
    assert shown["layer.py", "add_weight"] == "variable = backend.Variable("
    assert shown["variables.py", "__init__"] == "self._initialize_with_initializer(initializer)"


def _ranges(old: list[str], new: list[str]) -> list[range]:
    """The lines of the file that each patched line may name: one, if both have its text once."""
    texts = [Counter(line.strip() for line in lines) for lines in (old, new)]
    at = {line.strip(): number for number, line in enumerate(old)}
    known = [
        at[text] if all(counts[text] == 1 for counts in texts) else None
        for text in (line.strip() for line in new)
    ]
    lowest = [*itertools.accumulate((number or 0 for number in known), max)]
    highest = [*itertools.accumulate((number or len(old) for number in reversed(known)), min)]
    return [range(low, high + 1) for low, high in zip(lowest, reversed(highest), strict=True)]
