"""`tf.debugging.assert_*`: what must hold of tensors, in eager code and in every step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from samegrad import _core, math
from samegrad._base.shown import shown
from samegrad._control.control_flow import is_traced, require
from samegrad._tensor.tensor import Tensor, TensorLike, convert_to_tensor


def prefixed(message: str | None) -> str:
    """Return the beginning of an error's message, if the user gave one."""
    return f"{message}; " if message else ""


def require_all(
    op_name: str,
    holds: Tensor,
    rule: str,
    values: dict[str, Any],
    message: str | None,
    remedy: str = "correct the values, or show them with tf.print",
) -> None:
    """Raise, or let the step raise, unless all elements are true.

    Args:
        op_name: The function, for the message.
        holds: The condition of each element.
        rule: The condition in words.
        values: The compared tensors by name; each broadcasts to the shape of `holds`.
        message: The beginning of the error's message, if any.
        remedy: The end of the error's message.
    """

    def text() -> str:
        found = _operands(values) if is_traced(holds) else _first_broken(holds.numpy(), values)
        return f"[{op_name}] {prefixed(message)}{rule}: got {found}; {remedy}."

    require(math.reduce_all(holds), text)


def _first_broken(holds: Any, values: dict[str, Any]) -> str:
    """Return the first element that breaks the rule, and the number of them."""
    broken = np.flatnonzero(~holds)
    index = tuple(int(i) for i in np.unravel_index(broken[0], holds.shape))
    found = [
        f"{name} = {np.broadcast_to(value.numpy(), holds.shape)[index]!s:.80}"
        for name, value in values.items()
    ]
    return (
        f"{', '.join(found)} at index {index}, with {broken.size} of {holds.size} elements against "
        "the rule"
    )


def _operands(values: dict[str, Any]) -> str:
    return ", ".join(f"{name} = {_elements(value)}" for name, value in values.items())


def _elements(value: Any) -> str:
    """Return a value as a message shows it, a tensor by its first and last elements."""
    if not isinstance(value, Tensor) or is_traced(value):
        return shown(value)
    text = np.array2string(value.numpy(), threshold=6, edgeitems=3, separator=", ")
    return f"{' '.join(text.split()):.200}"


def Assert(  # noqa: N802  # TensorFlow's name
    condition: TensorLike, data: Any, summarize: int | None = None, name: str | None = None
) -> None:
    """Raise unless a condition is true; in a traced function, after the step.

    Args:
        condition: A bool scalar.
        data: A list of values for the error's message.
        summarize: Ignored.
        name: Ignored.

    Raises:
        InvalidArgumentError: The condition is false.
        ValueError: The condition is not a scalar.

    Example:
        >>> Assert(True, ["never shown"])
    """
    shape = () if isinstance(condition, bool) else convert_to_tensor(condition).shape
    if tuple(shape) != ():
        raise ValueError(
            f"[Assert] condition must be one bool: got shape {tuple(shape)}; see tf.reduce_all."
        )
    require(
        condition,
        lambda: (
            f"[Assert] the condition must hold: got "
            f"{', '.join(map(_elements, data)) or 'no data'}; correct the values."
        ),
    )


def _comparison(
    name: str,
    words: str,
    compare: Callable[[Any, Any], Tensor],
    example: str,
    with_zero: bool = False,
) -> Any:
    """Return a function that compares two tensors, or one with zero."""

    def of_two(x: TensorLike, y: TensorLike, message: str | None = None,
               summarize: int | None = None, name: str | None = None) -> None:  # fmt: skip
        a = convert_to_tensor(x)
        b = convert_to_tensor(y, dtype_hint=a.dtype)
        rule = f"every element of x must be {words} that of y"
        require_all(check.__name__, compare(a, b), rule, {"x": a, "y": b}, message)

    def of_one(x: TensorLike, message: str | None = None, summarize: int | None = None,
               name: str | None = None) -> None:  # fmt: skip
        a = convert_to_tensor(x)
        holds = compare(a, convert_to_tensor(0, a._dtype))
        rule = f"every element of x must be {words}"
        require_all(check.__name__, holds, rule, {"x": a}, message)

    check: Any = of_one if with_zero else of_two
    check.__name__ = check.__qualname__ = name
    which = f"is {words}" if with_zero else f"of x is {words} that of y"
    other = "" if with_zero else "\n        y: A tensor of the same dtype that broadcasts with x."
    check.__doc__ = f"""Raise unless every element {which}.

    In a traced function the error follows the step.

    Args:
        x: A tensor of numbers.{other}
        message: The beginning of the error's message.
        summarize: Ignored.
        name: Ignored.

    Raises:
        InvalidArgumentError: An element does not meet the condition.

    Example:
        >>> {name}({example})
    """
    return check


assert_equal = _comparison("assert_equal", "equal to", math.equal, "[1, 2], [1, 2]")
_assert_none_equal = _comparison("assert_none_equal", "other than", math.not_equal, "1, 2")


def assert_none_equal(x: TensorLike, y: TensorLike, summarize: int | None = None,
                      message: str | None = None, name: str | None = None) -> None:  # fmt: skip
    """Raise unless every element of x is other than that of y.

    In a traced function the error follows the step.

    Args:
        x: A tensor of numbers.
        y: A tensor of the same dtype that broadcasts with x.
        summarize: Ignored.
        message: The beginning of the error's message.
        name: Ignored.

    Raises:
        InvalidArgumentError: Two elements are equal.

    Example:
        >>> assert_none_equal([1, 2], [2, 1])
    """
    _assert_none_equal(x, y, message)


assert_less = _comparison("assert_less", "less than", math.less, "[1, 2], 3")
assert_less_equal = _comparison("assert_less_equal", "at most", math.less_equal, "[1, 2], 2")
assert_greater = _comparison("assert_greater", "greater than", math.greater, "[1, 2], 0")
assert_greater_equal = _comparison(
    "assert_greater_equal", "at least", math.greater_equal, "[1, 2], 1"
)
assert_positive = _comparison("assert_positive", "above 0", math.greater, "[1, 2]", True)
assert_negative = _comparison("assert_negative", "below 0", math.less, "[-1, -2]", True)
assert_non_negative = _comparison(
    "assert_non_negative", "at least 0", math.greater_equal, "[0, 1]", True
)
assert_non_positive = _comparison(
    "assert_non_positive", "at most 0", math.less_equal, "[0, -1]", True
)


def check_numerics(tensor: TensorLike, message: str, name: str | None = None) -> Tensor:
    """Check that all elements are finite, and return the tensor.

    Args:
        tensor: A tensor of floats.
        message: The beginning of the error's message.
        name: Ignored.

    Returns:
        The tensor itself.

    Raises:
        InvalidArgumentError: An element is infinite or NaN; in a traced function, after the step.

    Example:
        >>> float(check_numerics(1.0, "loss"))
        1.0
    """
    x = convert_to_tensor(tensor)
    # An infinity or NaN less itself is NaN, which equals nothing.
    rest = _core.ops.sub(x, x)
    rule = "every element must be finite"
    remedy = "see samegrad.debugging.enable_check_numerics, which names the operation"
    require_all("check_numerics", math.equal(rest, rest), rule, {"tensor": x}, message, remedy)
    return x


__all__ = [
    "Assert", "assert_equal", "assert_greater", "assert_greater_equal", "assert_less",
    "assert_less_equal", "assert_negative", "assert_non_negative", "assert_non_positive",
    "assert_none_equal", "assert_positive", "check_numerics", "prefixed", "require_all",
]  # fmt: skip
