"""Metrics that Keras 3 has no more."""

from __future__ import annotations

from typing import Any

from keras.src.metrics.metric import Metric
from keras.src.metrics.reduction_metrics import Mean

import samegrad as tf
from samegrad._keras.conversion import convert_to_tensor

__all__ = ["MeanRelativeError", "MeanTensor"]


class MeanRelativeError(Mean):  # type: ignore[misc]
    """The mean of |label - prediction| / normalizer; 0 where the normalizer is 0.

    Args:
        normalizer: A number for each prediction of an example.
        name: Of the metric.
        dtype: Of the result.

    Example:
        >>> float(MeanRelativeError([1.0, 2.0])([[1.0, 3.0]], [[2.0, 1.0]]))
        1.0
    """

    def __init__(self, normalizer: Any, name: str | None = None, dtype: Any = None) -> None:
        super().__init__(name=name or "mean_relative_error", dtype=dtype)
        self.normalizer = convert_to_tensor(normalizer, self.dtype)

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        """Update the mean with the errors of some examples.

        Args:
            y_true: Labels, in the shape of y_pred.
            y_pred: Predictions.
            sample_weight: Weights that broadcast to the errors. None: 1.

        Example:
            >>> import samegrad as tf
            >>> metric = tf.keras.metrics.MeanRelativeError(normalizer=[1.0, 2.0])
            >>> metric.update_state([1.0, 2.0], [2.0, 2.0])
            >>> float(metric.result())
            0.5
        """
        labels, found = (convert_to_tensor(part, self.dtype) for part in (y_true, y_pred))
        errors = tf.math.divide_no_nan(tf.abs(labels - found), self.normalizer)
        super().update_state(errors, sample_weight)

    def get_config(self) -> dict[str, Any]:
        """Return the constructor's arguments."""
        values = self.normalizer.numpy().tolist()
        return {"name": self.name, "dtype": self.dtype, "normalizer": values}


class MeanTensor(Metric):  # type: ignore[misc]
    """The mean of tensors of one shape, element by element.

    On several replicas the tensors are those of the replicas, of which each counts once.

    Args:
        name: Of the metric.
        dtype: Of the result.
        shape: Of the tensors; None: that of the first one.

    Example:
        >>> mean = MeanTensor()
        >>> mean.update_state([1.0, 2.0])
        >>> mean([3.0, 6.0]).numpy()
        array([2., 4.], dtype=float32)
    """

    def __init__(
        self, name: str = "mean_tensor", dtype: Any = None, shape: tuple[int, ...] | None = None
    ) -> None:
        super().__init__(name=name, dtype=dtype)
        self.total: Any = None
        self.count: Any = None
        if shape is not None:
            self._build(tuple(shape))

    def _build(self, shape: tuple[int, ...]) -> None:
        self.total = self.add_weight(shape=shape, dtype="float64", name="total")
        self.count = self.add_weight(shape=shape, dtype="float64", name="count")

    def update_state(self, values: Any, sample_weight: Any = None) -> None:
        """Update the mean of each element.

        Args:
            values: Tensor, of one shape in all calls.
            sample_weight: Weights that broadcast to values. None: 1.

        Raises:
            ValueError: values has another shape than before.
        """
        tensor = convert_to_tensor(values, self.dtype)
        if self.total is None:
            self._build(tuple(tensor.shape))
        if tuple(tensor.shape) != tuple(self.total.shape):
            raise ValueError(
                f"[MeanTensor] tensors have one shape: got {tuple(tensor.shape)} after "
                f"{tuple(self.total.shape)}; give the metric shape=."
            )
        weights = tf.ones_like(tensor)
        if sample_weight is not None:
            weights = weights * convert_to_tensor(sample_weight, self.dtype)
        self.total.assign_add(tensor * weights)
        self.count.assign_add(weights)

    def result(self) -> Any:
        """Return the mean of each element.

        Example:
            >>> import samegrad as tf
            >>> metric = tf.keras.metrics.MeanTensor()
            >>> metric.update_state([1.0, 2.0])
            >>> metric.update_state([3.0, 4.0])
            >>> metric.result().numpy().tolist()
            [2.0, 3.0]
        """
        if self.total is None:
            raise ValueError("[MeanTensor] it has no shape yet: update it, or give it shape=.")
        mean = tf.math.divide_no_nan(self.total.value, self.count.value)
        return tf.cast(mean, self.dtype)
