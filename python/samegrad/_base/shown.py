"""Values in messages: short, on one line, and never the cause of another error."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any

import numpy as np

_LETTERS = 80


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Ask for the nearest of the known names, as the end of a message; "" where none is near.

    Example:
        >>> did_you_mean("flot32", ["float32", "int32"]), did_you_mean("x", ["float32"])
        ("did you mean 'float32'?", '')
    """
    by_lower = {one.lower(): one for one in reversed([*known])}
    near = difflib.get_close_matches(name.lower(), by_lower, n=1)
    return f"did you mean {by_lower[near[0]]!r}?" if near else ""


def shown(value: Any, letters: int = _LETTERS) -> str:
    """Return the value as a message shows it.

    Example:
        >>> shown([1.0, 2.0]), shown("x" * 200, 10)
        ('[1.0, 2.0]', "'xxxxxx...")
    """
    if isinstance(value, np.ndarray) and value.size > 1:
        return f"an array of shape {value.shape} and dtype {str(value.dtype)[:40]}"
    if isinstance(value, str | bytes):
        value = value[: letters + 1]
    elif isinstance(value, int) and abs(value) >= 10**60:
        return f"a number of {value.bit_length()} bits"
    try:
        text = " ".join(repr(value).split())
    except Exception:  # the class's own, or too deep
        text = f"<{type(value).__name__}>"
    text = text.encode(errors="backslashreplace").decode()
    return text if len(text) <= letters else text[: letters - 3] + "..."
