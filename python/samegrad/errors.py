"""Exceptions that are samegrad's own."""

from samegrad._core import InvalidArgumentError, NonFiniteError


class OutOfRangeError(Exception):
    """An iterator has no further element."""


class LossNormalizationWarning(UserWarning):
    """A program divides a loss by a wrong count; see `config.set_loss_normalization_check`."""


class LossNormalizationError(ValueError):
    """As `LossNormalizationWarning`, where mistakes are errors."""


__all__ = [
    "InvalidArgumentError",
    "LossNormalizationError",
    "LossNormalizationWarning",
    "NonFiniteError",
    "OutOfRangeError",
]
