"""Small programs whose answers users know from TensorFlow: `tf` is samegrad or TensorFlow."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

Program = Callable[[Any], Any]
PROGRAMS: dict[str, Program] = {}


def manner(program: Program) -> Program:
    """Adds a program under its name."""
    assert program.__name__ not in PROGRAMS, program.__name__
    PROGRAMS[program.__name__] = program
    return program


def described(value: Any) -> Any:
    """What a program gave, as JSON has it: tensors with their dtype and shape."""
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int | float):
        return [type(value).__name__, round(value, 5)]
    if isinstance(value, Mapping):
        return {str(key): described(value[key]) for key in value}
    if isinstance(value, list | tuple):
        return [type(value).__name__, [described(part) for part in value]]
    kind = "array" if isinstance(value, np.ndarray | np.generic) else "tensor"
    array = np.asarray(value)
    numbers = array.astype("float64").round(5).tolist()
    return [kind, str(array.dtype), list(array.shape), numbers]


def answer(tf: Any, program: Program) -> Any:
    """The program's result, or the classes of its error."""
    try:
        return described(program(tf))
    except Exception as error:
        return {"error": [cls.__name__ for cls in type(error).__mro__[:-3]]}


def refused(function: Callable[[], Any], *kinds: type[BaseException]) -> bool:
    """Whether the call raises one of these errors."""
    try:
        function()
    except kinds:
        return True
    return False
