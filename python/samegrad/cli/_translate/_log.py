"""The log of `samegrad translate`: steps and epochs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from samegrad.cli._errors import CommandError
from samegrad.cli._records import LONGEST_LINE, Record, explained
from samegrad.cli._translate._pairs import WHO

_OF_STEPS = ("loss", "tokens", "sentences")
_OF_EPOCHS = (
    "perplexity", "accuracy", "held_out_perplexity", "unigram_perplexity", "held_out_accuracy",
)  # fmt: skip


def known_records(path: Path, last_step: int, count: int) -> list[Record] | None:
    """Return the records that a checkpoint knows; None if there is no file.

    A last line that a kill cut short is left out, and so are later steps, which come again.

    Args:
        path: The log.
        last_step: The last step that the checkpoint knows.
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
            f"[{WHO}] {path} must hold the {count} records up to the checkpoint's step "
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
    """A record of a step or of an epoch; ValueError for anything else."""
    numbers = _OF_EPOCHS if "held_out_perplexity" in record else _OF_STEPS
    for name in ("step", "epoch"):
        if type(record[name]) is not int or record[name] < 1:
            raise ValueError(f"{record[name]!r} instead of a number from 1")
    if any(type(record[name]) not in (int, float) for name in numbers):
        raise ValueError("something instead of a number")
    if type(record.get("bleu", 0)) not in (int, float):
        raise ValueError("something instead of a score")
    if not isinstance(record.get("fingerprint", ""), str):
        raise ValueError("something instead of a fingerprint")
    if not set(record) <= {"step", "epoch", "fingerprint", "bleu", *numbers}:
        raise ValueError("something else besides")
    known: Record = record
    return known


def epoch_line(record: Record) -> str:
    """The line that is printed after an epoch."""
    return (
        f"Epoch {record['epoch']}, perplexity {record['perplexity']:.6g}, token accuracy "
        f"{100 * record['accuracy']:.4g} %; {_judgement(record)}"
    )


def averaged_line(record: Record, path: Path) -> str:
    """The line that is printed about the mean of the weights of several epochs."""
    return (
        f"Mean of the weights after the last {record['averaged']} epochs, saved as {path}; "
        f"{_judgement(record)}"
    )


def _judgement(record: Record) -> str:
    """Metrics of a model on the held-out pairs."""
    line = (
        f"held out: perplexity {record['held_out_perplexity']:.6g} (unigram model "
        f"{record['unigram_perplexity']:.6g}), token accuracy "
        f"{100 * record['held_out_accuracy']:.4g} %"
    )
    return line + (f", BLEU {record['bleu']:.4g}" if "bleu" in record else "")
