"""Settings of all layers: default float type, fuzz factor, names."""

from __future__ import annotations

from samegrad._boundary import guard as _guard
from samegrad._dtypes import as_dtype
from samegrad._shown import shown
from samegrad.keras import _names


class _Settings:
    floatx = "float32"
    epsilon = 1e-7


def floatx() -> str:
    """The dtype of weights and inputs of layers that name none.

    Example:
        >>> floatx()
        'float32'
    """
    return _Settings.floatx


def set_floatx(value: str) -> None:
    """Sets the dtype of weights and inputs of layers made from now on.

    Args:
        value: "float32" or "float64".

    Raises:
        ValueError: It is no such dtype.

    Example:
        >>> set_floatx("float32")
    """
    dtype = as_dtype(value)
    if dtype.name not in ("float32", "float64"):
        raise ValueError(f"[set_floatx] the type must be float32 or float64: got {shown(value)}.")
    _Settings.floatx = dtype.name


def epsilon() -> float:
    """The small number that keeps divisors and logarithms away from 0.

    Example:
        >>> epsilon()
        1e-07
    """
    return _Settings.epsilon


def set_epsilon(value: float) -> None:
    """Sets the small number that keeps divisors and logarithms away from 0.

    Raises:
        ValueError: It is not positive.

    Example:
        >>> set_epsilon(1e-7)
    """
    if not value > 0:
        raise ValueError(f"[set_epsilon] the value must be positive: got {value}.")
    _Settings.epsilon = float(value)


def clear_session() -> None:
    """Forgets which names layers have been given, so that the next Dense is "dense" again.

    Example:
        >>> clear_session()
    """
    _names.reset()


_guard(__name__)
