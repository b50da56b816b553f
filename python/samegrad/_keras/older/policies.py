"""`mixed_precision.experimental`: the policies of today."""

from typing import Any, NoReturn

from keras.src.dtype_policies.dtype_policy import DTypePolicy as Policy
from keras.src.dtype_policies.dtype_policy import dtype_policy as global_policy
from keras.src.dtype_policies.dtype_policy import set_dtype_policy as set_policy
from keras.src.optimizers.loss_scale_optimizer import LossScaleOptimizer

from samegrad._base.shown import shown


def refuse_loss_scale(name: Any, loss_scale: Any) -> NoReturn:
    """Raise the error of a policy that shall hold the scale of the losses.

    Args:
        name: The name of the policy.
        loss_scale: The scale.

    Raises:
        ValueError: Always.
    """
    raise ValueError(
        f"[Policy] a policy has no loss_scale: got {shown(loss_scale)} for {name!r}; scale the "
        "losses with the optimizer, keras.mixed_precision.LossScaleOptimizer(optimizer)."
    )


__all__ = ["LossScaleOptimizer", "Policy", "global_policy", "set_policy"]
