"""Threads of the engine; results never depend on their number."""

from samegrad import _core
from samegrad._surface.boundary import guard as _guard
from samegrad._tensor.sizes import whole


def set_intra_op_parallelism_threads(num_threads: int) -> None:
    """Set the number of the engine's threads.

    Args:
        num_threads: Number of threads; 0: all cores.

    Raises:
        ValueError: num_threads is negative.

    Example:
        >>> set_intra_op_parallelism_threads(2)
        >>> get_intra_op_parallelism_threads()
        2
        >>> set_intra_op_parallelism_threads(0)
    """
    number = whole(num_threads, "a number of threads is an integer")
    _core.set_thread_count(min(max(number, -1), 2**31 - 1))  # the engine says what is wrong


def get_intra_op_parallelism_threads() -> int:
    """Return the number of the engine's threads."""
    return int(_core.thread_count())


__all__ = ["get_intra_op_parallelism_threads", "set_intra_op_parallelism_threads"]
_guard(__name__)
