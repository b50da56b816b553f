"""Files that are either there in full or not at all, whatever moment the process is killed.

New content goes into a hidden temporary folder beside its destination, is flushed to the disk, and
is renamed into place. A temporary folder is locked while its process lives, so the leftovers of
killed processes can be told from the work of living ones.

Who puts files into a folder under names that others know holds the lock of that folder meanwhile,
and so does who opens several files that belong together.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
import re
import secrets
import shutil
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

from samegrad import _core

_TEMPORARY_PREFIX = ".samegrad-tmp-"
_TIMEOUT = 60.0  # seconds; a lock is held for some renames only
# A link could lead anywhere, and a named pipe would wait for a writer.
_READ_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class UnusableFileError(ValueError):
    """Error: the path does not name a readable file; the message tells what it is."""


def is_plain(name: object) -> bool:
    """Tell if this is the name of an entry of a folder, which is not temporary."""
    if not isinstance(name, str) or name in (".", "..") or set(name) & {"/", "\0"}:
        return False
    if name.startswith(_TEMPORARY_PREFIX):
        return False
    try:
        return 0 < len(os.fsencode(name)) <= 255
    except UnicodeError:
        return False


def open_file(path: Path) -> io.FileIO:
    """Open a file for reading; the file itself, not what a link points to.

    Raises:
        UnusableFileError: It is a link, a folder, or a device.
        OSError: It is absent, or cannot be read.
    """
    try:
        # The descriptor is the file's from the start: what an interrupt leaves is closed once.
        file = io.FileIO(path, "rb", opener=lambda name, _: os.open(name, _READ_FLAGS))
    except IsADirectoryError as error:
        raise UnusableFileError("no regular file") from error
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO):
            what = "a symbolic link" if error.errno == errno.ELOOP else "a socket or device"
            raise UnusableFileError(what) from error
        raise
    try:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise UnusableFileError("no regular file")
    except BaseException:
        file.close()
        raise
    return file


def read_file(path: Path, most: int) -> bytes:
    """The content of a file.

    Args:
        path: The file, not a link.
        most: Bytes that it may have at most.

    Raises:
        UnusableFileError: It is not a file, or larger.
        OSError: It is absent, or cannot be read.
    """
    with open_file(path) as file:
        size = os.fstat(file.fileno()).st_size
        if size > most:
            raise UnusableFileError(f"{size} bytes, where at most {most} are expected")
        parts = []
        while part := file.read(min(most, 1 << 16)):
            parts.append(part)
            most -= len(part)
        return b"".join(parts)


def locked(folder: Path, shared: bool = False) -> _core.Guard:
    """A block that holds the lock of a folder, which lasts no longer than its process lives.

    One writer or any number of readers hold it, of all processes and threads. Where the file
    system has no locks, this does nothing.

    Args:
        folder: It must exist.
        shared: Whether for reading.

    Raises:
        TimeoutError: On entry: others hold the lock for too long.
        OSError: On entry: the folder cannot be opened.
    """
    return _core.locked_folder(folder, shared, _TIMEOUT)


def write_new_file(path: Path, *parts: bytes | memoryview) -> None:
    """Write a file that must not exist yet and flush it to the disk."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        for part in parts:
            view = memoryview(part)
            while len(view):  # a disk may take less than all of it
                view = view[os.write(descriptor, view) :]
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_folder(folder: Path) -> None:
    """Flush the names in a folder to the disk, so that a rename survives a power cut."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno != errno.EINVAL:  # some network file systems cannot do this
            raise
    finally:
        os.close(descriptor)


def make_folder(folder: Path) -> None:
    """Create a folder and its parents, and flush their names."""
    if folder.is_dir():
        return
    make_folder(folder.parent)
    with contextlib.suppress(FileExistsError):  # another process was faster
        os.mkdir(folder)
    sync_folder(folder.parent)


@contextlib.contextmanager
def temporary_folder(parent: Path) -> Iterator[Path]:
    """A locked temporary folder in `parent`; what is left in it at the end is removed."""
    remove_leftovers(parent)
    made = _Made()
    try:
        yield _create_locked(parent, made)
    finally:
        try:
            made.remove()
        except BaseException:  # an interrupt
            made.remove()
            raise


class _Made:
    """Temporary folders from the moment on when they may exist, and the lock of the last one."""

    def __init__(self) -> None:
        self.paths: list[Path] = []
        self.lock: _core.Guard | None = None

    def remove(self) -> None:
        """Remove the folders and unlock; a second time does what is left to do."""
        for path in self.paths:
            _remove_tree(path)
        self.lock = None


def replace_file(path: Path, content: bytes) -> None:
    """Write a file, or put new content in the place of the old at once."""
    with temporary_folder(path.parent) as temporary:
        write_new_file(temporary / path.name, content)
        os.replace(temporary / path.name, path)
        sync_folder(path.parent)


def put_in_place(
    temporary: Path, target: Path, document: str, arrays: re.Pattern[str],
    sync: Callable[[Path], None],
) -> None:  # fmt: skip
    """Make a finished temporary folder the target, or move its two files over the older ones.

    Args:
        temporary: The folder, with the document and the file of arrays that it names.
        target: The folder that others know.
        document: The name of the document.
        arrays: Matches the names of files of arrays. Other arrays have another name.
        sync: Flushes the names of a folder once the document is in place.
    """
    (name,) = (path.name for path in temporary.iterdir() if path.name != document)
    if target.is_symlink():
        raise NotADirectoryError(errno.ENOTDIR, "it is a symbolic link, which is not followed")
    if not target.exists():
        os.rename(temporary, target)
        sync(target.parent)
        return
    # A folder cannot be renamed onto another. The document goes last: until then it is the old
    # one, whose array file has another name and is still there.
    os.replace(temporary / name, target / name)
    sync_folder(target)
    os.replace(temporary / document, target / document)
    sync(target)
    with contextlib.suppress(OSError):  # the next save tries again
        for path in target.iterdir():
            if path.name != name and arrays.fullmatch(path.name):
                os.unlink(path)


def remove_folder(path: Path) -> None:
    """Remove a folder such that its name never stands for half of its content."""
    with temporary_folder(path.parent) as temporary, contextlib.suppress(FileNotFoundError):
        os.rename(path, temporary / path.name)


def remove_leftovers(parent: Path) -> None:
    """Remove the temporary folders of killed processes."""
    for path in parent.glob(f"{_TEMPORARY_PREFIX}*"):
        # Locked by a living process, or gone meanwhile.
        with contextlib.suppress(OSError), _core.locked_folder(path, False, timeout=0):
            _remove_tree(path)


def _remove_tree(path: Path) -> None:
    """Remove a folder as far as possible; leave links alone."""
    with contextlib.suppress(OSError):  # which `ignore_errors` lets through where a close fails
        shutil.rmtree(path, ignore_errors=True)


def _create_locked(parent: Path, made: _Made) -> Path:
    while True:
        path = parent / f"{_TEMPORARY_PREFIX}{secrets.token_hex(8)}"
        made.paths.append(path)
        os.mkdir(path)
        made.lock = locked(path)
        try:
            made.lock.__enter__()
        except FileNotFoundError:
            continue  # taken for a leftover before it was locked
        if path.exists():
            return path
