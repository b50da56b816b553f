"""From a Python function to the syntax tree of its definition."""

from __future__ import annotations
import __future__

import ast
import copy
import functools
import inspect
import linecache
import operator
import symtable
import types
from collections.abc import Iterator
from typing import NamedTuple

from samegrad.autograph._expressions import arguments, bare_arguments, define, place, template

FunctionNode = ast.FunctionDef | ast.Lambda

_FUTURE = functools.reduce(
    operator.or_, (getattr(__future__, name).compiler_flag for name in __future__.all_feature_names)
)
# Flags of a code object that depend on the scopes around it.
_SCOPE_FLAGS = inspect.CO_NESTED | getattr(inspect, "CO_METHOD", 0)


class Definition(NamedTuple):
    """A function in the text of a file.

    Attributes:
        node: The function.
        owner: The name of the innermost class around it, which private names take; or "".
        scope: Statements with the names of the module that change how calls are compiled.
    """

    node: FunctionNode
    owner: str
    scope: list[ast.stmt]


class _Source(NamedTuple):
    """The text of a file or notebook cell.

    Attributes:
        lines: The text.
        definitions: Its functions by their first lines, decorators included.
    """

    lines: list[str]
    definitions: dict[int, list[Definition]]


class NoSourceError(Exception):
    """A function cannot be rewritten; the text says why."""


_known: dict[str, _Source] = {}


def definition_of(function: types.FunctionType) -> Definition:
    """Return the definition that compiles to the function's code.

    The text may belong to other code: an edited file, a reloaded module, another string of `exec`.

    Raises:
        NoSourceError: There is no text, or no definition in it compiles to the code.
    """
    code = function.__code__
    wanted = _comparable(code, code.co_qualname)
    for source in _sources(function):
        for found in source.definitions.get(code.co_firstlineno, []):
            modules = _isolated(found, function, source)
            if any(_compiled(module, found, code) == wanted for module in modules):
                return found
    line = f"{code.co_filename}:{code.co_firstlineno}"
    raise NoSourceError(
        f"its source code is not available ({line} has other code: the file was edited, or an "
        "import hook rewrote the function)"
    )


def compile_like(tree: ast.Module, code: types.CodeType) -> types.CodeType:
    """Compile a module with the file name and the `__future__` features of the code."""
    flags = code.co_flags & _FUTURE
    made: types.CodeType = compile(tree, code.co_filename, "exec", flags=flags, dont_inherit=True)
    return made


def _sources(function: types.FunctionType) -> Iterator[_Source]:
    """Yield the text of the function's file as first read, and as it is now."""
    filename = function.__code__.co_filename
    for refresh in (False, True):
        if refresh:
            linecache.checkcache(filename)
        lines = linecache.getlines(filename, function.__globals__)
        if not lines:
            raise NoSourceError(f"its source code is not available ({filename})")
        known = _known.get(filename)
        if known is None or known.lines != lines:
            known = _known[filename] = _parsed(lines, filename)
        yield known


def _parsed(lines: list[str], filename: str) -> _Source:
    text = "".join(lines)
    definitions: dict[int, list[Definition]] = {}
    try:
        tree, names = ast.parse(text, filename), symtable.symtable(text, filename, "exec")
    except (SyntaxError, ValueError):
        return _Source(lines, {})
    scope = [f"import {each.get_name()}" for each in names.get_symbols() if each.is_imported()]
    scope += ["super"] if "super" in names.get_identifiers() else []
    for found in _inside(tree, "", ast.parse("\n".join(scope)).body):
        definitions.setdefault(_first_line(found.node), []).append(found)
    return _Source(lines, definitions)


def _inside(parent: ast.AST, owner: str, scope: list[ast.stmt]) -> Iterator[Definition]:
    for node in ast.iter_child_nodes(parent):
        if isinstance(node, ast.FunctionDef | ast.Lambda):
            yield Definition(node, owner, scope)
        yield from _inside(node, node.name if isinstance(node, ast.ClassDef) else owner, scope)


def _first_line(node: FunctionNode) -> int:
    decorators = [] if isinstance(node, ast.Lambda) else node.decorator_list
    return min([node.lineno, *(decorator.lineno for decorator in decorators)])


def _isolated(
    found: Definition, function: types.FunctionType, source: _Source
) -> Iterator[ast.Module]:
    """Yield a module with the definition alone, and one with asserts as pytest rewrites them."""
    code = function.__code__
    yield _module(found, code)
    pytest_rewrite = function.__globals__.get("@pytest_ar")  # in modules that pytest has rewritten
    if pytest_rewrite is not None:
        module = copy.deepcopy(_module(found, code))
        loader = getattr(function.__globals__.get("__spec__"), "loader", None)
        text, config = "".join(source.lines).encode(), getattr(loader, "config", None)
        pytest_rewrite.rewrite_asserts(module, text, code.co_filename, config)
        yield module


def _module(found: Definition, code: types.CodeType) -> ast.Module:
    """Return a module with a factory of the captured names that holds the definition."""
    node, name = found.node, found.owner
    args = bare_arguments(node.args)
    body: list[ast.stmt]
    if isinstance(node, ast.Lambda):
        body = [place(ast.Expr(ast.Lambda(args, node.body)), node)]
    else:
        body = [define(node.name, args, node.body, node)]
        name = name or node.name
    if found.owner:
        (owner,) = template(f"class {found.owner}: pass", node)
        assert isinstance(owner, ast.ClassDef)
        owner.body, body = body, [owner]
    if name and name not in code.co_freevars:  # the factory does not capture the name
        body.insert(0, place(ast.Global([name]), node))
    factory = define("factory", arguments([*code.co_freevars]), body, node)
    return ast.Module([*found.scope, factory], [])


def _compiled(
    module: ast.Module, found: Definition, original: types.CodeType
) -> types.CodeType | None:
    """Return the code of the definition in its module, in a form to compare."""
    try:
        code = compile_like(module, original)
    except SyntaxError:
        return None
    for _ in range(3 if found.owner else 2):  # the factory, the class, the function
        code = next(part for part in code.co_consts if isinstance(part, types.CodeType))
    return _comparable(code, code.co_qualname)


def _comparable(code: types.CodeType, function: str) -> types.CodeType:
    """Return the code without its file, lines and name, and without the names of scopes around it.

    Args:
        code: Code of a function, or of a function or class inside it.
        function: The qualified name of the function.
    """
    constants = []
    for value in code.co_consts:
        if isinstance(value, types.CodeType):
            value = _comparable(value, function)
        elif isinstance(value, str):  # the qualified name of a class
            value = value.removeprefix(f"{function}.<locals>.")
        elif isinstance(value, tuple) and not code.co_flags & inspect.CO_OPTIMIZED:
            value = tuple(sorted(value, key=repr))  # the attributes of a class, in no order
        constants.append(value)
    return code.replace(
        co_consts=tuple(constants),
        co_filename="",
        co_name="",
        co_qualname="",
        co_firstlineno=1,
        co_linetable=b"",
        co_flags=code.co_flags & ~_SCOPE_FLAGS,
    )
