"""Reports mistakes of loss normalization that a traced program shows before it runs.

The engine follows the counts of examples and replicas through the program
(cpp/analysis/count_powers.cpp); the words are also those of the doctor, `samegrad.testing`.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Any

from samegrad import _core
from samegrad._base.mistakes import PROGRAM_MISTAKES
from samegrad._base.shown import shown
from samegrad._context.counted_numbers import questions
from samegrad.errors import LossNormalizationError, LossNormalizationWarning

_MODES = ("warn", "error", "off")
_SURE = ("nonlinear_share",)  # whatever the program divides by
_mode = "warn"
_shown: dict[Any, Any] = {}  # what the warnings filter remembers


def set_loss_normalization_check(mode: str) -> None:
    """What happens where a program that is traced shows a mistake of loss normalization.

    Functions and `Strategy.run` are looked at while they are traced, before anything runs: a local
    mean that is summed over the replicas, a share of a loss that is averaged over them, a penalty
    that every replica adds. It costs nothing when the step
    runs, and it is silent where it cannot follow the program; `samegrad.testing.diagnose` finds
    what it cannot see.

    Args:
        mode: "warn" (the default: a `samegrad.errors.LossNormalizationWarning` at the line of the
            mistake), "error" (raises `samegrad.errors.LossNormalizationError`, and nothing has
            run) or "off".

    Raises:
        ValueError: Another mode.

    Example:
        >>> import samegrad as tf
        >>> tf.config.set_loss_normalization_check("error")
        >>> tf.config.get_loss_normalization_check()
        'error'
        >>> tf.config.set_loss_normalization_check("warn")
    """
    global _mode
    if mode not in _MODES:
        raise ValueError(
            f"[set_loss_normalization_check] mode is one of {', '.join(map(repr, _MODES))}: got "
            f"{shown(mode)}."
        )
    _mode = mode


def get_loss_normalization_check() -> str:
    """The mode: "warn", "error" or "off"."""
    return _mode


def note_use(use: str, tensor: _core.Tensor) -> None:
    """Tells the trace, if there is one, what becomes of a value of the replicas.

    Args:
        use: "gradient" (summed over the replicas, for an optimizer), or "assignment" (a new
            value of a variable that is trained).
        tensor: The value.
    """
    if _mode != "off":
        _core.note_use(use, tensor)


def check_trace(trace: _core.Trace, outputs: list[_core.Tensor]) -> list[bool]:
    """Reports what is wrong with a traced program.

    Returns:
        Of each output, whether it is a replica's share of the mean over the global batch.

    Raises:
        LossNormalizationError: Something is wrong, and mistakes are errors.
    """
    if _mode == "off" or trace.replicas == 1:
        return [False] * len(outputs)
    mistakes, shares = trace.check_loss_normalization(outputs)
    report((key, line) for key, line in mistakes if key in _SURE or not questions.open)
    return list(shares)


def report(mistakes: Iterable[tuple[str, str]]) -> None:
    """Warns of mistakes, or raises.

    Args:
        mistakes: Key and line ("train.py:31") of each.

    Raises:
        LossNormalizationError: There is one, and mistakes are errors.
    """
    for key, line in mistakes if _mode != "off" else ():
        row = PROGRAM_MISTAKES[key]
        message = (
            f"[loss scaling] {row.name}: {row.sentence}. Maths: {row.formula}. Fix: {row.fix}. "
            "(config.set_loss_normalization_check)"
        )
        if _mode == "error":
            raise LossNormalizationError(f"{line}: {message}" if line else message)
        file, _, number = line.rpartition(":")
        warnings.warn_explicit(
            message,
            LossNormalizationWarning,
            file or "<unknown>",
            int(number or 1),
            registry=_shown,
        )
