"""Traces that read values of strings, which only the host has."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol


class HostCalls(Protocol):
    """Results of calls that run on the host, before a compiled step."""

    def call(self, read: HostRead, function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """Return the result of a public function that read a value, or raise `read`."""

    def outputs(self, layer: Any, args: Any, kwargs: Any) -> Any:
        """Return the outputs of a layer that read a value."""


class HostRead(BaseException):
    """Leaves a layer or function that reads a value in a trace.

    It does not derive from Exception, so that handlers of user code let it pass.

    Args:
        calls: Results of calls on the host.
    """

    def __init__(self, calls: HostCalls) -> None:
        super().__init__()
        self.calls = calls


__all__ = ["HostCalls", "HostRead"]
