"""`samegrad.print`: shows tensors, inside a traced function each time it runs."""

from __future__ import annotations

import sys
from typing import Any

from samegrad import _core
from samegrad._base.shown import shown
from samegrad._base.tree import map_structure
from samegrad._context.scopes import inside_function
from samegrad._tensor.tensor import Tensor, convert_to_tensor, is_tensor
from samegrad._tensor.text import Text, shown_text

_PLACE = "\0"
_TO_OUTPUT = "\1"  # cpp/ops/print.h


def print_(*inputs: Any, output_stream: Any = None, summarize: int = 3, sep: str = " ",
           end: str = "\n", name: str | None = None) -> None:  # fmt: skip
    """Print arguments to the standard error stream, tensors by their values.

    In a traced function the values of each step are printed after the step, for each replica with
    its number in front.

    Args:
        inputs: Tensors, variables, strings, numbers, and nested structures of them.
        output_stream: The stream, default sys.stderr: a file, or "file://" and a path to append to.
            A traced function takes sys.stdout or sys.stderr, as they are when the step runs.
        summarize: The number of elements shown at both ends of an axis; -1 shows all.
        sep: The separator between arguments.
        end: The string after the last argument.
        name: Ignored.

    Raises:
        ValueError: The stream is not a stream, or not one that a traced function takes.

    Example:
        >>> import sys
        >>> import samegrad as tf
        >>> tf.print("loss", tf.constant(2.5), output_stream=sys.stdout)
        loss 2.5
    """
    tensors: list[Tensor] = []

    def place(value: Any) -> Any:
        if is_tensor(value):
            tensors.append(convert_to_tensor(value))
            return _Raw(_PLACE)
        return _Raw(shown_text(value)) if isinstance(value, Text) else value

    parts = [map_structure(place, value) for value in inputs]
    text = sep.join(str(part) for part in parts) + end
    symbolic = any(tensor._symbolic for tensor in tensors)
    if _core.tracing() and (symbolic or (is_standard(output_stream) and inside_function())):
        _core.ops.print(*tensors, text=_mark(output_stream) + text, edge=summarize)
        return
    for tensor in tensors:
        text = text.replace(_PLACE, shown_tensor(tensor, summarize), 1)
    if isinstance(output_stream, str) and output_stream.startswith("file://"):
        with open(output_stream.removeprefix("file://"), "a", encoding="utf-8") as file:
            file.write(text)
    elif output_stream is None or hasattr(output_stream, "write"):
        print(text, end="", file=sys.stderr if output_stream is None else output_stream)
    else:
        raise _no_stream(output_stream, "a file, or 'file://' and a path")


def is_standard(stream: Any) -> bool:
    """Tell whether a traced step can print to the stream: None, standard error or standard output.

    Example:
        >>> is_standard(None), is_standard(sys.stdout), is_standard("file://log")
        (True, True, False)
    """
    streams = (None, sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__)
    return any(stream is one for one in streams)


def _mark(stream: Any) -> str:
    """Return the prefix of a step's string that names its stream."""
    if not is_standard(stream):
        raise _no_stream(stream, "sys.stdout or sys.stderr in a traced function")
    return _TO_OUTPUT if stream is not None and stream in (sys.stdout, sys.__stdout__) else ""


def _no_stream(stream: Any, wanted: str) -> ValueError:
    return ValueError(f"[print] output_stream must be {wanted}: got {shown(stream)}.")


class _Raw(str):
    """A string that shows itself without quotes inside a structure."""

    def __repr__(self) -> str:
        return str(self)


def shown_tensor(tensor: Tensor, summarize: int) -> str:
    """Return a tensor with values as `tf.print` shows it.

    Example:
        >>> shown_tensor(convert_to_tensor([1, 2, 3, 4]), 1)
        '[1 ... 4]'
    """
    _core.ops.print(tensor, text=_PLACE, edge=summarize)
    return "".join(_core.take_messages())


__all__ = ["is_standard", "print_", "shown_tensor"]
