"""Python's functions that a rewritten function calls in another form, where tensors are traced."""

from __future__ import annotations

import builtins
import sys
from collections.abc import Callable
from typing import Any

from samegrad import math
from samegrad._base.tree import flatten
from samegrad._context.user_code import converted
from samegrad._control.control_flow import is_traced
from samegrad._ops.arrays import cast
from samegrad._ops.creation import range_
from samegrad._ops.printing import is_standard, print_
from samegrad._tensor.sizes import has_no_value
from samegrad._tensor.tensor import convert_to_tensor
from samegrad.autograph._sequences import Enumerated, Range, Zipped, sequence_of


def _any_traced(*values: Any) -> bool:
    return any(is_traced(value) for value in values)


def _range(*bounds: Any) -> Any:
    return Range(*bounds) if _any_traced(*bounds) else range(*bounds)


def _tensor_range(start: Any, limit: Any = None, delta: Any = 1, *args: Any, **kwargs: Any) -> Any:
    if _any_traced(start, limit, delta) and not args and not kwargs:
        return Range(start, limit, delta)
    return range_(start, limit, delta, *args, **kwargs)


def _number(python: Callable[..., Any], dtype: str) -> Callable[..., Any]:
    """Return `int` or `float`, which cast a tensor without a value, as in TensorFlow."""

    def made(*args: Any, **kwargs: Any) -> Any:
        value: Any = args[0] if args else None
        if getattr(value, "_is_variable", False):
            value = convert_to_tensor(value)
        # Python asks for sizes as numbers, and for values where it may look at them.
        if has_no_value(value) and not value._looks:
            return cast(value, dtype)
        return python(*args, **kwargs)

    return made


def _enumerate(iterable: Any, start: Any = 0) -> Any:
    sequence = sequence_of(iterable)
    return enumerate(iterable, start) if sequence is None else Enumerated(sequence, start)


def _zip(*iterables: Any, **options: Any) -> Any:
    sequences = [sequence for i in iterables if (sequence := sequence_of(i)) is not None]
    if not sequences or len(sequences) < len(iterables):
        return zip(*iterables, **options)  # noqa: B905
    return Zipped(sequences)


def _calling(python: Callable[..., Any]) -> Callable[..., Any]:
    def call(function: Any, *iterables: Any) -> Any:
        return python(converted(function), *iterables)

    return call


def _print(
    *values: Any, sep: str | None = None, end: str | None = None, file: Any = None, **options: Any
) -> None:
    if not (_any_traced(*flatten(list(values))) and is_standard(file)):
        print(*values, sep=sep, end=end, file=file, **options)
        return
    stream = sys.stdout if file is None else file
    print_(
        *values, sep=" " if sep is None else sep, end="\n" if end is None else end,
        output_stream=stream,
    )  # fmt: skip


def _extreme(
    python: Callable[..., Any], pair: Callable[..., Any], reduce: Callable[..., Any]
) -> Callable[..., Any]:
    def choose(*args: Any, **kwargs: Any) -> Any:
        values = args if len(args) > 1 else flatten(args[0]) if args else []
        if kwargs or not _any_traced(*values):
            return python(*args, **kwargs)
        result = values[0]
        for value in values[1:]:
            result = pair(result, value)
        return reduce(result, 0) if len(values) == 1 and args[0] is result else result

    return choose


def _reduced(python: Callable[..., Any], reduce: Callable[..., Any]) -> Callable[..., Any]:
    def decide(iterable: Any) -> Any:
        return reduce(iterable) if is_traced(iterable) else python(iterable)

    return decide


REPLACED: dict[Any, Callable[..., Any]] = {
    builtins.range: _range,
    builtins.int: _number(int, "int32"),
    builtins.float: _number(float, "float32"),
    range_: _tensor_range,
    builtins.enumerate: _enumerate,
    builtins.zip: _zip,
    builtins.map: _calling(map),
    builtins.filter: _calling(filter),
    builtins.print: _print,
    builtins.max: _extreme(max, math.maximum, math.reduce_max),
    builtins.min: _extreme(min, math.minimum, math.reduce_min),
    builtins.all: _reduced(all, math.reduce_all),
    builtins.any: _reduced(any, math.reduce_any),
}
