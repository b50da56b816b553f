"""Tell files of the user's program from those of samegrad, Python and installed libraries."""

from __future__ import annotations

import os
import site
import sys
import sysconfig

PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_SCHEMES = ("stdlib", "platstdlib", "purelib", "platlib")
# Folders of libraries in any environment: a virtual one also sees those of the system's Python.
_NAMES = tuple(f"{os.sep}{name}{os.sep}" for name in ("site-packages", "dist-packages"))


def _folder(path: str) -> str:
    return os.path.join(os.path.abspath(path), "")


_inside: tuple[str, ...] = (
    PACKAGE,
    *(_folder(sysconfig.get_paths()[scheme]) for scheme in _SCHEMES),
    _folder(site.getusersitepackages()),
    "<frozen",
    "<__array_function__",
)
_known: dict[str, bool] = {}


def add_library(folder: str) -> None:
    """Count the files of a folder as a library's, wherever it is installed.

    Args:
        folder: The package's folder.
    """
    global _inside
    _inside = (*_inside, _folder(folder))
    _known.clear()


def is_user_file(name: str) -> bool:
    """Return whether code of that file name belongs to the program.

    Example:
        >>> is_user_file("train.py"), is_user_file(__file__)
        (True, False)
    """
    known = _known.get(name)
    if known is None:
        if len(_known) > 4096:  # cells of a notebook have a name each
            _known.clear()
        library = name.startswith(_inside) or any(part in name for part in _NAMES)
        known = _known[name] = not library
    return known


def cell_of(name: str) -> str | None:
    """Return "Cell In[4]" for the file name of a notebook's cell, as IPython's tracebacks do.

    Example:
        >>> cell_of("train.py") is None
        True
    """
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    code_name = getattr(getattr(shell, "compile", None), "format_code_name", lambda _: None)
    named = code_name(name) or (shell and code_name(_file_of_kernel(name)))
    return " ".join(named) if named else None


def _file_of_kernel(name: str) -> str:
    """Return the path of a cell of ipykernel; the engine names files by their last component."""
    import tempfile  # loaded by IPython

    return os.path.join(tempfile.gettempdir(), f"ipykernel_{os.getpid()}", name)


def shown_line(name: str, line: int) -> str:
    """Return a line of the program as messages show it.

    Example:
        >>> shown_line("train.py", 31)
        'train.py:31'
    """
    cell = cell_of(name)
    return f"{cell}, line {line}" if cell else f"{name}:{line}"
