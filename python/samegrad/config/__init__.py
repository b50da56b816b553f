"""Settings of the process."""

from samegrad._unknown import getattr_of
from samegrad.config import threading


def enable_check_numerics(enabled: bool = True) -> None:
    """Looks at every result of every step; the first NaN or infinity raises `NonFiniteError`.

    Example:
        >>> enable_check_numerics(False)
    """
    from samegrad import _trace

    _trace.check_numerics[0] = enabled


__all__ = ["enable_check_numerics", "threading"]

__getattr__ = getattr_of(__name__)
