"""Functions of real tensors that take complex ones as well."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from samegrad._tensor.complex_tensor import (
    ComplexTensor,
    complex_pair,
    computed,
    is_complex,
    of_each_part,
    product_of,
    to_complex,
)
from samegrad._tensor.tensor import Tensor

Function = TypeVar("Function", bound=Callable[..., Any])
Rule = Callable[..., Any]


def also_complex(function: Function, rule: Rule, operands: int = 1) -> Function:
    """Return the function, and of complex operands the rule.

    Args:
        function: Of real tensors.
        rule: Gets the operands as they are given, and the other arguments by name but for `name`.
        operands: How many of the first arguments may be complex.
    """
    names = list(inspect.signature(function).parameters)
    if names == ["x", "name"] and operands == 1:
        return in_place_of(function)(_of_one(function, rule))
    if names == ["x", "y", "name"] and operands == 2:
        return in_place_of(function)(_of_two(function, rule))
    return in_place_of(function)(_of_any(function, rule, operands))


def _may_be_complex(value: Any) -> bool:
    """Tell whether a value is complex; tensors and variables answer fast."""
    kind = type(value)
    return kind is not Tensor and not hasattr(kind, "_as_tensor") and is_complex(value)


# Functions of one and two operands are called so often that a loop over names would be felt.


def _of_one(function: Callable[..., Any], rule: Rule) -> Callable[..., Any]:
    def either(x: Any, name: Any = None) -> Any:
        if type(x) is Tensor or not _may_be_complex(x):
            return function(x)
        return rule(x)

    return either


def _of_two(function: Callable[..., Any], rule: Rule) -> Callable[..., Any]:
    def either(x: Any, y: Any, name: Any = None) -> Any:
        if type(x) is Tensor and type(y) is Tensor:
            return function(x, y)
        return rule(x, y) if _may_be_complex(x) or _may_be_complex(y) else function(x, y)

    return either


def _of_any(function: Callable[..., Any], rule: Rule, operands: int) -> Callable[..., Any]:
    signature = inspect.signature(function)
    names = list(signature.parameters)[:operands]

    def either(*args: Any, **options: Any) -> Any:
        for place, name in enumerate(names):
            given = args[place] if place < len(args) else options.get(name)
            if _may_be_complex(given):
                break
        else:
            return function(*args, **options)
        bound = signature.bind(*args, **options).arguments
        bound.pop("name", None)
        return rule(*[bound.pop(name) for name in names if name in bound], **bound)

    return either


def in_place_of(function: Function) -> Callable[[Callable[..., Any]], Function]:
    """Return the name, signature and words of another function."""

    def named(made: Callable[..., Any]) -> Function:
        functools.update_wrapper(made, function)
        vars(made).pop("__samegrad_outside__", None)  # that of the other one
        return made  # type: ignore[return-value]

    return named


def linear(function: Function) -> Function:
    """Return a function that moves, picks or adds elements, which it does to each part."""
    who = _name(function)

    def rule(value: Any, **options: Any) -> Any:
        return of_each_part(lambda part: function(part, **options), to_complex(value, who))

    return also_complex(function, rule)


def padded(function: Function) -> Function:
    """Return the same of a function with another argument, the number `padding_value`."""
    who = _name(function)

    def rule(value: Any, padding_value: Any = 0, **options: Any) -> Any:
        x = to_complex(value, who)
        padding = to_complex(padding_value, who, x.dtype)
        parts = zip(x.parts, padding.parts, strict=True)
        return ComplexTensor(*(function(part, padding_value=p, **options) for part, p in parts))

    return also_complex(function, rule)


def linear_to_list(function: Function) -> Function:
    """Return the same of a function that gives several tensors."""
    who = _name(function)

    def rule(value: Any, **options: Any) -> list[ComplexTensor]:
        parts = (function(part, **options) for part in to_complex(value, who).parts)
        return [ComplexTensor(*each) for each in zip(*parts, strict=True)]

    return also_complex(function, rule)


def linear_of_list(function: Function) -> Function:
    """Return the same of a function that joins several tensors."""
    who = _name(function)

    def rule(values: Any, **options: Any) -> Any:
        if isinstance(values, ComplexTensor):  # its rows
            values = list(values)
        return of_each_part(
            lambda part: function(part, **options), _parts_of_list(all_complex(values, who))
        )

    return also_complex(function, rule)


def _parts_of_list(values: Sequence[ComplexTensor]) -> ComplexTensor:
    return ComplexTensor([value.real for value in values], [value.imag for value in values])


def all_complex(values: Sequence[Any], who: str) -> list[ComplexTensor]:
    """Convert operands to one dtype; numbers take that of the first complex tensor."""
    tensors = [value for value in values if isinstance(value, ComplexTensor)]
    kind = tensors[0].dtype if tensors else None
    return [to_complex(value, who, kind) for value in values]


def bilinear(function: Function) -> Function:
    """Return a product of two operands."""
    who = _name(function)

    def rule(a: Any, b: Any, **options: Any) -> Any:
        return product_of(lambda x, y: function(x, y, **options), *complex_pair(a, b, who))

    return also_complex(function, rule, 2)


def elementwise(function: Function, rule: Rule) -> Function:
    """Return a function of one operand; the rule makes a pair of a pair."""
    who = _name(function)
    return also_complex(function, lambda x: computed(rule, to_complex(x, who)))


def elementwise_to_real(function: Function, rule: Rule) -> Function:
    """Return a function of one operand; the rule makes a real tensor of a pair."""
    who = _name(function)
    return also_complex(function, lambda x: rule(to_complex(x, who).parts))


def elementwise_of_two(function: Function, rule: Rule) -> Function:
    """Return a function of two operands; the rule makes a pair of two pairs."""
    who = _name(function)
    return also_complex(function, lambda x, y: computed(rule, *complex_pair(x, y, who)), 2)


def _name(function: Callable[..., Any]) -> str:
    return function.__name__.rstrip("_")
