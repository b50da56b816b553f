"""Exceptions that are samegrad's own."""

from samegrad._core import InvalidArgumentError, NonFiniteError


class WrongTypeError(InvalidArgumentError, TypeError):
    """Operands have types or dtypes that the operation does not take.

    TensorFlow raises InvalidArgumentError outside of functions and TypeError inside: it is both.
    """


class WrongIndexError(InvalidArgumentError, IndexError):
    """There is no such element: TensorFlow's InvalidArgumentError, and Python's IndexError."""


class OutOfRangeError(Exception):
    """An iterator has no further element."""


class NotFoundError(FileNotFoundError):
    """There is no such file or folder."""


class AlreadyExistsError(FileExistsError):
    """There is such a file or folder already."""


class DataLossError(ValueError):
    """A file is damaged, or ends too early."""


class FailedPreconditionError(RuntimeError):
    """Error: a precondition of the call does not hold."""


class LossNormalizationWarning(UserWarning):
    """A program divides a loss by a wrong count; see `config.set_loss_normalization_check`."""


class LossNormalizationError(ValueError):
    """Error in place of `LossNormalizationWarning`, where failure modes raise."""


class ReplicaDependenceWarning(UserWarning):
    """A replica's statistic reaches a variable; see `config.set_replica_dependence_check`."""


class ReplicaDependenceError(ValueError):
    """A `ReplicaDependenceWarning`, where these are errors."""


__all__ = [
    "AlreadyExistsError",
    "DataLossError",
    "FailedPreconditionError",
    "InvalidArgumentError",
    "LossNormalizationError",
    "LossNormalizationWarning",
    "NonFiniteError",
    "NotFoundError",
    "OutOfRangeError",
    "ReplicaDependenceError",
    "ReplicaDependenceWarning",
    "WrongIndexError",
    "WrongTypeError",
]


def __dir__() -> list[str]:
    return sorted(__all__)
