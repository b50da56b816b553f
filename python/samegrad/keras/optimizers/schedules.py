"""Learning rates that change with the number of steps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from samegrad import _core
from samegrad._boundary import guard as _guard
from samegrad._tensor import Tensor, TensorLike, convert_to_tensor
from samegrad.keras.backend import floatx

_ops = _core.ops


class LearningRateSchedule:
    """Base: a function of the number of steps done.

    Example:
        >>> import samegrad as tf
        >>> class Warmup(tf.keras.optimizers.schedules.LearningRateSchedule):
        ...     def __call__(self, step):
        ...         return 0.1 * tf.minimum(tf.cast(step, tf.float32) / 10.0, 1.0)
        >>> float(Warmup()(5)) == float(tf.constant(0.05))
        True
    """

    _config_names: tuple[str, ...] = ()

    def __call__(self, step: TensorLike) -> Tensor:
        """The rate of the next step, given the number of steps done: a scalar."""
        raise NotImplementedError(f"[{type(self).__name__}] define __call__(self, step).")

    def get_config(self) -> dict[str, Any]:
        """The arguments it was made with."""
        return {name: getattr(self, name) for name in self._config_names}

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> LearningRateSchedule:
        """A schedule made with these arguments."""
        return cls(**config)


class ExponentialDecay(LearningRateSchedule):
    """initial_learning_rate * decay_rate ** (step / decay_steps).

    Args:
        initial_learning_rate: The rate of the first step.
        decay_steps: After so many steps it is multiplied by `decay_rate`.
        decay_rate: A positive number.
        staircase: Whether it stays the same in between.
        name: Not used.

    Raises:
        ValueError: `decay_steps` or `decay_rate` is not positive.

    Example:
        >>> float(ExponentialDecay(1.0, decay_steps=10, decay_rate=0.5)(20))
        0.25
    """

    _config_names = ("initial_learning_rate", "decay_steps", "decay_rate", "staircase")

    def __init__(
        self,
        initial_learning_rate: float,
        decay_steps: int,
        decay_rate: float,
        staircase: bool = False,
        name: str | None = None,
    ) -> None:
        if decay_steps <= 0 or decay_rate <= 0:
            raise ValueError(
                "[ExponentialDecay] decay_steps and decay_rate must be positive: got "
                f"{decay_steps} and {decay_rate}."
            )
        self.initial_learning_rate = initial_learning_rate
        self.decay_steps = decay_steps
        self.decay_rate = decay_rate
        self.staircase = staircase

    def __call__(self, step: TensorLike) -> Tensor:
        """The rate of the next step, given the number of steps done: a scalar."""
        periods = _ops.cast(convert_to_tensor(step), dtype="float64") / float(self.decay_steps)
        if self.staircase:
            periods = _ops.floor(periods)
        factor = _ops.pow(convert_to_tensor(self.decay_rate, "float64"), periods)
        return _ops.cast(factor * self.initial_learning_rate, dtype=floatx())


_guard(__name__)
