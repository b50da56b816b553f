"""Losses of the weights themselves."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from samegrad import _core
from samegrad._boundary import guard as _guard
from samegrad._tensor import Tensor
from samegrad.keras._registry import find as _find

_ops = _core.ops


class Regularizer:
    """Base: a function of a weight tensor to a scalar.

    Example:
        >>> Regularizer().get_config()
        {}
    """

    _config_names: tuple[str, ...] = ()

    def __call__(self, x: Tensor) -> Tensor:
        """The loss of a weight tensor, a scalar."""
        raise NotImplementedError(f"[{type(self).__name__}] define __call__(self, x).")

    def get_config(self) -> dict[str, Any]:
        """The arguments it was made with."""
        return {name: getattr(self, name) for name in self._config_names}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Regularizer:
        """A regularizer made with these arguments."""
        return cls(**config)


class L1L2(Regularizer):
    """l1 * sum(|x|) + l2 * sum(x * x).

    Args:
        l1: Factor of the absolute values.
        l2: Factor of the squares.

    Raises:
        ValueError: A factor is not a finite number of at least 0.

    Example:
        >>> import samegrad as tf
        >>> float(L1L2(l1=1.0, l2=1.0)(tf.constant([1.0, -2.0])))
        8.0
    """

    _config_names: tuple[str, ...] = ("l1", "l2")

    def __init__(self, l1: float = 0.0, l2: float = 0.0) -> None:
        self.l1 = _factor("l1", l1)
        self.l2 = _factor("l2", l2)

    def __call__(self, x: Tensor) -> Tensor:
        """The loss of a weight tensor, a scalar."""
        axes = tuple(range(x._rank))
        parts = []
        if self.l1 or not self.l2:
            parts.append(_ops.reduce_sum(_ops.abs(x), axes=axes) * self.l1)
        if self.l2:
            parts.append(_ops.reduce_sum(_ops.square(x), axes=axes) * self.l2)
        return parts[0] if len(parts) == 1 else parts[0] + parts[1]


class L1(L1L2):
    """l1 * sum(|x|).

    Example:
        >>> import samegrad as tf
        >>> float(L1(0.5)(tf.constant([1.0, -3.0])))
        2.0
    """

    _config_names = ("l1",)

    def __init__(self, l1: float = 0.01) -> None:
        super().__init__(l1=l1)


class L2(L1L2):
    """l2 * sum(x * x).

    Example:
        >>> import samegrad as tf
        >>> float(L2(0.5)(tf.constant([1.0, -3.0])))
        5.0
    """

    _config_names = ("l2",)

    def __init__(self, l2: float = 0.01) -> None:
        super().__init__(l2=l2)


def l1_l2(l1: float = 0.01, l2: float = 0.01) -> L1L2:
    """An `L1L2` with both factors 0.01 unless given.

    Example:
        >>> l1_l2().get_config()
        {'l1': 0.01, 'l2': 0.01}
    """
    return L1L2(l1=l1, l2=l2)


l1 = L1
l2 = L2

_NAMES: dict[str, Callable[..., Any]] = {
    "l1": L1,
    "L1": L1,
    "l2": L2,
    "L2": L2,
    "l1_l2": l1_l2,
    "L1L2": L1L2,
}


def get(identifier: Any) -> Any:
    """The regularizer that an argument asks for.

    Args:
        identifier: A name, a configuration, a regularizer or function, or None.

    Returns:
        A function of a weight tensor, or None.

    Raises:
        ValueError: There is no such name.

    Example:
        >>> get("l2").get_config()
        {'l2': 0.01}
    """
    return None if identifier is None else _find("regularizer", _NAMES, identifier)


def serialize(regularizer: Any) -> Any:
    """The configuration of a regularizer, as `get` takes it.

    Example:
        >>> serialize(L2(0.5))
        {'class_name': 'L2', 'config': {'l2': 0.5}}
    """
    if not isinstance(regularizer, Regularizer):
        return regularizer
    return {"class_name": type(regularizer).__name__, "config": regularizer.get_config()}


def _factor(name: str, value: float) -> float:
    number = float(value)
    if not math.isfinite(number) or number < 0:
        raise ValueError(f"[regularizer] {name} must be a number of at least 0: got {value}.")
    return number


_guard(__name__)
