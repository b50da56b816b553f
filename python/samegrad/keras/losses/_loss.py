"""The base of loss objects."""

from __future__ import annotations

from typing import Any

from samegrad._examples import as_examples
from samegrad._tensor import Tensor, TensorLike
from samegrad._user_code import converted
from samegrad.keras._names import snake_case
from samegrad.keras.losses._reduction import Reduction, as_reduction, reduce_losses


class Loss:
    """Base: subclass it and compute one value per example in `call`.

    Args:
        reduction: A `Reduction` or its name.
        name: None: made of the class name.

    Raises:
        ValueError: There is no such reduction.

    Example:
        >>> import samegrad as tf
        >>> class Distance(tf.keras.losses.Loss):
        ...     def call(self, y_true, y_pred):
        ...         return tf.abs(y_pred - y_true)
        >>> float(Distance()([1.0, 2.0], [2.0, 5.0]))
        2.0
    """

    def __init__(
        self, reduction: Reduction | str = Reduction.AUTO, name: str | None = None
    ) -> None:
        self.reduction = as_reduction(type(self).__name__, reduction)
        self.name = name or snake_case(type(self).__name__)

    def __call__(
        self, y_true: TensorLike, y_pred: TensorLike, sample_weight: TensorLike | None = None
    ) -> Tensor:
        """The reduced loss.

        Args:
            y_true: Labels, examples on axis 0.
            y_pred: Predictions, examples on axis 0.
            sample_weight: Factors of the losses: one per example, or per value, or a scalar.

        Returns:
            A scalar, or for Reduction.NONE a value for each label.

        Raises:
            ValueError: The shapes do not fit, or the reduction is not defined under a strategy.
        """
        losses = converted(self.call)(as_examples(y_true), as_examples(y_pred))
        return reduce_losses(type(self).__name__, losses, sample_weight, self.reduction)

    def call(self, y_true: Tensor, y_pred: Tensor) -> Tensor:
        """The loss of each example."""
        raise NotImplementedError(f"[{type(self).__name__}] define call(self, y_true, y_pred).")

    def get_config(self) -> dict[str, Any]:
        """The arguments it was made with."""
        return {"reduction": self.reduction.value, "name": self.name}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Loss:
        """A loss made with these arguments."""
        return cls(**config)
