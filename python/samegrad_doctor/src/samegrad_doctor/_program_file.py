"""Files of users: imported by their path, with their functions by name."""

from __future__ import annotations

import importlib.util
import operator
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from samegrad_doctor._layouts import StepError


def load_module(path: Path) -> ModuleType:
    """Import a file.

    Raises:
        StepError: There is no such file, or it cannot be imported.
    """
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if not path.is_file() or spec is None or spec.loader is None:
        raise StepError(f"[doctor] a Python file is needed: got {path}.")
    module = importlib.util.module_from_spec(spec)
    sys.modules.setdefault(path.stem, module)  # so that its functions can be sent to processes
    sys.path.insert(0, str(path.resolve().parent))
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        if sys.modules.get(path.stem) is module:
            del sys.modules[path.stem]
        more = '; put what runs a program behind `if __name__ == "__main__":`'
        raise StepError(
            f"[doctor] {path} cannot be imported: {type(error).__name__}: {error}"
            f"{more if isinstance(error, SystemExit) else ''}."
        ) from error
    finally:
        sys.path.pop(0)
    return module


def named_in(module: ModuleType, name: str) -> Any:
    """Return an object of a module by its name, which may have dots.

    Raises:
        StepError: There is none of this name.
    """
    try:
        return operator.attrgetter(name)(module)
    except AttributeError:
        names = ", ".join(n for n in vars(module) if not n.startswith("_"))
        raise StepError(f"[doctor] {module.__file__} has no {name!r}: it has {names}.") from None


def value_in(module: ModuleType, name: str) -> Any:
    """Return a value of a module, or what the function of this name returns.

    Raises:
        StepError: The file has no such name, or the function raises.
    """
    thing = named_in(module, name)
    try:
        return thing() if callable(thing) else thing
    except Exception as error:
        raise StepError(
            f"[doctor] {name} of {module.__file__} must be a value, or a function that returns "
            f"it without being given anything: it raised {type(error).__name__}: {error}."
        ) from error
