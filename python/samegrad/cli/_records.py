"""Run logs: records of steps, in memory and in a file of JSON lines."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol, TextIO

from samegrad._base.file_errors import explained_errors
from samegrad.cli._errors import CommandError
from samegrad.train import _files

Record = dict[str, Any]
LONGEST_LINE = 4096  # bytes


class LoggedProgress(Protocol):
    """Progress of a training that its checkpoints store.

    Attributes:
        step: Steps done.
        records: Number of records in the log.
        log_digest: Hash of the records; "" if there is no log.
    """

    step: int
    records: int
    log_digest: str


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


def resume_log(
    who: str, path: Path | None, progress: LoggedProgress, unit: str,
    check_record: Callable[[Any], Record],
) -> RunLog:  # fmt: skip
    """Open the log of a resumed run with the records that its checkpoint knows.

    A last line that a kill cut short is left out, and so are later records, which come again.

    Args:
        who: The command, for errors.
        path: The file, or None.
        progress: The restored progress of the training.
        unit: "step" or "iteration", for errors.
        check_record: Returns a record of the command; ValueError for anything else.

    Returns:
        The log. Without a file it begins here.

    Raises:
        CommandError: The file is not a log, or not that of the run that is resumed.
        OSError: The file cannot be read or written.
    """

    def read(path: Path) -> list[Record] | None:
        with explained(who, "read", path):
            if not path.is_file():
                return None
            with path.open("rb") as file:
                lines = list(iter(lambda: file.readline(LONGEST_LINE), b""))
        whole = [line for line in lines if line.endswith(b"\n") or len(line) == LONGEST_LINE]
        count, records = progress.records, []
        for number, line in enumerate(whole[:count], 1):
            try:
                records.append(check_record(json.loads(line)))
            except (ValueError, KeyError, TypeError, RecursionError) as error:
                raise CommandError(
                    f"[{who}] every line of {path} must be a record of a run: got line {number}, "
                    f"{line[:40]!r}. Resume with another --log file."
                ) from error
        if len(records) < count or (not count and whole):
            raise CommandError(
                f"[{who}] {path} must hold the {count} records up to the checkpoint's {unit} "
                f"{progress.step}: got {len(whole)}. Resume with another --log file, which then "
                "begins there, or give the log of this run."
            )
        return records

    def check(records: list[Record]) -> None:
        if digest_of(records) != progress.log_digest:
            raise CommandError(
                f"[{who}] --log must be the log of the run that is resumed: got one with other "
                f"figures up to {unit} {progress.step}. Give that run's, or a new file."
            )

    return RunLog(who, path, read, check)


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
