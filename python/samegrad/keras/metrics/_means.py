"""Means of functions of labels and predictions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from samegrad._dtypes import DTypeLike
from samegrad._examples import as_examples
from samegrad._tensor import Tensor, TensorLike
from samegrad.keras import losses
from samegrad.keras.metrics import _functions
from samegrad.keras.metrics._sums import Mean


class MeanMetricWrapper(Mean):
    """The mean of a function of labels and predictions.

    Args:
        fn: Takes labels and predictions, gives a value for each label.
        name: Of the metric.
        dtype: Of the result.
        **kwargs: Further arguments of the function.

    Example:
        >>> metric = MeanMetricWrapper(lambda y_true, y_pred: y_true - y_pred)
        >>> float(metric([3.0, 3.0], [1.0, 2.0]))
        1.5
    """

    def __init__(
        self,
        fn: Callable[..., Tensor],
        name: str | None = None,
        dtype: DTypeLike | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(name, dtype)
        self._fn = fn
        self._fn_kwargs = kwargs

    def update_state(  # type: ignore[override]
        self, y_true: TensorLike, y_pred: TensorLike, sample_weight: TensorLike | None = None
    ) -> None:
        """Adds a batch.

        Args:
            y_true: Labels, examples on axis 0.
            y_pred: Predictions, examples on axis 0.
            sample_weight: Factors, one per example, or per value, or a scalar.

        Raises:
            ValueError: The shapes do not fit.
        """
        values = self._fn(as_examples(y_true), as_examples(y_pred), **self._fn_kwargs)
        super().update_state(values, sample_weight)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), **self._fn_kwargs}


class Accuracy(MeanMetricWrapper):
    """How often label and prediction are equal.

    Args:
        name: Of the metric.
        dtype: Of the result.

    Example:
        >>> float(Accuracy()([1, 2, 3, 4], [1, 2, 3, 0]))
        0.75
    """

    def __init__(self, name: str | None = "accuracy", dtype: DTypeLike | None = None) -> None:
        super().__init__(_functions.accuracy, name, dtype)


class BinaryAccuracy(MeanMetricWrapper):
    """How often a probability is on the right side of the threshold.

    Args:
        name: Of the metric.
        dtype: Of the result.
        threshold: Above it, 1 is predicted.

    Example:
        >>> float(BinaryAccuracy()([[1], [0]], [[0.7], [0.6]]))
        0.5
    """

    def __init__(
        self,
        name: str | None = "binary_accuracy",
        dtype: DTypeLike | None = None,
        threshold: float = 0.5,
    ) -> None:
        super().__init__(_functions.binary_accuracy, name, dtype, threshold=threshold)


class CategoricalAccuracy(MeanMetricWrapper):
    """How often the largest prediction is that of the largest label.

    Args:
        name: Of the metric.
        dtype: Of the result.

    Example:
        >>> float(CategoricalAccuracy()([[0, 1], [1, 0]], [[0.2, 0.8], [0.2, 0.8]]))
        0.5
    """

    def __init__(
        self, name: str | None = "categorical_accuracy", dtype: DTypeLike | None = None
    ) -> None:
        super().__init__(_functions.categorical_accuracy, name, dtype)


class SparseCategoricalAccuracy(MeanMetricWrapper):
    """How often the largest prediction is that of the label, a class number.

    Args:
        name: Of the metric.
        dtype: Of the result.

    Example:
        >>> float(SparseCategoricalAccuracy()([1, 0], [[0.2, 0.8], [0.2, 0.8]]))
        0.5
    """

    def __init__(
        self, name: str | None = "sparse_categorical_accuracy", dtype: DTypeLike | None = None
    ) -> None:
        super().__init__(_functions.sparse_categorical_accuracy, name, dtype)


class MeanSquaredError(MeanMetricWrapper):
    """The mean of (y_true - y_pred)**2.

    Args:
        name: Of the metric.
        dtype: Of the result.

    Example:
        >>> float(MeanSquaredError()([[0.0, 0.0]], [[1.0, 3.0]]))
        5.0
    """

    def __init__(
        self, name: str | None = "mean_squared_error", dtype: DTypeLike | None = None
    ) -> None:
        super().__init__(losses.mean_squared_error, name, dtype)


class MeanAbsoluteError(MeanMetricWrapper):
    """The mean of |y_true - y_pred|.

    Args:
        name: Of the metric.
        dtype: Of the result.

    Example:
        >>> float(MeanAbsoluteError()([[0.0, 0.0]], [[1.0, 3.0]]))
        2.0
    """

    def __init__(
        self, name: str | None = "mean_absolute_error", dtype: DTypeLike | None = None
    ) -> None:
        super().__init__(losses.mean_absolute_error, name, dtype)


class SparseCategoricalCrossentropy(MeanMetricWrapper):
    """The mean of -log(probability of the label), the label being a class number.

    Args:
        name: Of the metric.
        dtype: Of the result.
        from_logits: Whether predictions are logits rather than probabilities.

    Example:
        >>> round(float(SparseCategoricalCrossentropy()([0], [[0.5, 0.5]])), 4)
        0.6931
    """

    def __init__(
        self,
        name: str | None = "sparse_categorical_crossentropy",
        dtype: DTypeLike | None = None,
        from_logits: bool = False,
    ) -> None:
        super().__init__(
            losses.sparse_categorical_crossentropy, name, dtype, from_logits=from_logits
        )
