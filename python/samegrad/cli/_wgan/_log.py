"""The log of `samegrad wgan-gp`: iterations, and judgements of the images."""

from __future__ import annotations

from typing import Any

from samegrad.cli._errors import CommandError
from samegrad.cli._records import Record
from samegrad.cli._wgan._steps import WHO

FIGURES = ("wasserstein", "critic_loss", "penalty", "gradient_norm", "generator_loss")
_OF_STEPS = (*FIGURES, "learning_rate", "lambda")
_OF_JUDGED = ("sliced_wasserstein", "confidence", "entropy", "class_entropy")


def check_record(record: Any) -> Record:
    """Return a record of an iteration or a judgement; ValueError for anything else."""
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
