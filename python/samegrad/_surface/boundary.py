"""API wrapper around public names, which raises errors in terms of the call.

A public function may fail with an error of Python, NumPy or the binding about its internals. Then
the wrapper raises samegrad's own error instead: the public name, the argument that breaks its rule,
its value. The search for the argument happens only then, so that a right call pays for nothing but
the wrapper. It happens before the call if an argument is an array so large that a walk over it
would take long.
"""

from __future__ import annotations

import enum
import functools
import importlib
import inspect
import re
import sys
import types
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from samegrad._base.host_read import HostRead
from samegrad._base.shown import did_you_mean, shown
from samegrad._base.tracebacks import is_traceback_filtering_enabled, raising
from samegrad._base.user_files import PACKAGE, is_user_file
from samegrad._surface.argument_rules import NO_VALUE, broken_rule, traced_parts

_OURS = re.compile(r"\[([^\W\d][^\[\]'\",]*|[<>=!]+)\] ")
# Who asks for them is told in their place.
_CONVERSIONS = (
    "RaggedTensor", "convert_to_tensor", "dtype", "segments", "tensor", "Tensor", "shape",
)  # fmt: skip
# Where functions live that compute with tensors: who passes a wrong operand may expect the errors
# that TensorFlow's operations raise.
_COMPUTING = tuple(
    f"samegrad.{part}"
    for part in ("_ops", "_tensor.tensor", "_tensor.given", "_autodiff.variable", "bitwise",
                 "image", "linalg", "lookup", "math", "nn", "random", "sets", "signal", "sparse",
                 "strings")
)  # fmt: skip
# What Python says of a call.
_CALL = re.compile(
    r"(?:[\w<>]+\.)*(?P<name>[\w<>]+)\(\) (?P<rule>(?:missing|got an unexpected|got multiple|takes|"
    r"got some|argument after|keywords must).*)",
    re.DOTALL,
)
# What Python says of `f(*args)` begins with the function, which may be a list: "[1.0]".
_UNPACKING = re.compile(r"\[.*\] argument after \*{1,2} must be", re.DOTALL)
# Elements from which on an array is looked at before the call: a walk over it takes long.
_LARGE = 1 << 22
_TOO_BIG = re.compile("array is too big|Maximum allowed (size|dimension) exceeded")
_INNER_NAMES = {"__init__": "the constructor", "<lambda>": "the function"}
_MAX_LETTERS = 1000
_REFUSALS = (TypeError, ValueError, NotImplementedError)
_MOST_PARTS = 64  # of a list, in which ragged tensors are looked for
_PACKAGES = ("samegrad", "samegrad_doctor")
_OUTSIDE = "__samegrad_outside__"
_WRAPPED = "__samegrad_boundary__"
# Methods that Python calls, of which users meet mistakes.
_SPECIAL = frozenset({
    "__init__", "__new__", "__call__", "__getitem__", "__setitem__", "__iter__", "__len__",
    "__contains__",
    "__add__", "__radd__", "__sub__", "__rsub__", "__mul__", "__rmul__", "__truediv__",
    "__rtruediv__", "__floordiv__", "__rfloordiv__", "__mod__", "__rmod__", "__pow__", "__rpow__",
    "__matmul__", "__rmatmul__", "__and__", "__rand__", "__or__", "__ror__", "__xor__", "__rxor__",
    "__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__", "__neg__", "__abs__", "__invert__",
    "__float__", "__int__", "__bool__", "__index__", "__format__", "__array__", "__dlpack__",
    "__enter__", "__exit__",
})  # fmt: skip
# Of what asks for the value of its operand, the engine says what to use instead.
_VALUES = frozenset({
    ".numpy", ".to_numpy", ".__float__", ".__int__", ".__bool__", ".__index__", ".__array__",
    ".__format__", ".__dlpack__", ".__iter__", ".__len__",
})  # fmt: skip
# Of these, those whose arguments have names.
_NAMED_ARGUMENTS = (".__init__", ".__new__", ".__call__")
# What an error of the inside is called outside; others keep their class.
_KINDS: tuple[tuple[type[Exception], type[Exception]], ...] = (
    (MemoryError, MemoryError),
    (RecursionError, ValueError),
    (AttributeError, TypeError),
    (KeyError, ValueError),
    (IndexError, IndexError),
    (ArithmeticError, ValueError),
    (StopIteration, ValueError),
    (UnicodeError, ValueError),
    (NotImplementedError, NotImplementedError),
    (OSError, OSError),
    (BufferError, BufferError),
    (TypeError, TypeError),
    (ValueError, ValueError),
)


def _is_the_programs(error: BaseException) -> bool:
    """Tell whether user code raised the error, or took part in it."""
    step = error.__traceback__.tb_next if error.__traceback__ else None
    while step is not None:
        if is_user_file(step.tb_frame.f_code.co_filename):
            return True
        step = step.tb_next
    return False


def _seen(
    name: str, function: Callable[..., Any], args: tuple[Any, ...], options: Mapping[str, Any],
    error: Exception,
) -> Exception:  # fmt: skip
    """Return the error that the program sees: this one, or one in terms of its call."""
    caller = sys._getframe(2)
    if caller.f_code.co_filename.startswith(PACKAGE) or _is_the_programs(error):
        return error
    reworded = _reworded(name, function, (args, options), error, caller)
    made = _of_operands(function, reworded or error) or reworded
    made = _of_composed(_name_of(name, args), function, made or error) or made
    if made is None:
        return error
    for note in getattr(error, "__notes__", ()):
        made.add_note(note)
    # It says all that the first one says.
    made.__cause__ = error.__cause__ if is_traceback_filtering_enabled() else error
    return made


def _reworded(
    name: str, function: Callable[..., Any], call: tuple[tuple[Any, ...], Mapping[str, Any]],
    error: Exception, caller: types.FrameType,
) -> Exception | None:  # fmt: skip
    args, options = call
    kind = next((ours for raw, ours in _KINDS if isinstance(error, raw)), None)
    if kind is None or type(error).__module__.startswith("samegrad"):
        return None
    if isinstance(error, RecursionError) and _is_deep(caller):
        return None
    text, who = str(error), _name_of(name, args)
    ours = _OURS.match(text)
    if ours is None or _UNPACKING.match(text):
        return _explained(kind, who, function, (args, options, name.startswith(".")), error)
    if ours[1] in ("Tensor", "Tensor.numpy") and name not in _VALUES:
        broken = _broken(function, args, options) or _of_traced(function, args, options)
        if broken:
            return TypeError(f"[{who}] {broken}")
    if type(error) is not kind:
        return None
    if ours[1] in _CONVERSIONS and ours[1] != who and not who.startswith(f"{ours[1]}."):
        return kind(f"[{who}] {text[ours.end() :]}")
    if len(text) > _MAX_LETTERS:
        return kind(f"{text[: _MAX_LETTERS - 300]} ... {text[-200:]}")
    return None


def _of_operands(function: Callable[..., Any], error: Exception) -> Exception | None:
    """Return the error in the class that TensorFlow also raises for operands that do not fit."""
    if type(error) not in (ValueError, TypeError, IndexError):
        return None
    engine, text = sys.modules.get("samegrad._core"), str(error)
    ours = _OURS.match(text)
    if type(error) is TypeError and ours and ours[1] == "Tensor":  # Python asks for its value
        return None
    of_engine = engine and ours and hasattr(engine.ops, ours[1])
    if not of_engine and not function.__module__.startswith(_COMPUTING):
        return None
    errors = importlib.import_module("samegrad.errors")  # not before the engine
    kinds = {
        ValueError: errors.InvalidArgumentError,
        TypeError: errors.WrongTypeError,
        IndexError: errors.WrongIndexError,
    }
    made: Exception = kinds[type(error)](text)
    return made


def _of_composed(who: str, function: Callable[..., Any], error: Exception) -> Exception | None:
    """Return the error under the public name, if it has that of an operation of the engine.

    An operator keeps the operation's name: `a + b` is `[add]`.
    """
    ours, engine = _OURS.match(str(error)), sys.modules.get("samegrad._core")
    if ours is None or engine is None or not hasattr(engine.ops, ours[1]):
        return None
    rejected = isinstance(error, ValueError | TypeError | IndexError)
    if not rejected or who.endswith("__") or not function.__module__.startswith(_COMPUTING):
        return None
    return type(error)(f"[{who}] {str(error)[ours.end() :]}")


def _is_deep(frame: types.FrameType | None) -> bool:
    """Tell whether user code itself is in a deep recursion."""
    depth = 0
    while frame is not None:
        frame, depth = frame.f_back, depth + 1
    return depth > sys.getrecursionlimit() // 2


def _explained(
    kind: type[Exception], who: str, function: Callable[..., Any],
    call: tuple[tuple[Any, ...], Mapping[str, Any], bool], error: Exception,
) -> Exception:  # fmt: skip
    """Return the error of Python, NumPy or the binding in terms of the call."""
    args, options, is_method = call
    text, given = str(error), _listed(args[is_method:], options)
    try:
        inspect.signature(function).bind(*args, **options)
    except TypeError as mismatch:
        parameters = inspect.signature(function).parameters
        unknown = next((name for name in options if name not in parameters), "")
        near = did_you_mean(unknown, parameters)
        the_call = f"{near} The call is" if near else "the call is"
        return TypeError(f"[{who}] {mismatch}: got {given}; {the_call} {_call(who, function)}.")
    if isinstance(error, MemoryError) or _TOO_BIG.search(text):
        return MemoryError(
            f"[{who}] there is no memory for the result: got {given}; use smaller sizes."
        )
    if isinstance(error, RecursionError):
        return kind(
            f"[{who}] an argument is nested too deep, or contains itself: got {given}; make it "
            "flat."
        )
    if isinstance(error, OSError):
        return _like(error, f"[{who}] {text}: got {given}.")
    broken = _broken(function, args, options)
    if broken:
        return kind(f"[{who}] {broken}")
    wrong_call = _CALL.match(text)
    if wrong_call and isinstance(error, TypeError):
        inner = _INNER_NAMES.get(wrong_call["name"], wrong_call["name"])
        return kind(f"[{who}] {inner} {wrong_call['rule']}: got {given}; see help(samegrad.{who}).")
    if any(callable(value) for value in (*args[is_method:], *options.values())):
        rule = "the function must go with what it is called with"
    else:
        rule = "the arguments must fit each other"
    return kind(
        f"[{who}] {rule} ({' '.join(text.split())[:200]}): got {given}; the call is "
        f"{_call(who, function)}, see help(samegrad.{who})."
    )


def _broken(
    function: Callable[..., Any], args: tuple[Any, ...], options: Mapping[str, Any]
) -> str | None:
    """The rule that the first wrong argument breaks, its value and the remedy."""
    try:
        found = broken_rule(function, inspect.signature(function).bind(*args, **options).arguments)
    except TypeError:
        return None
    return found and f"{found[0]}: got {shown(found[1])}; {found[2]}"


def _of_traced(
    function: Callable[..., Any], args: tuple[Any, ...], options: Mapping[str, Any]
) -> str | None:
    """Words for the last argument that is, or holds, a traced integer."""
    arguments = inspect.signature(function).bind(*args, **options).arguments
    found = [
        (name, traced[-1])
        for name, value in arguments.items()
        if (traced := [x for x in traced_parts(value) if x._rank < 2 and "int" in str(x._dtype)])
    ]
    if not found:
        return None
    name, traced = found[-1]
    return f"{name} must have a value: got {shown(traced)}; {NO_VALUE}."


def _check_large(
    name: str, function: Callable[..., Any], args: tuple[Any, ...], options: Mapping[str, Any]
) -> None:
    """TypeError for an array, too long to be walked over, where something else belongs."""
    for value in (*args, *options.values()):
        if type(value) is np.ndarray and value.size >= _LARGE:
            if broken := _broken(function, args, options):
                raise TypeError(f"[{_name_of(name, args)}] {broken}")
            return


def _name_of(name: str, args: tuple[Any, ...]) -> str:
    """The function's name, or the method's with the class that it was called of."""
    if not name.startswith("."):
        return name
    owner = args[0] if args and isinstance(args[0], type) else type(args[0]) if args else object
    return f"{owner.__name__}{name}".removesuffix(".__init__").removesuffix(".__new__")


def _call(who: str, function: Callable[..., Any]) -> str:
    """The call as one writes it: names and defaults."""
    signature = inspect.signature(function)
    parameters = [
        parameter.replace(annotation=inspect.Parameter.empty)
        for name, parameter in signature.parameters.items()
        if name not in ("self", "cls")
    ]
    plain = signature.replace(parameters=parameters, return_annotation=inspect.Signature.empty)
    return f"{who}{plain}"


def _like(error: OSError, text: str) -> Exception:
    made = type(error)(text)
    made.errno, made.filename = error.errno, error.filename
    return made


def _listed(args: tuple[Any, ...], options: Mapping[str, Any]) -> str:
    each = [*(shown(a, 60) for a in args), *(f"{k}={shown(v, 60)}" for k, v in options.items())]
    return ", ".join(each[:6]) + (", ..." if len(each) > 6 else "") if each else "no arguments"


def _rule_of_ragged(
    path: str, function: Callable[..., Any], args: tuple[Any, ...], options: Mapping[str, Any],
    error: Exception,
) -> Callable[..., Any] | None:  # fmt: skip
    """Return the function's rule for ragged tensors, if there are some among rejected arguments.

    The search follows the rejection, so that calls without them pay nothing.
    """
    ragged = sys.modules.get("samegrad._tensor.ragged_spec")
    if ragged is None or not isinstance(error, _REFUSALS):
        return None
    if not _has_one(ragged.KINDS, (args, options), 4):
        return None
    rules = importlib.import_module("samegrad.ragged._rules")
    rule = rules.RULES.get(path)
    return None if rule is None else functools.partial(rule, function)


def _has_one(kinds: tuple[type, ...], value: Any, depth: int) -> bool:
    """Tell whether there is an instance among the parts of tuples, lists and dicts."""
    if isinstance(value, dict):
        value = [*value.values()]
    # A complex tensor is a tuple of its parts, but is indexed as a tensor.
    if isinstance(value, tuple | list) and depth and not hasattr(value, "_dtype"):
        return any(_has_one(kinds, part, depth - 1) for part in value[:_MOST_PARTS])
    return isinstance(value, kinds)


def _guarded(name: str, function: Callable[..., Any], path: str = "") -> Callable[..., Any]:
    seen = functools.partial(_seen, name, function)
    array = np.ndarray
    check_large = functools.partial(_check_large, name, function)

    def call(*args: Any, **options: Any) -> Any:
        try:
            if array in map(type, args) or (options and array in map(type, options.values())):
                check_large(args, options)
            return function(*args, **options)
        except HostRead as read:
            return read.calls.call(read, made, args, options)
        except Exception as error:
            rule = _rule_of_ragged(path, function, args, options, error)
            if rule is None:
                with raising:
                    raise seen(args, options, error)  # noqa: B904  # its cause is set
        try:
            return rule(*args, **options)
        except Exception as error:
            with raising:
                raise seen(args, options, error)  # noqa: B904  # its cause is set

    def unary(self: Any) -> Any:
        try:
            return function(self)
        except Exception as error:
            with raising:
                raise seen((self,), {}, error)  # noqa: B904  # its cause is set

    def binary(self: Any, other: Any) -> Any:
        try:
            return function(self, other)
        except Exception as error:
            with raising:
                raise seen((self, other), {}, error)  # noqa: B904  # its cause is set

    forms: dict[int, Callable[..., Any]] = {1: unary, 2: binary}
    form = forms.get(_arity(name, function), call)
    made = functools.wraps(function)(form)
    setattr(made, _WRAPPED, True)
    return made


def _arity(name: str, function: Any) -> int:
    """Return the number of operands of an operator, self included; 0 for other functions."""
    code = function.__code__
    free = code.co_kwonlyargcount or code.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS)
    if not name.startswith(".__") or name in _NAMED_ARGUMENTS or function.__defaults__ or free:
        return 0
    return int(code.co_argcount)


def _guard_class(cls: type) -> None:
    if issubclass(cls, enum.Enum):  # Python makes its members
        return
    for part in cls.__mro__:
        if part.__module__.partition(".")[0] in _PACKAGES:
            _guard_own(part, cls.__name__ if part.__name__.startswith("_") else part.__name__)


def _guard_own(cls: type, public: str) -> None:
    if _WRAPPED in vars(cls):
        return
    setattr(cls, _WRAPPED, True)
    for name, part in list(vars(cls).items()):
        if name.startswith("_") and name not in _SPECIAL:
            continue
        if hasattr(type(part), "in_python"):  # an operator of the engine, which asks Python
            made: Any = _guarded(f".{name}", part.in_python)
            made.__qualname__ = f"{public}.{name}"
            part.in_python = made
            continue
        kind: Any = type(part) if isinstance(part, staticmethod | classmethod) else None
        function = part.__func__ if kind else part
        if isinstance(function, types.FunctionType) and not hasattr(function, _WRAPPED):
            if getattr(function, "__isabstractmethod__", False):
                continue
            made = _guarded(f".{name}", function)
            made.__qualname__ = f"{public}.{name}"
            setattr(cls, name, kind(made) if kind else made)


def guarded(module: str, name: str, thing: Any) -> Any:
    """Wrap a public function or class of a module, so that it raises samegrad's own errors.

    The module's own functions call each other without the wrapper.
    """
    home: str = getattr(thing, "__module__", None) or ""
    if home.partition(".")[0] not in _PACKAGES:
        return thing
    if isinstance(thing, type):
        _guard_class(thing)
    elif isinstance(thing, types.MethodType) and isinstance(thing.__self__, type):
        _guard_class(thing.__self__)
        return getattr(thing.__self__, thing.__name__)
    elif isinstance(thing, types.FunctionType) and not hasattr(thing, _WRAPPED):
        if hasattr(thing, _OUTSIDE):  # under another name
            return getattr(thing, _OUTSIDE)
        place = module.removesuffix("._api")
        made: Any = _guarded(name, thing, f"{place}.{name}".removeprefix("samegrad."))
        made.__module__ = place  # where it is found, by pickle too
        made.__name__ = made.__qualname__ = name
        setattr(thing, _OUTSIDE, made)
        return made
    return thing


def inside(function: Any) -> Any:
    """Return the function behind a public name, for samegrad itself.

    Example:
        >>> import samegrad
        >>> inside(samegrad.range).__name__
        'range_'
    """
    return function.__wrapped__ if hasattr(function, _WRAPPED) else function


def guard(module: str) -> None:
    """Wrap a module's public functions and classes, and list `__all__` as its `dir`.

    The last line of a public module, once all names are there.
    """
    space = vars(sys.modules[module])
    names: list[str] = space["__all__"]
    for name in names:
        if name in space:
            space[name] = guarded(module, name, space[name])
    space["__dir__"] = lambda: sorted(names)
