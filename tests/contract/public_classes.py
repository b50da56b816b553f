"""The classes of a namespace that a contract holds for."""

from __future__ import annotations

import inspect
from typing import Any


def public_classes(module: Any, base: type) -> list[str]:
    """The names of the public classes derived from a base, without the base."""
    return [
        name
        for name in module.__all__
        if inspect.isclass(found := getattr(module, name))
        and issubclass(found, base)
        and found is not base
    ]
