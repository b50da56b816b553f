"""Changes of the source of Keras's modules.

A patch whose text is not there, or is there another number of times, stops the import: a new
version of Keras has to be looked at line by line.
"""

from __future__ import annotations

import difflib
import hashlib
import operator
from collections.abc import Iterator, Sequence
from typing import NamedTuple


class Text(NamedTuple):
    """Every occurrence of `old`, of which there are `times`, becomes `new`."""

    old: str
    new: str
    times: int = 1


class Span(NamedTuple):
    """Text from `begin` to before `end`, whose SHA-256 begins with `digest`, replaced by `new`.

    None: it stays; code of samegrad's says the same in another form.
    """

    begin: str
    end: str
    digest: str
    new: str | None


def branch(kind: str, backend_class: str, ours: str) -> Text:
    """Replace NumPy's branch by samegrad's where Keras chooses a class by the backend's name."""
    return Text(
        f'elif backend.backend() == "numpy":\n    from keras.src.backend.numpy.{kind} import '
        f"{backend_class}",
        f'elif backend.backend() == "samegrad":\n    from samegrad._keras.{kind} import {ours}',
    )


def converting(call: str) -> Text:
    """Convert the control flow of a user's function where Keras calls it (AutoGraph)."""
    function, _, arguments = call.partition("(")
    return Text(call, f"converted({function})({arguments}")


_CONVERTED = "from samegrad._context.user_code import converted\n"


# What calls a loss or metric: it rewrites its control flow, and looks at the shapes.
COMPARED = "from samegrad._keras.label_shapes import compared\n"


def importing(line: str, imported: str = _CONVERTED) -> Text:
    return Text(line, imported + line)


def imported(names: str) -> str:
    return f"from samegrad._keras.{names}\n\n\n"


class Patched(NamedTuple):
    """Source of a module with its patches, and the line of Keras's file for each of its lines."""

    text: str
    lines: list[int]


def patched(module: str, source: str, patches: Sequence[Text | Span]) -> Patched:
    """Apply the patches of a module of Keras to its source.

    Raises:
        ImportError: The source lacks the text that a patch replaces.

    Example:
        >>> patched("a.module", "x = 1", [Text("1", "2")])
        Patched(text='x = 2', lines=[1])
    """
    lines = list(range(1, source.count("\n") + 2))
    for patch in patches:
        if isinstance(patch, Text):
            found = source.count(patch.old)
            _check(module, patch.old, found == patch.times, f"{found} times")
            begin = len(source)
            for _ in range(found):
                begin = source.rfind(patch.old, 0, begin)
                source = _replaced(source, lines, begin, begin + len(patch.old), patch.new)
            continue
        begin = source.find(patch.begin)
        end = source.find(patch.end, begin + 1)
        _check(module, patch.begin, 0 <= begin < end, "no such lines")
        digest = hashlib.sha256(source[begin:end].encode()).hexdigest()
        _check(module, patch.begin, digest.startswith(patch.digest), f"SHA-256 {digest[:16]}")
        if patch.new is not None:
            source = _replaced(source, lines, begin, end, patch.new)
    return Patched(source, lines)


def _replaced(source: str, lines: list[int], begin: int, end: int, new: str) -> str:
    """Replace a part of the source, and in `lines` the file's line numbers of its lines."""
    result = source[:begin] + new + source[end:]
    if "\n" in new or "\n" in source[begin:end]:
        number, line = source.count("\n", 0, begin), source.rfind("\n", 0, begin) + 1
        tail = (source.find("\n", end) + 1 or len(source) + 1) - 1 - end
        before = [text.strip() for text in source[line : end + tail].split("\n")]
        after = [text.strip() for text in result[line : begin + len(new) + tail].split("\n")]
        numbers = lines[number : number + len(before)]
        lines[number : number + len(before)] = [numbers[at] for at in _aligned(before, after)]
    return result


def _aligned(before: list[str], after: list[str]) -> Iterator[int]:
    """Yield for each line of `after` the index of the line of `before` that it is or replaces."""
    matcher = difflib.SequenceMatcher(operator.not_, before, after, autojunk=False)
    for kind, first, last, begin, end in matcher.get_opcodes():
        if kind == "insert":  # it belongs to the line behind it, if one is there
            last = first + 1 if first < len(before) and before[first] else first
            first = last - 1
        while kind == "replace" and last > first + 1 and not before[last - 1]:
            last -= 1
        yield from (min(first + index, last - 1) for index in range(end - begin))


def _check(module: str, text: str, holds: bool, found: str) -> None:
    if not holds:
        first = text.strip().splitlines()[0]
        raise ImportError(
            f"[samegrad.keras] the installed Keras is not the one that samegrad was made for: got "
            f"{found} in {module} at {first!r}; install the version that samegrad asks for."
        )
