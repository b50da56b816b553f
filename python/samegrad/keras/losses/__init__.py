"""Losses: one value per example, and what is made of them."""

from samegrad._boundary import guard
from samegrad._unknown import getattr_of
from samegrad.keras.losses._functions import (
    binary_crossentropy,
    categorical_crossentropy,
    mean_absolute_error,
    mean_squared_error,
    sparse_categorical_crossentropy,
)
from samegrad.keras.losses._loss import Loss
from samegrad.keras.losses._losses import (
    BinaryCrossentropy,
    CategoricalCrossentropy,
    MeanAbsoluteError,
    MeanSquaredError,
    SparseCategoricalCrossentropy,
)
from samegrad.keras.losses._reduction import Reduction

mse = MSE = mean_squared_error
mae = MAE = mean_absolute_error

__all__ = [
    "MAE",
    "MSE",
    "BinaryCrossentropy",
    "CategoricalCrossentropy",
    "Loss",
    "MeanAbsoluteError",
    "MeanSquaredError",
    "Reduction",
    "SparseCategoricalCrossentropy",
    "binary_crossentropy",
    "categorical_crossentropy",
    "mae",
    "mean_absolute_error",
    "mean_squared_error",
    "mse",
    "sparse_categorical_crossentropy",
]

__getattr__ = getattr_of(__name__)
guard(__name__)
