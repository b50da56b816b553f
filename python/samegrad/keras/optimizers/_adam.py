"""Adaptive moments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from samegrad import _core
from samegrad._tensor import Tensor, convert_to_tensor
from samegrad.keras.optimizers._optimizer import Optimizer

_ops = _core.ops


class Adam(Optimizer):
    """Steps scaled by running means of the gradient and of its square.

    In step t, m += (g - m) * (1 - beta_1), v += (g * g - v) * (1 - beta_2) and
    w -= m * a / (sqrt(v) + epsilon) with a = learning_rate * sqrt(1 - beta_2**t) / (1 - beta_1**t)
    (Kingma and Ba, 2014, the form before section 2.1, as tf.keras has it). `a` is computed in
    float64.

    Args:
        learning_rate: A number, a variable, a schedule, or a function of the number of steps.
        beta_1: Decay of the mean, in [0, 1).
        beta_2: Decay of the mean square, in [0, 1).
        epsilon: Keeps the divisor away from 0.
        amsgrad: Whether to divide by the largest v so far (Reddi et al., 2018).
        name: Of the optimizer.
        clipnorm: Each gradient is scaled so that its norm is at most this.
        clipvalue: Each element is cut to [-clipvalue, clipvalue].
        global_clipnorm: All gradients are scaled so that the norm of all together is at most this.

    Raises:
        ValueError: A number is out of range.

    Example:
        >>> import samegrad as tf
        >>> w = tf.Variable(1.0)
        >>> Adam(0.5).apply_gradients([(tf.constant(3.0), w)])
        >>> round(float(w.numpy()), 4)
        0.5
    """

    def __init__(
        self,
        learning_rate: Any = 0.001,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-7,
        amsgrad: bool = False,
        name: str = "Adam",
        clipnorm: float | None = None,
        clipvalue: float | None = None,
        global_clipnorm: float | None = None,
    ) -> None:
        if not (0.0 <= beta_1 < 1.0 and 0.0 <= beta_2 < 1.0 and epsilon >= 0.0):
            raise ValueError(
                f"[{type(self).__name__}] beta_1 and beta_2 must be in [0, 1) and epsilon at least "
                f"0: got {beta_1}, {beta_2} and {epsilon}."
            )
        self.beta_1, self.beta_2, self.epsilon = beta_1, beta_2, epsilon
        self.amsgrad = bool(amsgrad)
        self._slot_names = ("m", "v", "vhat") if amsgrad else ("m", "v")
        super().__init__(learning_rate, name, clipnorm, clipvalue, global_clipnorm)

    def _prepare(self, step: Tensor) -> Tensor:
        t = _ops.cast(step, dtype="float64")
        first, second = (
            1.0 - _ops.pow(convert_to_tensor(beta, "float64"), t)
            for beta in (self.beta_1, self.beta_2)
        )
        return self._rate() * _ops.sqrt(second) / first

    def _update(
        self, gradient: Tensor, variable: Tensor, slots: Mapping[str, Tensor], shared: Any
    ) -> tuple[Tensor, Mapping[str, Tensor]]:
        rate = _ops.cast(shared, dtype=variable._dtype)
        m = slots["m"] + (gradient - slots["m"]) * (1.0 - self.beta_1)
        v = slots["v"] + (_ops.square(gradient) - slots["v"]) * (1.0 - self.beta_2)
        new = {"m": m, "v": v}
        if self.amsgrad:
            new["vhat"] = _ops.maximum(slots["vhat"], v)
        scale = _ops.sqrt(new.get("vhat", v)) + self.epsilon
        return variable - m * rate / scale, new

    def get_config(self) -> dict[str, Any]:
        names = ("beta_1", "beta_2", "epsilon", "amsgrad")
        return {**super().get_config(), **{name: getattr(self, name) for name in names}}


class LazyAdam(Adam):
    """Adam that leaves alone the rows of a variable that have no gradient.

    A row is an element of axis 0 of a variable with two axes or more, as of a table of embeddings.
    Where the gradient of a row, summed over the replicas, is all zeros, the row and its moments
    stay as they are: Adam would let the moments decay and go on moving the row. So a step costs
    what the rows that examples name cost, not what the table costs (as `LazyAdam` of TensorFlow
    Addons and `SparseAdam` of PyTorch; a row that is named but whose gradient is all zeros stays
    here, and moves there). t counts all steps. Variables with fewer axes are updated as by Adam.

    Args:
        learning_rate: A number, a variable, a schedule, or a function of the number of steps.
        beta_1: Decay of the mean, in [0, 1).
        beta_2: Decay of the mean square, in [0, 1).
        epsilon: Keeps the divisor away from 0.
        amsgrad: Whether to divide by the largest v so far (Reddi et al., 2018).
        name: Of the optimizer.
        clipnorm: Each gradient is scaled so that its norm is at most this.
        clipvalue: Each element is cut to [-clipvalue, clipvalue].
        global_clipnorm: All gradients are scaled so that the norm of all together is at most this.
            Norms need gradients as a whole: with one, a step costs what the table costs.

    Raises:
        ValueError: A number is out of range.

    Example:
        >>> import samegrad as tf
        >>> table, optimizer = tf.Variable([[1.0], [2.0], [3.0]]), LazyAdam(0.5)
        >>> for row in (0, 1):
        ...     with tf.GradientTape() as tape:
        ...         loss = tf.reduce_sum(tf.gather(table, [row]))
        ...     optimizer.apply_gradients([(tape.gradient(loss, table), table)])
        >>> print(table.numpy().ravel().round(2))  # Adam would have moved row 0 again
        [0.5  1.63 3.  ]
    """

    def __init__(
        self,
        learning_rate: Any = 0.001,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-7,
        amsgrad: bool = False,
        name: str = "LazyAdam",
        clipnorm: float | None = None,
        clipvalue: float | None = None,
        global_clipnorm: float | None = None,
    ) -> None:
        limits = (clipnorm, clipvalue, global_clipnorm)
        super().__init__(learning_rate, beta_1, beta_2, epsilon, amsgrad, name, *limits)

    def _update(
        self, gradient: Tensor, variable: Tensor, slots: Mapping[str, Tensor], shared: Any
    ) -> tuple[Tensor, Mapping[str, Tensor]]:
        new, moments = super()._update(gradient, variable, slots, shared)
        if variable._rank < 2:
            return new, moments
        moves = _ops.nonzero_rows(gradient)
        return _ops.select(moves, new, variable), {
            slot: _ops.select(moves, value, slots[slot]) for slot, value in moments.items()
        }
