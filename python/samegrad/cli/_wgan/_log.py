"""The log of `samegrad wgan-gp`: iterations, and judgements of the images."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from samegrad.cli._errors import CommandError
from samegrad.cli._records import LONGEST_LINE, Record, explained
from samegrad.cli._wgan._steps import WHO

FIGURES = ("wasserstein", "critic_loss", "penalty", "gradient_norm", "generator_loss")
_OF_STEPS = (*FIGURES, "learning_rate", "lambda")
_OF_JUDGED = ("sliced_wasserstein", "confidence", "entropy", "class_entropy")


def known_records(path: Path, last_step: int, count: int) -> list[Record] | None:
    """Return the records that a checkpoint knows; None if there is no file.

    A last line that a kill cut short is left out, and so are later iterations, which come again.

    Args:
        path: The log.
        last_step: The last iteration that the checkpoint knows.
        count: How many records it knows; 0: the run had no log.

    Raises:
        CommandError: The file is not a log, or lacks some.
        OSError: It cannot be read.
    """
    with explained(WHO, "read", path):
        if not path.is_file():
            return None
        with path.open("rb") as file:
            lines = list(iter(lambda: file.readline(LONGEST_LINE), b""))
    whole = [line for line in lines if line.endswith(b"\n") or len(line) == LONGEST_LINE]
    records = [_read(path, number, line) for number, line in enumerate(whole[:count], 1)]
    if len(records) < count or (not count and whole):
        raise CommandError(
            f"[{WHO}] {path} must hold the {count} records up to the checkpoint's iteration "
            f"{last_step}: got {len(whole)}. Resume with another --log file, which then begins "
            "there, or give the log of this run."
        )
    return records


def _read(path: Path, number: int, line: bytes) -> Record:
    try:
        return _checked(json.loads(line))
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise CommandError(
            f"[{WHO}] every line of {path} must be a record of a run: got line {number}, "
            f"{line[:40]!r}. Resume with another --log file."
        ) from error


def _checked(record: Any) -> Record:
    """A record of an iteration or of a judgement; ValueError for anything else."""
    judged = "sliced_wasserstein" in record
    numbers = [name for name in _OF_JUDGED if name in record] if judged else list(_OF_STEPS)
    if type(record["step"]) is not int or record["step"] < (0 if judged else 1):
        raise ValueError(f"{record['step']!r} instead of a number")
    if any(type(record[name]) not in (int, float) for name in numbers):
        raise ValueError("something instead of a number")
    if not isinstance(record.get("fingerprint", ""), str):
        raise ValueError("something instead of a fingerprint")
    if not set(record) <= {"step", "fingerprint", *numbers}:
        raise ValueError("something else besides")
    known: Record = record
    return known


def check_plotted(records: list[Record], last_step: int) -> None:
    """Finds out after a resume whether all iterations can be drawn.

    Raises:
        CommandError: Some are missing.
    """
    steps = sum("sliced_wasserstein" not in record for record in records)
    if steps != last_step:
        raise CommandError(
            f"[{WHO}] --plot of a resumed run must have all {last_step} earlier iterations: got "
            f"{steps}. Give the --log file of the run, or leave out --plot."
        )
