"""Changes of the source of Keras's modules.

A patch whose text is not there, or is there another number of times, stops the import: a new
version of Keras has to be looked at line by line.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
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


def importing(line: str) -> Text:
    return Text(line, _CONVERTED + line)


def imported(names: str) -> str:
    return f"from samegrad._keras.{names}\n\n\n"


# What Keras calls TensorFlow.


def patched(module: str, source: str, patches: Sequence[Text | Span]) -> str:
    """The source of a module of Keras with its patches.

    Raises:
        ImportError: It has not the text that a patch replaces.

    Example:
        >>> patched("a.module", "x = 1", [Text("1", "2")])
        'x = 2'
    """
    for patch in patches:
        if isinstance(patch, Text):
            found = source.count(patch.old)
            _check(module, patch.old, found == patch.times, f"{found} times")
            source = source.replace(patch.old, patch.new)
            continue
        begin = source.find(patch.begin)
        end = source.find(patch.end, begin + 1)
        _check(module, patch.begin, 0 <= begin < end, "no such lines")
        digest = hashlib.sha256(source[begin:end].encode()).hexdigest()
        _check(module, patch.begin, digest.startswith(patch.digest), f"SHA-256 {digest[:16]}")
        if patch.new is not None:
            source = source[:begin] + patch.new + source[end:]
    return source


def _check(module: str, text: str, holds: bool, found: str) -> None:
    if not holds:
        first = text.strip().splitlines()[0]
        raise ImportError(
            f"[samegrad.keras] the installed Keras is not the one that samegrad was made for: got "
            f"{found} in {module} at {first!r}; install the version that samegrad asks for."
        )
