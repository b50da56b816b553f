"""`tf.debugging`: assertions, checks of numbers, and the frames that tracebacks show."""

from __future__ import annotations

from typing import TYPE_CHECKING

from samegrad import _core
from samegrad._base.tracebacks import (
    disable_traceback_filtering,
    enable_traceback_filtering,
    is_traceback_filtering_enabled,
)
from samegrad._control.assertions import (
    Assert,
    assert_equal,
    assert_greater,
    assert_greater_equal,
    assert_less,
    assert_less_equal,
    assert_negative,
    assert_non_negative,
    assert_non_positive,
    assert_none_equal,
    assert_positive,
    check_numerics,
)
from samegrad._control.shape_assertions import (
    assert_all_finite,
    assert_integer,
    assert_near,
    assert_proper_iterable,
    assert_rank,
    assert_rank_at_least,
    assert_rank_in,
    assert_same_float_dtype,
    assert_scalar,
    assert_shapes,
    assert_type,
    is_numeric_tensor,
)
from samegrad._surface.boundary import guard
from samegrad._surface.missing_names import getattr_of


def enable_check_numerics(stack_height_limit: int = 30, path_length_limit: int = 50) -> None:
    """Check every result from now on; the first NaN or infinity raises `NonFiniteError`.

    The message names the operation, the line of the user code, the replica and the element. A step
    that raises leaves all variables as they were. Meanwhile steps run operation by operation:
    slower, bitwise identical.

    Args:
        stack_height_limit: Ignored.
        path_length_limit: Ignored.

    Example:
        >>> import samegrad as tf
        >>> enable_check_numerics()
        >>> tf.constant(1.0) / 0.0  # doctest: +IGNORE_EXCEPTION_DETAIL
        Traceback (most recent call last):
        NonFiniteError: [div] made an infinity at element 0 ...
        >>> disable_check_numerics()
    """
    _core.set_check_numerics(True)


def disable_check_numerics() -> None:
    """Disable the checks of `enable_check_numerics`, as at the start.

    Example:
        >>> disable_check_numerics()
    """
    _core.set_check_numerics(False)


def set_log_device_placement(enabled: bool) -> None:
    """Ignore the setting: operations are not placed on devices.

    Args:
        enabled: Ignored.

    Example:
        >>> set_log_device_placement(True)
    """


def get_log_device_placement() -> bool:
    """Return False: operations are not placed on devices.

    Example:
        >>> get_log_device_placement()
        False
    """
    return False


__all__ = [
    "Assert", "assert_all_finite", "assert_equal", "assert_greater", "assert_greater_equal",
    "assert_integer", "assert_less", "assert_less_equal", "assert_near", "assert_negative",
    "assert_non_negative", "assert_non_positive", "assert_none_equal", "assert_positive",
    "assert_proper_iterable", "assert_rank", "assert_rank_at_least", "assert_rank_in",
    "assert_same_float_dtype", "assert_scalar", "assert_shapes", "assert_type", "check_numerics",
    "disable_check_numerics", "disable_traceback_filtering", "enable_check_numerics",
    "enable_traceback_filtering", "get_log_device_placement", "is_numeric_tensor",
    "is_traceback_filtering_enabled", "set_log_device_placement",
]  # fmt: skip

if not TYPE_CHECKING:
    __getattr__ = getattr_of(__name__)
guard(__name__)
