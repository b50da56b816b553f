"""Blocks of pixels as channels, and back."""

from __future__ import annotations

from samegrad import _core
from samegrad._base.shown import shown
from samegrad._tensor import sizes as _sizes
from samegrad._tensor.tensor import Tensor, TensorLike
from samegrad.nn._window import check_channels_last, images_of

_ops = _core.ops


def space_to_depth(
    input: TensorLike, block_size: int, data_format: str = "NHWC", name: str | None = None
) -> Tensor:
    """Move blocks of pixels into the channels.

    Args:
        input: Images [n, height, width, channels].
        block_size: The height and width b of a block, which divides those of the images.
        data_format: "NHWC".
        name: Ignored.

    Returns:
        Images [n, height / b, width / b, b * b * channels]: the pixels of a block in row-major
        order.

    Raises:
        ValueError: The height or width is not divisible by the block size.

    Example:
        >>> space_to_depth([[[[1.0], [2.0]], [[3.0], [4.0]]]], 2).numpy().ravel()
        array([1., 2., 3., 4.], dtype=float32)
    """
    who = "space_to_depth"
    x, b = _checked(who, input, block_size, data_format)
    n = x.shape[0]
    height, width, channels = (int(size) for size in x.shape[1:])
    if height % b or width % b:
        raise ValueError(
            f"[{who}] rows and columns must be divisible by block_size: got shape {x._shape} and "
            f"{b}."
        )
    height, width = height // b, width // b
    blocks = _sizes.reshape(x, [n, height, b, width, b, channels])
    moved = _ops.transpose(blocks, perm=[0, 1, 3, 2, 4, 5])
    return _sizes.reshape(moved, [n, height, width, b * b * channels])


def depth_to_space(
    input: TensorLike, block_size: int, data_format: str = "NHWC", name: str | None = None
) -> Tensor:
    """Move channels into blocks of pixels, the inverse of `space_to_depth`.

    Args:
        input: Images [n, height, width, channels].
        block_size: The height and width b of a block; b * b divides the channels.
        data_format: "NHWC".
        name: Ignored.

    Returns:
        Images [n, height * b, width * b, channels / (b * b)].

    Raises:
        ValueError: The channels are not divisible by b * b.

    Example:
        >>> depth_to_space([[[[1.0, 2.0, 3.0, 4.0]]]], 2).numpy()[0, ..., 0]
        array([[1., 2.],
               [3., 4.]], dtype=float32)
    """
    who = "depth_to_space"
    x, b = _checked(who, input, block_size, data_format)
    n = x.shape[0]
    height, width, channels = (int(size) for size in x.shape[1:])
    if channels % (b * b):
        raise ValueError(
            f"[{who}] channels must be divisible by block_size * block_size: got shape {x._shape} "
            f"and {b}."
        )
    channels //= b * b
    blocks = _sizes.reshape(x, [n, height, width, b, b, channels])
    moved = _ops.transpose(blocks, perm=[0, 1, 3, 2, 4, 5])
    return _sizes.reshape(moved, [n, height * b, width * b, channels])


def _checked(who: str, input: TensorLike, block_size: int, data_format: str) -> tuple[Tensor, int]:
    check_channels_last(who, data_format)
    size = _sizes.whole(block_size)
    if size < 2:
        raise ValueError(f"[{who}] block_size must be at least 2: got {shown(block_size)}.")
    return images_of(who, input), size
