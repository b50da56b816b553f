"""`layers.experimental`: layers of today, and batch normalization over all replicas."""

from __future__ import annotations

from typing import Any

from keras.src.layers import BatchNormalization, EinsumDense
from keras.src.saving import register_keras_serializable

__all__ = ["EinsumDense", "SyncBatchNormalization"]


@register_keras_serializable("samegrad")
class SyncBatchNormalization(BatchNormalization):  # type: ignore[misc]
    """BatchNormalization: its statistics are those of all replicas here anyway.

    Args:
        **kwargs: Those of `BatchNormalization`.

    Example:
        >>> SyncBatchNormalization().synchronized
        True
    """

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**{"synchronized": True, **kwargs})
