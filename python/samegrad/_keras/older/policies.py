"""`mixed_precision.experimental`: the policies of today."""

from keras.src.dtype_policies.dtype_policy import DTypePolicy as Policy
from keras.src.dtype_policies.dtype_policy import dtype_policy as global_policy
from keras.src.dtype_policies.dtype_policy import set_dtype_policy as set_policy
from keras.src.optimizers.loss_scale_optimizer import LossScaleOptimizer

__all__ = ["LossScaleOptimizer", "Policy", "global_policy", "set_policy"]
