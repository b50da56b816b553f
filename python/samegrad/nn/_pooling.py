"""Pooling of signals, images and volumes, channels last."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from samegrad import _core
from samegrad._base.shown import shown
from samegrad._tensor import sizes as _sizes
from samegrad._tensor.tensor import Tensor, TensorLike, convert_to_tensor
from samegrad.nn._convolution import dimensions_of, one_row
from samegrad.nn._window import (
    Padding,
    Sizes,
    check_channels_last,
    images_of,
    sizes_of,
    space_of,
    window_attrs,
)

_ops = _core.ops


def max_pool1d(
    input: TensorLike,
    ksize: Sizes,
    strides: Sizes,
    padding: Padding,
    data_format: str = "NWC",
    name: str | None = None,
) -> Tensor:
    """Compute the maximum of each window, channel by channel; padding never wins.

    Args:
        input: Signals: floats of shape [n, width, channels].
        ksize: The size of the window: an integer, or three (1, width, 1).
        strides: The stride: an integer, or three (1, width, 1).
        padding: "VALID", "SAME" or [[0, 0], [left, right], [0, 0]].
        data_format: "NWC", channels last.
        name: Ignored.

    Returns:
        A tensor [n, new width, channels], in the dtype of `input`.

    Raises:
        ValueError: Shapes or arguments do not fit.

    Example:
        >>> max_pool1d([[[1.0], [5.0]]], 2, 2, "VALID").numpy().ravel()
        array([5.], dtype=float32)
    """
    return _pool("max_pool1d", "MAX", 1, input, ksize, strides, padding, data_format)


def max_pool2d(
    input: TensorLike,
    ksize: Sizes,
    strides: Sizes,
    padding: Padding,
    data_format: str = "NHWC",
    name: str | None = None,
) -> Tensor:
    """Compute the maximum of each window, channel by channel; padding never wins.

    Args:
        input: Images: floats of shape [n, height, width, channels].
        ksize: The size of the window: an integer, two, or four (1, height, width, 1).
        strides: The strides: an integer, two, or four (1, height, width, 1).
        padding: "VALID", "SAME" or [[0, 0], [top, bottom], [left, right], [0, 0]].
        data_format: "NHWC", channels last.
        name: Ignored.

    Returns:
        A tensor [n, new height, new width, channels], in the dtype of `input`.

    Raises:
        ValueError: Shapes or arguments do not fit.

    Example:
        >>> max_pool2d([[[[1.0], [5.0]], [[2.0], [4.0]]]], 2, 2, "VALID").numpy().ravel()
        array([5.], dtype=float32)
    """
    return _pool("max_pool2d", "MAX", 2, input, ksize, strides, padding, data_format)


def max_pool3d(
    input: TensorLike,
    ksize: Sizes,
    strides: Sizes,
    padding: Padding,
    data_format: str = "NDHWC",
    name: str | None = None,
) -> Tensor:
    """Compute the maximum of each window, channel by channel; padding never wins.

    Args:
        input: Volumes: floats of shape [n, depth, height, width, channels].
        ksize: The size of the window: an integer, three, or five (1, depth, height, width, 1).
        strides: The strides: an integer, three, or five (1, depth, height, width, 1).
        padding: "VALID", "SAME" or pairs, as `conv3d` takes them.
        data_format: "NDHWC", channels last.
        name: Ignored.

    Returns:
        A tensor [n, new depth, new height, new width, channels], in the dtype of `input`.

    Raises:
        ValueError: Shapes or arguments do not fit.

    Example:
        >>> max_pool3d([[[[[1.0], [5.0]], [[2.0], [4.0]]]]], (1, 2, 2), 1, "VALID").numpy().ravel()
        array([5.], dtype=float32)
    """
    return _pool("max_pool3d", "MAX", 3, input, ksize, strides, padding, data_format)


def avg_pool1d(
    input: TensorLike,
    ksize: Sizes,
    strides: Sizes,
    padding: Padding,
    data_format: str = "NWC",
    name: str | None = None,
) -> Tensor:
    """Compute the mean of each window, channel by channel; padding does not count.

    Args:
        input: Signals: floats of shape [n, width, channels].
        ksize: The size of the window: an integer, or three (1, width, 1).
        strides: The stride: an integer, or three (1, width, 1).
        padding: "VALID", "SAME" or [[0, 0], [left, right], [0, 0]].
        data_format: "NWC", channels last.
        name: Ignored.

    Returns:
        A tensor [n, new width, channels], in the dtype of `input`.

    Raises:
        ValueError: Shapes or arguments do not fit.

    Example:
        >>> avg_pool1d([[[1.0], [5.0]]], 2, 2, "VALID").numpy().ravel()
        array([3.], dtype=float32)
    """
    return _pool("avg_pool1d", "AVG", 1, input, ksize, strides, padding, data_format)


def avg_pool2d(
    input: TensorLike,
    ksize: Sizes,
    strides: Sizes,
    padding: Padding,
    data_format: str = "NHWC",
    name: str | None = None,
) -> Tensor:
    """Compute the mean of each window, channel by channel; padding does not count.

    Args:
        input: Images: floats of shape [n, height, width, channels].
        ksize: The size of the window: an integer, two, or four (1, height, width, 1).
        strides: The strides: an integer, two, or four (1, height, width, 1).
        padding: "VALID", "SAME" or [[0, 0], [top, bottom], [left, right], [0, 0]].
        data_format: "NHWC", channels last.
        name: Ignored.

    Returns:
        A tensor [n, new height, new width, channels], in the dtype of `input`.

    Raises:
        ValueError: Shapes or arguments do not fit.

    Example:
        >>> avg_pool2d([[[[1.0], [5.0]], [[2.0], [4.0]]]], 2, 2, "VALID").numpy().ravel()
        array([3.], dtype=float32)
    """
    return _pool("avg_pool2d", "AVG", 2, input, ksize, strides, padding, data_format)


def avg_pool3d(
    input: TensorLike,
    ksize: Sizes,
    strides: Sizes,
    padding: Padding,
    data_format: str = "NDHWC",
    name: str | None = None,
) -> Tensor:
    """Compute the mean of each window, channel by channel; padding does not count.

    Args:
        input: Volumes: floats of shape [n, depth, height, width, channels].
        ksize: The size of the window: an integer, three, or five (1, depth, height, width, 1).
        strides: The strides: an integer, three, or five (1, depth, height, width, 1).
        padding: "VALID", "SAME" or pairs, as `conv3d` takes them.
        data_format: "NDHWC", channels last.
        name: Ignored.

    Returns:
        A tensor [n, new depth, new height, new width, channels], in the dtype of `input`.

    Raises:
        ValueError: Shapes or arguments do not fit.

    Example:
        >>> avg_pool3d([[[[[1.0], [5.0]], [[2.0], [4.0]]]]], (1, 2, 2), 1, "VALID").numpy().ravel()
        array([3.], dtype=float32)
    """
    return _pool("avg_pool3d", "AVG", 3, input, ksize, strides, padding, data_format)


def max_pool(
    input: TensorLike,
    ksize: Sizes,
    strides: Sizes,
    padding: Padding,
    data_format: str | None = None,
    name: str | None = None,
) -> Tensor:
    """Pool signals, images or volumes, as `max_pool1d`, `max_pool2d` or `max_pool3d` does.

    Args:
        input: Signals, images or volumes: floats with three, four or five axes, channels last.
        ksize: The size of the window: an integer, or one per dimension.
        strides: The strides: an integer, or one per dimension.
        padding: "VALID", "SAME" or pairs, as the function of that dimension takes them.
        data_format: Channels last: None, "NWC", "NHWC" or "NDHWC".
        name: Ignored.

    Returns:
        A tensor with the axes of `input` and its dtype.

    Raises:
        ValueError: Shapes or arguments do not fit.

    Example:
        >>> max_pool([[[1.0], [5.0]]], 2, 2, "VALID").numpy().ravel()
        array([5.], dtype=float32)
    """
    x = convert_to_tensor(input)
    dimensions = dimensions_of("max_pool", x)
    return _pool("max_pool", "MAX", dimensions, x, ksize, strides, padding, data_format)


def avg_pool(
    input: TensorLike,
    ksize: Sizes,
    strides: Sizes,
    padding: Padding,
    data_format: str | None = None,
    name: str | None = None,
) -> Tensor:
    """Pool signals, images or volumes, as `avg_pool1d`, `avg_pool2d` or `avg_pool3d` does.

    Args:
        input: Signals, images or volumes: floats with three, four or five axes, channels last.
        ksize: The size of the window: an integer, or one per dimension.
        strides: The strides: an integer, or one per dimension.
        padding: "VALID", "SAME" or pairs, as the function of that dimension takes them.
        data_format: Channels last: None, "NWC", "NHWC" or "NDHWC".
        name: Ignored.

    Returns:
        A tensor with the axes of `input` and its dtype.

    Raises:
        ValueError: Shapes or arguments do not fit.

    Example:
        >>> avg_pool([[[1.0], [5.0]]], 2, 2, "VALID").numpy().ravel()
        array([3.], dtype=float32)
    """
    x = convert_to_tensor(input)
    dimensions = dimensions_of("avg_pool", x)
    return _pool("avg_pool", "AVG", dimensions, x, ksize, strides, padding, data_format)


def pool(
    input: TensorLike,
    window_shape: Sizes,
    pooling_type: str,
    strides: Sizes | None = None,
    padding: Padding = "VALID",
    data_format: str | None = None,
    dilations: Sizes | None = None,
    name: str | None = None,
) -> Tensor:
    """Compute the maximum or the mean of each window, channel by channel.

    Args:
        input: Signals, images or volumes: floats with three, four or five axes, channels last.
        window_shape: The size of the window: an integer, or one per dimension.
        pooling_type: "MAX" (padding never wins) or "AVG" (padding does not count).
        strides: The strides: an integer, or one per dimension; default 1.
        padding: "VALID", "SAME" or pairs, as `conv2d` takes them.
        data_format: Channels last: None, "NWC", "NHWC" or "NDHWC".
        dilations: The dilation rate, an integer or one per dimension; default 1.
        name: Ignored.

    Returns:
        A tensor with the axes of `input` and its dtype.

    Raises:
        ValueError: Shapes or arguments do not fit, or a window has only padding.

    Example:
        >>> pool([[[1.0], [2.0], [4.0]]], 2, "MAX", dilations=2).numpy().ravel()
        array([4.], dtype=float32)
    """
    who = "pool"
    x = convert_to_tensor(input)
    dimensions = dimensions_of(who, x)
    if not isinstance(pooling_type, str) or pooling_type.upper() not in ("MAX", "AVG"):
        raise ValueError(f"[{who}] pooling_type must be 'MAX' or 'AVG': got {shown(pooling_type)}.")
    steps = 1 if strides is None else strides
    kind = pooling_type.upper()
    return _pool(who, kind, dimensions, x, window_shape, steps, padding, data_format, dilations)


def _largest(x: Tensor, **attrs: Any) -> Tensor:
    return _ops.max_pool2d(x, **attrs)[0]


def _mean(x: Tensor, **attrs: Any) -> Tensor:
    return _ops.avg_pool2d(x, **attrs)


def _pool(
    who: str,
    kind: str,
    dimensions: int,
    input: TensorLike,
    ksize: Sizes,
    strides: Sizes,
    padding: Padding,
    data_format: str | None,
    dilations: Sizes | None = None,
) -> Tensor:
    check_channels_last(who, data_format, dimensions)
    x = images_of(who, input, dimensions)
    window = sizes_of(who, "window_shape" if who == "pool" else "ksize", ksize, dimensions)
    attrs = window_attrs(who, space_of(x), window, strides, padding, dilations)
    attrs["window"] = window
    row = _largest if kind == "MAX" else _mean
    if dimensions == 2:
        return row(x, **attrs)
    if dimensions == 1:
        return _ops.squeeze(row(_ops.expand_dims(x, axes=[1]), **one_row(attrs)), axes=[1])
    return _pool_volumes(row, x, attrs)


def _pool_volumes(
    row: Callable[..., Tensor], x: Tensor, attrs: dict[str, tuple[int, ...]]
) -> Tensor:
    """Pool plane by plane, then along the depth.

    A maximum of maxima, the first of equals in either order; and a mean of means, as the windows of
    a plane have as many elements as those of the next one.
    """
    examples = x.shape[0]
    depth, height, width, channels = (int(size) for size in x.shape[1:])
    count = {"padding": 2}
    flat = {name: value[count.get(name, 1) :] for name, value in attrs.items()}
    planes = row(_sizes.reshape(x, [examples * depth, height, width, channels]), **flat)
    height, width = (int(size) for size in planes.shape[1:3])
    column = {"padding": (0, 0)}
    deep = {
        name: value[: count.get(name, 1)] + column.get(name, (1,)) for name, value in attrs.items()
    }
    y = row(_sizes.reshape(planes, [examples, depth, height * width, channels]), **deep)
    return _sizes.reshape(y, [examples, int(y._shape[1]), height, width, channels])
