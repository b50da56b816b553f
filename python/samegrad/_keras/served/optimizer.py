"""keras.src.optimizers.optimizer: the base of Keras's optimizers."""

from keras.src.api_export import keras_export
from keras.src.optimizers import base_optimizer

from samegrad._keras.optimizer import ReducingOptimizer


@keras_export(["keras.Optimizer", "keras.optimizers.Optimizer"])
class Optimizer(ReducingOptimizer, base_optimizer.BaseOptimizer):  # type: ignore[misc]
    """Keras's optimizer, which sums gradients over the replicas first."""


Optimizer.__doc__ = base_optimizer.BaseOptimizer.__doc__
base_optimizer_keyword_args = base_optimizer.base_optimizer_keyword_args
