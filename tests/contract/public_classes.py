"""The classes of a namespace that a contract holds for."""

from __future__ import annotations

import inspect
from typing import Any


def public_classes(module: Any, base: type) -> list[str]:
    """The names of the public classes derived from a base, without the base.

    A class with several names has its own one here; classes that share a name all stand here.
    """
    named: dict[int, str] = {}
    for name in module.__all__:
        found = getattr(module, name)
        if not inspect.isclass(found) or not issubclass(found, base) or found is base:
            continue
        if id(found) not in named or name == found.__name__:
            named[id(found)] = name
    return sorted(named.values())
