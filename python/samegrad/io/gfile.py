"""Files and folders, under the names of tf.io.gfile."""

from __future__ import annotations

import glob as _glob
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from samegrad._base.file_errors import explained_errors
from samegrad._base.shown import shown
from samegrad._base.tracebacks import keep_user_frames
from samegrad._surface.boundary import guard
from samegrad._surface.missing_names import getattr_of
from samegrad._tensor.text import Text
from samegrad.errors import AlreadyExistsError, NotFoundError

_SCHEMES = ("gs://", "s3://", "hdfs://", "http://", "https://")


def path_of(path: Any, who: str) -> str:
    """Convert a path to a string: a string, bytes, or anything that is a path.

    Raises:
        TypeError: path is not a path.
        NotImplementedError: The path is on another machine.

    Example:
        >>> path_of(b"a.txt", "read_file"), path_of(Path("b"), "read_file")
        ('a.txt', 'b')
    """
    if isinstance(path, Text):
        path = path.numpy()
    if not isinstance(path, str | bytes | os.PathLike):
        raise TypeError(f"[tf.io.{who}] a path is needed: got {shown(path)}; pass a string.")
    found = os.fsdecode(path)
    if found.startswith(_SCHEMES):
        raise NotImplementedError(
            f"[tf.io.{who}] paths are those of this machine: got {shown(found)}; copy the file."
        )
    return found.removeprefix("file://")


def _not_found(who: str, path: str) -> NotFoundError:
    return NotFoundError(
        f"[tf.io.{who}] there must be such a file or folder: got {path!r}; the working "
        f"folder is {os.getcwd()}."
    )


def exists(path: Any) -> bool:
    """Tell if a file or a folder exists.

    Args:
        path: Path.

    Returns:
        True if it exists.

    Example:
        >>> exists("/nowhere/at/all")
        False
    """
    return os.path.exists(path_of(path, "gfile.exists"))


def isdir(path: Any) -> bool:
    """Tell if a folder exists.

    Args:
        path: Path.

    Returns:
        True if it is a folder.

    Example:
        >>> isdir("/")
        True
    """
    return os.path.isdir(path_of(path, "gfile.isdir"))


def join(path: Any, *paths: Any) -> str:
    """Join the components of a path.

    Args:
        path: First component.
        *paths: Other components.

    Returns:
        The joined path.

    Example:
        >>> join("data", "a.txt")
        'data/a.txt'
    """
    return os.path.join(*(path_of(part, "gfile.join") for part in (path, *paths)))


def makedirs(path: Any) -> None:
    """Create a folder, and its parents, unless it exists.

    Args:
        path: Path of the folder.

    Example:
        >>> makedirs("many/b"); isdir("many/b")
        True
    """
    found = path_of(path, "gfile.makedirs")
    with explained_errors("tf.io.gfile.makedirs", "make", Path(found), "Choose another path"):
        os.makedirs(found, exist_ok=True)


def mkdir(path: Any) -> None:
    """Create a folder in an existing one.

    Args:
        path: Path of the folder.

    Raises:
        NotFoundError: The parent does not exist.

    Example:
        >>> mkdir("one"); isdir("one")
        True
    """
    found = path_of(path, "gfile.mkdir")
    if not os.path.isdir(os.path.dirname(found) or "."):
        raise _not_found("gfile.mkdir", os.path.dirname(found))
    makedirs(found)


def listdir(path: Any) -> list[str]:
    """List the names of a folder's entries, sorted.

    Args:
        path: Path of the folder.

    Returns:
        List of names.

    Raises:
        NotFoundError: The folder does not exist.

    Example:
        >>> makedirs("listed/b"); listdir("listed")
        ['b']
    """
    found = path_of(path, "gfile.listdir")
    if not os.path.isdir(found):
        raise _not_found("gfile.listdir", found)
    return sorted(os.listdir(found))


def glob(pattern: Any) -> list[str]:
    """List the paths that match a pattern, or one of several, sorted.

    Args:
        pattern: Pattern with *, ? and [...], or a list of patterns.

    Returns:
        List of paths.

    Example:
        >>> makedirs("found/b"); glob("found/*")
        ['found/b']
    """
    several = isinstance(pattern, list | tuple) or (isinstance(pattern, Text) and pattern._rank)
    patterns: Iterable[Any] = pattern if several else [pattern]
    found = [name for each in patterns for name in _glob.glob(path_of(each, "gfile.glob"))]
    return sorted(found)


def remove(path: Any) -> None:
    """Remove a file.

    Args:
        path: Path of the file.

    Raises:
        NotFoundError: The file does not exist.

    Example:
        >>> import samegrad as tf
        >>> tf.io.write_file("removed", "text"); remove("removed"); exists("removed")
        False
    """
    found = path_of(path, "gfile.remove")
    if not os.path.lexists(found):
        raise _not_found("gfile.remove", found)
    with explained_errors("tf.io.gfile.remove", "remove", Path(found), "Folders: rmtree"):
        os.remove(found)


def rmtree(path: Any) -> None:
    """Remove a folder with all its entries.

    Args:
        path: Path of the folder.

    Raises:
        NotFoundError: The folder does not exist.

    Example:
        >>> makedirs("gone/b"); rmtree("gone"); exists("gone")
        False
    """
    found = path_of(path, "gfile.rmtree")
    if not os.path.lexists(found):
        raise _not_found("gfile.rmtree", found)
    with explained_errors("tf.io.gfile.rmtree", "remove", Path(found), "Files: remove"):
        shutil.rmtree(found)


def _place_for(path: str, overwrite: bool, who: str) -> None:
    if os.path.exists(path) and not overwrite:
        raise AlreadyExistsError(
            f"[tf.io.{who}] there must be nothing yet: got {shown(path)}; pass overwrite=True."
        )


def copy(src: Any, dst: Any, overwrite: bool = False) -> None:
    """Copy a file.

    Args:
        src: Path of the file.
        dst: Path of the copy.
        overwrite: If True, replace an existing file.

    Raises:
        NotFoundError: The file does not exist.
        AlreadyExistsError: dst exists, and overwrite is False.

    Example:
        >>> import samegrad as tf
        >>> tf.io.write_file("source", "text"); copy("source", "target"); exists("target")
        True
    """
    source, target = path_of(src, "gfile.copy"), path_of(dst, "gfile.copy")
    if not os.path.isfile(source):
        raise _not_found("gfile.copy", source)
    _place_for(target, overwrite, "gfile.copy")
    with explained_errors("tf.io.gfile.copy", "write", Path(target), "Choose another path"):
        shutil.copyfile(source, target)


def rename(src: Any, dst: Any, overwrite: bool = False) -> None:
    """Rename or move a file or a folder.

    Args:
        src: Present path.
        dst: New path.
        overwrite: If True, replace an existing file.

    Raises:
        NotFoundError: src does not exist.
        AlreadyExistsError: dst exists, and overwrite is False.

    Example:
        >>> import samegrad as tf
        >>> tf.io.write_file("old", "text"); rename("old", "new"); exists("old"), exists("new")
        (False, True)
    """
    source, target = path_of(src, "gfile.rename"), path_of(dst, "gfile.rename")
    if not os.path.lexists(source):
        raise _not_found("gfile.rename", source)
    _place_for(target, overwrite, "gfile.rename")
    with explained_errors("tf.io.gfile.rename", "write", Path(target), "Choose another path"):
        os.replace(source, target)


def walk(
    top: Any, topdown: bool = True, onerror: Callable[[OSError], Any] | None = None
) -> Iterator[tuple[str, list[str], list[str]]]:
    """Iterate over the folders below `top`, with their folders and files, sorted.

    Args:
        top: Path of a folder.
        topdown: If True, a folder precedes the folders in it.
        onerror: Function of the error of a folder that cannot be read; None: such are skipped.

    Yields:
        (path, names of folders, names of files).

    Example:
        >>> makedirs("top/b"); list(walk("top"))
        [('top', ['b'], []), ('top/b', [], [])]
    """
    try:
        for folder, folders, files in os.walk(path_of(top, "gfile.walk"), topdown, onerror):
            folders.sort()
            yield folder, folders, sorted(files)
    except Exception as error:  # of `onerror`
        keep_user_frames(error)
        raise


def GFile(name: Any, mode: str = "r") -> Any:  # noqa: N802
    """Open a file as Python's `open` does; strings are UTF-8.

    Args:
        name: Path of the file.
        mode: "r", "w", "a", "rb", "wb" or "ab", with "+" or without.

    Returns:
        File object.

    Raises:
        NotFoundError: The file to read does not exist.

    Example:
        >>> with GFile("a.txt", "w") as file:
        ...     count = file.write("text")
        >>> GFile("a.txt").read()
        'text'
    """
    found = path_of(name, "gfile.GFile")
    if "r" in mode and not os.path.exists(found):
        raise _not_found("gfile.GFile", found)
    with explained_errors("tf.io.gfile.GFile", "open", Path(found), "Choose another path"):
        if "b" in mode:
            return open(found, mode)
        return open(found, mode, encoding="utf-8", newline="")


def existing(path: Any, who: str) -> str:
    """Return the path of an existing file.

    Raises:
        NotFoundError: The file does not exist.

    Example:
        >>> existing("/nowhere", "read_file")
        Traceback (most recent call last):
        samegrad.errors.NotFoundError: [tf.io.read_file] there must be such a file or folder: ...
    """
    found = path_of(path, who)
    if not os.path.exists(found):
        raise _not_found(who, found)
    return found


__all__: Sequence[str] = [
    "GFile", "copy", "exists", "glob", "isdir", "join", "listdir", "makedirs", "mkdir", "remove",
    "rename", "rmtree", "walk",
]  # fmt: skip

if not TYPE_CHECKING:
    __getattr__ = getattr_of(__name__)
guard(__name__)
