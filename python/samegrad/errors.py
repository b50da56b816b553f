"""Exceptions that are samegrad's own."""

from samegrad._core import InvalidArgumentError, NonFiniteError


class OutOfRangeError(Exception):
    """An iterator has no further element."""


__all__ = ["InvalidArgumentError", "NonFiniteError", "OutOfRangeError"]
