"""Metrics: figures collected over many batches."""

from samegrad._boundary import guard
from samegrad._unknown import getattr_of
from samegrad.keras.metrics._functions import (
    accuracy,
    binary_accuracy,
    categorical_accuracy,
    sparse_categorical_accuracy,
)
from samegrad.keras.metrics._means import (
    Accuracy,
    BinaryAccuracy,
    CategoricalAccuracy,
    MeanAbsoluteError,
    MeanMetricWrapper,
    MeanSquaredError,
    SparseCategoricalAccuracy,
    SparseCategoricalCrossentropy,
)
from samegrad.keras.metrics._metric import Metric
from samegrad.keras.metrics._sums import Mean, Sum

__all__ = [
    "Accuracy",
    "BinaryAccuracy",
    "CategoricalAccuracy",
    "Mean",
    "MeanAbsoluteError",
    "MeanMetricWrapper",
    "MeanSquaredError",
    "Metric",
    "SparseCategoricalAccuracy",
    "SparseCategoricalCrossentropy",
    "Sum",
    "accuracy",
    "binary_accuracy",
    "categorical_accuracy",
    "sparse_categorical_accuracy",
]

__getattr__ = getattr_of(__name__)
guard(__name__)
