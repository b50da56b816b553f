"""The records of `samegrad fashion-mnist`: steps and epochs, their lines and curves."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from samegrad.cli._errors import CommandError
from samegrad.cli._pictures import save_figure
from samegrad.cli._records import LONGEST_LINE, Record, explained

WHO = "fashion-mnist"
_OF_STEPS = ("loss", "examples")
_OF_EPOCHS = ("loss", "accuracy", "test_loss", "test_accuracy")


def epoch_line(record: Record) -> str:
    """The line that the tutorial prints after an epoch; 9 digits tell all float32 apart."""
    return (
        f"Epoch {record['epoch']}, Loss: {record['loss']:.9g}, "
        f"Accuracy: {record['accuracy']:.9g}, Test Loss: {record['test_loss']:.9g}, "
        f"Test Accuracy: {record['test_accuracy']:.9g}"
    )


def known_records(path: Path, after: tuple[int, int]) -> list[Record] | None:
    """Return all records that a checkpoint knows; None if there is no file.

    Args:
        path: The log.
        after: The last step and the last epoch that the checkpoint knows.

    Raises:
        CommandError: The file is not a log, or not that of the run that is resumed.
        OSError: It cannot be read.
    """
    last_step, last_epoch = after
    with explained(WHO, "read", path):
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
            line = file.readline(LONGEST_LINE)
            if not line.endswith(b"\n") and len(line) < LONGEST_LINE:
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
    save_figure(WHO, figure, path)


def _curve(records: list[Record], name: str) -> tuple[list[int], list[float]]:
    return [record["step"] for record in records], [record[name] for record in records]
