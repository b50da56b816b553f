"""Search for the argument that breaks its parameter's rule, after a call has failed."""

from __future__ import annotations

import inspect
import operator
import os
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from samegrad._base.dtypes import NAMES, as_dtype
from samegrad._base.shown import did_you_mean

_MIN, _MAX = -(2**63), 2**63 - 1
_MAX_AXES = 1 << 10  # more than any array has
Rule = tuple[Callable[[Any], bool], str, str]
# What to do where a traced tensor should be a size or another number of Python.
NO_VALUE = (
    "it has a value only when the step runs: pass an int, or a size such as x.shape[0], or compute "
    "with the largest size and mask the rest (see sequence_mask)"
)
_conversions: list[Callable[[Any], Any]] = []


def set_conversion(convert: Callable[[Any], Any]) -> None:
    """Set the function that tells whether a value becomes a tensor, once the engine is loaded."""
    _conversions[:] = [convert]


def _is_whole(value: Any) -> bool:
    if isinstance(value, bool | np.bool_):
        return False
    if not hasattr(type(value), "__index__") or _is_array(value):
        return False
    if isinstance(value, int | np.integer):
        return _MIN <= int(value) <= _MAX
    return getattr(value, "ndim", 0) == 0 and _has_index(value)


def _has_index(value: Any) -> bool:
    try:
        operator.index(value)
    except Exception:
        return False
    return True


def _is_array(value: Any) -> bool:
    return isinstance(value, np.ndarray) and (value.ndim > 0 or value.dtype.kind not in "iu")


def _is_number(value: Any) -> bool:
    if isinstance(value, bool | int | float | np.number | np.bool_):
        return not isinstance(value, int) or abs(value) < 10**300
    if hasattr(value, "_dtype"):
        return bool(value._rank == 0)
    if isinstance(value, np.ndarray):
        return value.ndim == 0 and value.dtype.kind in "fiub"
    return hasattr(value, "_as_tensor") and not getattr(value, "_is_per_replica", False)


def _is_sequence(value: Any) -> bool:
    return isinstance(value, Iterable) and not isinstance(value, str | bytes)


def _are_whole(value: Any) -> bool:
    if _is_whole(value):
        return True
    if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
        return False
    if hasattr(value, "_dtype"):
        return "int" in str(value._dtype) and bool(value._rank < 2)  # type: ignore[attr-defined]
    if isinstance(value, np.ndarray):
        return value.dtype.kind in "iu" and value.ndim < 2 and value.size <= _MAX_AXES
    return isinstance(value, list | tuple | range) and all(map(_is_whole, value))


def _are_sizes(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return all(size is None or _is_whole(size) for size in value)
    return _are_whole(value)


def _is_shape(value: Any) -> bool:
    if not isinstance(value, list | tuple | np.ndarray):
        return False
    if isinstance(value, np.ndarray) and not _are_whole(value):
        return False
    return all(size is None or (_is_whole(size) and _not_negative(size)) for size in value)


def _not_negative(size: Any) -> bool:
    return not isinstance(size, int | np.integer) or bool(size >= 0)


def _are_shapes(value: Any) -> bool:
    if isinstance(value, Mapping):
        return all(map(_are_shapes, value.values()))
    if not isinstance(value, list | tuple):
        return False
    return _is_shape(value) or all(map(_are_shapes, value))


def _parts_of(value: Any) -> Iterable[Any]:
    """Return the parts of a value that can be inspected without consuming it."""
    if hasattr(value, "_dtype"):
        return [value]
    if isinstance(value, np.ndarray):  # its parts are alike
        return list(value[:1]) if value.ndim else []
    whole = isinstance(value, list | tuple | set | frozenset | Mapping)
    return list(value) if whole else []


def _are_pairs(value: Any) -> bool:
    return _is_sequence(value) and all(
        isinstance(pair, list | tuple) and len(pair) == 2 for pair in _parts_of(value)
    )


def _are_options(value: Any) -> bool:
    return isinstance(value, Mapping) and all(isinstance(name, str) for name in value)


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.encode() or True)


def _is_path(value: Any) -> bool:
    text = os.fspath(value)
    return isinstance(text, str) and "\0" not in text and len(os.fsencode(text)) < 4096


def _is_tensor(value: Any) -> bool:
    if isinstance(value, np.ndarray):
        return _is_dtype(value.dtype)
    try:
        if not _conversions:  # without the engine
            return _is_dtype(np.asarray(value).dtype)
        _conversions[0](value)
    except Exception:
        return False
    return True


def _is_dtype(value: Any) -> bool:
    try:
        as_dtype(value)
    except Exception:
        return False
    return True


_WHOLE: Rule = (_is_whole, "an integer of 64 bits", "pass an int")
_NUMBER: Rule = (_is_number, "a number", "pass a float or an int")
_NUMBERS: Rule = (_is_tensor, "a number, a list of numbers, an array or a tensor", "convert it")
_SEQUENCE: Rule = (_is_sequence, "a list or another sequence", "put it into a list")
_LISTED: Rule = (
    lambda value: _is_sequence(value) and hasattr(value, "__len__"),
    "a list or another sequence", "put it into a list",
)  # fmt: skip
_ARGUMENTS: Rule = (
    lambda value: _is_sequence(value) and not isinstance(value, np.ndarray),
    "a tuple of what the function takes", "put it into a tuple",
)  # fmt: skip
_MAPPING: Rule = (lambda value: isinstance(value, Mapping), "a dict", "pass a dict")
_CALLABLE: Rule = (callable, "a function", "pass something that can be called")
_SIZES: Rule = (_are_sizes, "integers of 64 bits", "pass a tuple of ints")
_PATH: Rule = (_is_path, "a path that the system can have", "pass a str or a Path")
_SHAPES: Rule = (_are_shapes, "a shape, or a list or dict of shapes", "pass a tuple of sizes")
_CONFIG: Rule = (_are_options, "a dict whose keys are strings", "see get_config")
_SHAPE: Rule = (_is_shape, "a tuple of integers that are not negative", "pass one")
_PAIRS: Rule = (_are_pairs, "pairs of a gradient and a variable", "zip the two lists")
_AXES: Rule = (lambda v: v is None or _are_whole(v), "integers", "pass an int or several")

_DTYPE: Rule = (_is_dtype, "a dtype such as 'float32'", "see samegrad.as_dtype")

# By what a parameter is annotated as.
_BY_ANNOTATION: dict[str, Rule] = {
    "None": (lambda value: value is None, "None", "leave it out"),
    "int": _WHOLE,
    "float": _NUMBER,
    "bool": (lambda v: isinstance(v, bool | np.bool_), "True or False", "pass a bool"),
    "str": (_is_text, "a string of Unicode characters", "pass a str"),
    "os.PathLike[str]": (lambda v: hasattr(v, "__fspath__"), "a path", "pass a Path"),
    "str | os.PathLike[str]": _PATH,
    "TensorLike": _NUMBERS,
    "npt.ArrayLike": _NUMBERS,
    "DTypeLike": _DTYPE,
    "dict[str, Any]": _CONFIG,
    "Mapping[str, Any]": _CONFIG,
    "Mapping": _MAPPING,
    "dict": _MAPPING,
    "Callable": _CALLABLE,
    "Sequence[int]": _SHAPE,
    "Sequence[int | None]": _SHAPE,
    "Iterable[int | None]": _SHAPE,
    "Shape": _SHAPE,
    "Sizes": _SIZES,
    "Sequence": _LISTED,
    "Iterable": _SEQUENCE,
    "tuple": _SEQUENCE,
}
# By its name, where any type may be right.
_BY_NAME: dict[str, Rule] = {
    "shape": _SIZES, "input_shape": _SHAPES, "dims": _SIZES, "perm": _AXES, "axis": _AXES,
    "axes": _AXES, "num": _WHOLE, "config": _CONFIG, "values": _SEQUENCE,
    "grads_and_vars": _PAIRS, "begin": _SIZES, "size": _SIZES, "multiples": _SIZES,
    "num_rows": _WHOLE, "paddings": _SEQUENCE, "fn": _CALLABLE, "repeats": _WHOLE,
    "depth": _WHOLE, "value_destination_pairs": _PAIRS, "branch_fns": _SEQUENCE,
    "tape": (lambda v: hasattr(v, "gradient"), "a GradientTape", "use the one of the loss"),
    "output_stream": (lambda v: hasattr(v, "write"), "a stream", "pass sys.stdout"),
    "dtype": _DTYPE,
    "start": _NUMBER, "limit": _NUMBER, "delta": _NUMBER,
    "devices": _LISTED, "pred_fn_pairs": _SEQUENCE, "variables": _SEQUENCE,
    "weights": _SEQUENCE, "args": _ARGUMENTS,
}  # fmt: skip


def _alternatives(annotation: str) -> list[str]:
    """Return the parts of "int | Sequence[int | None]" at the top."""
    parts, depth, start = [], 0, 0
    for place, letter in enumerate(annotation):
        depth += (letter == "[") - (letter == "]")
        if letter == "|" and depth == 0:
            parts.append(annotation[start:place])
            start = place + 1
    return [part.strip() for part in (*parts, annotation[start:])]


def _each(several: Rule, rule: Rule) -> Rule:
    """Several, each of which keeps a rule."""

    def holds(value: Any) -> bool:
        return several[0](value) and all(map(rule[0], _parts_of(value)))

    return holds, f"a sequence, each {rule[1]}", rule[2]


# Classes that modules import for their types alone.
_CLASSES = frozenset({"Dataset", "Optimizer", "Strategy", "Tensor", "Variable"})


def _rule(part: str, names: Mapping[str, Any]) -> Rule | None:
    if part.startswith("Iterable[tuple["):
        return _PAIRS
    if part in _BY_ANNOTATION:
        return _BY_ANNOTATION[part]
    listed = re.fullmatch(r"(Sequence|Iterable|list)\[([\w.]+)\]", part)
    if listed:
        several = _SEQUENCE if listed[1] == "Iterable" else _LISTED
        rule = _rule(listed[2], names)
        return several if rule is None else _each(several, rule)
    if part.partition("[")[0] in _BY_ANNOTATION:
        return _BY_ANNOTATION[part.partition("[")[0]]
    name = part.rpartition(".")[2]
    kind = names.get(name)
    if name not in _CLASSES and (kind is Any or not isinstance(kind, type)):  # Any is a class
        return None
    article = "an" if name[0] in "AEIO" else "a"
    return (
        lambda value: any(cls.__name__ == name for cls in type(value).__mro__),
        f"{article} {name}", f"make {article} {name}",
    )  # fmt: skip


def _rules(parameter: inspect.Parameter, names: Mapping[str, Any]) -> list[Rule]:
    """Return the alternative rules of a parameter; an empty list where anything may be right."""
    annotation = parameter.annotation
    named = _BY_NAME.get(parameter.name)
    if named and (annotation in (inspect.Parameter.empty, Any) or "Any" in str(annotation)):
        return [named]
    if annotation in (inspect.Parameter.empty, Any, "Any"):
        return []
    text = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", "Any")
    if text in _BY_ANNOTATION:
        return [_BY_ANNOTATION[text]]
    rules = [_rule(part, names) for part in _alternatives(text)]
    return [] if None in rules else [rule for rule in rules if rule is not None]


def broken_rule(
    function: Callable[..., Any], arguments: Mapping[str, Any]
) -> tuple[str, Any, str] | None:
    """The first argument that is not what its parameter takes: rule, value and last sentence.

    Example:
        >>> def f(axis: int) -> None: ...
        >>> broken_rule(f, {"axis": "x"})
        ('axis must be an integer of 64 bits', 'x', 'pass an int.')
    """
    signature = inspect.signature(function)
    names = getattr(inspect.unwrap(function), "__globals__", {})
    for name, value in arguments.items():
        parameter = signature.parameters[name]
        rules = _rules(parameter, names)
        several = parameter.kind is inspect.Parameter.VAR_POSITIONAL
        if parameter.kind is inspect.Parameter.VAR_KEYWORD or not rules:
            continue
        if not several and value is parameter.default:
            continue
        for one in value if several else (value,):
            if not any(_fits(rule, one) for rule in rules):
                wanted = " or ".join(words for _, words, _ in rules)
                return f"{name} must be {wanted}", one, _remedy(rules, one)
    return None


def _remedy(rules: list[Rule], value: Any) -> str:
    if _DTYPE in rules and type(value) is str and (near := did_you_mean(value, NAMES)):
        return near
    return f"{NO_VALUE if traced_parts(value) else rules[0][2]}."


def traced_parts(value: Any, depth: int = 3) -> list[Any]:
    """Return the traced tensors of a value, and of lists, tuples and slices in it.

    Example:
        >>> traced_parts([1, "x"])
        []
    """
    if isinstance(value, slice):
        value = [value.start, value.stop, value.step]
    if isinstance(value, list | tuple) and depth and not hasattr(value, "_dtype"):
        return [found for part in value[:64] for found in traced_parts(part, depth - 1)]
    is_traced = getattr(value, "_made", False) is True and value._symbolic
    return [value] if is_traced else []


def _fits(rule: Rule, value: Any) -> bool:
    try:
        return rule[0](value)
    except Exception:
        return False
