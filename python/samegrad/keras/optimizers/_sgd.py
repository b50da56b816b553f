"""Gradient descent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from samegrad import _core
from samegrad._tensor import Tensor
from samegrad.keras.optimizers._optimizer import Optimizer

_ops = _core.ops


class SGD(Optimizer):
    """w -= learning_rate * gradient, with momentum if wanted.

    With momentum: m = momentum * m - learning_rate * gradient and w += m; with Nesterov's
    w += momentum * m - learning_rate * gradient (Sutskever et al., 2013).

    Args:
        learning_rate: A number, a variable, a schedule, or a function of the number of steps.
        momentum: From 0 to 1.
        nesterov: Whether to take Nesterov's form.
        name: Of the optimizer.
        clipnorm: Each gradient is scaled so that its norm is at most this.
        clipvalue: Each element is cut to [-clipvalue, clipvalue].
        global_clipnorm: All gradients are scaled so that the norm of all together is at most this.

    Raises:
        ValueError: A number is out of range.

    Example:
        >>> import samegrad as tf
        >>> w, optimizer = tf.Variable(1.0), SGD(0.5, momentum=0.5)
        >>> for _ in range(2):
        ...     optimizer.apply_gradients([(tf.constant(1.0), w)])
        >>> float(w.numpy())
        -0.25
    """

    def __init__(
        self,
        learning_rate: Any = 0.01,
        momentum: float = 0.0,
        nesterov: bool = False,
        name: str = "SGD",
        clipnorm: float | None = None,
        clipvalue: float | None = None,
        global_clipnorm: float | None = None,
    ) -> None:
        if not 0.0 <= momentum <= 1.0:
            raise ValueError(f"[SGD] momentum must be in [0, 1]: got {momentum}.")
        self.momentum = momentum
        self.nesterov = bool(nesterov)
        self._slot_names = ("momentum",) if momentum else ()
        super().__init__(learning_rate, name, clipnorm, clipvalue, global_clipnorm)

    def _prepare(self, step: Tensor) -> Tensor:
        return self._rate()

    def _update(
        self, gradient: Tensor, variable: Tensor, slots: Mapping[str, Tensor], shared: Any
    ) -> tuple[Tensor, Mapping[str, Tensor]]:
        change = gradient * _ops.cast(shared, dtype=variable._dtype)
        if "momentum" not in slots:
            return variable - change, {}
        m = slots["momentum"] * self.momentum - change
        if self.nesterov:
            return variable + (m * self.momentum - change), {"momentum": m}
        return variable + m, {"momentum": m}

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "momentum": self.momentum, "nesterov": self.nesterov}
