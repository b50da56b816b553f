"""What samegrad adds to Keras's layers."""

from __future__ import annotations

from typing import Any


class Layer:
    """The mix-in that Keras gives all its layers."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pass
