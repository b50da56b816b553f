"""Calls of all functions in common by position, with small operands of a few kinds.

They show that each parameter means what TensorFlow's of that place does.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from signatures import parameters_of

FLOATS = (
    np.float32([[0.3, 0.7], [0.2, 0.9]]), np.float32([[0.6, 0.1], [0.8, 0.5]]),
    np.float32([[0.9, 0.45], [0.95, 0.75]]), np.float32([[0.4, 0.8], [0.7, 0.6]]),
)  # fmt: skip
INTS = tuple(np.int32(each) for each in ([1, 0], [2, 5], [3, 7], [1, 1]))
BOOLS = tuple(np.array(each) for each in ([True, False], [True, True], [False, True], [True, True]))
OPERANDS: dict[str, tuple[Any, ...]] = {
    "floats": FLOATS,
    "ints": INTS,
    "bools": BOOLS,
    "strings": (["ab", "cd"], ["b", "c"], ["x", "y"], ["q", "r"]),
    "a number behind": (FLOATS[0], 1, 1, 1),
    "ints behind": (FLOATS[0], INTS[0], 2, 2),
    "lists behind": (FLOATS[0], [1, 0], [0, 1], [1, 1]),
}


def wide(tf: Any, value: Any) -> Any:
    """A tensor of float64, beside which arrays and lists are given."""
    return tf.constant(value, tf.float64)


# Tensors and what becomes a tensor beside them.
MIXED: dict[str, Callable[[Any], tuple[Any, ...]]] = {
    "wide before arrays": lambda tf: (wide(tf, FLOATS[0]), *FLOATS[1:]),
    "wide before lists": lambda tf: (wide(tf, FLOATS[0]), *(x.tolist() for x in FLOATS[1:])),
    "wide after an array": lambda tf: (FLOATS[0], *(wide(tf, x) for x in FLOATS[1:])),
    "wide in a list": lambda tf: ([FLOATS[0], wide(tf, FLOATS[1])], 0, 0, 0),
}
# Modules whose functions draw, write or have a state, or that take functions.
SKIPPED = (
    "Module", "audio.", "autograph", "config", "control_dependencies", "data", "debugging",
    "distribute", "errors", "function", "get_logger", "image.", "init_scope", "io.", "lookup",
    "nest", "numpy_function", "print", "py_function", "random", "sparse.bincount",
    "sparse.from_dense", "stack", "summary", "sysconfig", "test", "timestamp", "train",
)  # fmt: skip


def calls(signatures: dict[str, str]) -> Iterator[tuple[str, str, int]]:
    """Yield the name of each function, a kind of operands and how many must be given."""
    for name, text in signatures.items():
        if "()" in name or name.startswith(SKIPPED) or name.rpartition(".")[2][0].isupper():
            continue
        needed = sum(not default for default in parameters_of(text).defaults.values())
        if 1 <= needed <= 4:
            yield from ((name, kind, needed) for kind in (*OPERANDS, *MIXED))


def value_of(tf: Any, name: str, kind: str, needed: int, hidden: Any = Exception) -> Any:
    """Return what the call gives, as JSON has it; None for errors that are hidden and no values."""
    function = tf
    try:
        for part in name.split("."):
            function = getattr(function, part)
        given = MIXED[kind](tf) if kind in MIXED else OPERANDS[kind]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            value = None if isinstance(function, type) else function(*given[:needed])
        return None if value is None else plain(value)
    except hidden:
        return None


def plain(value: Any) -> Any:
    """Return dtype, shape and rounded numbers of tensors, also of those in lists."""
    if isinstance(value, bool):
        return value
    if isinstance(value, list | tuple) and not hasattr(value, "dtype"):
        return [plain(part) for part in value]
    array = np.asarray(value.numpy() if hasattr(value, "numpy") else value)
    if array.dtype.kind == "c":
        array = np.stack([array.real, array.imag])
    if array.dtype.kind not in "fiub":
        return [str(part) for part in array.ravel().tolist()]
    numbers = [str(n) if abs(n) == np.inf or n != n else n for n in array.ravel().tolist()]
    return [str(array.dtype), list(array.shape), [rounded(n) for n in numbers]]


def rounded(number: Any) -> Any:
    return float(f"{number:.4g}") if isinstance(number, float) else number
