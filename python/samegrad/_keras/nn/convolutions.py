"""keras.backend.nn: convolutions of signals, images and volumes."""

from __future__ import annotations

from typing import Any

from keras.src.backend.common.backend_utils import (
    check_conv_input_channels,
    check_conv_transpose_input_channels,
    compute_conv_transpose_output_shape,
)
from keras.src.backend.common.dtypes import result_type

import samegrad as tf
from samegrad import nn
from samegrad._keras.conversion import convert_to_tensor
from samegrad._keras.nn.layout import channels_last, each, put_back
from samegrad._tensor.tensor import Tensor


def _of_one_dtype(*tensors: Any) -> list[Tensor]:
    found = [convert_to_tensor(x) for x in tensors]
    kinds = {x._dtype for x in found}
    if len(kinds) == 1:
        return found
    return [convert_to_tensor(x, result_type(*kinds)) for x in found]


def conv(
    inputs: Any,
    kernel: Any,
    strides: Any = 1,
    padding: str = "valid",
    data_format: str | None = None,
    dilation_rate: Any = 1,
) -> Tensor:
    """The product of each window with the kernel [window, channels of a group, results].

    Raises:
        ValueError: Shapes or arguments do not fit, or no window is inside the inputs.
    """
    x, filters = _of_one_dtype(inputs, kernel)
    x, moved = channels_last(x, data_format)
    dimensions = x._rank - 2
    y = nn.convolution(
        x, filters, each(strides, dimensions), padding.upper(),
        dilations=each(dilation_rate, dimensions),
    )  # fmt: skip
    if _empty(y) and not _empty(x):
        raise ValueError(
            f"The convolution operation resulted in an empty output: got inputs of shape {x.shape} "
            f"and a kernel of shape {filters.shape}."
        )
    return put_back(y, moved)


def _empty(x: Tensor) -> bool:
    return 0 in x._shape


def depthwise_conv(
    inputs: Any,
    kernel: Any,
    strides: Any = 1,
    padding: str = "valid",
    data_format: str | None = None,
    dilation_rate: Any = 1,
) -> Tensor:
    """Each channel with filters of its own; the kernel is [window, channels, results of each].

    Raises:
        ValueError: Shapes or arguments do not fit.
    """
    x, filters = _of_one_dtype(inputs, kernel)
    _check_dimensions(x)
    x, moved = channels_last(x, data_format)
    return put_back(_depthwise(x, filters, strides, padding, dilation_rate), moved)


def _check_dimensions(x: Tensor) -> None:
    if x._rank not in (3, 4):
        raise ValueError(f"`inputs` rank must be 3 (1D conv) or 4 (2D conv). Received: {x._rank}.")


def _depthwise(
    x: Tensor, filters: Tensor, strides: Any, padding: str, dilation_rate: Any
) -> Tensor:
    check_conv_input_channels(x, filters, "channels_last")
    dimensions = x._rank - 2
    window, channels = filters.shape[:-2], filters.shape[-2]
    grouped = tf.reshape(filters, (*window, 1, channels * filters.shape[-1]))
    return nn.convolution(
        x, grouped, each(strides, dimensions), padding.upper(),
        dilations=each(dilation_rate, dimensions),
    )  # fmt: skip


def separable_conv(
    inputs: Any,
    depthwise_kernel: Any,
    pointwise_kernel: Any,
    strides: Any = 1,
    padding: str = "valid",
    data_format: str | None = None,
    dilation_rate: Any = 1,
) -> Tensor:
    """`depthwise_conv`, whose results are then mixed place by place.

    Raises:
        ValueError: Shapes or arguments do not fit.
    """
    x, filters, points = _of_one_dtype(inputs, depthwise_kernel, pointwise_kernel)
    _check_dimensions(x)
    x, moved = channels_last(x, data_format)
    y = _depthwise(x, filters, strides, padding, dilation_rate)
    return put_back(nn.convolution(y, points), moved)


def conv_transpose(
    inputs: Any,
    kernel: Any,
    strides: Any = 1,
    padding: str = "valid",
    output_padding: Any = None,
    data_format: str | None = None,
    dilation_rate: Any = 1,
) -> Tensor:
    """The transpose of `conv`; the kernel is [window, results, channels].

    Raises:
        ValueError: Shapes or arguments do not fit.
    """
    x, filters = _of_one_dtype(inputs, kernel)
    x, moved = channels_last(x, data_format)
    check_conv_transpose_input_channels(x, filters, "channels_last")
    dimensions = x._rank - 2
    steps, apart = each(strides, dimensions), each(dilation_rate, dimensions)
    shape = compute_conv_transpose_output_shape(
        tuple(x.shape), tuple(filters.shape[:-2]), filters.shape[-2], steps, padding,
        output_padding, "channels_last", apart,
    )  # fmt: skip
    y = nn.conv_transpose(x, filters, shape, steps, padding.upper(), dilations=apart)
    return put_back(y, moved)
