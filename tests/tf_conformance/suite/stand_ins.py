"""Public names in place of TensorFlow's internal ones, for the files of its own tests.

`from tensorflow.python.ops import math_ops` becomes a stand-in module: its names are the public
ones that `@tf_export` in the checkout gives them. Names without an export are internal.
"""

from __future__ import annotations

import ast
import contextlib
import importlib
import inspect
import logging
import re
import sys
from types import ModuleType
from typing import Any

from checkout import Checkout

# Modules of helpers for tests: they are executed, with stand-ins for what they import.
_EXECUTED = re.compile(
    r"(_test_base|test_base|_test_util|_test_lib|_test_utils|test_combinations|"
    r"framework\.combinations|gradient_checker_v2|gradient_checker|reference_test_base|"
    r"kernel_tests\..*|python\.data\.util\.\w+_test\w*)$"
)
_GENERATED = re.compile(r"^gen_\w+_ops$")
# The namespaces that generated operations are exported in.
_PUBLIC = (
    "", "math", "linalg", "nn", "strings", "image", "random", "io", "bitwise", "sets", "audio",
    "quantization", "signal", "sparse", "train", "data", "compat.v1",
)  # fmt: skip


class InternalError(Exception):
    """A test asks for an internal name, graph mode or a session."""


class LackError(Exception):
    """A test asks for a public name of TensorFlow that the module under test lacks."""


class RefusedError(Exception):
    """A test asks for a public name of TensorFlow that samegrad leaves out, and says why."""


class Missing:
    """A name that cannot be had: an error follows where a test uses it."""

    def __init__(self, error: type[Exception], name: str) -> None:
        self._error = error
        self._name = name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Raise the error."""
        raise self._error(self._name)

    def __getattr__(self, name: str) -> Any:
        """Raise the error, but not for the protocols that inspection asks for."""
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        raise self._error(f"{self._name}.{name}")

    def __mro_entries__(self, bases: Any) -> Any:
        """Raise the error where a class derives from the name."""
        raise self._error(self._name)


class StandIn(ModuleType):
    """A module whose names are looked up in the checkout."""

    def __init__(self, stand_ins: StandIns, name: str) -> None:
        super().__init__(name)
        self._stand_ins = stand_ins

    def __getattr__(self, name: str) -> Any:
        """Return the public name; raise InternalError or LackError."""
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        found = self._stand_ins.name(self.__name__, name)
        if isinstance(found, Missing):
            if self._stand_ins.is_loading:
                return found  # an argument of a decorator, which one test of a class may use
            found()
        setattr(self, name, found)
        return found


class StandIns:
    """Looks up names of `tensorflow.python` in the module under test.

    Args:
        checkout: The checkout of TensorFlow.
        public: The module under test: samegrad, or TensorFlow as the control.
        special: Names that the tool defines itself, by `module.name` below tensorflow.python.
    """

    def __init__(self, checkout: Checkout, public: Any, special: dict[str, Any]) -> None:
        self.checkout = checkout
        self.public = public
        self.special = special
        self._modules: dict[str, Any] = {}
        # Whether statements of a file are executed, and no test.
        self.is_loading = False
        hints = sys.modules.get("samegrad._surface.missing_names")
        # The reason for which samegrad leaves a name out; TensorFlow has none.
        self._reason: Any = getattr(hints, "reason", None)

    def imported(self, module: str, name: str) -> Any:
        """Return what `from module import name` gives."""
        if module == "tensorflow" or not module.startswith("tensorflow.python"):
            return Missing(InternalError, f"{module}.{name}")
        whole = f"{module}.{name}"
        if self.checkout.is_module(whole):
            return self.module(whole)
        return self.name(module, name)

    def module(self, name: str) -> Any:
        """Return the stand-in of a module, or the executed helper."""
        if name not in self._modules:
            below = name.removeprefix("tensorflow.python.")
            if below in self.special:
                self._modules[name] = self.special[below]
            elif _EXECUTED.search(name) and self.checkout.path(name) is not None:
                self._modules[name] = self.execute(name, name.replace("tensorflow", "helpers", 1))
                self.special.get(f"patch {below}", lambda x: None)(self._modules[name])
            else:
                self._modules[name] = StandIn(self, name)
        return self._modules[name]

    def name(self, module: str, name: str) -> Any:
        """Return a name of a module: special, exported, imported there, or a placeholder."""
        below = f"{module}.{name}".removeprefix("tensorflow.python.")
        if below in self.special:
            return self.special[below]
        if self._is_made(module):
            return getattr(self.module(module), name)
        if _GENERATED.match(module.rpartition(".")[2]):
            return self._guess(module, name)
        read = self.checkout.read(module)
        if read is None:
            if self.checkout.is_module(f"{module}.{name}"):
                return self.module(f"{module}.{name}")
            return Missing(InternalError, below)
        if name in read.exports and not read.exports[name].is_internal:
            export = read.exports[name]
            return self._exported([*export.current, *(f"compat.v1.{x}" for x in export.version_1)])
        if name in read.names:
            return self.imported(*read.names[name])
        if name in read.aliases:
            return self._alias(module, read.aliases[name])
        if name in read.literals:
            return read.literals[name]
        if name not in read.definitions:
            for star in read.stars:
                found = self.name(star, name)
                if not isinstance(found, Missing):
                    return found
            if self.checkout.is_module(f"{module}.{name}"):
                return self.module(f"{module}.{name}")
        return Missing(InternalError, below)

    def _is_made(self, module: str) -> bool:
        """Return whether a module is not a stand-in: special or executed."""
        if module.removeprefix("tensorflow.python.") in self.special:
            return True
        return not isinstance(self._modules.get(module, StandIn(self, module)), StandIn)

    def _alias(self, module: str, dotted: str) -> Any:
        first, *rest = dotted.split(".")
        found = self.name(module, first)
        try:
            for part in rest:
                found = getattr(found, part)
        except (InternalError, LackError, RefusedError) as error:
            return Missing(type(error), str(error))
        return found

    def _exported(self, names: list[str]) -> Any:
        for name in names:
            found = self._public(name)
            if not isinstance(found, Missing):
                return found
        is_refused = self._reason is not None and any(map(self._reason, names))
        return Missing(RefusedError if is_refused else LackError, names[0])

    def _public(self, dotted: str) -> Any:
        found = self.public
        try:
            for part in dotted.split("."):
                found = getattr(found, part)
        except (AttributeError, ImportError):
            return Missing(LackError, dotted)
        return found

    def _guess(self, module: str, name: str) -> Any:
        """Return a generated operation under its name in the public namespaces."""
        for space in _PUBLIC:
            found = self._public(f"{space}.{name}" if space else name)
            if not isinstance(found, Missing):
                return found
        return Missing(InternalError, f"{module.rpartition('.')[2]}.{name}")

    def execute(self, module: str, name: str, failed: Any = None) -> ModuleType:
        """Execute a file with stand-ins for its imports, a statement at a time.

        Args:
            module: The module of the checkout.
            name: The name to give it.
            failed: Called with a statement that fails and its error. The names that it binds
                become placeholders.

        Returns:
            The module.
        """
        path = self.checkout.path(module)
        assert path is not None, module
        made = ModuleType(name)
        made.__file__ = str(path)
        sys.modules[name] = made
        vars(made)["_stand_ins"] = self
        tree = _Imports().visit(ast.parse(path.read_text(encoding="utf-8")))
        ast.fix_missing_locations(tree)
        outer, self.is_loading = self.is_loading, True
        for statement in tree.body:
            try:
                code = compile(ast.Module([statement], []), str(path), "exec")
                exec(code, vars(made))
            except Exception as error:
                for bound in _bound(statement):
                    vars(made)[bound] = Missing(_kind(error), f"{bound}: {error}")
                if failed is not None:
                    failed(statement, error)
        self.is_loading = outer
        return made


def _bound(statement: ast.stmt) -> list[str]:
    """Return the names that a statement binds."""
    if isinstance(statement, ast.FunctionDef | ast.ClassDef):
        return [statement.name]
    if isinstance(statement, ast.Import | ast.ImportFrom):
        return [(x.asname or x.name).partition(".")[0] for x in statement.names]
    return [
        x.id
        for x in ast.walk(statement)
        if isinstance(x, ast.Name) and isinstance(x.ctx, ast.Store)
    ]


def _kind(error: Exception) -> type[Exception]:
    kinds = (LackError, RefusedError)
    return next((kind for kind in kinds if isinstance(error, kind)), InternalError)


class _Imports(ast.NodeTransformer):
    """Replace imports of TensorFlow by look-ups."""

    def visit_ImportFrom(self, node: ast.ImportFrom) -> Any:
        """Replace `from tensorflow.python.a import b as c`."""
        if node.module is None or node.module.partition(".")[0] != "tensorflow":
            return node
        lines = [
            f"{x.asname or x.name} = _stand_ins.imported({node.module!r}, {x.name!r})"
            for x in node.names
            if x.name != "*"
        ]
        return [ast.copy_location(y, node) for x in lines for y in ast.parse(x).body]

    def visit_Import(self, node: ast.Import) -> Any:
        """Replace `import tensorflow as tf`."""
        made: list[ast.stmt] = []
        for name in node.names:
            if name.name.partition(".")[0] != "tensorflow":
                made.append(ast.Import([name]))
            else:
                made += ast.parse(f"{name.asname or 'tensorflow'} = _stand_ins.public").body
        return [ast.copy_location(x, node) for x in made]


def plain_modules() -> dict[str, Any]:
    """Return the modules of Python that replace helpers of TensorFlow."""

    def make(name: str, **names: Any) -> ModuleType:
        module = ModuleType(name)
        vars(module).update(names)
        return module

    def nothing(*args: Any, **kwargs: Any) -> Any:
        return lambda x: x

    mute = logging.getLogger("suite")
    return {
        "platform.tf_logging": mute,
        "util.tf_inspect": make(
            "tf_inspect", **vars(inspect), getargspec=inspect.getfullargspec
        ),
        "util.tf_export": make("tf_export", tf_export=nothing, kwarg_only=lambda x: x),
        "util.numpy_compat": make(
            "numpy_compat", np_array=_numpy("array"), np_asarray=_numpy("asarray")
        ),
        "tf2": make("tf2", enabled=lambda: True),
        "compat.v2_compat": make("v2_compat", enable_v2_behavior=lambda: None),
        "compat.compat": make(
            "compat", forward_compatible=lambda *x: True,
            forward_compatibility_horizon=lambda *x: contextlib.nullcontext(),
        ),
    }  # fmt: skip


def _numpy(name: str) -> Any:
    return getattr(importlib.import_module("numpy"), name)
