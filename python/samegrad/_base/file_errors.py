"""Errors of the file system, in samegrad's words."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path


@contextlib.contextmanager
def explained_errors(
    who: str, action: str, path: Path, remedy: str | Callable[[OSError], str]
) -> Iterator[None]:
    """Give the system's errors a path, of which some have none, and a way out.

    Args:
        who: Who refuses.
        action: What is done to the path.
        path: A file or folder.
        remedy: How to go on, as an order and without a full stop.
    """
    try:
        yield
    except OSError as error:
        if error.errno is None or str(error.strerror).startswith("["):  # one of ours
            raise
        way_out = remedy if isinstance(remedy, str) else remedy(error)
        message = f"[{who}] cannot {action} {path}: {error.strerror}. {way_out}."
        raise OSError(error.errno, message) from error
