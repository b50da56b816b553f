"""Transposed convolution: a convolution's gradient with respect to its input."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from samegrad import _core
from samegrad._base.shown import shown
from samegrad._tensor.dim import Dim
from samegrad._tensor.sizes import sizes_of
from samegrad._tensor.tensor import Tensor, TensorLike, convert_to_tensor, match
from samegrad.nn._convolution import dimensions_of, one_row
from samegrad.nn._window import (
    Padding,
    Sizes,
    check_channels_last,
    check_filters,
    images_of,
    window_attrs,
)

_ops = _core.ops


def conv1d_transpose(
    input: TensorLike,
    filters: TensorLike,
    output_shape: Any,
    strides: Sizes,
    padding: Padding = "SAME",
    data_format: str = "NWC",
    dilations: Sizes | None = None,
    name: str | None = None,
) -> Tensor:
    """Compute the transpose of `conv1d`, also called deconvolution.

    Each element of the input is multiplied by the filters and added to a window of the result.
    Overlapping windows are summed.

    Args:
        input: Signals: floats of shape [n, width, channels].
        filters: The filters: [width, filters / groups, channels]; see `conv2d_transpose` for
            groups.
        output_shape: The shape of the result: [n, new width, filters]. A convolution of this shape
            must have the shape of `input`.
        strides: The stride: an integer, or three (1, width, 1).
        padding: The padding of that convolution: "VALID", "SAME" or [[0, 0], [left, right], [0,
            0]].
        data_format: "NWC", channels last.
        dilations: The dilation rate, an integer or one per dimension; default 1.
        name: Ignored.

    Returns:
        A tensor of the shape `output_shape`, in the dtype of `input`.

    Raises:
        ValueError: Shapes or arguments do not fit.

    Example:
        >>> y = conv1d_transpose([[[1.0], [2.0]]], [[[3.0]], [[4.0]]], [1, 4, 1], 2, "VALID")
        >>> y.numpy().ravel()
        array([3., 4., 6., 8.], dtype=float32)
    """
    who = "conv1d_transpose"
    return _transposed(
        who, 1, input, filters, output_shape, strides, padding, data_format, dilations
    )


def conv2d_transpose(
    input: TensorLike,
    filters: TensorLike,
    output_shape: Any,
    strides: Sizes,
    padding: Padding = "SAME",
    data_format: str = "NHWC",
    dilations: Sizes | None = None,
    name: str | None = None,
) -> Tensor:
    """Compute the transpose of `conv2d`, also called deconvolution.

    Each element of the input is multiplied by the filters and added to a window of the result.
    Overlapping windows are summed.

    Args:
        input: Images: floats of shape [n, height, width, channels].
        filters: The filters: [height, width, filters / groups, channels]. Fewer filters than
            `output_shape` has make groups: the channels and the filters are divided into that
            number of groups, and each group of channels adds to its own group of filters
            (ConvTranspose2d of PyTorch with `groups`).
        output_shape: The shape of the result: [n, new height, new width, filters]. A convolution of
            this shape must have the shape of `input`.
        strides: The strides: an integer, two, or four (1, height, width, 1).
        padding: The padding of that convolution: "VALID", "SAME" or [[0, 0], [top, bottom], [left,
            right], [0, 0]].
        data_format: "NHWC", channels last.
        dilations: The dilation rate, an integer or one per dimension; default 1.
        name: Ignored.

    Returns:
        A tensor of the shape `output_shape`, in the dtype of `input`.

    Raises:
        ValueError: Shapes or arguments do not fit.

    Example:
        >>> x, filters = [[[[1.0], [2.0]]]], [[[[3.0]], [[4.0]]]]
        >>> conv2d_transpose(x, filters, [1, 1, 4, 1], (1, 2), "VALID").numpy().ravel()
        array([3., 4., 6., 8.], dtype=float32)
    """
    who = "conv2d_transpose"
    return _transposed(
        who, 2, input, filters, output_shape, strides, padding, data_format, dilations
    )


def conv3d_transpose(
    input: TensorLike,
    filters: TensorLike,
    output_shape: Any,
    strides: Sizes,
    padding: Padding = "SAME",
    data_format: str = "NDHWC",
    dilations: Sizes | None = None,
    name: str | None = None,
) -> Tensor:
    """Compute the transpose of `conv3d`, also called deconvolution.

    Each element of the input is multiplied by the filters and added to a window of the result.
    Overlapping windows are summed.

    Args:
        input: Volumes: floats of shape [n, depth, height, width, channels].
        filters: The filters: [depth, height, width, filters / groups, channels]; see
            `conv2d_transpose` for groups.
        output_shape: The shape of the result: [n, new depth, new height, new width, filters]. A
            convolution of this shape must have the shape of `input`.
        strides: The strides: an integer, three, or five (1, depth, height, width, 1).
        padding: The padding of that convolution: "VALID", "SAME" or pairs, as `conv3d` takes them.
        data_format: "NDHWC", channels last.
        dilations: The dilation rate, an integer or one per dimension; default 1.
        name: Ignored.

    Returns:
        A tensor of the shape `output_shape`, in the dtype of `input`.

    Raises:
        ValueError: Shapes or arguments do not fit.

    Example:
        >>> x, filters = [[[[[1.0], [2.0]]]]], [[[[[3.0]], [[4.0]]]]]
        >>> conv3d_transpose(x, filters, [1, 1, 1, 4, 1], (1, 1, 2), "VALID").numpy().ravel()
        array([3., 4., 6., 8.], dtype=float32)
    """
    who = "conv3d_transpose"
    return _transposed(
        who, 3, input, filters, output_shape, strides, padding, data_format, dilations
    )


def conv_transpose(
    input: TensorLike,
    filters: TensorLike,
    output_shape: Any,
    strides: Sizes,
    padding: Padding = "SAME",
    data_format: str | None = None,
    dilations: Sizes | None = None,
    name: str | None = None,
) -> Tensor:
    """Compute the transpose of `convolution`, as `conv1d_transpose` and its relatives do.

    Args:
        input: Signals, images or volumes: floats with three, four or five axes, channels last.
        filters: The filters: [*spatial sizes, filters / groups, channels].
        output_shape: The shape of the result: [n, *new spatial sizes, filters].
        strides: The strides: an integer, or one per dimension.
        padding: The padding of the convolution: "VALID", "SAME" or pairs.
        data_format: Channels last: None, "NWC", "NHWC" or "NDHWC".
        dilations: The dilation rate, an integer or one per dimension; default 1.
        name: Ignored.

    Returns:
        A tensor of the shape `output_shape`, in the dtype of `input`.

    Raises:
        ValueError: Shapes or arguments do not fit.

    Example:
        >>> y = conv_transpose([[[1.0], [2.0]]], [[[3.0]], [[4.0]]], [1, 4, 1], 2, "VALID")
        >>> y.numpy().ravel()
        array([3., 4., 6., 8.], dtype=float32)
    """
    who = "conv_transpose"
    x = convert_to_tensor(input)
    dimensions = dimensions_of(who, x)
    return _transposed(
        who, dimensions, x, filters, output_shape, strides, padding, data_format, dilations
    )


def depthwise_conv2d_backprop_input(
    input_sizes: Any,
    filter: TensorLike,
    out_backprop: TensorLike,
    strides: Sizes,
    padding: Padding,
    data_format: str = "NHWC",
    dilations: Sizes = (1, 1, 1, 1),
    name: str | None = None,
) -> Tensor:
    """Compute the gradient of `depthwise_conv2d` with respect to the images.

    Args:
        input_sizes: The shape of the images, [n, height, width, channels].
        filter: The filters: [height, width, channels, multiplier].
        out_backprop: The gradient of the result: [n, new height, new width, channels * multiplier].
        strides: The strides: an integer, two, or four (1, height, width, 1).
        padding: The padding of that convolution: "VALID", "SAME" or [[0, 0], [top, bottom], [left,
            right], [0, 0]].
        data_format: "NHWC", channels last.
        dilations: The dilation rate, an integer or one per dimension; default 1.
        name: Ignored.

    Returns:
        A tensor of the shape `input_sizes`.

    Raises:
        ValueError: Shapes or arguments do not fit.

    Example:
        >>> x, each = [[[[1.0, 2.0]]]], [[[[3.0], [4.0]]]]
        >>> depthwise_conv2d_backprop_input([1, 1, 1, 2], each, x, 1, "SAME").numpy().ravel()
        array([3., 8.], dtype=float32)
    """
    who = "depthwise_conv2d_backprop_input"
    x = images_of(who, out_backprop)
    kernel = match(filter, x)
    check_filters(who, kernel, 2, "channels, results of a channel")
    height, width, channels, each = (int(size) for size in kernel._shape)
    if sizes_of(input_sizes)[-1:] != [channels]:
        raise ValueError(
            f"[{who}] input_sizes must end with the channels of the filter: got "
            f"{shown(input_sizes)} and {kernel._shape}."
        )
    groups = _ops.reshape(kernel, shape=[height, width, 1, channels * each])
    return _transposed(who, 2, x, groups, input_sizes, strides, padding, data_format, dilations)


def _transposed(
    who: str,
    dimensions: int,
    input: TensorLike,
    filters: TensorLike,
    output_shape: Any,
    strides: Sizes,
    padding: Padding,
    data_format: str | None,
    dilations: Sizes | None,
) -> Tensor:
    check_channels_last(who, data_format, dimensions)
    x = images_of(who, input, dimensions)
    kernel = match(filters, x)
    check_filters(who, kernel, dimensions, "results, channels")
    if kernel.shape[-1] != x.shape[-1]:
        raise ValueError(
            f"[{who}] the last axis of the filters must be as long as that of the input: got "
            f"{kernel.shape[-1]} and {x.shape[-1]} (shapes {kernel._shape} and {x._shape})."
        )
    size, groups = _size_of(who, output_shape, x, kernel)
    window = tuple(int(side) for side in kernel.shape[:-2])
    attrs = window_attrs(who, size, window, strides, padding, dilations)
    _check_size(who, size, window, x, attrs)
    if dimensions == 3:
        return _ops.conv3d_transpose(x, kernel, size=size, groups=groups, **attrs)
    if dimensions == 2:
        return _ops.conv2d_transpose(x, kernel, size=size, groups=groups, **attrs)
    rows = _ops.conv2d_transpose(
        _ops.expand_dims(x, axes=[1]),
        _ops.expand_dims(kernel, axes=[0]),
        size=(1, *size),
        groups=groups,
        **one_row(attrs),
    )
    return _ops.squeeze(rows, axes=[1])


def _size_of(who: str, output_shape: Any, x: Tensor, kernel: Tensor) -> tuple[tuple[int, ...], int]:
    """Return the result's sizes in space and groups; its first axis must be that of the input."""
    shape = sizes_of(output_shape)
    each, channels = int(kernel.shape[-2]), int(kernel.shape[-1])
    groups = 1
    if len(shape) == x._rank and not isinstance(shape[-1], Dim) and each and shape[-1] > each:
        groups = shape[-1] // each
    # The number of examples is that of the input, which may have none yet. Its type may leave open
    # what its shape knows: rows of a number that the program named.
    same = len(shape) == x._rank and shape[-1] == groups * each
    if same and not (isinstance(shape[0], Dim) or isinstance(x.shape[0], Dim)):
        same = shape[0] == x.shape[0]
    if not same or any(int(size) < 0 for size in shape[1:-1]):
        raise ValueError(
            f"[{who}] output_shape must be ({x.shape[0]}, sizes of the result, {each} times the "
            f"groups), with {x._rank} numbers: got {shown(output_shape)}."
        )
    if channels % groups:
        raise ValueError(
            f"[{who}] the channels must be divided evenly among the groups: got {channels} "
            f"channels for {groups} groups (output_shape {shown(output_shape)}, filters of shape "
            f"{kernel._shape})."
        )
    return tuple(int(size) for size in shape[1:-1]), groups


def _check_size(
    who: str,
    size: Sequence[int],
    window: Sequence[int],
    x: Tensor,
    attrs: dict[str, tuple[int, ...]],
) -> None:
    pads = attrs["padding"]
    expected = []
    for i, (side, taps) in enumerate(zip(size, window, strict=True)):
        room = side + pads[2 * i] + pads[2 * i + 1] - (taps - 1) * attrs["dilations"][i] - 1
        expected.append(room // attrs["strides"][i] + 1 if room >= 0 else 0)
    if tuple(expected) != tuple(x.shape[1:-1]):
        raise ValueError(
            f"[{who}] a convolution of the result must have the sizes of the input: got "
            f"{tuple(expected)} for {tuple(size)} in output_shape, and an input of shape "
            f"{x._shape}; choose another output_shape, strides or padding."
        )
