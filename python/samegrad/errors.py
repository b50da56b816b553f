"""Exceptions that are samegrad's own, and the codes of TensorFlow's."""

from typing import Any

from samegrad._core import InvalidArgumentError, NonFiniteError

OK = 0
CANCELLED = 1
UNKNOWN = 2
INVALID_ARGUMENT = 3
DEADLINE_EXCEEDED = 4
NOT_FOUND = 5
ALREADY_EXISTS = 6
PERMISSION_DENIED = 7
RESOURCE_EXHAUSTED = 8
FAILED_PRECONDITION = 9
ABORTED = 10
OUT_OF_RANGE = 11
UNIMPLEMENTED = 12
INTERNAL = 13
UNAVAILABLE = 14
DATA_LOSS = 15
UNAUTHENTICATED = 16


class OpError(Exception):
    """An operation fails: the base of samegrad's own errors with TensorFlow's names.

    They take a message, or the arguments of TensorFlow: node_def, op and message. Python's errors
    stand for ResourceExhaustedError (MemoryError), UnimplementedError (NotImplementedError),
    PermissionDeniedError and DeadlineExceededError (TimeoutError): they have another base.

    Args:
        *args: The message, or node_def, op, message and more.
        node_def: Ignored.
        op: Ignored.
        message: The words of the error.

    Attributes:
        message: The words of the error.
        op: None: eager operations have no names.
        node_def: None.
        error_code: TensorFlow's number of the class.
        experimental_payloads: An empty dict.

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
    error_code = UNKNOWN

    def __init__(
        self, *args: Any, node_def: Any = None, op: Any = None, message: str | None = None
    ) -> None:
        """Take a message, or the arguments of TensorFlow's errors."""
        if message is not None:
            args = (*args, *(node_def, op)[len(args) :], message)
        super().__init__(*args)

    @property
    def experimental_payloads(self) -> dict[str, Any]:
        """An empty dict: errors have no further details."""
        return {}

    @property
    def message(self) -> str:
        """The words of the error."""
        return str(self)

    def __str__(self) -> str:
        """Return the message, which TensorFlow's constructors take in third place."""
        args: tuple[Any, ...] = (*self.args, getattr(self, "filename", None))  # of an OSError
        of_file = len(self.args) == 2 and args[2] is not None and not isinstance(args[0], int)
        of_tensorflow = len(self.args) >= 3 or of_file
        return str(args[2]) if of_tensorflow else super().__str__()


# The engine makes this class before Python code runs.
InvalidArgumentError.__bases__ = (ValueError, OpError)
InvalidArgumentError.__init__ = OpError.__init__  # type: ignore[method-assign,assignment]
InvalidArgumentError.error_code = INVALID_ARGUMENT  # type: ignore[attr-defined]
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

    error_code = OUT_OF_RANGE


class NotFoundError(OpError, FileNotFoundError):
    """There is no such file or folder."""

    error_code = NOT_FOUND


class AlreadyExistsError(OpError, FileExistsError):
    """There is such a file or folder already."""

    error_code = ALREADY_EXISTS


class DataLossError(OpError, ValueError):
    """A file is damaged, or ends too early."""

    error_code = DATA_LOSS


class FailedPreconditionError(OpError, RuntimeError):
    """Error: a precondition of the call does not hold."""

    error_code = FAILED_PRECONDITION


class AbortedError(OpError):
    """Another operation ended this one; samegrad never raises it."""

    error_code = ABORTED


class CancelledError(OpError):
    """A caller cancelled the operation; samegrad never raises it."""

    error_code = CANCELLED


class InternalError(OpError):
    """The system is in a wrong state; samegrad never raises it."""

    error_code = INTERNAL


class UnauthenticatedError(OpError):
    """A caller has no valid credentials; samegrad never raises it."""

    error_code = UNAUTHENTICATED


class UnavailableError(OpError):
    """A service cannot be reached; samegrad never raises it."""

    error_code = UNAVAILABLE


class UnknownError(OpError):
    """Error without a class of its own; samegrad never raises it."""


class LossNormalizationWarning(UserWarning):
    """A program divides a loss by a wrong count; see `config.set_loss_normalization_check`."""


class LossNormalizationError(ValueError):
    """Error in place of `LossNormalizationWarning`, where failure modes raise."""


class ReplicaDependenceWarning(UserWarning):
    """A replica's statistic reaches a variable; see `config.set_replica_dependence_check`."""


class ReplicaDependenceError(ValueError):
    """A `ReplicaDependenceWarning`, where these are errors."""


__all__ = [
    "ABORTED",
    "ALREADY_EXISTS",
    "CANCELLED",
    "DATA_LOSS",
    "DEADLINE_EXCEEDED",
    "FAILED_PRECONDITION",
    "INTERNAL",
    "INVALID_ARGUMENT",
    "NOT_FOUND",
    "OK",
    "OUT_OF_RANGE",
    "PERMISSION_DENIED",
    "RESOURCE_EXHAUSTED",
    "UNAUTHENTICATED",
    "UNAVAILABLE",
    "UNIMPLEMENTED",
    "UNKNOWN",
    "AbortedError",
    "AlreadyExistsError",
    "CancelledError",
    "DataLossError",
    "DeadlineExceededError",
    "FailedPreconditionError",
    "InternalError",
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
    "UnauthenticatedError",
    "UnavailableError",
    "UnimplementedError",
    "UnknownError",
    "WrongIndexError",
    "WrongTypeError",
]


def __dir__() -> list[str]:
    return sorted(__all__)
