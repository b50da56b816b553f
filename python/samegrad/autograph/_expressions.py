"""Expressions with control flow in them become calls of `_operators`."""

from __future__ import annotations

import ast
import copy
from typing import Any

RUNTIME = "ag__"


def arguments(names: list[str]) -> ast.arguments:
    return ast.arguments([], [ast.arg(name) for name in names], None, [], [], None, [])


def parameters(args: ast.arguments) -> list[ast.arg]:
    stars = [arg for arg in (args.vararg, args.kwarg) if arg is not None]
    return [*args.posonlyargs, *args.args, *args.kwonlyargs, *stars]


def bare_arguments(args: ast.arguments) -> ast.arguments:
    """Return a copy without annotations and defaults, which the function object has."""
    bare = copy.copy(args)
    for field in ("posonlyargs", "args", "kwonlyargs"):
        setattr(bare, field, [_bare(arg) for arg in getattr(args, field)])
    bare.vararg, bare.kwarg = args.vararg and _bare(args.vararg), args.kwarg and _bare(args.kwarg)
    bare.defaults, bare.kw_defaults = [], [None] * len(args.kwonlyargs)
    return bare


def _bare(arg: ast.arg) -> ast.arg:
    return ast.copy_location(ast.arg(arg.arg), arg)


def define(name: str, args: ast.arguments, body: list[ast.stmt], at: ast.AST) -> ast.stmt:
    """Return the definition of a function on the line of a node."""
    (made,) = template("def function(): pass", at)
    assert isinstance(made, ast.FunctionDef)
    made.name, made.args, made.body = name, place(args, at), body
    return made


def place(node: Any, at: Any) -> Any:
    """The node and all new nodes in it, on the line of another one."""
    for part in ast.walk(node):
        if "lineno" in part._attributes and not hasattr(part, "lineno"):
            ast.copy_location(part, at)
    return node


def template(text: str, at: ast.AST) -> list[ast.stmt]:
    """Statements from text, all on one line of the user."""
    statements = ast.parse(text).body
    for statement in statements:
        for part in ast.walk(statement):
            if "lineno" in part._attributes:
                ast.copy_location(part, at)
    return statements


def runtime(name: str, *args: ast.expr) -> ast.Call:
    return ast.Call(ast.Attribute(ast.Name(RUNTIME, ast.Load()), name, ast.Load()), list(args), [])


class Expressions(ast.NodeTransformer):
    """Calls, `and`, `or`, `not`, `a if b else c` and chained comparisons."""

    def _opaque(self, node: ast.AST) -> ast.AST:
        return node

    visit_FunctionDef = visit_AsyncFunctionDef = visit_ClassDef = visit_Lambda = _opaque

    @staticmethod
    def later(node: ast.expr) -> ast.expr:
        return ast.Lambda(arguments([]), node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        node.func = place(runtime("call", node.func), node.func)
        return node

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        self.generic_visit(node)
        if binds(node):
            return node
        name = "and_" if isinstance(node.op, ast.And) else "or_"
        return place(runtime(name, *map(self.later, node.values)), node)  # type: ignore[no-any-return]

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.op, ast.Not):
            return place(runtime("not_", node.operand), node)  # type: ignore[no-any-return]
        return node

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        self.generic_visit(node)
        if binds(node):
            return node
        call = runtime("if_exp", node.test, self.later(node.body), self.later(node.orelse))
        return place(call, node)  # type: ignore[no-any-return]

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        self.generic_visit(node)
        if len(node.ops) == 1 or binds(node):
            return node
        links: list[ast.expr] = []
        for op, right in zip(node.ops, node.comparators, strict=True):
            pair = ast.Compare(ast.Name("ag__a", ast.Load()), [op], [ast.Name("ag__b", ast.Load())])
            links += [ast.Lambda(arguments(["ag__a", "ag__b"]), pair), self.later(right)]
        return place(runtime("chain", node.left, *links), node)  # type: ignore[no-any-return]


def binds(node: ast.AST) -> bool:
    """Tell if `:=` binds a name in the expression, which a function around it would keep."""
    return any(isinstance(part, ast.NamedExpr) for part in ast.walk(node))
