"""From a Python function to the syntax tree of its definition."""

from __future__ import annotations

import ast
import linecache
import types
from collections.abc import Iterator
from typing import Any

FunctionNode = ast.FunctionDef | ast.Lambda


class NoSourceError(Exception):
    """A function cannot be rewritten; the text says why."""


_known: dict[str, tuple[list[str], list[FunctionNode]]] = {}


def definition_of(function: types.FunctionType) -> FunctionNode:
    """The function's definition, with the line numbers of its file.

    Raises:
        NoSourceError: Its text cannot be found, or two functions cannot be told apart.
    """
    code = function.__code__
    candidates = [node for node in _definitions(function) if _may_be(node, code)]
    if len(candidates) > 1:
        candidates = [node for node in candidates if _covers(node, code)]
    if len(candidates) != 1:
        reason = "several functions begin on its line" if candidates else "its text has changed"
        raise NoSourceError(f"{reason} ({code.co_filename}:{code.co_firstlineno})")
    return candidates[0]


def _definitions(function: types.FunctionType) -> list[FunctionNode]:
    """All functions of the file (or notebook cell) that defines this one."""
    filename = function.__code__.co_filename
    lines = linecache.getlines(filename, function.__globals__)
    if not lines:
        raise NoSourceError(f"its source code is not available ({filename})")
    known = _known.get(filename)
    if known is None or known[0] != lines:
        try:
            tree = ast.parse("".join(lines), filename)
        except SyntaxError as error:
            raise NoSourceError(f"its file is no Python program now ({filename})") from error
        found = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.Lambda)]
        known = _known[filename] = (lines, found)
    return known[1]


def _may_be(node: FunctionNode, code: types.CodeType) -> bool:
    if isinstance(node, ast.Lambda):
        named, first = code.co_name == "<lambda>", node.lineno
    else:
        named = code.co_name == node.name
        first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
    return named and first == code.co_firstlineno and _names(node.args) == _arguments(code)


def _names(args: ast.arguments) -> tuple[str, ...]:
    """The arguments as a code object lists them, whatever class they are in."""
    names = [arg.arg for arg in (*args.posonlyargs, *args.args, *args.kwonlyargs)]
    names += [arg.arg for arg in (args.vararg, args.kwarg) if arg is not None]
    return tuple(names)


def _arguments(code: types.CodeType) -> tuple[str, ...]:
    stars = bool(code.co_flags & 0x04) + bool(code.co_flags & 0x08)
    return code.co_varnames[: code.co_argcount + code.co_kwonlyargcount + stars]


def _covers(node: Any, code: types.CodeType) -> bool:
    """Whether the code's instructions lie in the node's body (Python 3.11 knows where they lie)."""
    positions: Iterator[Any] = getattr(code, "co_positions", lambda: iter(()))()
    body = node.body[0] if isinstance(node.body, list) else node.body
    last = node.body[-1] if isinstance(node.body, list) else node.body
    begin = (body.lineno, body.col_offset)
    end = (last.end_lineno, last.end_col_offset)
    places = [
        ((line, column), (end_line, end_column))
        for line, end_line, column, end_column in positions
        if None not in (line, end_line, column, end_column) and (column, end_column) != (0, 0)
    ]
    return bool(places) and all(begin <= first and until <= end for first, until in places)
