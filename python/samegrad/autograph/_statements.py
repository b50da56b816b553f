"""Statements with control flow in them become functions of their blocks and one call."""

from __future__ import annotations

import ast
from typing import Any, NamedTuple

from samegrad.autograph import _names
from samegrad.autograph._expressions import Expressions, place, runtime, template


class _Live(NamedTuple):
    names: list[str]  # what a loop binds
    text: str  # of its state


class Statements:
    """`if`, `while`, `for` and `assert` become calls of functions made of their blocks."""

    def __init__(self, globals_: set[str]) -> None:
        self._globals = globals_
        self._count = 0
        self._expressions = Expressions()

    def block(self, statements: list[ast.stmt]) -> list[ast.stmt]:
        """The rewritten statements."""
        return [new for statement in statements for new in self._statement(statement)]

    def _statement(self, node: Any) -> list[ast.stmt]:
        if isinstance(node, ast.If):
            return self._if(node)
        if isinstance(node, ast.While):
            return self._while(node)
        if isinstance(node, ast.For):
            return self._for(node)
        if isinstance(node, ast.Assert):
            return [self._assert(node)]
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            return [node]
        for field in ("body", "orelse", "finalbody"):
            if isinstance(getattr(node, field, None), list):
                setattr(node, field, self.block(getattr(node, field)))
        for part in (*getattr(node, "handlers", ()), *getattr(node, "cases", ())):
            part.body = self.block(part.body)
            if getattr(part, "guard", None):
                part.guard = self._expression(part.guard)
        for field, value in ast.iter_fields(node):
            if isinstance(value, ast.expr):
                setattr(node, field, self._expression(value))
            elif isinstance(value, list):
                for i, part in enumerate(value):
                    if isinstance(part, ast.expr | ast.withitem):
                        value[i] = self._expression(part)
        return [node]

    def _expression(self, node: Any) -> Any:
        return self._expressions.visit(node)

    def _declaration(self, names: list[str]) -> str:
        """The `nonlocal` and `global` lines of a function that binds the names."""
        scopes = {
            "global": [n for n in names if n in self._globals],
            "nonlocal": [n for n in names if n not in self._globals],
        }
        return "".join(f"\n  {word} {', '.join(n)}" for word, n in scopes.items() if n)

    def _function(self, name: str, names: list[str], body: list[ast.stmt], at: Any,
                  args: tuple[str, ...] = ()) -> ast.stmt:  # fmt: skip
        """A function of a block that binds the names."""
        text = f"def {name}({', '.join(args)}):{self._declaration(names)}\n  pass"
        (function,) = template(text, at)
        assert isinstance(function, ast.FunctionDef)
        function.body = [*function.body[:-1], *(body or function.body[-1:])]
        return function

    def _state(self, number: int, names: list[str], places: list[str], at: Any) -> list[ast.stmt]:
        """Functions that read and write what the blocks bind."""
        read = "".join(f"ag__.read(lambda: {name}), " for name in (*names, *places))
        lines = [f"def ag__get_{number}():\n  return ({read})"]
        lines.append(f"def ag__set_{number}(ag__new):{self._declaration(names)}\n  pass")
        for i, name in enumerate(names):
            lines.append(f"  {name} = ag__new[{i}]\n  if ag__.is_unbound({name}): del {name}")
        for i, target in enumerate(places, len(names)):
            lines.append(
                f"  if ag__.differs(lambda: {target}, ag__new[{i}]): {target} = ag__new[{i}]"
            )
        return template("\n".join(lines), at)

    def _next(self) -> int:
        self._count += 1
        return self._count

    def _if(self, node: Any) -> list[ast.stmt]:
        k = self._next()
        blocks = [*node.body, *node.orelse]
        names, places = _names.bound(blocks), _names.places(blocks)
        live = tuple(n for n in names if n in node.live_after) + tuple(places)
        made = [
            self._function(f"ag__body_{k}", names, self.block(node.body), node),
            self._function(f"ag__else_{k}", names, self.block(node.orelse), node),
            *self._state(k, names, places, node),
        ]
        (call,) = template(
            f"ag__.if_stmt(0, ag__body_{k}, ag__else_{k}, "
            f"ag__.State(ag__get_{k}, ag__set_{k}, {(*names, *places)}, {live}))",
            node.test,  # the line of errors about the branches
        )
        call.value.args[0] = self._expression(node.test)  # type: ignore[attr-defined]
        return [*made, call]

    def _test(self, node: Any, k: int, names: list[str]) -> list[ast.stmt]:
        """The function that says whether another round is due, if there is one."""
        flag = getattr(node, "stopped_by", None)
        test = node.test if isinstance(node, ast.While) else None
        if test is None:
            text = f"return ag__.not_({flag})" if flag else ""
            return template(f"def ag__test_{k}():\n  {text}", node) if flag else []
        name = f"ag__more_{k}" if flag else f"ag__test_{k}"
        result = place(ast.Return(self._expression(test)), test)
        made = [self._function(name, names, [result], node)]
        if flag:
            both = f"ag__.and_(lambda: ag__.not_({flag}), {name})"
            made += template(f"def ag__test_{k}():\n  return {both}", node)
        return made

    def _while(self, node: ast.While) -> list[ast.stmt]:
        k = self._next()
        bound_by: list[ast.AST] = [node.test, *node.body]
        options = _take_options(node, self._expression)
        state, live = self._loop_state(node, k, bound_by)
        made = [self._function(f"ag__body_{k}", live.names, self.block(node.body), node), *state]
        made += self._test(node, k, _names.bound([node.test]))
        (call,) = template(f"ag__.while_stmt(ag__test_{k}, ag__body_{k}, {live.text})", node.test)
        return [*made, _with_options(call, options)]

    def _for(self, node: ast.For) -> list[ast.stmt]:
        k = self._next()
        bound_by: list[ast.AST] = [node.target, *node.body]
        options = _take_options(node, self._expression)
        state, live = self._loop_state(node, k, bound_by)
        take = place(ast.Assign([node.target], ast.Name("ag__item", ast.Load())), node)
        body = [take, *self.block(node.body)]
        made = [self._function(f"ag__body_{k}", live.names, body, node, ("ag__item",)), *state]
        test = self._test(node, k, [])
        name = f"ag__test_{k}" if test else "None"
        (call,) = template(f"ag__.for_stmt(0, {name}, ag__body_{k}, {live.text})", node.iter)
        call.value.args[0] = self._expression(node.iter)  # type: ignore[attr-defined]
        return [*made, *test, _with_options(call, options)]

    def _loop_state(
        self, node: Any, k: int, bound_by: list[ast.AST]
    ) -> tuple[list[ast.stmt], _Live]:
        """The functions that read and write what a loop binds, before its body is rewritten."""
        names, places = _names.bound(bound_by), _names.places(bound_by)
        live = tuple(n for n in names if n in node.live_head) + tuple(places)
        text = f"ag__.State(ag__get_{k}, ag__set_{k}, {(*names, *places)}, {live})"
        return self._state(k, names, places, node), _Live(names, text)

    def _assert(self, node: ast.Assert) -> ast.stmt:
        message = self._expression(node.msg) if node.msg else ast.Constant(None)
        text = ast.Constant(ast.unparse(node.test))
        call = runtime("assert_stmt", self._expression(node.test), Expressions.later(message), text)
        return place(ast.Expr(call), node)  # type: ignore[no-any-return]


def _take_options(node: Any, rewrite: Any) -> list[ast.keyword]:
    """The arguments of `set_loop_options` at the beginning of a loop, which it then loses."""
    first = node.body[0]
    call = first.value if isinstance(first, ast.Expr) else None
    if not isinstance(call, ast.Call) or not ast.unparse(call.func).endswith("set_loop_options"):
        return []
    node.body = node.body[1:] or [place(ast.Pass(), first)]
    for keyword in call.keywords:
        keyword.value = rewrite(keyword.value)
    return call.keywords


def _with_options(statement: Any, options: list[ast.keyword]) -> ast.stmt:
    statement.value.keywords = options
    return statement  # type: ignore[no-any-return]
