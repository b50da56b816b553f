"""Pooling of images."""

from __future__ import annotations

from typing import Any

from samegrad import _core, nn
from samegrad._tensor import Tensor
from samegrad.keras.layers._convolution import check_padding
from samegrad.keras.layers._layer import Layer
from samegrad.nn._window import Sizes, check_channels_last, images_of, rows_and_columns

_ops = _core.ops


class _Pooling2D(Layer):
    """Base of the layers that pool windows."""

    def __init__(
        self,
        pool_size: Sizes = (2, 2),
        strides: Sizes | None = None,
        padding: str = "valid",
        data_format: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        who = type(self).__name__
        self.pool_size = rows_and_columns(who, "pool_size", pool_size)
        self.strides = rows_and_columns(
            who, "strides", self.pool_size if strides is None else strides
        )
        self.padding = check_padding(who, padding)
        check_channels_last(who, data_format)

    def get_config(self) -> dict[str, Any]:
        names = ("pool_size", "strides", "padding")
        return {**super().get_config(), **{name: getattr(self, name) for name in names}}


class MaxPooling2D(_Pooling2D):
    """The largest element of each window, channel by channel.

    Shapes: [n, rows, columns, channels] to [n, new rows, new columns, channels].

    Args:
        pool_size: Rows and columns of the window, or one number for both.
        strides: Its steps. None: its size.
        padding: "valid" (none) or "same"; what is added never wins.
        data_format: "channels_last".
        **kwargs: As of `Layer`.

    Raises:
        ValueError: An argument is out of range, or the input is no batch of images.

    Example:
        >>> MaxPooling2D()([[[[1.0], [5.0]], [[2.0], [3.0]]]]).numpy().ravel()
        array([5.], dtype=float32)
    """

    def call(self, inputs: Tensor) -> Tensor:
        return nn.max_pool2d(inputs, self.pool_size, self.strides, self.padding)


class AveragePooling2D(_Pooling2D):
    """The mean of each window, channel by channel.

    Shapes: [n, rows, columns, channels] to [n, new rows, new columns, channels].

    Args:
        pool_size: Rows and columns of the window, or one number for both.
        strides: Its steps. None: its size.
        padding: "valid" (none) or "same"; what is added does not count.
        data_format: "channels_last".
        **kwargs: As of `Layer`.

    Raises:
        ValueError: An argument is out of range, or the input is no batch of images.

    Example:
        >>> AveragePooling2D()([[[[1.0], [5.0]], [[2.0], [4.0]]]]).numpy().ravel()
        array([3.], dtype=float32)
    """

    def call(self, inputs: Tensor) -> Tensor:
        return nn.avg_pool2d(inputs, self.pool_size, self.strides, self.padding)


class GlobalAveragePooling2D(Layer):
    """The mean over all places of an image, channel by channel.

    Shapes: [n, rows, columns, channels] to [n, channels], or [n, 1, 1, channels].

    Args:
        data_format: "channels_last".
        keepdims: Whether rows and columns stay as axes of size 1.
        **kwargs: As of `Layer`.

    Raises:
        ValueError: The input is no batch of images.

    Example:
        >>> GlobalAveragePooling2D()([[[[1.0], [5.0]], [[2.0], [4.0]]]]).numpy()
        array([[3.]], dtype=float32)
    """

    def __init__(
        self, data_format: str | None = None, keepdims: bool = False, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        check_channels_last("GlobalAveragePooling2D", data_format)
        self.keepdims = bool(keepdims)

    def call(self, inputs: Tensor) -> Tensor:
        x = images_of(self.name, inputs)
        total = _ops.reduce_sum(x, axes=(1, 2), keepdims=self.keepdims)
        return total / float(x._shape[1] * x._shape[2])

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "keepdims": self.keepdims}


class GlobalMaxPooling2D(GlobalAveragePooling2D):
    """The largest element over all places of an image, channel by channel.

    Shapes: [n, rows, columns, channels] to [n, channels], or [n, 1, 1, channels].

    Args:
        data_format: "channels_last".
        keepdims: Whether rows and columns stay as axes of size 1.
        **kwargs: As of `Layer`.

    Raises:
        ValueError: The input is no batch of images.

    Example:
        >>> GlobalMaxPooling2D()([[[[1.0], [5.0]], [[2.0], [4.0]]]]).numpy()
        array([[5.]], dtype=float32)
    """

    def call(self, inputs: Tensor) -> Tensor:
        x = images_of(self.name, inputs)
        return _ops.reduce_max(x, axes=(1, 2), keepdims=self.keepdims)


MaxPool2D = MaxPooling2D
AvgPool2D = AveragePooling2D
GlobalAvgPool2D = GlobalAveragePooling2D
GlobalMaxPool2D = GlobalMaxPooling2D
