"""Files that are either there in full or not at all, whatever moment the process is killed.

New content goes into a hidden temporary folder beside its destination, is flushed to the disk, and
is renamed into place. A temporary folder is locked while its process lives, so the leftovers of
killed processes can be told from the work of living ones.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path

_TEMPORARY_PREFIX = ".samegrad-tmp-"


def write_new_file(path: Path, *parts: bytes | memoryview) -> None:
    """Writes a file that must not exist yet and flushes it to the disk."""
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
    """Flushes the names in a folder to the disk, so that a rename survives a power cut."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno != errno.EINVAL:  # some network file systems cannot do this
            raise
    finally:
        os.close(descriptor)


def make_folder(folder: Path) -> None:
    """Creates a folder and its parents, and flushes their names."""
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
    path, lock = _create_locked(parent)
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)
        os.close(lock)


def replace_file(path: Path, content: bytes) -> None:
    """Writes a file, or puts new content in the place of the old at once."""
    with temporary_folder(path.parent) as temporary:
        write_new_file(temporary / path.name, content)
        os.replace(temporary / path.name, path)
        sync_folder(path.parent)


def remove_folder(path: Path) -> None:
    """Removes a folder such that its name never stands for half of its content."""
    with temporary_folder(path.parent) as temporary, contextlib.suppress(FileNotFoundError):
        os.rename(path, temporary / path.name)


def remove_leftovers(parent: Path) -> None:
    """Removes the temporary folders of killed processes."""
    for path in parent.glob(f"{_TEMPORARY_PREFIX}*"):
        with contextlib.suppress(OSError):  # locked by a living process, or gone meanwhile
            lock = os.open(path, os.O_RDONLY)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(path, ignore_errors=True)
            finally:
                os.close(lock)


def _create_locked(parent: Path) -> tuple[Path, int]:
    while True:
        path = parent / f"{_TEMPORARY_PREFIX}{secrets.token_hex(8)}"
        os.mkdir(path)
        try:
            lock = os.open(path, os.O_RDONLY)
        except FileNotFoundError:
            continue  # taken for a leftover before it was locked
        with contextlib.suppress(OSError):  # file systems without locks: leftovers then stay
            fcntl.flock(lock, fcntl.LOCK_EX)
        if path.exists():
            return path, lock
        os.close(lock)
