"""The log of `samegrad translate`: steps and epochs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from samegrad.cli._records import Record

_OF_STEPS = ("loss", "tokens", "sentences")
_OF_EPOCHS = (
    "perplexity", "accuracy", "held_out_perplexity", "unigram_perplexity", "held_out_accuracy",
)  # fmt: skip


def check_record(record: Any) -> Record:
    """Return a record of a step or of an epoch; ValueError for anything else."""
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
