"""Names that a block reads and binds, and their liveness after it."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import Any

_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)


def reads(node: ast.AST | Iterable[ast.AST]) -> set[str]:
    """The names that the node may read, those of functions in it included."""
    nodes = [node] if isinstance(node, ast.AST) else list(node)
    return {
        part.id
        for root in nodes
        for part in ast.walk(root)
        if isinstance(part, ast.Name) and not isinstance(part.ctx, ast.Store)
    } | {
        part.target.id
        for root in nodes
        for part in ast.walk(root)
        if isinstance(part, ast.AugAssign) and isinstance(part.target, ast.Name)
    }


class _Bound(ast.NodeVisitor):
    """Collects what the statements of a block bind, without the scopes inside it."""

    def __init__(self) -> None:
        self.names: dict[str, None] = {}  # in order of appearance
        self.places: dict[str, None] = {}

    def visit_Name(self, node: ast.Name) -> None:
        if not isinstance(node.ctx, ast.Load):
            self.names[node.id] = None

    def _place(self, node: Any) -> None:
        if isinstance(node.ctx, ast.Store) and _is_simple(node):
            self.places[ast.unparse(node)] = None
        self.generic_visit(node)

    visit_Attribute = visit_Subscript = _place

    def visit_FunctionDef(self, node: Any) -> None:
        self.names[node.name] = None

    visit_AsyncFunctionDef = visit_ClassDef = visit_FunctionDef

    def visit_Lambda(self, node: ast.Lambda) -> None:
        pass

    def _import(self, node: Any) -> None:
        for alias in node.names:
            self.names[alias.asname or alias.name.partition(".")[0]] = None

    visit_Import = visit_ImportFrom = _import

    def _comprehension(self, node: Any) -> None:
        """Its own names are not the block's, but `:=` in it binds one."""
        for part in ast.walk(node):
            if isinstance(part, ast.NamedExpr):
                self.names[part.target.id] = None

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = _comprehension

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> None:
        if node.name:
            self.names[node.name] = None
        self.generic_visit(node)

    def visit_MatchAs(self, node: Any) -> None:
        if node.name:
            self.names[node.name] = None
        self.generic_visit(node)

    visit_MatchStar = visit_MatchAs

    def visit_MatchMapping(self, node: Any) -> None:
        if node.rest:
            self.names[node.rest] = None
        self.generic_visit(node)


def _is_simple(node: ast.AST) -> bool:
    """Tell if the target consists of names, attributes and constant keys: `self.sums["loss"]`."""
    if isinstance(node, ast.Attribute):
        return _is_simple(node.value)
    if isinstance(node, ast.Subscript):
        return isinstance(node.slice, ast.Constant) and _is_simple(node.value)
    return isinstance(node, ast.Name)


def bound(nodes: Iterable[ast.AST]) -> list[str]:
    """The names that a block binds."""
    visitor = _Bound()
    for node in nodes:
        visitor.visit(node)
    return list(visitor.names)


def places(nodes: Iterable[ast.AST]) -> list[str]:
    """The attributes and items that a block assigns, of objects that exist before it."""
    visitor = _Bound()
    for node in nodes:
        visitor.visit(node)
    return [
        place
        for place in visitor.places
        if not {part.id for part in ast.walk(ast.parse(place)) if isinstance(part, ast.Name)}
        & visitor.names.keys()
    ]


def captured(nodes: Iterable[ast.AST]) -> set[str]:
    """The names that functions and classes inside a block may read whenever they are called."""
    names: set[str] = set()
    for node in nodes:
        for part in ast.walk(node):
            if isinstance(part, (*_SCOPES, ast.GeneratorExp)):
                names |= reads(part)
    return names


class Liveness:
    """Walks a function's statements backwards and notes on each `if` and loop what matters.

    An `if` gets `live_after`, a loop `live_after` and `live_head` (what matters before a round).

    Args:
        body: The statements, without `break` and `continue`.
        always: Names that matter everywhere.
    """

    def __init__(self, body: list[ast.stmt], always: set[str]) -> None:
        self._always = always | captured(body)
        self.block(body, set())

    def block(self, statements: list[ast.stmt], after: set[str]) -> set[str]:
        """Return the names that are live before the statements, given those after them."""
        live = after | self._always
        for statement in reversed(statements):
            live = self._statement(statement, live) | self._always
        return live

    def _statement(self, node: Any, after: set[str]) -> set[str]:
        if isinstance(node, ast.If):
            node.live_after = after  # type: ignore[attr-defined]
            branches = self.block(node.body, after) | self.block(node.orelse, after)
            return branches | reads(node.test)
        if isinstance(node, ast.While | ast.For):
            return self._loop(node, after)
        if isinstance(node, ast.Try) or hasattr(node, "handlers"):
            return self._try(node, after)
        if isinstance(node, ast.With):
            live = self.block(node.body, after)
            for item in reversed(node.items):
                live = live - set(bound([item.optional_vars] if item.optional_vars else []))
                live |= reads(item)
            return live
        if isinstance(node, ast.Match):
            live = after | reads(node.subject)
            for case in node.cases:
                live = live | self.block(case.body, after)
                live |= reads(case.guard) if case.guard else set()
            return live
        return (after - self._killed(node)) | reads(node)

    @staticmethod
    def _killed(node: ast.stmt) -> set[str]:
        targets: list[ast.expr] = []
        if isinstance(node, ast.Assign):
            targets = node.targets
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            targets = [node.target]
        elif isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Import | ast.ImportFrom):
            return set(bound([node]))
        return {
            part.id
            for target in targets
            for part in ast.walk(target)
            if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)
        }

    def _loop(self, node: Any, after: set[str]) -> set[str]:
        flag = getattr(node, "stopped_by", None)
        test = reads(node.test) if isinstance(node, ast.While) else set()
        test |= {flag} if flag else set()
        targets = set(bound([node.target])) if isinstance(node, ast.For) else set()
        head = after | test
        while True:
            before = (self.block(node.body, head) - targets) | after | test
            if before == head:
                break
            head = head | before
        node.live_after, node.live_head = after, head
        return head | (reads(node.iter) if isinstance(node, ast.For) else set())

    def _try(self, node: Any, after: set[str]) -> set[str]:
        """Any statement of the body may be the last one before a handler."""
        ending = self.block(node.finalbody, after)
        handlers: set[str] = set()
        for handler in node.handlers:
            handlers |= self.block(handler.body, ending)
            handlers |= reads(handler.type) if handler.type else set()
        followed = self.block(node.orelse, ending) | handlers
        before, self._always = self._always, self._always | handlers | ending
        try:
            return self.block(node.body, followed)
        finally:
            self._always = before
