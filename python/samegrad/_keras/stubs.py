"""Stubs of samegrad.keras: `python -m samegrad._keras.stubs python/samegrad/keras`.

Keras ships none. A stub imports each name from the module of Keras, or of samegrad, that defines
it, so that an editor finds signatures and docstrings there, and a wrong name is an error of a type
checker.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

_ROOT = "samegrad.keras"
_HEAD = "# Made by samegrad._keras.stubs. Do not edit.\n"


def stubs() -> dict[str, str]:
    """The text of each stub file by its path below `samegrad/keras/`.

    Example:
        >>> "import Dense as Dense" in stubs()["layers/__init__.pyi"]
        True
    """
    made: dict[str, str] = {}
    open_names = [_ROOT]
    while open_names:
        name = open_names.pop()
        module = importlib.import_module(name)
        below = [key for key in module.__all__ if isinstance(getattr(module, key), ModuleType)]
        open_names += [f"{name}.{key}" for key in below]
        lines = {_import(key, getattr(module, key)) for key in module.__all__ if key not in below}
        lines |= {f"from {name} import {key} as {key}\n" for key in below}
        unknown = sorted(line for line in lines if ": Any" in line)
        head = ["from typing import Any\n"] if unknown else []
        text = "".join([_HEAD, *head, *sorted(lines.difference(unknown)), *unknown])
        path = "/".join([*name.removeprefix(_ROOT).strip(".").split("."), "__init__.pyi"])
        made[path.lstrip("/")] = text
    return made


def _import(name: str, value: Any) -> str:
    home, own = getattr(value, "__module__", None), getattr(value, "__name__", name)
    if not isinstance(home, str) or getattr(sys.modules.get(home), own, None) is not value:
        return f"{name}: Any\n"
    return f"from {home} import {own} as {name}\n"


def main() -> None:
    """Write the files into the folder that is given."""
    folder = Path(sys.argv[1])
    for path, text in stubs().items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)


if __name__ == "__main__":
    main()
