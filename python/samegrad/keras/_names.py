"""Names of layers, metrics and optimizers, each given once."""

from __future__ import annotations

import re
from collections import Counter

_given: Counter[str] = Counter()


def snake_case(name: str) -> str:
    """A class name as the name of an object.

    Example:
        >>> snake_case("MaxPooling2D"), snake_case("ReLU")
        ('max_pooling2d', 're_lu')
    """
    name = re.sub(r"(.)([A-Z][a-z0-9]+)", r"\1_\2", name)
    name = re.sub(r"([a-z])([A-Z])", r"\1_\2", name).lower()
    return f"private{name}" if name.startswith("_") else name


def unique_name(name: str) -> str:
    """The name, with a number unless it is given for the first time.

    Example:
        >>> unique_name("doctest_layer"), unique_name("doctest_layer")
        ('doctest_layer', 'doctest_layer_1')
    """
    number = _given[name]
    _given[name] += 1
    return f"{name}_{number}" if number else name


def reset() -> None:
    """Forgets all names.

    Example:
        >>> reset()
    """
    _given.clear()
