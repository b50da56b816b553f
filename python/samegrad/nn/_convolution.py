"""Convolution and pooling of images [n, rows, columns, channels]."""

from __future__ import annotations

from samegrad import _core
from samegrad._shown import shown
from samegrad._tensor import Tensor, TensorLike, convert_to_tensor, match
from samegrad.nn._window import (
    Padding,
    Sizes,
    check_channels_last,
    rows_and_columns,
    window_padding,
)

_ops = _core.ops


def conv2d(
    input: TensorLike,
    filters: TensorLike,
    strides: Sizes,
    padding: Padding,
    data_format: str = "NHWC",
    dilations: Sizes | None = None,
    name: str | None = None,
) -> Tensor:
    """The product of each window of the images with the filters.

    Args:
        input: Images [n, rows, columns, channels].
        filters: [rows, columns, channels, results].
        strides: Steps of the window: one number, two, or four (1, rows, columns, 1).
        padding: "VALID", "SAME" or [[0, 0], [top, bottom], [left, right], [0, 0]].
        data_format: "NHWC".
        dilations: 1.
        name: Not used.

    Returns:
        Images [n, new rows, new columns, results].

    Raises:
        ValueError: Shapes or arguments do not fit.

    Example:
        >>> conv2d([[[[1.0], [2.0]]]], [[[[3.0]]]], strides=1, padding="SAME").numpy().ravel()
        array([3., 6.], dtype=float32)
    """
    who = "conv2d"
    check_channels_last(who, data_format)
    if dilations is not None and rows_and_columns(who, "dilations", dilations) != (1, 1):
        raise ValueError(f"[{who}] dilations must be 1: got {shown(dilations)}.")
    x = images_of(who, input)
    kernel = match(filters, x)
    if kernel._rank != 4:
        raise ValueError(
            f"[{who}] filters must be [rows, columns, channels, results]: got shape "
            f"{kernel._shape}."
        )
    steps = rows_and_columns(who, "strides", strides)
    pads = window_padding(who, padding, _image_size(x), tuple(kernel._shape[:2]), steps)
    return _ops.conv2d(x, kernel, strides=steps, padding=pads)


def max_pool2d(
    input: TensorLike,
    ksize: Sizes,
    strides: Sizes,
    padding: Padding,
    data_format: str = "NHWC",
    name: str | None = None,
) -> Tensor:
    """The largest element of each window, channel by channel; padding never wins.

    Args:
        input: Images [n, rows, columns, channels].
        ksize: Size of the window: one number, two, or four (1, rows, columns, 1).
        strides: Steps of the window.
        padding: "VALID", "SAME" or [[0, 0], [top, bottom], [left, right], [0, 0]].
        data_format: "NHWC".
        name: Not used.

    Returns:
        Images [n, new rows, new columns, channels].

    Raises:
        ValueError: Shapes or arguments do not fit.

    Example:
        >>> max_pool2d([[[[1.0], [5.0]], [[2.0], [3.0]]]], 2, 2, "VALID").numpy().ravel()
        array([5.], dtype=float32)
    """
    check_channels_last("max_pool2d", data_format)
    x = images_of("max_pool2d", input)
    return _ops.max_pool2d(x, **_pool_attrs("max_pool2d", x, ksize, strides, padding))[0]


def avg_pool2d(
    input: TensorLike,
    ksize: Sizes,
    strides: Sizes,
    padding: Padding,
    data_format: str = "NHWC",
    name: str | None = None,
) -> Tensor:
    """The mean of each window, channel by channel; padding does not count.

    Args:
        input: Images [n, rows, columns, channels].
        ksize: Size of the window: one number, two, or four (1, rows, columns, 1).
        strides: Steps of the window.
        padding: "VALID", "SAME" or [[0, 0], [top, bottom], [left, right], [0, 0]].
        data_format: "NHWC".
        name: Not used.

    Returns:
        Images [n, new rows, new columns, channels].

    Raises:
        ValueError: Shapes or arguments do not fit.

    Example:
        >>> avg_pool2d([[[[1.0], [5.0]], [[2.0], [4.0]]]], 2, 2, "VALID").numpy().ravel()
        array([3.], dtype=float32)
    """
    check_channels_last("avg_pool2d", data_format)
    x = images_of("avg_pool2d", input)
    return _ops.avg_pool2d(x, **_pool_attrs("avg_pool2d", x, ksize, strides, padding))


max_pool = max_pool2d
avg_pool = avg_pool2d


def bias_add(
    value: TensorLike,
    bias: TensorLike,
    data_format: str | None = None,
    name: str | None = None,
) -> Tensor:
    """The value plus a vector along its last axis.

    Raises:
        ValueError: The bias is no vector as long as the last axis.

    Example:
        >>> bias_add([[1.0, 2.0]], [10.0, 20.0]).numpy()
        array([[11., 22.]], dtype=float32)
    """
    check_channels_last("bias_add", data_format)
    x = convert_to_tensor(value)
    b = match(bias, x)
    if b._rank != 1 or not x._rank or x._shape[-1] != b._shape[0]:
        raise ValueError(
            f"[bias_add] the bias must be as long as the last axis: got shapes {x._shape} and "
            f"{b._shape}."
        )
    return x + b


def images_of(who: str, value: TensorLike) -> Tensor:
    """The value as a tensor, checked to have the four axes of images.

    Example:
        >>> images_of("conv2d", [[[[1.0]]]])._shape
        (1, 1, 1, 1)
    """
    x = convert_to_tensor(value)
    if x._rank != 4:
        raise ValueError(
            f"[{who}] images must be [n, rows, columns, channels]: got shape {x._shape}; add the "
            "missing axes, e.g. images[..., None] for one channel."
        )
    return x


def _image_size(x: Tensor) -> tuple[int, int]:
    return int(x.shape[1]), int(x.shape[2])


def _pool_attrs(
    who: str, x: Tensor, ksize: Sizes, strides: Sizes, padding: Padding
) -> dict[str, tuple[int, ...]]:
    window = rows_and_columns(who, "ksize", ksize)
    steps = rows_and_columns(who, "strides", strides)
    pads = window_padding(who, padding, _image_size(x), window, steps)
    return {"window": window, "strides": steps, "padding": pads}
