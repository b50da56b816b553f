"""What a training job tells: lines, a progress bar, a log file, a plot; and when it must stop."""

from __future__ import annotations

import contextlib
import hashlib
import io
import itertools
import json
import os
import signal
import stat
from collections.abc import Callable, Iterable
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any, TextIO

import numpy.typing as npt

from samegrad._base.file_errors import explained_errors
from samegrad.cli._errors import CommandError
from samegrad.train import _files

Record = dict[str, Any]
_OF_STEPS = ("loss", "examples")
_OF_EPOCHS = ("loss", "accuracy", "test_loss", "test_accuracy")
_LONGEST_LINE = 4096  # bytes


def fingerprint(arrays: Iterable[npt.NDArray[Any]]) -> str:
    """A 64-bit hash of the bytes of some arrays, in order.

    Example:
        >>> import numpy as np
        >>> fingerprint([np.zeros(2)]) == fingerprint([np.zeros(1), np.zeros(1)])
        True
        >>> fingerprint([np.zeros(1)]) == fingerprint([-np.zeros(1)])
        False
    """
    digest = hashlib.blake2b(digest_size=8)
    for array in arrays:
        digest.update(array.tobytes())
    return digest.hexdigest()


def epoch_line(record: Record) -> str:
    """The line that the tutorial prints after an epoch; 9 digits tell all float32 apart."""
    return (
        f"Epoch {record['epoch']}, Loss: {record['loss']:.9g}, "
        f"Accuracy: {record['accuracy']:.9g}, Test Loss: {record['test_loss']:.9g}, "
        f"Test Accuracy: {record['test_accuracy']:.9g}"
    )


class RunLog:
    """Records of steps and epochs, in memory and, if asked for, in a file of JSON lines.

    The records hold nothing that differs between equal runs, no times: two runs are compared by
    comparing their files.

    Args:
        path: The file, or None.
        resumed: None begins a new log. After a resume, the last step and the last epoch that the
            checkpoint knows: earlier records stay, later ones will come again. If the file does
            not exist, the log begins there.
        check: Gets the records that stay, before the file is touched.

    Raises:
        CommandError: The file is no log, or not that of the run that is resumed.
        OSError: The file cannot be read or written.
    """

    def __init__(
        self,
        path: Path | None,
        resumed: tuple[int, int] | None = None,
        check: Callable[[list[Record]], None] = lambda records: None,
    ) -> None:
        self.records: list[Record] = []
        self._file: TextIO | None = None
        if path is None:
            return
        self._path = path
        known = None if resumed is None else _known_records(path, *resumed)
        if known is not None:
            check(known)
            self.records = known
        with _explained("write", path):
            if known is not None:  # replaced at once: a kill here must not cost the records
                _files.replace_file(path, b"".join(_encode(record) for record in known))
            # Line buffering: a killed run has logged every step it has done.
            self._file = path.open("w" if resumed is None else "a", buffering=1, encoding="utf-8")

    def add(self, record: Record) -> None:
        """Adds a record to memory and file."""
        self.records.append(record)
        if self._file is not None:
            with _explained("write", self._path):
                self._file.write(_encode(record).decode())

    @property
    def digest(self) -> str:
        """A hash of all records; "" where there is no file, which need not have all."""
        return "" if self._file is None else digest_of(self.records)

    def flush(self) -> None:
        """Flushes the file to the disk, so that no checkpoint knows more steps than it."""
        if self._file is not None:
            with _explained("flush", self._path):
                self._file.flush()
                if stat.S_ISREG(os.fstat(self._file.fileno()).st_mode):
                    os.fsync(self._file.fileno())

    def close(self) -> None:
        """Closes the file."""
        if self._file is not None:
            with _explained("write", self._path):
                self._file.close()


def _encode(record: Record) -> bytes:
    return json.dumps(record).encode() + b"\n"


def digest_of(records: list[Record]) -> str:
    """A hash of a log's records; "" of none."""
    content = b"".join(_encode(record) for record in records)
    return hashlib.blake2b(content, digest_size=16).hexdigest() if content else ""


def _explained(action: str, path: Path) -> contextlib.AbstractContextManager[None]:
    return explained_errors(
        "fashion-mnist", action, path, "Look at its folder and the disk, or give another path"
    )


def _known_records(path: Path, last_step: int, last_epoch: int) -> list[Record] | None:
    """The records that a checkpoint knows, all of them; None where there is no file."""
    with _explained("read", path):
        if not path.is_file():
            return None
        records = _records_until(path, last_step, last_epoch)
    _check_complete(path, records, last_step, last_epoch)
    return records


def _records_until(path: Path, last_step: int, last_epoch: int) -> list[Record]:
    """The records that a checkpoint knows; a last line that a kill cut short is left out."""
    records: list[Record] = []
    with path.open("rb") as file:
        for number in itertools.count(1):
            line = file.readline(_LONGEST_LINE)
            if not line.endswith(b"\n") and len(line) < _LONGEST_LINE:
                return records
            try:
                record = _checked(json.loads(line))
            except (ValueError, KeyError, TypeError, RecursionError) as error:
                raise CommandError(
                    f"[fashion-mnist] every line of {path} must be a record of a run: got line "
                    f"{number}, {line[:40]!r}. Resume with another --log file."
                ) from error
            later = 0 if "test_loss" in record else 1
            if record["step"] <= last_step and record["epoch"] <= last_epoch + later:
                records.append(record)
    return records


def _checked(record: Any) -> Record:
    """A record of a step or of an epoch; ValueError for anything else."""
    numbers = _OF_EPOCHS if "test_loss" in record else _OF_STEPS
    for name in ("step", "epoch"):
        if type(record[name]) is not int or record[name] < 1:
            raise ValueError(f"{record[name]!r} instead of a number from 1")
    if any(type(record[name]) not in (int, float) for name in numbers):
        raise ValueError("something instead of a number")
    if "fingerprint" in record and not isinstance(record["fingerprint"], str):
        raise ValueError("something instead of a fingerprint")
    if not set(record) <= {"step", "epoch", "fingerprint", *numbers}:
        raise ValueError("something else besides")
    known: Record = record
    return known


def _check_complete(path: Path, records: list[Record], last_step: int, last_epoch: int) -> None:
    """CommandError unless all steps and epochs are there, from the log's first one on."""
    steps = [record["step"] for record in records if "test_loss" not in record]
    epochs = [record["epoch"] for record in records if "test_loss" in record]
    first_step, first_epoch = last_step + 1, last_epoch + 1
    if records:  # an epoch comes after its last step
        first_step = records[0]["step"] + ("test_loss" in records[0])
        first_epoch = records[0]["epoch"]
    for what, found, wanted in (
        ("steps", steps, list(range(first_step, last_step + 1))),
        ("epochs", epochs, list(range(first_epoch, last_epoch + 1))),
    ):
        if found != wanted or (last_step and not records):
            missing = sorted(set(wanted).difference(found))
            told = f"{missing[0]} is missing" if missing else f"{len(found)} {what}"
            raise CommandError(
                f"[fashion-mnist] {path} must hold the {what} up to the checkpoint's last one, "
                f"step {last_step} of epoch {last_epoch + 1}, each once: got {told}. Resume with "
                "another --log file, which then begins there, or give the log of this run."
            )
    _check_order(path, records, first_epoch)


def _check_order(path: Path, records: list[Record], epoch: int) -> None:
    """CommandError unless each epoch comes after its last step, and each step in its epoch."""
    step = records[0]["step"] if records else 0
    for number, record in enumerate(records, 1):
        ends = "test_loss" in record
        if record["epoch"] != epoch or (ends and number > 1 and record["step"] != step):
            raise CommandError(
                f"[fashion-mnist] {path} must hold the steps of epoch {epoch} and then its end: "
                f"got step {record['step']} of epoch {record['epoch']} in record {number}. Resume "
                "with another --log file, or give the log of this run."
            )
        epoch, step = epoch + ends, record["step"]


def check_unused(path: Path) -> None:
    """Finds out before a new run whether its log would empty a file.

    Raises:
        CommandError: The file holds something.
    """
    with _explained("read", path):
        size = path.stat().st_size if path.is_file() else 0
    if size:
        raise CommandError(
            f"[fashion-mnist] a new run must have a new log: got {path}, which holds "
            f"{size} bytes. Go on with that run with --resume, or empty the file "
            "with --overwrite."
        )


def check_plotted(records: list[Record], last_step: int) -> None:
    """Finds out after a resume whether all steps can be drawn.

    Raises:
        CommandError: Steps are missing.
    """
    steps = [record["step"] for record in records if "test_loss" not in record]
    if last_step and (not steps or steps[0] != 1):
        found = f"step {steps[0]} and later ones" if steps else "none"
        raise CommandError(
            f"[fashion-mnist] --plot of a resumed run must have all {last_step} earlier steps: got "
            f"{found}. Give the --log file of the run, or leave out --plot."
        )


def check_plot(path: Path) -> None:
    """Finds out before the training whether a plot can be drawn after it.

    Raises:
        CommandError: matplotlib is missing, does not know the file type, or the folder is missing.
    """
    try:
        from matplotlib.backend_bases import FigureCanvasBase
    except ImportError as error:
        raise CommandError(
            "[fashion-mnist] --plot needs matplotlib: it is not installed. Run "
            "`pip install 'samegrad[plot]'`."
        ) from error
    known = FigureCanvasBase.get_supported_filetypes()
    if path.suffix[1:] not in known:
        raise CommandError(
            f"[fashion-mnist] --plot must end in one of {', '.join(sorted(known))}: got "
            f"{path.name!r}. Take .png."
        )
    if not path.absolute().parent.is_dir():
        raise CommandError(
            f"[fashion-mnist] the folder of --plot must exist: got {path.absolute().parent}. "
            "Create it."
        )


def draw_plot(path: Path, records: Iterable[Record]) -> None:
    """Draws loss and accuracy over the steps.

    Args:
        path: The picture; its ending says the file type.
        records: As `RunLog` holds them.

    Raises:
        OSError: The file cannot be written; none is left half-written.
    """
    from matplotlib.figure import Figure

    epochs = [record for record in records if "test_loss" in record]
    steps = [record for record in records if "test_loss" not in record]
    figure = Figure(figsize=(10, 4), layout="constrained")
    losses, accuracies = figure.subplots(1, 2)
    losses.plot(*_curve(steps, "loss"), linewidth=0.7, alpha=0.5, label="train, each step")
    losses.plot(*_curve(epochs, "loss"), marker="o", label="train, each epoch")
    losses.plot(*_curve(epochs, "test_loss"), marker="o", label="test")
    losses.set(xlabel="step", ylabel="loss", yscale="log")
    accuracies.plot(*_curve(epochs, "accuracy"), marker="o", label="train")
    accuracies.plot(*_curve(epochs, "test_accuracy"), marker="o", label="test")
    accuracies.set(xlabel="step", ylabel="accuracy in %")
    for axes in (losses, accuracies):
        axes.legend()
        axes.grid(alpha=0.3)
    picture = io.BytesIO()
    figure.savefig(picture, format=path.suffix[1:])
    with _explained("write", path):
        _files.replace_file(path.absolute(), picture.getvalue())


def _curve(records: list[Record], name: str) -> tuple[list[int], list[float]]:
    return [record["step"] for record in records], [record[name] for record in records]


class StopSignal:
    """While entered, the first Ctrl-C or SIGTERM only asks to stop; a second Ctrl-C interrupts.

    Schedulers send SIGTERM before they kill, some of them several times: it never interrupts.

    Attributes:
        signal: The number of the signal that asked, or None.
    """

    def __init__(self) -> None:
        self.signal: int | None = None
        self._before: dict[int, Any] = {}

    @property
    def is_set(self) -> bool:
        """Whether the run shall stop."""
        return self.signal is not None

    @property
    def exit_code(self) -> int:
        """What shells and schedulers expect of a process that a signal has ended."""
        return 0 if self.signal is None else 128 + self.signal

    def __enter__(self) -> StopSignal:
        for number in (signal.SIGINT, signal.SIGTERM):
            self._before[number] = signal.signal(number, self._handle)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.is_set and number == signal.SIGINT:
            raise KeyboardInterrupt
        if not self.is_set:
            self.signal = number
            # Not print: the signal may come while the stream is being written to.
            with contextlib.suppress(OSError):
                os.write(2, b"\nStopping after this step; Ctrl-C again stops at once.\n")
