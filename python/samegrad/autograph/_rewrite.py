"""Rewrites a function so that its control flow goes through `_operators`, called `ag__` there.

    if x > 0:                     def ag__body_1():
        y = x                         nonlocal y
    else:             becomes         y = x
        y = -x                    def ag__else_1(): ...
                                  def ag__get_1(): return (ag__.read(lambda: y),)
                                  def ag__set_1(ag__new): ...
                                  ag__.if_stmt(x > 0, ag__body_1, ag__else_1, <the four names>)

Every statement of the user keeps its line. Functions and classes inside are left as they are: they
are rewritten when they are called.
"""

from __future__ import annotations

import ast
import copy
import inspect
import types

from samegrad.autograph import _names
from samegrad.autograph._expressions import (
    RUNTIME,
    arguments,
    bare_arguments,
    define,
    parameters,
    place,
)
from samegrad.autograph._jumps import lower_jumps
from samegrad.autograph._source import FunctionNode, NoSourceError, definition_of
from samegrad.autograph._statements import Statements

FACTORY, FUNCTION = "ag__factory", "ag__function"
_GENERATORS = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR


def rewrite(original: types.FunctionType) -> ast.Module:
    """Return a module whose last statement is a factory that holds the rewritten function.

    Raises:
        NoSourceError: The function's text cannot be found, or it is a generator or coroutine.
    """
    code = original.__code__
    if code.co_flags & _GENERATORS:
        raise NoSourceError("it is a generator or coroutine")
    found = definition_of(original)
    mangled = _Mangle(found.owner).visit(copy.deepcopy(found.node))
    body = _body_of(mangled)
    globals_ = {n for part in ast.walk(mangled) if isinstance(part, ast.Global) for n in part.names}
    given = set(code.co_varnames[: len(parameters(mangled.args))])
    body = _Simplify(_first_parameter(code)).block(lower_jumps(body))
    _names.Liveness(body, globals_ | set(code.co_freevars))
    local_names = {*code.co_varnames, *code.co_cellvars, *_generated(body)}
    body = Statements(globals_).block(body)
    declare = local_names - given - globals_ - set(code.co_freevars)
    body = [*_header(body, declare), *body]
    function = place(define(FUNCTION, bare_arguments(mangled.args), body, mangled), mangled)
    factory = define(FACTORY, arguments([*code.co_freevars, RUNTIME]), [function], mangled)
    return ast.fix_missing_locations(ast.Module([*found.scope, factory], []))


def _body_of(definition: FunctionNode) -> list[ast.stmt]:
    if isinstance(definition, ast.Lambda):
        return [place(ast.Return(definition.body), definition.body)]
    body = definition.body
    documented = isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant)
    rest = body[1:] if documented else body
    return rest or [place(ast.Return(ast.Constant(None)), body[0])]


def _generated(body: list[ast.stmt]) -> set[str]:
    return {name for name in _names.bound(body) if name.startswith(RUNTIME)}


def _header(body: list[ast.stmt], names: set[str]) -> list[ast.stmt]:
    """Make the names those of the function, for the `nonlocal` of the functions inside."""
    header: list[ast.stmt] = [s for s in body if isinstance(s, ast.Global | ast.Nonlocal)]
    for statement in header:
        body.remove(statement)
    names = {name for name in names if name.isidentifier()}
    if names:
        text = f"if 0: {' = '.join(sorted(names))} = None"
        header += [place(s, body[0]) for s in ast.parse(text).body]
    return header


def _first_parameter(code: types.CodeType) -> str | None:
    return code.co_varnames[0] if code.co_argcount else None


class _Mangle(ast.NodeTransformer):
    """Private names as the class around a method has them."""

    def __init__(self, owner: str) -> None:
        self._prefix = f"_{owner.lstrip('_')}" if owner.lstrip("_") else ""

    def _name(self, name: str) -> str:
        private = name.startswith("__") and not name.endswith("__") and "." not in name
        return self._prefix + name if private and self._prefix else name

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return ast.copy_location(ast.Name(self._name(node.id), node.ctx), node)

    def visit_arg(self, node: ast.arg) -> ast.AST:
        return ast.copy_location(ast.arg(self._name(node.arg), None), node)

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        value = self.visit(node.value)
        return ast.copy_location(ast.Attribute(value, self._name(node.attr), node.ctx), node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.name = self._name(node.name)
        return self.generic_visit(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        return node


class _Simplify(ast.NodeTransformer):
    """Annotated assignments become plain ones, and `super()` says what it means."""

    def __init__(self, first_parameter: str | None) -> None:
        self._first = first_parameter

    def block(self, statements: list[ast.stmt]) -> list[ast.stmt]:
        module: ast.Module = self.visit(ast.Module(statements, []))
        return module.body

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        node = self.generic_visit(node)  # type: ignore[assignment]
        if node.value is None:
            return ast.copy_location(ast.Pass(), node)
        return ast.copy_location(ast.Assign([node.target], node.value), node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        named = isinstance(node.func, ast.Name) and node.func.id == "super"
        if named and self._first and not (node.args or node.keywords):
            node.args = [ast.Name("__class__", ast.Load()), ast.Name(self._first, ast.Load())]
            place(node, node.func)
        return node

    def _opaque(self, node: ast.AST) -> ast.AST:
        return node

    visit_FunctionDef = visit_AsyncFunctionDef = visit_ClassDef = _opaque
