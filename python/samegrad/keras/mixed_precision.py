"""Loss scaling, under the name that tf.keras has for it."""

from samegrad._boundary import guard
from samegrad._unknown import getattr_of
from samegrad.keras.optimizers import LossScaleOptimizer

__all__ = ["LossScaleOptimizer"]

__getattr__ = getattr_of(__name__)
guard(__name__)
