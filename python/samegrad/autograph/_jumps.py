"""`return`, `break` and `continue` become flags, so that blocks have one way in and one way out."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

RETURNED, RESULT = "ag__returned", "ag__result"

Block = list[ast.stmt]


def _name(name: str, load: bool = True) -> ast.Name:
    return ast.Name(name, ast.Load() if load else ast.Store())


def _assign(name: str, value: ast.expr, at: ast.AST) -> ast.stmt:
    statement: ast.stmt = _placed(ast.Assign([_name(name, load=False)], value), at)
    return statement


def _placed(node: Any, at: ast.AST) -> Any:
    ast.copy_location(node, at)
    return ast.fix_missing_locations(node)


def _set_flag(name: str, value: bool, at: ast.AST) -> ast.stmt:
    return _assign(name, ast.Constant(value), at)


def _unless(flags: Sequence[str], block: Block) -> ast.stmt:
    """The block, run only where none of the flags is set."""
    names: list[ast.expr] = [_name(flag) for flag in flags]
    test = names[0] if len(names) == 1 else ast.BoolOp(ast.Or(), names)
    guarded: ast.stmt = _placed(ast.If(ast.UnaryOp(ast.Not(), test), block, []), block[0])
    return guarded


class _Lowering:
    """Replaces jumps in a block; what follows a possible jump is guarded by its flags.

    A subclass says which statements jump and what they become.
    """

    def __init__(self) -> None:
        self.used: list[str] = []  # the flags that some jump sets, in order of appearance

    def is_jump(self, statement: ast.stmt) -> bool:
        """Tell if the statement is a jump of this kind."""
        raise NotImplementedError

    def enters(self, statement: ast.stmt) -> bool:
        """Tell if jumps inside the statement are of this kind."""
        raise NotImplementedError

    def replace(self, statement: ast.stmt) -> Block:
        """Return the replacement of a jump."""
        raise NotImplementedError

    def after(self, statement: ast.stmt) -> Block:
        """Return the statements after a compound statement that may have jumped."""
        return []

    def block(self, statements: Block) -> Block:
        """The block without jumps."""
        for i, statement in enumerate(statements):
            if self.is_jump(statement):  # what follows is never reached
                return statements[:i] + self.replace(statement)
            if not self.may_jump([statement]):
                continue
            rest = statements[i + 1 :]
            if isinstance(statement, ast.If):
                return statements[:i] + self._if(statement, rest)
            self.inside(statement)
            return [*statements[:i], statement, *self.after(statement), *self._guarded(rest)]
        return statements

    def may_jump(self, statements: Block) -> bool:
        """Tell if some path through the block jumps."""
        return any(
            self.is_jump(statement)
            or (
                self.enters(statement)
                and any(self.may_jump(getattr(*place)) for place in _blocks_of(statement))
            )
            for statement in statements
        )

    def _must_jump(self, statements: Block) -> bool:
        """Tell if all paths through the block jump."""
        return any(
            self.is_jump(statement)
            or (
                isinstance(statement, ast.If)
                and self._must_jump(statement.body)
                and self._must_jump(statement.orelse)
            )
            for statement in statements
        )

    def _guarded(self, rest: Block) -> Block:
        rest = self.block(rest)
        return [_unless(self.used, rest)] if rest else []

    def _if(self, statement: ast.If, rest: Block) -> Block:
        """An `if` that may jump, and what follows it."""
        ways = self._must_jump(statement.body), self._must_jump(statement.orelse)
        if ways[0]:  # what follows belongs to the other branch
            statement.orelse = statement.orelse + ([] if ways[1] else rest)
        elif ways[1]:
            statement.body = statement.body + rest
        statement.body = self.block(statement.body)
        statement.orelse = self.block(statement.orelse)
        return [statement, *([] if any(ways) else self._guarded(rest))]

    def inside(self, statement: Any) -> None:
        """Lower the jumps in the blocks of a compound statement."""
        skips = isinstance(statement, _TRIES) and self.may_jump(statement.body)
        for holder, field in _blocks_of(statement):
            setattr(holder, field, self.block(getattr(holder, field)))
        if skips and statement.orelse:
            statement.orelse = [_unless(self.used, statement.orelse)]


def _blocks_of(statement: Any) -> list[tuple[Any, str]]:
    holders = [statement, *getattr(statement, "handlers", ()), *getattr(statement, "cases", ())]
    fields = ("body", "orelse", "finalbody")
    return [(h, field) for h in holders for field in fields if getattr(h, field, None)]


_TRIES = (ast.Try, getattr(ast, "TryStar", ast.Try))
_COMPOUND = (ast.If, ast.With, ast.Match, *_TRIES)
_LOOPS = (ast.For, ast.While)


class _Returns(_Lowering):
    def __init__(self) -> None:
        super().__init__()
        self.used = [RETURNED]
        self._loops = 0

    def is_jump(self, statement: ast.stmt) -> bool:
        return isinstance(statement, ast.Return)

    def enters(self, statement: ast.stmt) -> bool:
        return isinstance(statement, (*_COMPOUND, *_LOOPS))

    def replace(self, statement: Any) -> Block:
        value = statement.value or ast.Constant(None)
        block = [_assign(RESULT, value, statement), _set_flag(RETURNED, True, statement)]
        return [*block, _placed(ast.Break(), statement)] if self._loops else block

    def after(self, statement: ast.stmt) -> Block:
        if self._loops and isinstance(statement, _LOOPS):  # leave the outer loop too
            leave = ast.If(_name(RETURNED), [ast.Break()], [])
            return [_placed(leave, statement)]
        return []

    def inside(self, statement: Any) -> None:
        if not isinstance(statement, _LOOPS):
            super().inside(statement)
            return
        self._loops += 1
        statement.body = self.block(statement.body)
        self._loops -= 1
        statement.orelse = self.block(statement.orelse)


class _LoopJumps(_Lowering):
    """The jumps of one loop."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.broken, self.continued = f"ag__broken_{number}", f"ag__continued_{number}"

    def is_jump(self, statement: ast.stmt) -> bool:
        return isinstance(statement, ast.Break | ast.Continue)

    def enters(self, statement: ast.stmt) -> bool:
        return isinstance(statement, _COMPOUND)

    def replace(self, statement: ast.stmt) -> Block:
        flag = self.broken if isinstance(statement, ast.Break) else self.continued
        if flag not in self.used:
            self.used.append(flag)
        return [_set_flag(flag, True, statement)]


class _Loops(ast.NodeTransformer):
    """Lowers the jumps of every loop, inner loops first."""

    def __init__(self) -> None:
        self.count = 0

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        return node

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> Any:
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> Any:
        return node

    def _loop(self, node: Any) -> Any:
        self.generic_visit(node)
        orelse, node.orelse = node.orelse, []
        jumps = _LoopJumps(self.count + 1)
        if not jumps.may_jump(node.body):
            return [node, *orelse]
        self.count += 1
        body = jumps.block(node.body)
        before: Block = []
        if jumps.continued in jumps.used:
            body.insert(0, _set_flag(jumps.continued, False, node))
        if jumps.broken in jumps.used:
            before.append(_set_flag(jumps.broken, False, node))
            node.stopped_by = jumps.broken
            orelse = [_unless([jumps.broken], orelse)] if orelse else []
        node.body = body
        return [*before, node, *orelse]

    visit_For = visit_While = _loop


def _returns(statements: Block) -> int:
    class Count(ast.NodeVisitor):
        found = 0

        def visit_Return(self, node: ast.Return) -> None:
            self.found += 1

        def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
            pass

        def visit_Lambda(self, node: ast.Lambda) -> None:
            pass

        visit_AsyncFunctionDef = visit_ClassDef = visit_FunctionDef  # type: ignore[assignment]

    count = Count()
    for statement in statements:
        count.visit(statement)
    return count.found


def lower_jumps(body: Block) -> Block:
    """A function's body without jumps, but for a `return` as its last statement.

    A loop that can be left gets the name of the flag as its attribute `stopped_by`.
    """
    at_end = isinstance(body[-1], ast.Return)
    if _returns(body) > at_end:
        first, last = body[0], body[-1]
        ending = _placed(ast.Return(ast.Constant(None)), last)  # dropped where nothing reaches it
        block = _Returns().block([*body, ending])
        body = [
            _set_flag(RETURNED, False, first),
            *block,
            _placed(ast.Return(_name(RESULT)), last),
        ]
    module = ast.Module(body, [])
    lowered: ast.Module = _Loops().visit(module)
    return lowered.body
