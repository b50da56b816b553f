"""What a training job tells: lines, a progress bar, a log file, a plot; and when it must stop."""

from __future__ import annotations

import hashlib
import io
import json
import signal
import sys
from collections.abc import Iterable
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any, TextIO

import numpy.typing as npt

from samegrad.cli._errors import CommandError
from samegrad.train import _files

Record = dict[str, Any]


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
            checkpoint knows: earlier records stay, later ones will come again.

    Raises:
        OSError: The file cannot be read or written.
    """

    def __init__(self, path: Path | None, resumed: tuple[int, int] | None = None) -> None:
        self.records: list[Record] = []
        self._file: TextIO | None = None
        if path is None:
            return
        if resumed is not None and path.is_file():
            self.records = _records_until(path, *resumed)
            # Replaced at once: a kill here must not cost the records.
            _files.replace_file(path, b"".join(_encode(record) for record in self.records))
        # Line buffering: a killed run has logged every step it has done.
        self._file = path.open("w" if resumed is None else "a", buffering=1, encoding="utf-8")

    def add(self, record: Record) -> None:
        """Adds a record to memory and file."""
        self.records.append(record)
        if self._file is not None:
            self._file.write(_encode(record).decode())

    def close(self) -> None:
        """Closes the file."""
        if self._file is not None:
            self._file.close()


def _encode(record: Record) -> bytes:
    return json.dumps(record).encode() + b"\n"


def _records_until(path: Path, last_step: int, last_epoch: int) -> list[Record]:
    """The records that a checkpoint knows; a last line that a kill cut short is left out."""
    records = []
    for number, line in enumerate(path.read_bytes().splitlines(keepends=True), 1):
        if not line.endswith(b"\n"):
            break
        try:
            record = json.loads(line)
            known = record["step"] <= last_step and record["epoch"] <= last_epoch + (
                0 if "test_loss" in record else 1
            )
        except (ValueError, KeyError, TypeError) as error:
            raise CommandError(
                f"[fashion-mnist] every line of {path} must be a record of a run: got line "
                f"{number}. Resume with another --log file."
            ) from error
        if known:
            records.append(record)
    return records


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
    _files.replace_file(path.absolute(), picture.getvalue())


def _curve(records: list[Record], name: str) -> tuple[list[int], list[float]]:
    return [record["step"] for record in records], [record[name] for record in records]


class StopSignal:
    """While entered, the first Ctrl-C only asks to stop; the second one interrupts.

    Attributes:
        is_set: Whether Ctrl-C was pressed.
    """

    def __init__(self) -> None:
        self.is_set = False
        self._before: Any = None

    def __enter__(self) -> StopSignal:
        self._before = signal.signal(signal.SIGINT, self._handle)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        signal.signal(signal.SIGINT, self._before)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.is_set:
            raise KeyboardInterrupt
        self.is_set = True
        print("\nStopping after this step; Ctrl-C again stops at once.", file=sys.stderr)
