"""Convolution of images."""

from __future__ import annotations

from typing import Any

from samegrad import nn
from samegrad._shown import shown
from samegrad._tensor import Tensor
from samegrad.keras.layers._affine import AffineLayer, positive
from samegrad.nn._window import Sizes, check_channels_last, rows_and_columns


class Conv2D(AffineLayer):
    """activation(convolution of the images with the kernel + bias).

    Shapes: [n, rows, columns, channels] to [n, new rows, new columns, filters]; kernel [kernel
    rows, kernel columns, channels / groups, filters], bias [filters].

    Args:
        filters: How many results for each place.
        kernel_size: Rows and columns of the window, or one number for both.
        strides: Its steps.
        padding: "valid" (none) or "same" (as many windows as steps fit into the image).
        data_format: "channels_last".
        dilation_rate: From tap to tap of the kernel.
        groups: Into how many groups the channels and the filters are divided, each of which sees
            its own channels only.
        activation: A name, a function, or None.
        use_bias: Whether a bias is added.
        kernel_initializer: First values of the kernel.
        bias_initializer: First values of the bias.
        kernel_regularizer: Loss of the kernel, or None.
        bias_regularizer: Loss of the bias, or None.
        **kwargs: As of `Layer`.

    Raises:
        ValueError: An argument is out of range, or the input has not the right shape.

    Example:
        >>> import numpy as np
        >>> Conv2D(4, 3)(np.zeros((2, 8, 8, 1), "float32")).shape
        (2, 6, 6, 4)
    """

    def __init__(
        self,
        filters: int,
        kernel_size: Sizes,
        strides: Sizes = (1, 1),
        padding: str = "valid",
        data_format: str | None = None,
        dilation_rate: Sizes = (1, 1),
        groups: int = 1,
        activation: Any = None,
        use_bias: bool = True,
        kernel_initializer: Any = "glorot_uniform",
        bias_initializer: Any = "zeros",
        kernel_regularizer: Any = None,
        bias_regularizer: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            activation,
            use_bias,
            kernel_initializer,
            bias_initializer,
            kernel_regularizer,
            bias_regularizer,
            **kwargs,
        )
        who = "Conv2D"
        self.filters = positive(who, "filters", filters)
        self.kernel_size = rows_and_columns(who, "kernel_size", kernel_size)
        self.strides = rows_and_columns(who, "strides", strides)
        self.padding = check_padding(who, padding)
        check_channels_last(who, data_format)
        self.dilation_rate = rows_and_columns(who, "dilation_rate", dilation_rate)
        self.groups = positive(who, "groups", groups)
        if self.filters % self.groups:
            raise ValueError(
                f"[{who}] filters must be divisible by groups: got {filters} and {groups}."
            )

    def build(self, input_shape: Any) -> None:
        if len(input_shape) != 4 or input_shape[-1] is None:
            raise ValueError(
                f"[{self.name}] images must be [n, rows, columns, channels]: got shape "
                f"{tuple(input_shape)}; add the missing axes, e.g. images[..., None] for one "
                "channel."
            )
        channels = int(input_shape[-1])
        if channels % self.groups:
            raise ValueError(
                f"[{self.name}] the channels of images must be divisible by groups: got "
                f"{channels} and {self.groups}."
            )
        self._add_weights((*self.kernel_size, channels // self.groups, self.filters))
        self.built = True

    def call(self, inputs: Tensor) -> Tensor:
        kernel = self._kernel_tensor()
        channels = int(kernel._shape[2]) * self.groups
        if inputs._rank != 4 or inputs._shape[-1] != channels:
            raise ValueError(
                f"[{self.name}] images must be [n, rows, columns, {channels}], with as "
                f"many channels as at the first call: got shape {tuple(inputs._shape)}."
            )
        y = nn.conv2d(inputs, kernel, self.strides, self.padding, dilations=self.dilation_rate)
        return self._finish(y)

    def get_config(self) -> dict[str, Any]:
        names = ("filters", "kernel_size", "strides", "padding", "dilation_rate", "groups")
        return {**super().get_config(), **{name: getattr(self, name) for name in names}}


def check_padding(who: str, padding: str) -> str:
    """The padding in small letters, checked.

    Raises:
        ValueError: It is neither "valid" nor "same".

    Example:
        >>> check_padding("Conv2D", "SAME")
        'same'
    """
    if str(padding).lower() not in ("valid", "same"):
        raise ValueError(f"[{who}] padding must be 'valid' or 'same': got {shown(padding)}.")
    return str(padding).lower()
