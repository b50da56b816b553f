"""Types of packages that few programs have: there are none before the program imports them."""

from __future__ import annotations

import sys
from typing import Any


class Loaded:
    """A package as `isinstance` needs it, without importing it.

    Nobody has an object of a package that nobody has imported.

    Args:
        package: Its name.

    Example:
        >>> isinstance(1, Loaded("a_package_of_nobody").DataFrame)
        False
    """

    def __init__(self, package: str) -> None:
        self._package = package

    def __getattr__(self, name: str) -> Any:
        return getattr(sys.modules.get(self._package), name, ())
