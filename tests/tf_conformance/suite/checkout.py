"""Modules of a checkout of TensorFlow, read without executing them: what each name is publicly."""

from __future__ import annotations

import ast
import functools
from pathlib import Path
from typing import Any, NamedTuple


class Export(NamedTuple):
    """The public names of one definition, in version 2 and below compat.v1."""

    current: tuple[str, ...]
    version_1: tuple[str, ...]

    @property
    def is_internal(self) -> bool:
        """Return whether no public name is left."""
        return not self.current and not self.version_1


class Module:
    """The exports, imports and assignments of a module of TensorFlow."""

    def __init__(self, source: str) -> None:
        self.exports: dict[str, Export] = {}
        self.modules: dict[str, str] = {}
        self.names: dict[str, tuple[str, str]] = {}
        self.stars: list[str] = []
        self.aliases: dict[str, str] = {}
        self.literals: dict[str, Any] = {}
        self.definitions: set[str] = set()
        for statement in ast.parse(source).body:
            self._read(statement)

    def _read(self, statement: ast.stmt) -> None:
        if isinstance(statement, ast.FunctionDef | ast.ClassDef):
            self.definitions.add(statement.name)
            for decorator in statement.decorator_list:
                self._export(decorator, statement.name)
        elif isinstance(statement, ast.If | ast.Try):
            for inner in reversed(statement.body):
                self._read(inner)
        elif isinstance(statement, ast.ImportFrom) and statement.module:
            for name in statement.names:
                if name.name == "*":
                    self.stars.append(statement.module)
                else:
                    self.names[name.asname or name.name] = (statement.module, name.name)
        elif isinstance(statement, ast.Assign | ast.AnnAssign):
            self._assign(statement)
        elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
            self._call(statement.value)

    def _assign(self, statement: ast.Assign | ast.AnnAssign) -> None:
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        names = [target.id for target in targets if isinstance(target, ast.Name)]
        value = statement.value
        for name in names:
            if isinstance(value, ast.Name | ast.Attribute):
                self.aliases[name] = ast.unparse(value)
            elif isinstance(value, ast.Call) and isinstance(value.func, ast.Call):
                self._export(value.func, name)
            elif value is not None:
                try:
                    self.literals[name] = ast.literal_eval(value)
                except ValueError:
                    self.definitions.add(name)

    def _call(self, call: ast.Call) -> None:
        """Read `tf_export("a")(b)` and `tf_export("a").export_constant(__name__, "b")`."""
        if isinstance(call.func, ast.Call) and call.args and isinstance(call.args[0], ast.Name):
            self._export(call.func, call.args[0].id)
        elif isinstance(call.func, ast.Attribute) and call.func.attr == "export_constant":
            self._export(call.func.value, ast.literal_eval(call.args[1]))

    def _export(self, decorator: ast.expr, name: str) -> None:
        if not isinstance(decorator, ast.Call) or not ast.unparse(decorator.func).endswith(
            "tf_export"
        ):
            return
        current = tuple(ast.literal_eval(x) for x in decorator.args)
        version_1 = current
        for keyword in decorator.keywords:
            if keyword.arg == "v1":
                version_1 = tuple(ast.literal_eval(keyword.value))
        public = [
            tuple(x for x in names if not x.startswith(("__", "raw_ops")))
            for names in (current, version_1)
        ]
        self.exports[name] = Export(public[0], public[1])


class Checkout:
    """A folder that has `tensorflow/python` in it."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def path(self, module: str) -> Path | None:
        """Return the file of a module such as `tensorflow.python.ops.math_ops`."""
        base = self.root.joinpath(*module.split("."))
        for path in (base.with_suffix(".py"), base / "__init__.py"):
            if path.is_file():
                return path
        return None

    def is_module(self, module: str) -> bool:
        """Return whether a module or a package has that name; generated ones are not in files."""
        last = module.rpartition(".")[2]
        generated = last.startswith("gen_") and last.endswith("_ops")
        return generated or self.path(module) is not None or self.is_package(module)

    def is_package(self, module: str) -> bool:
        """Return whether a folder has that name."""
        return self.root.joinpath(*module.split(".")).is_dir()

    @functools.cache  # noqa: B019 - one checkout per process
    def read(self, module: str) -> Module | None:
        """Return what a module defines, or None where it has no file."""
        path = self.path(module)
        return None if path is None else Module(path.read_text(encoding="utf-8"))
