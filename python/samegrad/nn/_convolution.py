"""Convolution of signals, images and volumes, channels last."""

from __future__ import annotations

from samegrad import _core
from samegrad._tensor.tensor import Tensor, TensorLike, convert_to_tensor, match
from samegrad.nn._window import (
    Padding,
    Sizes,
    check_channels_last,
    check_filters,
    images_of,
    space_of,
    window_attrs,
)

_ops = _core.ops


def conv1d(
    input: TensorLike,
    filters: TensorLike,
    stride: Sizes,
    padding: Padding,
    data_format: str = "NWC",
    dilations: Sizes | None = None,
    name: str | None = None,
) -> Tensor:
    """Convolve signals with filters (a cross-correlation, as everywhere in deep learning).

    Args:
        input: Signals: floats of shape [n, width, channels].
        filters: The filters: [width, channels / groups, filters]; see `conv2d` for groups.
        stride: The stride: an integer, or three (1, width, 1).
        padding: "VALID", "SAME" or [[0, 0], [left, right], [0, 0]].
        data_format: "NWC", channels last.
        dilations: The dilation rate, an integer or one per dimension; default 1.
        name: Ignored.

    Returns:
        A tensor [n, new width, filters], in the dtype of `input`.

    Raises:
        ValueError: Shapes or arguments do not fit.

    Example:
        >>> conv1d([[[1.0], [2.0], [4.0]]], [[[1.0]], [[-1.0]]], 1, "VALID").numpy().ravel()
        array([-1., -2.], dtype=float32)
    """
    return _convolve("conv1d", 1, input, filters, stride, padding, data_format, dilations)


def conv2d(
    input: TensorLike,
    filters: TensorLike,
    strides: Sizes,
    padding: Padding,
    data_format: str = "NHWC",
    dilations: Sizes | None = None,
    name: str | None = None,
) -> Tensor:
    """Convolve images with filters (a cross-correlation, as everywhere in deep learning).

    Args:
        input: Images: floats of shape [n, height, width, channels].
        filters: The filters: [height, width, channels / groups, filters]. Fewer channels than the
            images have make groups: the channels and the filters are divided into that number of
            groups, and each group of filters reads its own group of channels.
        strides: The strides: an integer, two, or four (1, height, width, 1).
        padding: "VALID", "SAME" or [[0, 0], [top, bottom], [left, right], [0, 0]].
        data_format: "NHWC", channels last.
        dilations: The dilation rate, an integer or one per dimension; default 1.
        name: Ignored.

    Returns:
        A tensor [n, new height, new width, filters], in the dtype of `input`.

    Raises:
        ValueError: Shapes or arguments do not fit.

    Example:
        >>> conv2d([[[[1.0], [2.0]]]], [[[[3.0]]]], strides=1, padding="SAME").numpy().ravel()
        array([3., 6.], dtype=float32)
    """
    return _convolve("conv2d", 2, input, filters, strides, padding, data_format, dilations)


def conv3d(
    input: TensorLike,
    filters: TensorLike,
    strides: Sizes,
    padding: Padding,
    data_format: str = "NDHWC",
    dilations: Sizes | None = None,
    name: str | None = None,
) -> Tensor:
    """Convolve volumes with filters (a cross-correlation, as everywhere in deep learning).

    Args:
        input: Volumes: floats of shape [n, depth, height, width, channels].
        filters: The filters: [depth, height, width, channels / groups, filters]; see `conv2d` for
            groups.
        strides: The strides: an integer, three, or five (1, depth, height, width, 1).
        padding: "VALID", "SAME" or [[0, 0], [front, back], [top, bottom], [left, right], [0, 0]].
        data_format: "NDHWC", channels last.
        dilations: The dilation rate, an integer or one per dimension; default 1.
        name: Ignored.

    Returns:
        A tensor [n, new depth, new height, new width, filters], in the dtype of `input`.

    Raises:
        ValueError: Shapes or arguments do not fit.

    Example:
        >>> conv3d([[[[[1.0], [2.0]]]]], [[[[[3.0]]]]], strides=1, padding="SAME").numpy().ravel()
        array([3., 6.], dtype=float32)
    """
    return _convolve("conv3d", 3, input, filters, strides, padding, data_format, dilations)


def convolution(
    input: TensorLike,
    filters: TensorLike,
    strides: Sizes | None = None,
    padding: Padding = "VALID",
    data_format: str | None = None,
    dilations: Sizes | None = None,
    name: str | None = None,
) -> Tensor:
    """Convolve signals, images or volumes, as `conv1d`, `conv2d` or `conv3d` does.

    Args:
        input: Signals, images or volumes: floats with three, four or five axes, channels last.
        filters: The filters: [*spatial sizes, channels / groups, filters].
        strides: The strides: an integer, or one per dimension; default 1.
        padding: "VALID", "SAME" or pairs, as `conv2d` takes them.
        data_format: Channels last: None, "NWC", "NHWC" or "NDHWC".
        dilations: The dilation rate, an integer or one per dimension; default 1.
        name: Ignored.

    Returns:
        A tensor with the axes of `input` and its dtype.

    Raises:
        ValueError: Shapes or arguments do not fit.

    Example:
        >>> convolution([[[1.0], [2.0], [4.0]]], [[[1.0]], [[1.0]]]).numpy().ravel()
        array([3., 6.], dtype=float32)
    """
    who = "convolution"
    x = convert_to_tensor(input)
    dimensions = dimensions_of(who, x)
    steps = 1 if strides is None else strides
    return _convolve(who, dimensions, x, filters, steps, padding, data_format, dilations)


def atrous_conv2d(
    value: TensorLike, filters: TensorLike, rate: int, padding: Padding, name: str | None = None
) -> Tensor:
    """Convolve images with dilated filters.

    Args:
        value: Images: floats of shape [n, height, width, channels].
        filters: The filters: [height, width, channels / groups, filters].
        rate: The dilation rate, an integer.
        padding: "VALID", "SAME" or [[0, 0], [top, bottom], [left, right], [0, 0]].
        name: Ignored.

    Returns:
        A tensor [n, new height, new width, filters], in the dtype of `value`.

    Raises:
        ValueError: Shapes or arguments do not fit.

    Example:
        >>> x = [[[[1.0], [2.0], [4.0]]]]
        >>> atrous_conv2d(x, [[[[1.0]], [[1.0]]]], 2, "VALID").numpy().ravel()
        array([5.], dtype=float32)
    """
    return _convolve("atrous_conv2d", 2, value, filters, 1, padding, None, rate)


def depthwise_conv2d(
    input: TensorLike,
    filter: TensorLike,
    strides: Sizes,
    padding: Padding,
    data_format: str | None = None,
    dilations: Sizes | None = None,
    name: str | None = None,
) -> Tensor:
    """Convolve each channel of the images with its own filters.

    Args:
        input: Images: floats of shape [n, height, width, channels].
        filter: The filters: [height, width, channels, multiplier].
        strides: The strides: an integer, two, or four (1, height, width, 1).
        padding: "VALID", "SAME" or [[0, 0], [top, bottom], [left, right], [0, 0]].
        data_format: "NHWC", channels last.
        dilations: The dilation rate, an integer or one per dimension; default 1.
        name: Ignored.

    Returns:
        A tensor [n, new height, new width, channels * multiplier]: the results of the first
        channel, those of the second one, and so on.

    Raises:
        ValueError: Shapes or arguments do not fit.

    Example:
        >>> depthwise_conv2d([[[[1.0, 2.0]]]], [[[[3.0], [4.0]]]], 1, "SAME").numpy().ravel()
        array([3., 8.], dtype=float32)
    """
    who = "depthwise_conv2d"
    return _depthwise(who, input, filter, strides, padding, data_format, dilations)


def separable_conv2d(
    input: TensorLike,
    depthwise_filter: TensorLike,
    pointwise_filter: TensorLike,
    strides: Sizes,
    padding: Padding,
    data_format: str | None = None,
    dilations: Sizes | None = None,
    name: str | None = None,
) -> Tensor:
    """Apply `depthwise_conv2d`, then a pointwise convolution.

    Args:
        input: Images: floats of shape [n, height, width, channels].
        depthwise_filter: The filters of each channel: [height, width, channels, multiplier].
        pointwise_filter: The filters of the 1x1 convolution: [1, 1, channels * multiplier,
            filters].
        strides: The strides: an integer, two, or four (1, height, width, 1).
        padding: "VALID", "SAME" or [[0, 0], [top, bottom], [left, right], [0, 0]].
        data_format: "NHWC", channels last.
        dilations: The dilation rate of the depthwise filter; default 1.
        name: Ignored.

    Returns:
        A tensor [n, new height, new width, filters], in the dtype of `input`.

    Raises:
        ValueError: Shapes or arguments do not fit.

    Example:
        >>> each, mixed = [[[[3.0], [4.0]]]], [[[[1.0], [10.0]]]]
        >>> separable_conv2d([[[[1.0, 2.0]]]], each, mixed, 1, "SAME").numpy().ravel()
        array([83.], dtype=float32)
    """
    who = "separable_conv2d"
    y = _depthwise(who, input, depthwise_filter, strides, padding, data_format, dilations)
    point = match(pointwise_filter, y)
    if point._rank != 4 or tuple(point.shape[:3]) != (1, 1, y.shape[3]):
        raise ValueError(
            f"[{who}] pointwise_filter must be [1, 1, {y.shape[3]}, results], as the depthwise "
            f"filter has so many results: got shape {point._shape}."
        )
    return _ops.conv2d(y, point)


def bias_add(
    value: TensorLike,
    bias: TensorLike,
    data_format: str | None = None,
    name: str | None = None,
) -> Tensor:
    """Add a vector along the last axis.

    Args:
        value: A tensor of numbers, of shape [..., channels].
        bias: The vector, of shape [channels].
        data_format: Channels last: None, "NHWC" and the like.
        name: Ignored.

    Returns:
        A tensor of the shape and dtype of `value`.

    Raises:
        ValueError: The bias is not a vector of the length of the last axis.

    Example:
        >>> bias_add([[1.0, 2.0]], [10.0, 20.0]).numpy()
        array([[11., 22.]], dtype=float32)
    """
    check_channels_last("bias_add", data_format)
    x = convert_to_tensor(value)
    b = match(bias, x)
    if b._rank != 1 or not x._rank or x.shape[-1] != b.shape[0]:
        raise ValueError(
            f"[bias_add] the bias must be as long as the last axis: got shapes {x._shape} and "
            f"{b._shape}."
        )
    return x + b


def dimensions_of(who: str, x: Tensor) -> int:
    """Return the dimensions of space that an input of 3, 4 or 5 axes has.

    Example:
        >>> dimensions_of("convolution", convert_to_tensor([[[1.0]]]))
        1
    """
    if not 3 <= x._rank <= 5:
        raise ValueError(
            f"[{who}] the input must be [n, columns, channels], [n, rows, columns, channels] or "
            f"[n, depth, rows, columns, channels]: got shape {x._shape}."
        )
    return x._rank - 2


def _convolve(
    who: str,
    dimensions: int,
    input: TensorLike,
    filters: TensorLike,
    strides: Sizes,
    padding: Padding,
    data_format: str | None,
    dilations: Sizes | None,
) -> Tensor:
    check_channels_last(who, data_format, dimensions)
    x = images_of(who, input, dimensions)
    kernel = match(filters, x)
    check_filters(who, kernel, dimensions, "channels, results")
    _check_groups(who, x, kernel)
    window = tuple(int(size) for size in kernel.shape[:-2])
    attrs = window_attrs(who, space_of(x), window, strides, padding, dilations)
    if dimensions == 3:
        return _ops.conv3d(x, kernel, **attrs)
    if dimensions == 2:
        return _ops.conv2d(x, kernel, **attrs)
    # A signal is an image of one row.
    rows = _ops.conv2d(
        _ops.expand_dims(x, axes=[1]), _ops.expand_dims(kernel, axes=[0]), **one_row(attrs)
    )
    return _ops.squeeze(rows, axes=[1])


def one_row(attrs: dict[str, tuple[int, ...]]) -> dict[str, tuple[int, ...]]:
    """Convert attributes of a window over signals to those over images of one row.

    Example:
        >>> one_row({"strides": (2,), "padding": (0, 1), "dilations": (1,)})
        {'strides': (1, 2), 'padding': (0, 0, 0, 1), 'dilations': (1, 1)}
    """
    row = {"padding": (0, 0)}
    return {name: row.get(name, (1,)) + value for name, value in attrs.items()}


def _check_groups(who: str, x: Tensor, kernel: Tensor) -> None:
    channels, each, results = int(x.shape[-1]), int(kernel.shape[-2]), int(kernel.shape[-1])
    if channels == each:
        return
    if each == 0 or channels % each:
        raise ValueError(
            f"[{who}] the filters' channels must be the images' or divide them into groups: got "
            f"{each} and {channels} (shapes {kernel._shape} and {x._shape})."
        )
    if results % (channels // each):
        raise ValueError(
            f"[{who}] the results must be divided evenly among the groups: got {results} results "
            f"for {channels // each} groups of {each} channels (shapes {kernel._shape} and "
            f"{x._shape})."
        )


def _depthwise(
    who: str,
    input: TensorLike,
    filter: TensorLike,
    strides: Sizes,
    padding: Padding,
    data_format: str | None,
    dilations: Sizes | None,
) -> Tensor:
    check_channels_last(who, data_format)
    x = images_of(who, input)
    kernel = match(filter, x)
    check_filters(who, kernel, 2, "channels, results of a channel")
    height, width, channels, each = (int(size) for size in kernel._shape)
    if channels != x.shape[3]:
        raise ValueError(
            f"[{who}] the filter must have the channels of the images: got {channels} and "
            f"{x.shape[3]} (shapes {kernel._shape} and {x._shape})."
        )
    groups = _ops.reshape(kernel, shape=[height, width, 1, channels * each])
    return _convolve(who, 2, x, groups, strides, padding, data_format, dilations)
