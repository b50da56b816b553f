"""The parameters of public functions, classes and methods as text, for TensorFlow and samegrad.

A callable is named as users write it: "math.atan2", "Variable" for a constructor and
"Variable().assign" for a method; its signature is "y, x, name=None".
"""

from __future__ import annotations

import ast
import enum
import inspect
import types
from collections.abc import Iterator
from typing import Any, NamedTuple

# Modules that samegrad has not, or that are Keras's.
SKIPPED = {
    "app", "compat", "dtensor", "estimator", "feature_column", "initializers", "keras", "lite",
    "losses", "metrics", "mlir", "optimizers", "profiler", "quantization", "queue", "raw_ops",
    "saved_model", "tpu", "types", "xla",
}  # fmt: skip
# Whose methods are those of unittest, and classes that samegrad has not.
SKIPPED_CLASSES = ("LinearOperator", "TestCase", "Benchmark", "Graph", "Operation")
_ANY = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def default_text(value: Any) -> str:
    """Return a default as both packages would write it."""
    if isinstance(value, enum.Enum):
        return f"{type(value).__name__}.{value.name}"
    if value is None or isinstance(value, bool | int | float | str | bytes):
        return repr(value)
    if isinstance(value, tuple | list):
        parts = ", ".join(map(default_text, value))
        return f"({parts})" if isinstance(value, tuple) else f"[{parts}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{default_text(k)}: {default_text(v)}' for k, v in value.items())}}}"
    if type(value).__name__ == "DType":
        return str(value.name)
    return str(getattr(value, "__name__", f"{type(value).__name__}()"))


def signature_text(function: Any, method: bool = False) -> str | None:
    """Return the parameters of a callable; None where Python does not know them.

    Args:
        function: The callable.
        method: Its first parameter is the object, and left out.
    """
    try:
        parameters = list(inspect.signature(function).parameters.values())[method:]
        if isinstance(function, type) and all(p.kind in _ANY for p in parameters):
            parameters = list(inspect.signature(function.__init__).parameters.values())[1:]
    except (TypeError, ValueError):
        return None
    found, by_name = [], False
    for parameter in parameters:
        star = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
        if parameter.kind is parameter.KEYWORD_ONLY and not by_name:
            found.append("*")
        by_name = by_name or parameter.kind in (parameter.VAR_POSITIONAL, parameter.KEYWORD_ONLY)
        has_default = parameter.default is not parameter.empty
        end = f"={default_text(parameter.default)}" if has_default else ""
        found.append(f"{star}{parameter.name}{end}")
    return ", ".join(found)


def signatures(root: types.ModuleType, package: str) -> dict[str, str]:
    """Return the signature of each public callable by its name.

    Args:
        root: The package.
        package: What the names of its public modules begin with.
    """
    found: dict[str, str] = {}
    for name, thing in _public(root, package, "", set()):
        text = signature_text(thing)
        if text is not None:
            found[name] = text
        if isinstance(thing, type) and not name.rpartition(".")[2].startswith(SKIPPED_CLASSES):
            found |= dict(_methods(name, thing))
    return found


def _public(
    module: types.ModuleType, package: str, path: str, seen: set[int]
) -> Iterator[tuple[str, Any]]:
    seen.add(id(module))
    for name in sorted(dir(module)):
        thing = None if name.startswith("_") or name in SKIPPED else getattr(module, name, None)
        if isinstance(thing, types.ModuleType):
            own = thing.__name__.startswith(package) and "._" not in thing.__name__[len(package) :]
            if own and id(thing) not in seen:
                yield from _public(thing, package, f"{path}{name}.", seen)
        elif callable(thing):
            yield f"{path}{name}", thing


def _methods(name: str, kind: type) -> Iterator[tuple[str, str]]:
    for part in sorted(dir(kind)):
        raw = inspect.getattr_static(kind, part)
        bound = getattr(kind, part, None)
        if part.startswith("_") or isinstance(bound, type | property) or not callable(bound):
            continue
        of_class = isinstance(raw, staticmethod | classmethod)
        text = signature_text(bound, method=not of_class)
        if text is not None:
            yield f"{name}{'' if of_class else '()'}.{part}", text


class Parameters(NamedTuple):
    """The parameters of a signature.

    Attributes:
        ordered: Names of those that may be given by position.
        defaults: The text of each default, by name; empty: the argument must be given.
        any_args: There are `*args`.
        any_options: There are `**options`.
    """

    ordered: list[str]
    defaults: dict[str, str]
    any_args: bool
    any_options: bool


def parameters_of(text: str) -> Parameters:
    """Return the parameters of a signature that is given as text."""
    (made,) = ast.parse(f"def f({text}): ...").body
    assert isinstance(made, ast.FunctionDef)
    found = made.args
    ordered = [each.arg for each in (*found.posonlyargs, *found.args)]
    values = [""] * (len(ordered) - len(found.defaults)) + [*map(ast.unparse, found.defaults)]
    by_name = [each.arg for each in found.kwonlyargs]
    of_names = ["" if value is None else ast.unparse(value) for value in found.kw_defaults]
    defaults = dict(zip([*ordered, *by_name], [*values, *of_names], strict=True))
    return Parameters(ordered, defaults, found.vararg is not None, found.kwarg is not None)


def differences(theirs: str, ours: str) -> list[str]:
    """Return which calls that TensorFlow accepts are refused, or mean something else.

    Args:
        theirs: TensorFlow's signature.
        ours: That of samegrad, which may have more parameters behind TensorFlow's.
    """
    wanted, found = parameters_of(theirs), parameters_of(ours)
    told = ["no *args"] if wanted.any_args and not found.any_args else []
    for place, name in enumerate(wanted.ordered):
        if name in found.defaults and found.ordered[place : place + 1] != [name]:
            told.append(f"{name} is not argument {place}")
    for name, default in wanted.defaults.items():
        if name not in found.defaults:
            told += [] if found.any_options else [f"no {name}"]
        elif default and name != "name" and not _equal(default, found.defaults[name]):
            told.append(f"{name}={found.defaults[name] or '?'} for {default}")
    others = found.defaults.keys() - wanted.defaults.keys()
    return told + [f"{name} must be given" for name in others if not found.defaults[name]]


def _equal(theirs: str, ours: str) -> bool:
    """Return whether defaults mean the same; a dtype may be given by its name."""
    try:
        return _plain(ast.literal_eval(theirs)) == _plain(ast.literal_eval(ours))
    except (ValueError, SyntaxError):  # a dtype, a function or another object
        return theirs == ours.strip("'")


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value
