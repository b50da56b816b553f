"""Python's control flow in functions that become steps.

Inside `samegrad.function`, `if`, `while`, `for`, `and`, `or`, `not`, comparisons in a chain,
`a if b else c`, `assert`, `break`, `continue` and `return` follow Python as long as their
conditions have values. Where a condition, or what a loop goes over, is a tensor that gets its value
when the step runs, they become part of the step. Functions that the program calls are treated
alike; those of samegrad, Python and installed libraries stay as they are.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from samegrad._base.shown import shown
from samegrad._base.tracebacks import keep_user_frames
from samegrad._context import state as _context
from samegrad._context.user_code import set_converter
from samegrad._surface.boundary import guard
from samegrad._surface.missing_names import getattr_of
from samegrad.autograph import _operators, experimental
from samegrad.autograph._convert import convert, set_operators
from samegrad.autograph._rewrite import rewrite
from samegrad.autograph._source import NoSourceError

# The two need each other: rewritten functions call operators, which rewrite what they are given.
set_operators(_operators)
set_converter(convert)


def to_graph(
    entity: Callable[..., Any], recursive: bool = True, experimental_optional_features: Any = None
) -> Callable[..., Any]:
    """Convert a function as `samegrad.function` does when it traces it.

    Args:
        entity: Function or method.
        recursive: If True, convert the functions that it calls as well.
        experimental_optional_features: Ignored.

    Returns:
        Function that does the same; with traced tensors its control flow is traced.

    Example:
        >>> to_graph(lambda x: 1 if x > 0 else 2)(3)
        1
    """
    converted = convert(entity)

    @functools.wraps(entity)
    def graph(*args: Any, **kwargs: Any) -> Any:
        try:
            with _context.changed(converting=recursive):
                return converted(*args, **kwargs)
        except Exception as error:
            keep_user_frames(error)
            raise

    return graph


def to_code(
    entity: Callable[..., Any], recursive: bool = True, experimental_optional_features: Any = None
) -> str:
    """Return the source code of a converted function.

    Args:
        entity: Function or method.
        recursive: Ignored.
        experimental_optional_features: Ignored.

    Returns:
        Python code; `ag__` is samegrad's runtime.

    Raises:
        ValueError: The function's source code cannot be found, or is of a kind that is not
            converted.

    Example:
        >>> import fractions
        >>> "ag__.if_stmt" in to_code(fractions.Fraction.limit_denominator)
        True
    """
    function: Any = getattr(entity, "__wrapped__", entity)
    function = getattr(function, "__func__", function)
    if not hasattr(function, "__code__"):
        raise ValueError(f"[to_code] a Python function is needed: got {shown(entity)}.")
    try:
        factory: Any = rewrite(function).body[-1]
    except (NoSourceError, AttributeError) as error:
        raise ValueError(f"[to_code] {entity!r:.80} cannot be rewritten: {error}.") from error
    definition = factory.body[0]
    definition.name = function.__name__.strip("<>")
    return ast.unparse(definition)


__all__ = ["experimental", "to_code", "to_graph"]

if not TYPE_CHECKING:
    __getattr__ = getattr_of(__name__)
guard(__name__)
