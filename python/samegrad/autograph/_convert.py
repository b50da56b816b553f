"""Conversion of functions: the selection, the time, and the converted functions."""

from __future__ import annotations

import functools
import re
import sys
import types
from typing import Any

from samegrad._context import state as _context
from samegrad._context.user_code import REASONS, Key, is_user_code, key_of
from samegrad._surface.boundary import inside
from samegrad.autograph._builtins import REPLACED
from samegrad.autograph._expressions import RUNTIME
from samegrad.autograph._rewrite import FACTORY, FUNCTION, rewrite
from samegrad.autograph._source import NoSourceError, compile_like

_GENERATED = re.compile(r"ag__\w+\.<locals>\.")

_rewritten: dict[Key, types.CodeType] = {}
_new_codes: set[Key] = set()
_operators: list[types.ModuleType] = []  # what rewritten functions call, see `set_operators`


def convert(value: Any) -> Any:
    """The callable with its control flow rewritten, or itself where that is not to be done.

    Args:
        value: A function, method, partial, object with `__call__`, or anything else.

    Example:
        >>> convert(range) is range
        False
        >>> import json
        >>> convert(json.dumps) is json.dumps
        True
    """
    if isinstance(value, types.FunctionType):
        return REPLACED.get(inside(value)) or _convert_function(value)
    if isinstance(value, types.MethodType):
        return _convert_method(value)
    if isinstance(value, functools.partial):
        return functools.partial(convert(value.func), *value.args, **value.keywords)
    try:
        replacement = REPLACED.get(value)
    except TypeError:  # it has no hash
        replacement = None
    if replacement is not None:
        return replacement
    call = getattr(type(value), "__call__", None)  # noqa: B004
    if isinstance(call, types.FunctionType) and is_user_code(call.__code__):
        return _convert_method(types.MethodType(call, value))
    return value


def _convert_method(method: types.MethodType) -> Any:
    function = method.__func__
    if not isinstance(function, types.FunctionType):
        return method
    converted = _convert_function(function)
    return method if converted is function else types.MethodType(converted, method.__self__)


def _convert_function(function: types.FunctionType) -> types.FunctionType:
    if not is_user_code(function.__code__):
        return function
    key = key_of(function.__code__)
    new_code = _rewritten.get(key)
    if new_code is None:
        if key in REASONS or key in _new_codes:
            return function
        try:
            new_code = compile_rewritten(function)
        except NoSourceError as error:
            REASONS[key] = str(error)
            return function
        _rewritten[key] = new_code
        _new_codes.add(key_of(new_code))
    return _with_code(function, new_code)


def compile_rewritten(function: types.FunctionType) -> types.CodeType:
    """The code of the rewritten function.

    Raises:
        NoSourceError: It cannot be rewritten.
    """
    code = function.__code__
    try:
        made = compile_like(rewrite(function), code)
    except SyntaxError as error:
        raise NoSourceError(f"its form is not supported ({error})") from error
    return _renamed(_find(_find(made, FACTORY), FUNCTION), code)


def _find(code: types.CodeType, name: str) -> types.CodeType:
    for part in code.co_consts:
        if isinstance(part, types.CodeType) and part.co_name == name:
            return part
    raise AssertionError(name)


def _renamed(code: types.CodeType, original: types.CodeType) -> types.CodeType:
    """Tracebacks call the blocks of a function by the name of the function."""
    constants = tuple(
        _renamed(part, original) if isinstance(part, types.CodeType) else part
        for part in code.co_consts
    )
    generated = code.co_name.startswith("ag__")
    names: dict[str, Any] = {"co_name": original.co_name if generated else code.co_name}
    if sys.version_info >= (3, 11):
        inner = _GENERATED.sub("", code.co_qualname)
        whole = original.co_qualname
        names["co_qualname"] = whole if generated else f"{whole}.<locals>.{inner}"
    return code.replace(co_consts=constants, **names)


def _with_code(function: types.FunctionType, code: types.CodeType) -> types.FunctionType:
    """A function with the rewritten code that shares everything else with the original."""
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    cells[RUNTIME] = types.CellType(_operators[0])
    closure = tuple(cells[name] for name in code.co_freevars)
    made = types.FunctionType(
        code, function.__globals__, function.__name__, function.__defaults__, closure
    )
    made.__kwdefaults__ = function.__kwdefaults__
    functools.update_wrapper(made, function)
    return made


def call(value: Any) -> Any:
    """Return the function to call where the converted code has `value(…)`."""
    return convert(value) if _context.current().converting else value


def set_operators(module: types.ModuleType) -> None:
    """Set the module that replaces Python's control flow in converted functions."""
    _operators[:] = [module]
