"""Exceptions that are samegrad's own."""

from samegrad._core import InvalidArgumentError, NonFiniteError


class OutOfRangeError(Exception):
    """An iterator has no further element."""


class LossScalingWarning(UserWarning):
    """A traced program divides a loss by a wrong count; see `config.set_loss_scaling_check`."""


class LossScalingError(ValueError):
    """As `LossScalingWarning`, where mistakes are errors."""


__all__ = [
    "InvalidArgumentError",
    "LossScalingError",
    "LossScalingWarning",
    "NonFiniteError",
    "OutOfRangeError",
]
