"""Which files are the user's program, and not samegrad's, Python's or an installed library's."""

from __future__ import annotations

import functools
import os
import site
import sysconfig

PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_SCHEMES = ("stdlib", "platstdlib", "purelib", "platlib")
_LIBRARIES = tuple(
    os.path.join(os.path.abspath(path), "")
    for path in (
        *(sysconfig.get_paths()[scheme] for scheme in _SCHEMES),
        *site.getsitepackages(),
        site.getusersitepackages(),
    )
)
_INSIDE = (PACKAGE, *_LIBRARIES, "<frozen", "<__array_function__")


@functools.lru_cache(maxsize=4096)
def is_user_file(name: str) -> bool:
    """Whether code of that file name belongs to the program.

    Example:
        >>> is_user_file("train.py"), is_user_file(__file__)
        (True, False)
    """
    return not name.startswith(_INSIDE)
