"""Files of users: imported by their path, with their functions by name."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from samegrad.testing._training import TrainingError

_NOTHING = object()


def load_module(path: Path, op_name: str) -> ModuleType:
    """Import a file.

    Args:
        path: The file.
        op_name: Name of the command or function, for messages.

    Raises:
        TrainingError: There is no such file, or it cannot be imported.
    """
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if not path.is_file() or spec is None or spec.loader is None:
        raise TrainingError(f"[{op_name}] a Python file is needed: got {path}.")
    module = importlib.util.module_from_spec(spec)
    sys.modules.setdefault(path.stem, module)  # so that its functions can be sent to processes
    sys.path.insert(0, str(path.resolve().parent))
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        if sys.modules.get(path.stem) is module:
            del sys.modules[path.stem]
        more = '; put what runs a program behind `if __name__ == "__main__":`'
        raise TrainingError(
            f"[{op_name}] {path} cannot be imported: {type(error).__name__}: {error}"
            f"{more if isinstance(error, SystemExit) else ''}."
        ) from error
    finally:
        sys.path.pop(0)
    return module


def named_in(module: ModuleType, name: str, op_name: str) -> Any:
    """Return an object of a module by its name, which may have dots.

    Raises:
        TrainingError: There is none of this name.
    """
    found: Any = module
    for part in name.split("."):
        found = getattr(found, part, _NOTHING)
    if found is _NOTHING:
        names = ", ".join(n for n in vars(module) if not n.startswith("_"))
        raise TrainingError(f"[{op_name}] {module.__file__} has no {name!r}: it has {names}.")
    return found


def value_in(module: ModuleType, name: str, op_name: str) -> Any:
    """Return a value of a module, or what the function of this name returns.

    Raises:
        TrainingError: The file has no such name, or the function raises.
    """
    thing = named_in(module, name, op_name)
    try:
        return thing() if callable(thing) else thing
    except Exception as error:
        raise TrainingError(
            f"[{op_name}] {name} of {module.__file__} must be a value, or a function that returns "
            f"it without being given anything: it raised {type(error).__name__}: {error}."
        ) from error


__all__ = ["load_module", "named_in", "value_in"]
