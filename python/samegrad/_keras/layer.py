"""What samegrad adds to Keras's layers."""

from __future__ import annotations

from typing import Any


class Layer:
    """The mix-in that Keras gives all its layers."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pass

    @staticmethod
    def activity_batch_size(output: Any, dtype: Any) -> Any:
        """What the penalty of the outputs is divided by; see `losses.activity_batch_size`."""
        from samegrad._keras.losses import activity_batch_size

        return activity_batch_size(output, dtype)
