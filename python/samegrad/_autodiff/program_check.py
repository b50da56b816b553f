"""Checks of traced programs: one setting and one way to report for all of them."""

from __future__ import annotations

import warnings
from typing import Any

from samegrad import _core
from samegrad._base.location import name_cells
from samegrad._base.shown import shown
from samegrad._base.user_files import shown_line
from samegrad._context import state as _context

_MODES = ("warn", "error", "off")


def _has_first_replica() -> bool:
    trace = _core.current_trace()
    processes = [] if trace is None else trace.processes
    return not processes or _core.own_replicas(processes)[0] == 0


class ProgramCheck:
    """A check of traced programs, whose findings are warnings, errors or nothing.

    Args:
        name: Of its setting in `samegrad.config`.
        warning: The class of its warnings.
        error: The class of its errors.

    Example:
        >>> check = ProgramCheck("some_check", UserWarning, ValueError)
        >>> with check.changed("off"):
        ...     check.mode
        'off'
        >>> check.mode
        'warn'
    """

    def __init__(self, name: str, warning: type[Warning], error: type[Exception]) -> None:
        self.name = name
        self._warning = warning
        self._error = error
        self._mode = "warn"
        # What the warnings filter remembers of each file: its keys are messages and lines.
        self._shown: dict[str, dict[Any, Any]] = {}

    @property
    def mode(self) -> str:
        """The mode of this thread: "warn", "error" or "off"."""
        return _context.current().check_modes.get(self.name, self._mode)

    def set(self, mode: str) -> None:
        """Set the mode of the process.

        Raises:
            ValueError: Another mode.
        """
        self._mode = self._known(f"set_{self.name}", mode)

    def changed(self, mode: str) -> _core.Guard:
        """Return a context manager, inside which this thread has another mode.

        Raises:
            ValueError: Another mode.
        """
        modes = _context.current().check_modes
        return _context.changed(check_modes={**modes, self.name: self._known(self.name, mode)})

    @staticmethod
    def _known(op_name: str, mode: str) -> str:
        if mode not in _MODES:
            raise ValueError(
                f"[{op_name}] mode is one of {', '.join(map(repr, _MODES))}: got {shown(mode)}."
            )
        return mode

    def report(self, line: str, message: str, rule: str = "", harmless: bool = False) -> None:
        """Warn of a line, or raise. In a job of several processes the first one warns for all.

        Args:
            line: Of the program, "train.py:31"; empty where it is not known.
            message: The words.
            rule: How the message begins, where the rest depends on the batch: a line is told of
                once for each rule. Empty: once for each message.
            harmless: Whether this step is right all the same, so that nothing is raised.

        Raises:
            Exception: Of the class given, if the mode is "error".
        """
        if self.mode == "off":
            return
        message = f"{message} (config.set_{self.name})"
        file, _, digits = line.rpartition(":")
        at = int(digits or 1)
        if self.mode == "error" and not harmless:
            raise self._error(f"{shown_line(file, at)}: {message}" if line else message)
        if not _has_first_replica():
            return
        name_cells()
        shown_before = self._shown.setdefault(file, {})
        if rule:  # other batches are not another mistake
            keys = [key for key in list(shown_before) if isinstance(key, tuple)]
            known = (text for text, _, number in keys if number == at)
            message = next((text for text in known if text.startswith(rule)), message)
        file = file or "<unknown>"
        warnings.warn_explicit(message, self._warning, file, at, registry=shown_before)
