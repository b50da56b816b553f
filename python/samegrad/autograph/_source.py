"""From a Python function to the syntax tree of its definition."""

from __future__ import annotations

import ast
import linecache
import types
from collections.abc import Iterator
from typing import Any, NamedTuple

FunctionNode = ast.FunctionDef | ast.Lambda


class Definition(NamedTuple):
    """A function in the text of a file.

    Attributes:
        node: The function.
        owner: The name of the innermost class around it, which private names take; or "".
    """

    node: FunctionNode
    owner: str


class NoSourceError(Exception):
    """A function cannot be rewritten; the text says why."""


_known: dict[str, tuple[list[str], list[Definition]]] = {}


def definition_of(function: types.FunctionType) -> Definition:
    """The function's definition, with the line numbers of its file.

    Raises:
        NoSourceError: Its text cannot be found, or two functions cannot be told apart.
    """
    code = function.__code__
    candidates = [found for found in _definitions(function) if _may_be(found.node, code)]
    if len(candidates) > 1:
        candidates = [found for found in candidates if _covers(found.node, code)]
    if len(candidates) != 1:
        reason = "several functions begin on its line" if candidates else "its source has changed"
        raise NoSourceError(f"{reason} ({code.co_filename}:{code.co_firstlineno})")
    return candidates[0]


def _definitions(function: types.FunctionType) -> list[Definition]:
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
            raise NoSourceError(f"its file is not a Python program now ({filename})") from error
        known = _known[filename] = (lines, list(_inside(tree, "")))
    return known[1]


def _inside(parent: ast.AST, owner: str) -> Iterator[Definition]:
    for node in ast.iter_child_nodes(parent):
        if isinstance(node, ast.FunctionDef | ast.Lambda):
            yield Definition(node, owner)
        yield from _inside(node, node.name if isinstance(node, ast.ClassDef) else owner)


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
    """Tell if the code's instructions are in the node's body (known since Python 3.11)."""
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
