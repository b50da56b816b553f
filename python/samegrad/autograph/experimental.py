"""Opt-out of conversion, and limits of loops."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from samegrad._base.tracebacks import keep_user_frames
from samegrad._context import state as _context
from samegrad._surface.boundary import guard
from samegrad._surface.missing_names import getattr_of


def do_not_convert(func: Callable[..., Any] | None = None) -> Any:
    """Keep Python's control flow in a function, and in all that it calls, while it is traced.

    Args:
        func: Function. None: return a decorator.

    Returns:
        The function, or a decorator.

    Example:
        >>> import samegrad as tf
        >>> @tf.autograph.experimental.do_not_convert
        ... def sign(x):
        ...     return 1.0 if x > 0.0 else -1.0
        >>> tf.function(sign)(tf.constant(2.0))  # doctest: +IGNORE_EXCEPTION_DETAIL
        Traceback (most recent call last):
        TypeError: [Tensor] this tensor has no value yet: ...
    """
    if func is None:
        return do_not_convert

    @functools.wraps(func)
    def unconverted(*args: Any, **kwargs: Any) -> Any:
        try:
            with _context.changed(converting=False):
                return func(*args, **kwargs)
        except Exception as error:
            keep_user_frames(error)
            raise

    return unconverted


def set_loop_options(
    parallel_iterations: int | None = None,
    swap_memory: bool | None = None,
    maximum_iterations: int | None = None,
    shape_invariants: Any = None,
) -> None:
    """Set options of the loop whose first statement it is.

    Args:
        parallel_iterations: Ignored.
        swap_memory: Ignored.
        maximum_iterations: Maximum number of iterations of a traced loop.
        shape_invariants: Pairs of a loop variable and its shape over the iterations, with None for
            an axis that grows; see `while_loop`.

    Example:
        >>> import samegrad as tf
        >>> @tf.function
        ... def count(n):
        ...     i = 0
        ...     while i < n:
        ...         tf.autograph.experimental.set_loop_options(maximum_iterations=3)
        ...         i += 1
        ...     return i
        >>> int(count(tf.constant(10)))
        3
    """


__all__ = ["do_not_convert", "set_loop_options"]

if not TYPE_CHECKING:
    __getattr__ = getattr_of(__name__)
guard(__name__)
