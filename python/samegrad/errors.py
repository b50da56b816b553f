"""Exceptions that are samegrad's own."""

from typing import Any

from samegrad._core import InvalidArgumentError, NonFiniteError


class OpError(Exception):
    """An operation fails: the base of samegrad's own errors with TensorFlow's names.

    They take a message, or the arguments of TensorFlow: node_def, op and message. Python's errors
    stand for ResourceExhaustedError (MemoryError), UnimplementedError (NotImplementedError),
    PermissionDeniedError and DeadlineExceededError (TimeoutError): they have another base.

    Attributes:
        message: The words of the error.
        op: None: eager operations have no names.
        node_def: None.

    Example:
        >>> import samegrad as tf
        >>> try:
        ...     tf.constant([1, 2]) + tf.constant([1, 2, 3])
        ... except tf.errors.OpError as error:
        ...     print(type(error).__name__, error.message[:5])
        InvalidArgumentError [add]
    """

    __slots__ = ()
    op = None
    node_def = None

    @property
    def message(self) -> str:
        """The words of the error."""
        return str(self)

    def __str__(self) -> str:
        """Return the message, which TensorFlow's constructors take in third place."""
        args: tuple[Any, ...] = (*self.args, getattr(self, "filename", None))  # of an OSError
        of_tensorflow = len(self.args) >= 3 or args[:2] == (None, None)
        return str(args[2]) if of_tensorflow else super().__str__()


# The engine makes this class before Python code runs.
InvalidArgumentError.__bases__ = (ValueError, OpError)
# The errors of Python that are raised where TensorFlow raises its own.
DeadlineExceededError = TimeoutError
PermissionDeniedError = PermissionError
ResourceExhaustedError = MemoryError
UnimplementedError = NotImplementedError


class WrongTypeError(InvalidArgumentError, TypeError):
    """Operands have types or dtypes that the operation does not take.

    TensorFlow raises InvalidArgumentError outside of functions and TypeError inside: it is both.
    """


class WrongIndexError(InvalidArgumentError, IndexError):
    """There is no such element: TensorFlow's InvalidArgumentError, and Python's IndexError."""


class OutOfRangeError(OpError):
    """An iterator has no further element."""


class NotFoundError(OpError, FileNotFoundError):
    """There is no such file or folder."""


class AlreadyExistsError(OpError, FileExistsError):
    """There is such a file or folder already."""


class DataLossError(OpError, ValueError):
    """A file is damaged, or ends too early."""


class FailedPreconditionError(OpError, RuntimeError):
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
    "DeadlineExceededError",
    "FailedPreconditionError",
    "InvalidArgumentError",
    "LossNormalizationError",
    "LossNormalizationWarning",
    "NonFiniteError",
    "NotFoundError",
    "OpError",
    "OutOfRangeError",
    "PermissionDeniedError",
    "ReplicaDependenceError",
    "ReplicaDependenceWarning",
    "ResourceExhaustedError",
    "UnimplementedError",
    "WrongIndexError",
    "WrongTypeError",
]


def __dir__() -> list[str]:
    return sorted(__all__)
