"""A stage's function with the names of its surroundings as they are where the stage is made.

TensorFlow traces the function of a stage there, so that what the names stand for later is nothing
to it: `for change in changes: data = data.map(lambda x: change(x))` makes all changes, each once.
Here the function runs while elements are made, and would see the last one only.
"""

from __future__ import annotations

import builtins
import dis
import functools
import types
from collections.abc import Callable, Iterator
from typing import Any

# Names that look for others, and functions that TensorFlow, too, calls while elements are made.
_LIVE = frozenset((
    "globals", "locals", "vars", "eval", "exec", "dir", "__import__", "py_function",
    "numpy_function", "eager_py_func", "from_generator",
))  # fmt: skip
_LOADS = ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS")
_WRITES = ("STORE_GLOBAL", "DELETE_GLOBAL")
_CELL_WRITES = ("STORE_DEREF", "DELETE_DEREF")
_LIBRARIES = ("samegrad", "keras", "numpy")  # whose functions mean the same at any time
_OF_MODULES = ("__name__", "__package__", "__spec__", "__loader__", "__file__", "__builtins__")

Kept = dict[int, Any]  # what takes the place of functions, by their id


def with_names(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, for which names of its module and of functions around it stay what they are.

    So do they for functions of the same module that it reads by name. What an object holds is still
    read while elements are made, and so are names that the function gives new values, or does not
    find yet, and all names where it hands Python's functions on to run with the elements.
    """
    return _kept(function, getattr(function, "__globals__", None), {})  # type: ignore[no-any-return]


def _kept(value: Any, module: Any, kept: Kept) -> Any:
    if type(value) is functools.partial:
        inner = _kept(value.func, getattr(value.func, "__globals__", None), kept)
        return functools.partial(inner, *value.args, **value.keywords)
    if type(value) is types.MethodType:
        inner = _kept(value.__func__, getattr(value.__func__, "__globals__", None), kept)
        return types.MethodType(inner, value.__self__)
    if type(value) is not types.FunctionType or value.__globals__ is not module:
        return value
    if id(value) not in kept:
        kept[id(value)] = value  # for those that call themselves
        kept[id(value)] = _with_kept_names(value, kept)
    return kept[id(value)]


def _with_kept_names(function: types.FunctionType, kept: Kept) -> types.FunctionType:
    names = function.__globals__
    if str(names.get("__name__")).partition(".")[0] in _LIBRARIES:
        return function
    codes = list(_codes(function.__code__))
    if any(not _LIVE.isdisjoint(code.co_names) for code in codes):
        return function
    steps = [step for code in codes for step in dis.get_instructions(code)]
    loaded = {step.argval for step in steps if step.opname in _LOADS}
    if any(step.opname in _WRITES for step in steps) or not all(
        name in names or hasattr(builtins, name) for name in loaded
    ):
        return function
    written = {step.argval for step in steps if step.opname in _CELL_WRITES}
    found = {name: names[name] for name in (*_OF_MODULES, *loaded) if name in names}
    free = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    cells = [cell if name in written else _kept_cell(cell, names, kept) for name, cell in free]
    made = types.FunctionType(
        function.__code__,
        {name: _kept(value, names, kept) for name, value in found.items()},
        function.__name__,
        function.__defaults__,
        tuple(cells),
    )
    made.__kwdefaults__, made.__dict__ = function.__kwdefaults__, function.__dict__
    made.__qualname__, made.__doc__ = function.__qualname__, function.__doc__
    made.__module__ = function.__module__
    return made


def _kept_cell(cell: types.CellType, module: Any, kept: Kept) -> types.CellType:
    try:
        return types.CellType(_kept(cell.cell_contents, module, kept))
    except ValueError:  # there is nothing in it yet
        return cell


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    """A function's code, and that of functions inside of it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _codes(constant)
