"""Optimizers: how gradients change variables."""

from samegrad._boundary import guard
from samegrad._unknown import getattr_of
from samegrad.keras.optimizers import schedules
from samegrad.keras.optimizers._accumulator import GradientAccumulator
from samegrad.keras.optimizers._adam import Adam, LazyAdam
from samegrad.keras.optimizers._loss_scale import LossScaleOptimizer
from samegrad.keras.optimizers._optimizer import Optimizer
from samegrad.keras.optimizers._sgd import SGD

__all__ = [
    "SGD",
    "Adam",
    "GradientAccumulator",
    "LazyAdam",
    "LossScaleOptimizer",
    "Optimizer",
    "schedules",
]

__getattr__ = getattr_of(__name__)
guard(__name__)
