"""Loss objects."""

from __future__ import annotations

from typing import Any

from samegrad._tensor import Tensor
from samegrad.keras.losses import _functions
from samegrad.keras.losses._loss import Loss
from samegrad.keras.losses._reduction import Reduction


class MeanSquaredError(Loss):
    """mean((y_true - y_pred)**2) over the last axis.

    Args:
        reduction: A `Reduction` or its name.
        name: Of the loss.

    Example:
        >>> float(MeanSquaredError()([[0.0, 0.0]], [[1.0, 3.0]]))
        5.0
    """

    def __init__(
        self, reduction: Reduction | str = Reduction.AUTO, name: str | None = "mean_squared_error"
    ) -> None:
        super().__init__(reduction, name)

    def call(self, y_true: Tensor, y_pred: Tensor) -> Tensor:
        return _functions.mean_squared_error(y_true, y_pred)


class MeanAbsoluteError(Loss):
    """mean(|y_true - y_pred|) over the last axis.

    Args:
        reduction: A `Reduction` or its name.
        name: Of the loss.

    Example:
        >>> float(MeanAbsoluteError()([[0.0, 0.0]], [[1.0, 3.0]]))
        2.0
    """

    def __init__(
        self, reduction: Reduction | str = Reduction.AUTO, name: str | None = "mean_absolute_error"
    ) -> None:
        super().__init__(reduction, name)

    def call(self, y_true: Tensor, y_pred: Tensor) -> Tensor:
        return _functions.mean_absolute_error(y_true, y_pred)


class SparseCategoricalCrossentropy(Loss):
    """-log(probability of the label), the label being a class number.

    Args:
        from_logits: Whether predictions are logits rather than probabilities.
        reduction: A `Reduction` or its name.
        name: Of the loss.

    Example:
        >>> loss = SparseCategoricalCrossentropy(from_logits=True, reduction="none")
        >>> loss([0, 1], [[0.0, 0.0], [0.0, 0.0]]).numpy().round(4)
        array([0.6931, 0.6931], dtype=float32)
    """

    def __init__(
        self,
        from_logits: bool = False,
        reduction: Reduction | str = Reduction.AUTO,
        name: str | None = "sparse_categorical_crossentropy",
    ) -> None:
        super().__init__(reduction, name)
        self.from_logits = bool(from_logits)

    def call(self, y_true: Tensor, y_pred: Tensor) -> Tensor:
        return _functions.sparse_categorical_crossentropy(y_true, y_pred, self.from_logits)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "from_logits": self.from_logits}


class _Smoothed(Loss):
    """Base of the cross-entropies whose labels are distributions."""

    def __init__(
        self,
        from_logits: bool,
        label_smoothing: float,
        axis: int,
        reduction: Reduction | str,
        name: str | None,
    ) -> None:
        super().__init__(reduction, name)
        if not 0.0 <= label_smoothing <= 1.0:
            raise ValueError(
                f"[{type(self).__name__}] label_smoothing must be in [0, 1]: got {label_smoothing}."
            )
        self.from_logits = bool(from_logits)
        self.label_smoothing = label_smoothing
        self.axis = axis

    def get_config(self) -> dict[str, Any]:
        names = ("from_logits", "label_smoothing", "axis")
        return {**super().get_config(), **{name: getattr(self, name) for name in names}}


class CategoricalCrossentropy(_Smoothed):
    """-sum(label * log(probability)), the labels being distributions over the classes.

    Args:
        from_logits: Whether predictions are logits rather than probabilities.
        label_smoothing: s in [0, 1]: labels become label * (1 - s) + s / classes.
        axis: The axis of the classes.
        reduction: A `Reduction` or its name.
        name: Of the loss.

    Raises:
        ValueError: `label_smoothing` is not in [0, 1].

    Example:
        >>> round(float(CategoricalCrossentropy()([[0.0, 1.0]], [[0.5, 0.5]])), 4)
        0.6931
    """

    def __init__(
        self,
        from_logits: bool = False,
        label_smoothing: float = 0.0,
        axis: int = -1,
        reduction: Reduction | str = Reduction.AUTO,
        name: str | None = "categorical_crossentropy",
    ) -> None:
        super().__init__(from_logits, label_smoothing, axis, reduction, name)

    def call(self, y_true: Tensor, y_pred: Tensor) -> Tensor:
        return _functions.categorical_crossentropy(
            y_true, y_pred, self.from_logits, self.label_smoothing, self.axis
        )


class BinaryCrossentropy(_Smoothed):
    """-y * log(p) - (1 - y) * log(1 - p), averaged over an axis.

    Args:
        from_logits: Whether predictions are logits rather than probabilities.
        label_smoothing: s in [0, 1]: labels become label * (1 - s) + s / 2.
        axis: Which axis is averaged.
        reduction: A `Reduction` or its name.
        name: Of the loss.

    Raises:
        ValueError: `label_smoothing` is not in [0, 1].

    Example:
        >>> round(float(BinaryCrossentropy()([[1.0, 0.0]], [[0.5, 0.5]])), 4)
        0.6931
    """

    def __init__(
        self,
        from_logits: bool = False,
        label_smoothing: float = 0.0,
        axis: int = -1,
        reduction: Reduction | str = Reduction.AUTO,
        name: str | None = "binary_crossentropy",
    ) -> None:
        super().__init__(from_logits, label_smoothing, axis, reduction, name)

    def call(self, y_true: Tensor, y_pred: Tensor) -> Tensor:
        return _functions.binary_crossentropy(
            y_true, y_pred, self.from_logits, self.label_smoothing, self.axis
        )
