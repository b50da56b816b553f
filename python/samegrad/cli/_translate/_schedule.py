"""Learning rates of Transformers."""

from __future__ import annotations

import math
from typing import Any

import samegrad as tf


@tf.keras.saving.register_keras_serializable("samegrad")
class InverseSquareRoot(tf.keras.optimizers.schedules.LearningRateSchedule):  # type: ignore[misc]
    """Rises linearly for some steps, then falls with the inverse square root of the steps.

    rate(s) = factor / sqrt(width) * min(1 / sqrt(s), s / warm_up^1.5), s counting from 1 (Vaswani
    et al., 2017, section 5.3). Its largest value is factor / sqrt(width * warm_up), at step
    `warm_up`.

    Args:
        width: Of the model.
        warm_up: Steps, at least 1.
        factor: What all rates are multiplied by.

    Raises:
        ValueError: A number is not above 0.

    Example:
        >>> rates = InverseSquareRoot(width=4, warm_up=4)
        >>> [round(float(rates(step)), 3) for step in (0, 1, 3, 15)]
        [0.062, 0.125, 0.25, 0.125]
    """

    def __init__(self, width: int, warm_up: int, factor: float = 1.0) -> None:
        super().__init__()
        if width < 1 or warm_up < 1 or factor <= 0:
            raise ValueError(
                "[InverseSquareRoot] width, warm-up and factor must be above 0: got "
                f"{width}, {warm_up} and {factor}."
            )
        self.width, self.warm_up, self.factor = width, warm_up, factor

    def __call__(self, step: Any) -> Any:
        """The rate of a step, counted from 0."""
        count = tf.cast(step, "float32") + 1.0
        slope = tf.minimum(tf.math.rsqrt(count), count / (self.warm_up * math.sqrt(self.warm_up)))
        return slope * (self.factor / math.sqrt(self.width))

    def get_config(self) -> dict[str, Any]:
        """Return the configuration of the schedule."""
        return {"width": self.width, "warm_up": self.warm_up, "factor": self.factor}
