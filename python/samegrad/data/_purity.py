"""Proof, from bytecode, that a function does nothing but compute with its arguments.

Such a function does the same with all elements as with one. The bytecode shows the captured values
that a function reads and writes. Whatever is not known to be harmless is not: a function that is
rejected here runs in Python for each element.
"""

from __future__ import annotations

import builtins
import dis
import functools
import inspect
import types
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from samegrad._base.dtypes import DType
from samegrad._tensor.shape import TensorShape
from samegrad._tensor.spec import TensorSpec
from samegrad._tensor.tensor import Tensor
from samegrad._tensor.text import Text
from samegrad.io._parsing import FixedLenFeature, FixedLenSequenceFeature

# Instructions that take and give values, by what their names begin with: those of Python 3.11 to
# 3.14. What is not among them may do anything: a later Python's, imports, `try`, `with`, changes
# of names and attributes of the outside, and text from values, which shows them.
_COMPUTING = (
    "BINARY_", "UNARY_", "COMPARE_OP", "CONTAINS_OP", "IS_OP", "TO_BOOL", "LOAD_CONST",
    "LOAD_SMALL_INT", "LOAD_COMMON_CONSTANT", "LOAD_ASSERTION_ERROR", "LOAD_FAST", "STORE_FAST",
    "DELETE_FAST", "LOAD_GLOBAL", "LOAD_DEREF", "LOAD_CLOSURE", "STORE_DEREF", "MAKE_CELL",
    "COPY_FREE_VARS", "MAKE_FUNCTION", "SET_FUNCTION_ATTRIBUTE", "LOAD_ATTR", "LOAD_METHOD",
    "CALL", "PRECALL", "KW_NAMES", "PUSH_NULL", "POP_TOP", "POP_ITER", "COPY", "SWAP", "NOP",
    "NOT_TAKEN", "CACHE", "EXTENDED_ARG", "RESUME", "RETURN_", "RAISE_VARARGS", "RERAISE",
    "BUILD_", "LIST_", "SET_ADD", "SET_UPDATE", "MAP_ADD", "DICT_", "UNPACK_", "GET_ITER",
    "GET_LEN", "FOR_ITER", "END_FOR", "YIELD_VALUE", "JUMP_", "POP_JUMP_", "MATCH_", "STORE_SUBSCR",
    "DELETE_SUBSCR", "STORE_SLICE",
)  # fmt: skip
_NOT_COMPUTING = ("LOAD_BUILD_CLASS", "BUILD_STRING", "BUILD_TEMPLATE", "BUILD_INTERPOLATION")
# Those of CALL_INTRINSIC_1 and _2 that do; the others print, import and make types.
_INTRINSICS = frozenset((
    "INTRINSIC_UNARY_POSITIVE", "INTRINSIC_LIST_TO_TUPLE", "INTRINSIC_STOPITERATION_ERROR",
))  # fmt: skip
_LOADS_OF_CELLS = ("LOAD_DEREF", "LOAD_CLOSURE")
_CHANGES = frozenset((
    "append", "extend", "insert", "pop", "popitem", "remove", "clear", "update", "setdefault",
    "sort", "reverse", "fill", "put", "itemset", "setflags", "partition", "byteswap", "at",
    "setfield",
))  # fmt: skip
_BUILTINS = frozenset(map(id, (
    abs, all, any, bool, bytes, complex, dict, divmod, enumerate, float, frozenset, int,
    isinstance, len, list, max, min, pow, range, reversed, round, set, slice, sorted, sum, tuple,
    zip, ValueError, TypeError, AssertionError,
)))  # fmt: skip
# Packages whose functions compute, but for these of them.
_PACKAGES = ("samegrad._ops.", "samegrad.image.", "samegrad.math.", "samegrad.random.",
             "samegrad.strings.", "samegrad.io.", "samegrad.nn.", "samegrad._tensor.",
             "samegrad._control.", "samegrad.linalg.", "samegrad.signal.", "samegrad.bitwise.",
             "samegrad.audio.", "samegrad.sparse.", "samegrad.ragged.")  # fmt: skip
_EFFECTS = ("samegrad._ops.printing", "samegrad._ops.python_calls", "samegrad.io.gfile",
            "samegrad.io._records")  # fmt: skip
_WITH_EFFECTS = frozenset((
    "set_seed", "write_file", "matching_files", "get_global_generator", "set_global_generator",
    "vectorized_map", "executing_eagerly", "inside_function", "get_static_value",
))  # fmt: skip
# Functions of Keras that compute, though one of their branches imports.
_OF_KERAS = frozenset((("keras.src.utils.image_dataset_utils", "_load_image_tf"),))
_NUMPY_EFFECTS = ("save", "load", "from", "gen", "copyto", "put", "place", "fill", "set", "memmap",
                  "info", "show", "print", "err", "buf", "nd", "test", "seterr")  # fmt: skip
_SPECS = (DType, TensorSpec, TensorShape, FixedLenFeature, FixedLenSequenceFeature)
_MOST_NUMBERS = 4096
_MOST_ENTRIES = 256


class NotPureError(Exception):
    """Reason why a function may behave differently with another element."""


class Reads:
    """Captured values that a function has read, to detect changes.

    Args:
        function: The user's.

    Raises:
        NotPureError: It may do more than to compute.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self._cells: list[tuple[types.CellType, Any]] = []
        self._names: list[tuple[Mapping[str, Any], str, Any]] = []
        self._copies: list[tuple[Any, Any]] = []  # of what can be changed in place
        self._seen: set[int] = set()
        self._changes = False
        self._function(function)
        if self._changes and self._copies:
            raise NotPureError("it may change a list, dict or array of the outside")

    def still_hold(self) -> bool:
        """Tell if the function would read the same values now."""
        try:
            for cell, value in self._cells:
                if cell.cell_contents is not value:
                    return False
        except ValueError:  # there is nothing in it any more
            return False
        for names, name, value in self._names:
            if names.get(name) is not value:
                return False
        return not self._copies or all(_equal(now, copy) for now, copy in self._copies)

    def _function(self, function: Any) -> None:
        if id(function) in self._seen:
            return
        self._seen.add(id(function))
        if isinstance(function, functools.partial):
            for value in (*function.args, *function.keywords.values(), function.func):
                self._value(value)
            return
        if type(function) is not types.FunctionType:
            raise NotPureError(f"{type(function).__name__} is not a plain function")
        if _of_library(function):
            return
        for value in (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()):
            self._value(value)
        names = function.__code__.co_freevars
        cells = dict(zip(names, function.__closure__ or (), strict=True))
        self._code(function.__code__, function.__globals__, cells)

    def _code(
        self, code: types.CodeType, names: dict[str, Any], cells: dict[str, types.CellType]
    ) -> None:
        if code.co_flags & (0x80 | 0x200) or (code.co_flags & 0x20 and code.co_name != "<genexpr>"):
            raise NotPureError("it is a generator or a coroutine")
        steps = [step for step in dis.get_instructions(code) if step.opname != "CACHE"]
        for place, step in enumerate(steps):
            if not _only_computes(step) or (
                step.opname == "STORE_DEREF" and step.argval in code.co_freevars
            ):
                raise NotPureError(f"{step.opname} {step.argrepr}")
            self._changes = self._changes or _may_change(step)
            if step.opname == "LOAD_GLOBAL":
                self._named(names, step.argval, _attributes(steps, place))
            elif step.opname in _LOADS_OF_CELLS and step.argval in cells:
                self._cell(cells[step.argval], _attributes(steps, place))
        for constant in code.co_consts:
            if isinstance(constant, types.CodeType):
                self._code(constant, names, cells)
            elif isinstance(constant, tuple) and "out" in constant:
                self._changes = True  # names of arguments: NumPy writes there

    def _named(self, names: dict[str, Any], name: str, attributes: Iterator[str]) -> None:
        if name in names:
            value = names[name]
            self._names.append((names, name, value))
        elif hasattr(builtins, name):
            value = getattr(builtins, name)
            self._names.append((names, name, None))  # nobody has taken the name
        else:
            raise NotPureError(f"{name} is not defined")
        self._attribute(value, attributes)

    def _cell(self, cell: types.CellType, attributes: Iterator[str]) -> None:
        try:
            value = cell.cell_contents
        except ValueError:
            raise NotPureError("a name of the outside has no value yet") from None
        self._cells.append((cell, value))
        self._attribute(value, attributes)

    def _attribute(self, value: Any, attributes: Iterator[str]) -> None:
        """The value that a chain of attributes of modules and records ends with."""
        while isinstance(value, types.ModuleType | types.FunctionType) or _is_record(value):
            name = next(attributes, None)
            if name is None and isinstance(value, types.FunctionType):
                break
            if name is None:
                raise NotPureError(f"{type(value).__name__} {value!r:.80} is passed on")
            owner, value = value, self._own(value, name)
            if isinstance(owner, types.ModuleType) and _is_library(owner.__name__):
                if owner.__name__ == "numpy" and not _computes(name, value):
                    raise NotPureError(f"numpy.{name} may do more than to compute")
            else:
                self._names.append((vars(owner), name, value))
        self._value(value)

    def _own(self, owner: Any, name: str) -> Any:
        if isinstance(owner, types.ModuleType):
            return getattr(owner, name, None)
        looked_up = inspect.getattr_static(type(owner), name, None)  # a property, say
        if name not in vars(owner) or hasattr(type(looked_up), "__set__"):
            raise NotPureError(
                f"{name} is not an attribute of {type(owner).__name__} {owner!r:.80} itself"
            )
        return vars(owner)[name]

    def _value(self, value: Any) -> None:
        """A value that the function may do anything with that does not change it."""
        kind = type(value)
        if _is_constant(value):
            return
        if kind is np.ndarray:
            if value.size > _MOST_NUMBERS or value.dtype.hasobject:
                raise NotPureError("an array of the outside is large")
            self._copies.append((value, value.copy()))
        elif kind in (list, dict):
            entries = list(value.items()) if kind is dict else value
            if len(entries) > _MOST_ENTRIES:
                raise NotPureError(f"a {kind.__name__} of the outside is large")
            for entry in entries:
                self._value(entry)
            self._copies.append((value, kind(value)))
        elif kind in (tuple, frozenset):
            for entry in value:
                self._value(entry)
        elif id(value) in _BUILTINS or _is_numpy(value) or _is_mathematics(value):
            return
        else:
            self._function(value)


def _only_computes(step: dis.Instruction) -> bool:
    """Tell if an instruction only maps values to a value, without side effects."""
    name = step.opname
    if name.startswith("CALL_INTRINSIC"):
        return step.argrepr in _INTRINSICS
    return name.startswith(_COMPUTING) and name not in _NOT_COMPUTING


def _may_change(step: dis.Instruction) -> bool:
    """Tell if an instruction may change a list, dict or array in place."""
    if step.opname in ("LOAD_ATTR", "LOAD_METHOD"):
        return step.argval in _CHANGES or step.argval.startswith("__")
    if step.opname == "BINARY_OP":
        return step.argrepr.endswith("=")
    return step.opname in ("STORE_SUBSCR", "DELETE_SUBSCR", "STORE_SLICE") or (
        step.opname.startswith("INPLACE_")
    )


def _attributes(steps: list[dis.Instruction], place: int) -> Iterator[str]:
    """The attributes that are taken of what an instruction loads, one of the other."""
    for step in steps[place + 1 :]:
        if step.opname not in ("LOAD_ATTR", "LOAD_METHOD"):
            return
        yield step.argval


def _is_constant(value: Any) -> bool:
    if value is None or value is Ellipsis or isinstance(value, _SPECS):
        return True
    kind = type(value)
    if kind is Tensor:
        return not value._symbolic
    return kind in (bool, int, float, complex, str, bytes, range, slice, Text) or isinstance(
        value, np.generic | np.dtype
    )


def _is_record(value: Any) -> bool:
    """Tell if it is a user's object or class that holds constants by name."""
    if isinstance(value, types.SimpleNamespace):
        return True
    kind = value if isinstance(value, type) else type(value)
    if kind.__module__.partition(".")[0] in ("samegrad", "numpy", "builtins", "functools", "types"):
        return False
    looks_up: Any = kind.__getattribute__
    plain = type(kind) is type and looks_up is object.__getattribute__
    if not plain or hasattr(kind, "__getattr__") or not hasattr(value, "__dict__"):
        return False
    return isinstance(value, type) or not callable(value)


def _is_library(module: str) -> bool:
    return module.partition(".")[0] in ("samegrad", "numpy", "math", "os", "posixpath")


def _of_library(function: Any) -> bool:
    """Tell if it is one of samegrad's functions that compute.

    Raises:
        NotPureError: It is another one of them.
    """
    module = str(function.__globals__.get("__name__", ""))
    if module.startswith("samegrad"):
        function = inspect.unwrap(function)  # public names say the public module
        module = str(function.__globals__.get("__name__", ""))
    if not module.startswith("samegrad"):
        of_paths = module == "posixpath" and function.__name__ in ("join", "basename", "dirname")
        return of_paths or (module, function.__name__) in _OF_KERAS
    name = function.__name__
    if (
        (module + ".").startswith(_PACKAGES)
        and not module.startswith(_EFFECTS)
        and name not in _WITH_EFFECTS
        and "enerator" not in name
    ):
        return True
    raise NotPureError(f"{module}.{name} may do more than to compute")


def _computes(name: str, value: Any) -> bool:
    """Tell if NumPy's function of that name neither reads nor writes anything else."""
    if isinstance(value, np.ufunc) or not name.startswith(_NUMPY_EFFECTS):
        return not isinstance(value, types.ModuleType)
    return False


def _is_numpy(value: Any) -> bool:
    if isinstance(value, type):
        return issubclass(value, np.generic)
    kinds = (types.BuiltinFunctionType, types.FunctionType, type(np.concatenate))
    if isinstance(value, np.ufunc):
        return True
    named = isinstance(value, kinds) and value.__module__ == "numpy"
    return named and _computes(value.__name__, value)


def _is_mathematics(value: Any) -> bool:
    return type(value) is types.BuiltinFunctionType and value.__module__ == "math"


def _equal(now: Any, copy: Any) -> bool:
    if type(now) is np.ndarray:
        same = now.shape == copy.shape and now.dtype == copy.dtype
        return bool(same and now.tobytes() == copy.tobytes())
    if len(now) != len(copy):
        return False
    if type(now) is dict:  # their order, too, is what the function may go by
        pairs = zip(now.items(), copy.items(), strict=True)
        return all(a is b and m == n and type(m) is type(n) for (m, a), (n, b) in pairs)
    return all(a is b for a, b in zip(now, copy, strict=True))
