"""Reports mistakes of loss normalization that a traced program shows before it runs.

The engine follows the counts of examples and replicas through the program
(cpp/analysis/count_powers.cpp); the words are also those of the doctor, `samegrad.testing`.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from samegrad import _core
from samegrad._base.dtypes import as_dtype
from samegrad._base.mistakes import PROGRAM_MISTAKES
from samegrad._base.shown import shown
from samegrad._context import state as _context
from samegrad._context.counted_numbers import questions
from samegrad.errors import LossNormalizationError, LossNormalizationWarning

_MODES = ("warn", "error", "off")
_SURE = ("nonlinear_share",)  # whatever the program divides by
_mode = "warn"
_shown: dict[Any, Any] = {}  # what the warnings filter remembers


def set_loss_normalization_check(mode: str) -> None:
    """What happens where a program that is traced shows a mistake of loss normalization.

    Functions and `Strategy.run` are looked at while they are traced, before anything runs: a local
    mean that is summed over the replicas or divided by their number, a share of a loss that is
    averaged over them, a penalty that every replica adds. It costs nothing when the step runs, and
    it is silent where it cannot follow the program; `samegrad.testing.diagnose` finds what it
    cannot see. A local mean divided by the number of replicas is right while all have as many
    examples: where they do it is a warning at most, which says what becomes of a short last batch.

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
    if _mode == "off":
        return
    _core.note_use(use, tensor)
    trace = _core.current_trace()
    if questions.met and trace is not None and trace.replicas > 1:
        scaled = _core.ops.mul(tensor, _times(trace.replicas, tensor))
        _context.current().scaled_uses.append((trace, use, scaled))


def _times(replicas: int, tensor: _core.Tensor) -> _core.Tensor:
    """The number of replicas in the tensor's dtype, as a number that the check follows."""
    number = _core.Tensor(np.asarray(replicas, as_dtype(tensor._dtype).as_numpy_dtype))
    return number._of_counts(0, 1)


def check_trace(
    trace: _core.Trace, outputs: list[_core.Tensor], shares: Sequence[tuple[int, ...]] = ()
) -> list[bool]:
    """Reports what is wrong with a traced program.

    Args:
        trace: It is still open.
        outputs: What the program gives.
        shares: Of its arguments that count examples, how many each replica has.

    Returns:
        Of each output, whether it is a replica's share of the mean over the global batch.

    Raises:
        LossNormalizationError: Something is wrong, and mistakes are errors.
    """
    if _mode == "off" or trace.replicas == 1:
        return [False] * len(outputs)
    mistakes, is_share = trace.check_loss_normalization(outputs)
    if not _context.current().batches:  # what all replicas have is no share, also if N divides it
        mistakes = [at for at in mistakes if at[0] != "share_then_mean"]
    report((key, line) for key, line in mistakes if key in _SURE or not questions.open)
    if not questions.open:
        _report_means_of_means(trace, mistakes, shares)
    return list(is_share)


def _report_means_of_means(
    trace: _core.Trace, known: list[tuple[str, str]], shares: Sequence[tuple[int, ...]]
) -> None:
    """Reports local means whose mean over the replicas trains: right where shares are equal.

    Times the number of replicas they are local means that are summed, which the engine names.
    """
    uses = [(use, tensor) for own, use, tensor in _context.current().scaled_uses if own is trace]
    for use, tensor in uses:
        _core.note_use(use, tensor)
    found = trace.check_loss_normalization([])[0] if uses else []
    replicas = trace.replicas
    own = next((sizes for sizes in shares if len(sizes) == replicas), None)
    values, equal = _said_of_shares(own, replicas)
    means = [at for at in found if at[0] in ("mean_then_sum", "penalty") and at not in known]
    report((("mean_of_means", line) for _, line in means), values, harmless=equal)


def _said_of_shares(sizes: tuple[int, ...] | None, replicas: int) -> tuple[str, bool]:
    """What the mean of the means of such shares is, and whether they are known to be equal.

    Example:
        >>> _said_of_shares((3, 2), 2)
        ('here, with shares of 3 + 2, an example counts 1/6 to 1/4 instead of 1/5', False)
    """
    if sizes is not None and len(set(sizes)) > 1:
        return f"here, {_weights(sizes)}", False
    most = max(2, 3 if sizes is None else sizes[0])
    last = _weights((most,) * (replicas - 1) + (most - 1,))
    here = "" if sizes is None else f" as with {sizes[0]} examples on each here,"
    return (
        f"right while all replicas divide by the same count,{here} and wrong for a short last "
        f"batch: {last}"
    ), sizes is not None


def _weights(sizes: tuple[int, ...]) -> str:
    most, least, replicas = max(sizes), min(sizes), len(sizes)
    shares = " + ".join(map(str, sizes)) if replicas <= 4 else f"{most} to {least}"
    if not least:
        return f"with shares of {shares}, the mean of a replica without examples is NaN"
    return (
        f"with shares of {shares}, an example counts 1/{replicas * most} to "
        f"1/{replicas * least} instead of 1/{sum(sizes)}"
    )


def report(mistakes: Iterable[tuple[str, str]], values: str = "", harmless: bool = False) -> None:
    """Warns of mistakes, or raises.

    Args:
        mistakes: Key and line ("train.py:31") of each.
        values: What they do here.
        harmless: Whether this step is right all the same, so that nothing is raised.

    Raises:
        LossNormalizationError: There is one, and mistakes are errors.
    """
    for key, line in mistakes if _mode != "off" else ():
        row = PROGRAM_MISTAKES[key]
        start = f"[loss scaling] {row.name}: "
        message = (
            f"{start}{row.sentence}{values and '; ' + values}. Maths: {row.formula}. "
            f"Fix: {row.fix}. (config.set_loss_normalization_check)"
        )
        if _mode == "error" and not harmless:
            raise LossNormalizationError(f"{line}: {message}" if line else message)
        file, _, number = line.rpartition(":")
        at = int(number or 1)
        warnings.warn_explicit(
            _as_shown_before(message, start, at) if values else message,
            LossNormalizationWarning,
            file or "<unknown>",
            at,
            registry=_shown,
        )


def _as_shown_before(message: str, start: str, line: int) -> str:
    """The text that was shown for the line: other shares are no other mistake."""
    texts = [key[0] for key in _shown if isinstance(key, tuple) and key[2] == line]
    return next((text for text in texts if text.startswith(start)), message)
