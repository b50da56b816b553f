"""Tell files of the user's program from those of samegrad, Python and installed libraries."""

from __future__ import annotations

import os
import site
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
