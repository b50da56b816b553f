"""Run logs: records of steps, in memory and in a file of JSON lines."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import stat
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TextIO

import numpy as np
import numpy.typing as npt

from samegrad._base.file_errors import explained_errors
from samegrad.cli._errors import CommandError
from samegrad.train import _files

Record = dict[str, Any]
LONGEST_LINE = 4096  # bytes


def fingerprint(arrays: Iterable[npt.NDArray[Any]]) -> str:
    """A 64-bit hash of the bytes of some arrays, in order. All NaN are hashed as one.

    Example:
        >>> import numpy as np
        >>> fingerprint([np.zeros(2)]) == fingerprint([np.zeros(1), np.zeros(1)])
        True
        >>> fingerprint([np.zeros(1)]) == fingerprint([-np.zeros(1)])
        False
    """
    digest = hashlib.blake2b(digest_size=8)
    for array in arrays:
        if array.dtype.kind not in "biu":
            array = np.where(np.isnan(array), array.dtype.type("nan"), array)
        digest.update(array.tobytes())
    return digest.hexdigest()


class RunLog:
    """Records of steps and epochs, in memory and, if asked for, in a file of JSON lines.

    The records hold nothing that differs between equal runs, no times: two runs are compared by
    comparing their files.

    Args:
        who: The command, for errors.
        path: The file, or None.
        read: None begins a new log. After a resume, reads the records that the checkpoint knows:
            these stay, later ones will come again. None of them, where the file does not exist:
            the log begins there.
        check: Gets the records that stay, before the file is touched.

    Raises:
        CommandError: The file is not a log, or not that of the run that is resumed.
        OSError: The file cannot be read or written.
    """

    def __init__(
        self,
        who: str,
        path: Path | None,
        read: Callable[[Path], list[Record] | None] | None = None,
        check: Callable[[list[Record]], None] = lambda records: None,
    ) -> None:
        self.records: list[Record] = []
        self._file: TextIO | None = None
        if path is None:
            return
        self._path, self._who = path, who
        known = None if read is None else read(path)
        if known is not None:
            check(known)
            self.records = known
        with explained(who, "write", path):
            if known is not None:  # replaced at once: a kill here must not cost the records
                _files.replace_file(path, b"".join(encode(record) for record in known))
            # Line buffering: a killed run has logged every step it has done.
            self._file = path.open("w" if read is None else "a", buffering=1, encoding="utf-8")

    def add(self, record: Record) -> None:
        """Adds a record to memory and file."""
        self.records.append(record)
        if self._file is not None:
            with explained(self._who, "write", self._path):
                self._file.write(encode(record).decode())

    @property
    def digest(self) -> str:
        """A hash of all records; "" where there is no file, which need not have all."""
        return "" if self._file is None else digest_of(self.records)

    def flush(self) -> None:
        """Flushes the file to the disk, so that no checkpoint knows more steps than it."""
        if self._file is not None:
            with explained(self._who, "flush", self._path):
                self._file.flush()
                if stat.S_ISREG(os.fstat(self._file.fileno()).st_mode):
                    os.fsync(self._file.fileno())

    def close(self) -> None:
        """Closes the file."""
        if self._file is not None:
            with explained(self._who, "write", self._path):
                self._file.close()


def encode(record: Record) -> bytes:
    """A record as a line."""
    return json.dumps(record).encode() + b"\n"


def digest_of(records: list[Record]) -> str:
    """A hash of a log's records; "" of none."""
    content = b"".join(encode(record) for record in records)
    return hashlib.blake2b(content, digest_size=16).hexdigest() if content else ""


def explained(who: str, action: str, path: Path) -> contextlib.AbstractContextManager[None]:
    """Errors of the system about a file of a run, with a way out."""
    return explained_errors(
        who, action, path, "Look at its folder and the disk, or give another path"
    )


def check_unused(who: str, path: Path) -> None:
    """Finds out before a new run whether its log would empty a file.

    Raises:
        CommandError: The file holds something.
    """
    with explained(who, "read", path):
        size = path.stat().st_size if path.is_file() else 0
    if size:
        raise CommandError(
            f"[{who}] a new run must have a new log: got {path}, which holds "
            f"{size} bytes. Go on with that run with --resume, or empty the file "
            "with --overwrite."
        )
