"""Graphs and profiles for TensorBoard: not supported, so these functions only warn."""

from __future__ import annotations

from typing import Any

from samegrad._base.location import warn
from samegrad._base.shown import shown
from samegrad.summary._writer import number_of

_on = False


def trace_on(graph: bool = True, profiler: bool = False, profiler_outdir: Any = None) -> None:
    """Warn that graphs and profiles are not recorded.

    Args:
        graph: Not used.
        profiler: Not used.
        profiler_outdir: Not used.

    Example:
        >>> import warnings
        >>> with warnings.catch_warnings():
        ...     warnings.simplefilter("ignore")
        ...     trace_on(graph=True)
        >>> trace_off()
    """
    global _on
    _on = True
    warn(
        "[tf.summary.trace_on] graphs and profiles are not recorded: the explain() of a function "
        "or strategy shows its plan, with measure=10 what its steps take."
    )


def trace_export(name: str, step: Any = None, profiler_outdir: Any = None) -> None:
    """End the trace that `trace_on` began, and write nothing.

    Args:
        name: Not used.
        step: Integer. None: the step of the context.
        profiler_outdir: Not used.

    Raises:
        ValueError: `trace_on` was not called; there is no step.

    Example:
        See `trace_on`.
    """
    if not _on:
        raise ValueError(
            "[tf.summary.trace_export] tf.summary.trace_on must be called before it: got "
            f"name={shown(name)}; call trace_on() first."
        )
    number_of(step)
    trace_off()


def trace_off() -> None:
    """End what `trace_on` began.

    Example:
        See `trace_on`.
    """
    global _on
    _on = False


__all__ = ["trace_export", "trace_off", "trace_on"]
