"""Numbers of text and text of numbers."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from samegrad._base.dtypes import DTypeLike, as_dtype, float32, kind_of
from samegrad._base.shown import shown
from samegrad._context.python_runs import leave_trace
from samegrad._core import InvalidArgumentError
from samegrad._ops.printing import shown_tensor
from samegrad._tensor.conversion import Tensor, convert_to_tensor
from samegrad._tensor.host_values import on_host
from samegrad._tensor.ragged import RaggedTensor
from samegrad._tensor.text import Text, of_bytes, shown_text, text_of

_WHOLE = re.compile(rb"\s*[+-]?\d+\s*")
# As TensorFlow reads them: no underscores, which Python allows; "nan" and "inf" in any letters.
_FLOAT = re.compile(
    rb"\s*[+-]?(?:(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?|inf(?:inity)?|nan)\s*", re.IGNORECASE
)
_KINDS = ("float32", "float64", "int32", "int64")


@on_host()
def to_number(input: Any, out_type: DTypeLike = float32, name: str | None = None) -> Any:
    """Parse strings as numbers.

    Args:
        input: Strings of any shape, or a ragged tensor of strings.
        out_type: float32, float64, int32 or int64, the dtype of the result.
        name: Ignored.

    Returns:
        A tensor of the shape of `input`.

    Raises:
        InvalidArgumentError: A string is not such a number, or too large for the dtype.
        TypeError: The input is not a string, or the dtype is another one.

    Example:
        >>> import samegrad as tf
        >>> tf.strings.to_number(["1.5", " 2"]).numpy()
        array([1.5, 2. ], dtype=float32)
    """
    kind = as_dtype(out_type)
    if kind.name not in _KINDS:
        raise TypeError(
            f"[tf.strings.to_number] out_type must be one of {', '.join(_KINDS)}: got {kind.name}."
        )
    if isinstance(input, RaggedTensor):
        return input.with_values(to_number(input.flat_values, kind))
    texts = text_of(input, "tf.strings.to_number", "input must be strings").encoded
    values = texts.ravel().tolist()
    numbers = numbers_of(values, kind.as_numpy_dtype)
    if isinstance(numbers, int):
        raise InvalidArgumentError(
            f"[tf.strings.to_number] each string must be a {kind.name}: got "
            f"{shown(values[numbers])} at position {numbers}."
        )
    return Tensor(numbers.reshape(texts.shape), copy=False)


def numbers_of(values: list[bytes], kind: type[Any]) -> np.ndarray[Any, Any] | int:
    """Parse strings as numbers; return the index of the first that is not a number."""
    whole = np.dtype(kind).kind in "iu"
    # At once where Python reads as TensorFlow does: Python also accepts underscores.
    if b"_" not in b"".join(values):
        try:
            if not whole:
                with np.errstate(over="ignore"):
                    return np.array([*map(float, values)], np.float64).astype(kind)
            found = np.array([*map(int, values)], np.int64)
            limits = np.iinfo(kind)
            if not len(found) or (found.min() >= limits.min and found.max() <= limits.max):
                return found.astype(kind)
        except (ValueError, OverflowError):
            pass
    made = np.empty(len(values), kind)
    for place, value in enumerate(values):
        number = _number_of(value, kind)
        if number is None:
            return place
        made[place] = number
    return made


def _number_of(value: bytes, kind: type[Any]) -> Any:
    """Parse a string as a number; return None if it is not a number or too large for the dtype."""
    if np.dtype(kind).kind in "iu":
        if not _WHOLE.fullmatch(value):
            return None
        number, limits = int(value), np.iinfo(kind)
        return number if limits.min <= number <= limits.max else None
    if not _FLOAT.fullmatch(value):
        return None
    with np.errstate(over="ignore"):
        return kind(float(value))


def as_string(
    input: Any, precision: int = -1, scientific: bool = False, shortest: bool = False,
    width: int = -1, fill: str = "", name: str | None = None,
) -> Any:  # fmt: skip
    """Format numbers as strings, as C's printf does: %d, and %f for floats.

    Args:
        input: Numbers or bools of any shape.
        precision: The number of digits after the decimal point of floats; -1: six.
        scientific: Format floats as %e.
        shortest: Format floats as %g.
        width: The least number of characters; shorter strings are padded.
        fill: The padding: "" (spaces), "0", "+", "-" (on the right) or " ".
        name: Ignored.

    Returns:
        Strings of the shape of `input`.

    Raises:
        ValueError: `scientific` and `shortest` are both set, or `fill` is unknown.
        TypeError: The input is a string.
        RuntimeError: The input has no value before a step of several replicas runs. (Other traced
            functions fall back to Python.)

    Example:
        >>> import samegrad as tf
        >>> tf.strings.as_string([1, 22]).numpy()
        array([b'1', b'22'], dtype=object)
        >>> tf.strings.as_string(3.14159, precision=2).numpy()
        b'3.14'
    """
    if scientific and shortest:
        raise ValueError(
            "[tf.strings.as_string] scientific and shortest exclude each other: got "
            f"{shown(scientific)} and {shown(shortest)}; leave one out."
        )
    if fill not in ("", " ", "0", "+", "-"):
        raise ValueError(
            f"[tf.strings.as_string] fill must be '', ' ', '0', '+' or '-': got {shown(fill)}."
        )
    array = _with_values(convert_to_tensor(input), "as_string")._numpy()
    made = np.empty(array.shape, object)
    kind = kind_of(array.dtype)
    letter = "e" if scientific else "g" if shortest else "f"
    template = f"%{fill.strip() or (' ' if fill else '')}{width if width >= 0 else ''}"
    if kind == "b":
        template = "%s"
    elif kind == "f":
        template += f"{f'.{precision}' if precision >= 0 else ''}{letter}"
    else:
        template += "d"
    values = ["true" if v else "false" for v in array.ravel()] if kind == "b" else array.ravel()
    made.ravel()[:] = [(template % _plain(value, kind)).encode() for value in values]
    return of_bytes(made)


def _plain(value: Any, kind: str) -> Any:
    return float(value) if kind == "f" else int(value) if kind in "iu" else value


def format(
    template: str, inputs: Any, placeholder: str = "{}", summarize: int = 3,
    name: str | None = None,
) -> Text:  # fmt: skip
    """Format a template with values, as `tf.print` shows them.

    Args:
        template: A string with placeholders.
        inputs: A tensor, number or string, or a list or tuple of them: one for each placeholder.
        placeholder: The placeholder.
        summarize: The number of elements shown at both ends of an axis; -1 shows all.
        name: Ignored.

    Returns:
        A string scalar.

    Raises:
        ValueError: The numbers of placeholders and inputs differ.

    Example:
        >>> import samegrad as tf
        >>> tf.strings.format("step {}: {}", (3, tf.constant([1.5, 2.0]))).numpy()
        b'step 3: [1.5 2]'
    """
    given = list(inputs) if isinstance(inputs, list | tuple) else [inputs]
    parts = template.split(placeholder)
    if len(parts) != len(given) + 1:
        raise ValueError(
            f"[tf.strings.format] there must be an input for each {placeholder!r}: got "
            f"{len(given)} inputs and {len(parts) - 1} places in {shown(template)}."
        )
    texts = [_shown(value, summarize) for value in given]
    return Text("".join(part + text for part, text in zip(parts, [*texts, ""], strict=True)))


def _shown(value: Any, summarize: int) -> str:
    if isinstance(value, Text | str | bytes):
        return shown_text(Text(value))
    return shown_tensor(_with_values(convert_to_tensor(value), "format"), summarize)


def _with_values(tensor: Tensor, who: str) -> Tensor:
    """Return the tensor; a function that is being traced is run by Python instead."""
    if tensor._symbolic and not tensor._looks:
        leave_trace(
            f"[tf.strings.{who}] a step of replicas has no strings: got a tensor without a value; "
            "return it from strategy.run, or show it with tf.print."
        )
    return tensor
