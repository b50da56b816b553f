"""`samegrad.print`: shows tensors, inside a traced function each time it runs."""

from __future__ import annotations

import sys
from typing import Any

from samegrad import _core
from samegrad._base.tree import map_structure
from samegrad._context.scopes import inside_function
from samegrad._tensor.tensor import Tensor, convert_to_tensor, is_tensor
from samegrad._tensor.text import Text, shown_text

_PLACE = "\0"


def print_(*inputs: Any, output_stream: Any = None, summarize: int = 3, sep: str = " ",
           end: str = "\n", name: str | None = None) -> None:  # fmt: skip
    """Writes the arguments to the standard error stream, tensors by their values.

    Inside a function that is traced, the values of each step are written when it is over, for
    each replica with its number in front.

    Args:
        inputs: Tensors, variables, strings, numbers, nested structures of them.
        output_stream: Where to write; default sys.stderr. Only outside traced functions.
        summarize: Elements shown at both ends of an axis; -1 shows all.
        sep: Between arguments.
        end: After the last one.
        name: Ignored.

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
    if _core.tracing() and (symbolic or (output_stream is None and inside_function())):
        _core.ops.print(*tensors, text=text, edge=summarize)
        return
    for tensor in tensors:
        text = text.replace(_PLACE, shown_tensor(tensor, summarize), 1)
    print(text, end="", file=sys.stderr if output_stream is None else output_stream)


class _Raw(str):
    """A string that shows itself without quotes inside a structure."""

    def __repr__(self) -> str:
        return str(self)


def shown_tensor(tensor: Tensor, summarize: int) -> str:
    """A tensor with values as `tf.print` shows it.

    Example:
        >>> shown_tensor(convert_to_tensor([1, 2, 3, 4]), 1)
        '[1 ... 4]'
    """
    _core.ops.print(tensor, text=_PLACE, edge=summarize)
    return "".join(_core.take_messages())


__all__ = ["print_", "shown_tensor"]
