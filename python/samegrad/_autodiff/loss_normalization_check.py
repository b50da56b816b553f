"""Reports mistakes of loss normalization that a traced program shows before it runs.

The engine follows the counts of examples and replicas through the program
(cpp/analysis/count_powers.cpp); the words are also those of the doctor, `samegrad.testing`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from samegrad import _core
from samegrad._autodiff.program_check import ProgramCheck
from samegrad._base.dtypes import as_dtype
from samegrad._base.failure_modes import PROGRAM_FAILURE_MODES
from samegrad._context import state as _context
from samegrad._context.counted_numbers import questions
from samegrad.errors import LossNormalizationError, LossNormalizationWarning

_SURE = ("nonlinear_share",)  # whatever the program divides by
_check = ProgramCheck("loss_normalization_check", LossNormalizationWarning, LossNormalizationError)


def set_loss_normalization_check(mode: str) -> None:
    """Set the reaction to a wrong loss normalization in a traced program.

    Functions and `Strategy.run` are checked while they are traced, before anything runs. The check
    finds a local mean that is summed over the replicas or divided by their number, a per-replica
    loss that is averaged over them, and a penalty that every replica adds. It costs nothing when
    the step runs, and it is silent where it cannot follow the program. `samegrad.testing.diagnose`
    finds what it cannot see. A local mean divided by the number of replicas is right while all
    replicas have as many examples. In that case it gives a warning at most, which names the effect
    of a short last batch.

    Args:
        mode: "warn" (the default) warns with `samegrad.errors.LossNormalizationWarning` at the
            user's line; "error" raises `samegrad.errors.LossNormalizationError` before anything
            runs; "off" checks nothing.

    Raises:
        ValueError: The mode is another one.

    Example:
        >>> import samegrad as tf
        >>> tf.config.set_loss_normalization_check("error")
        >>> tf.config.get_loss_normalization_check()
        'error'
        >>> tf.config.set_loss_normalization_check("warn")
    """
    _check.set(mode)


def get_loss_normalization_check() -> str:
    """Return the mode of the loss normalization check: "warn", "error" or "off"."""
    return _check.mode


def loss_normalization_check(mode: str) -> _core.Guard:
    """Return a context manager, inside which the loss normalization check has another mode.

    It holds for what this thread traces inside: put the first call of a step into it.

    Args:
        mode: See `set_loss_normalization_check`.

    Returns:
        A context manager.

    Raises:
        ValueError: Another mode.

    Example:
        >>> import samegrad as tf
        >>> with tf.config.loss_normalization_check("off"):
        ...     tf.config.get_loss_normalization_check()
        'off'
        >>> tf.config.get_loss_normalization_check()
        'warn'
    """
    return _check.changed(mode)


def note_use(use: str, tensor: _core.Tensor) -> None:
    """Tell the trace, if there is one, what becomes of a value of the replicas.

    Args:
        use: "gradient" (summed over the replicas, for an optimizer), or "assignment" (a new
            value of a variable that is trained).
        tensor: The value.
    """
    if _check.mode == "off":
        return
    _core.note_use(use, tensor)
    trace = _core.current_trace()
    if questions.met and trace is not None and trace.replicas > 1:
        scaled = _core.ops.mul(tensor, _times(trace.replicas, tensor))
        _context.current().scaled_uses.append((trace, use, scaled))


def _times(replicas: int, tensor: _core.Tensor) -> _core.Tensor:
    """Return the number of replicas in the tensor's dtype, as a number that the check follows."""
    number = _core.Tensor(np.asarray(replicas, as_dtype(tensor._dtype).as_numpy_dtype))
    return number._of_counts(0, 1)


def check_trace(
    trace: _core.Trace, outputs: list[_core.Tensor], shares: Sequence[tuple[int, ...]] = ()
) -> tuple[list[bool], set[str]]:
    """Report what is wrong with a traced program.

    Args:
        trace: It is still open.
        outputs: What the program gives.
        shares: Of its arguments that count examples, how many each replica has.

    Returns:
        Of each output, whether it is a replica's share of the mean over the global batch; and the
        lines that were reported.

    Raises:
        LossNormalizationError: Something is wrong, and mistakes are errors.
    """
    if _check.mode == "off" or trace.replicas == 1:
        return [False] * len(outputs), set()
    mistakes, is_share = trace.check_loss_normalization(outputs)
    if not _context.current().batches:  # values of all replicas are whole, even divided by N
        mistakes = [at for at in mistakes if at[0] != "share_then_mean"]
    found = [at for at in mistakes if at[0] in _SURE or not questions.open]
    report(found)
    if not questions.open:
        found += _report_means_of_means(trace, mistakes, shares)
    return list(is_share), {line for _, line in found}


def _report_means_of_means(
    trace: _core.Trace, known: list[tuple[str, str]], shares: Sequence[tuple[int, ...]]
) -> list[tuple[str, str]]:
    """Report local means whose mean over the replicas trains: right where shares are equal.

    Times the number of replicas they are local means that are summed, which the engine names.
    """
    uses = [(use, tensor) for own, use, tensor in _context.current().scaled_uses if own is trace]
    for use, tensor in uses:
        _core.note_use(use, tensor)
    found = trace.check_loss_normalization([])[0] if uses else []
    values, equal = weights_of_examples(shares, trace.replicas)
    means = [
        ("mean_of_means", line)
        for key, line in found
        if key in ("mean_then_sum", "penalty") and (key, line) not in known
    ]
    report(means, values, harmless=equal)
    return means


def weights_of_examples(shares: Sequence[tuple[int, ...]], replicas: int) -> tuple[str, bool]:
    """Say how the mean of the replicas' means weighs an example.

    Args:
        shares: Of arguments, how many examples each replica has.
        replicas: How many there are.

    Returns:
        The words, and whether all replicas are known to have equally many.

    Example:
        >>> weights_of_examples([(3, 2)], 2)
        ('here, with shares of 3 + 2, an example counts 1/6 to 1/4 instead of 1/5', False)
    """
    sizes = next((counts for counts in shares if len(counts) == replicas), None)
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
    for key, line in mistakes:
        row = PROGRAM_FAILURE_MODES[key]
        rule = f"[loss normalization] {row.name}: "
        message = f"{rule}{row.sentence}{values and '; ' + values}. Maths: {row.formula}. "
        _check.report(line, f"{message}Fix: {row.fix}.", values and rule, harmless)
