"""`samegrad example NAME`: the programs of the folder examples/, which the wheel holds."""

from __future__ import annotations

import ast
import os
import re
import runpy
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from samegrad.cli._errors import CommandError

ABOUT = (
    "Runs an example program, or copies it to a folder for you to change. Without a name, lists "
    "all examples. Arguments of the program follow after '--'."
)


def add_options(parser: Any) -> None:
    """Add the options of `samegrad example`."""
    parser.add_argument("name", nargs="?", choices=names(), metavar="NAME", help="the example")
    parser.add_argument("arguments", nargs="*", metavar="-- ARGUMENT", help="for the program")
    parser.add_argument("--copy", type=Path, metavar="DIR", help="copy it there, do not run it")


def names() -> list[str]:
    """Return the names of all examples.

    Example:
        >>> "densenet" in names()
        True
    """
    return sorted(path.stem.replace("_", "-") for path in _folder().glob("*.py"))


def run(name: str | None, arguments: list[str], copy: Path | None) -> int:
    """Run an example, copy it, or list all.

    Args:
        name: Name of the example; None lists all.
        arguments: Arguments of the program.
        copy: Folder to copy the program to, together with those that it imports; None runs it.

    Returns:
        The exit code 0.

    Raises:
        CommandError: A file would be overwritten, or an option lacks the name.
    """
    if name is None:
        if copy is not None:
            raise CommandError("--copy needs the name of an example: choose from " + _list())
        for one in names():
            print(f"{one}: {_first_line(_path(one))}")
        return 0
    files = [_path(name), *_imported(_path(name))]
    if copy is not None:
        for file in files:
            if (copy / file.name).exists():
                raise CommandError(f"--copy overwrites no file: got {copy / file.name}, delete it")
        _copy(files, copy)
        print("\n".join(str(copy / file.name) for file in files))
        return 0
    # Files of the wheel count as a library's: a copy is a program of the user.
    with tempfile.TemporaryDirectory() as folder:
        _copy(files, Path(folder))
        _run_as_main(Path(folder) / files[0].name, arguments)
    return 0


def _folder() -> Path:
    """Return the folder in the wheel, or that of a checkout."""
    inside = Path(__file__).with_name("examples")
    return inside if inside.is_dir() else Path(__file__).resolve().parents[3] / "examples"


def _path(name: str) -> Path:
    return _folder() / f"{name.replace('-', '_')}.py"


def _list() -> str:
    return ", ".join(names())


def _first_line(path: Path) -> str:
    docstring = ast.get_docstring(ast.parse(path.read_text("utf-8"))) or ""
    return docstring.partition("\n")[0]


def _imported(path: Path) -> list[Path]:
    """Return the examples that an example imports."""
    modules = re.findall(r"^(?:from|import) (\w+)", path.read_text("utf-8"), re.MULTILINE)
    return [file for file in (_folder() / f"{module}.py" for module in modules) if file.is_file()]


def _copy(files: list[Path], folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for file in files:
        shutil.copyfile(file, folder / file.name)


def _run_as_main(path: Path, arguments: list[str]) -> None:
    """Run a program as Python does, with its folder as the first to import from."""
    argv, folders = sys.argv, sys.path[:]
    sys.argv = [os.fspath(path), *arguments]
    sys.path.insert(0, os.fspath(path.parent))
    try:
        runpy.run_path(os.fspath(path), run_name="__main__")
    finally:
        sys.argv, sys.path[:] = argv, folders
        for file in path.parent.glob("*.py"):  # the folder of its modules ends
            sys.modules.pop(file.stem, None)
