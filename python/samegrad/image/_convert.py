"""The ranges of the numbers of images."""

from __future__ import annotations

from typing import Any

from samegrad._base.dtypes import DTypeLike, as_dtype
from samegrad._ops.arrays import cast
from samegrad._ops.more_arrays import saturate_cast
from samegrad._tensor.tensor import Tensor, convert_to_tensor


def convert_image_dtype(
    image: Any, dtype: DTypeLike, saturate: bool = False, name: str | None = None
) -> Tensor:
    """Convert an image to another dtype: integers cover their range, floats cover [0, 1].

    Args:
        image: A tensor of any shape.
        dtype: The new dtype.
        saturate: Clip values outside of the range to its ends.
        name: Ignored.

    Returns:
        A tensor of the shape of `image` and the dtype `dtype`.

    Raises:
        TypeError: A dtype is bool, which has no range.

    Example:
        >>> import samegrad as tf
        >>> convert_image_dtype(tf.constant([0, 255], tf.uint8), "float32").numpy()
        array([0., 1.], dtype=float32)
    """
    x, wanted = convert_to_tensor(image), as_dtype(dtype)
    given = as_dtype(x._dtype)
    if given == wanted:
        return x
    if wanted.is_bool or given.is_bool:
        raise TypeError(
            f"[convert_image_dtype] images are numbers: got {given.name} to {wanted.name}; use "
            "tf.cast."
        )
    if given.is_integer and wanted.is_integer:
        return _between_whole_numbers(x, given, wanted, saturate)
    if given.is_integer:
        scaled: Tensor = cast(x, wanted) * (1.0 / given.max)
        return scaled
    if wanted.is_floating:
        return cast(x, wanted)
    # The next smaller product is rounded down; + 0.5 gives each integer an equal part.
    scaled = x * (wanted.max + 0.5)
    return saturate_cast(scaled, wanted) if saturate else cast(scaled, wanted)


def _between_whole_numbers(x: Tensor, given: Any, wanted: Any, saturate: bool) -> Tensor:
    if given.max > wanted.max:
        scale = (given.max + 1) // (wanted.max + 1)
        smaller = x // cast(convert_to_tensor(scale), given)
        return saturate_cast(smaller, wanted) if saturate else cast(smaller, wanted)
    larger = saturate_cast(x, wanted) if saturate else cast(x, wanted)
    scale = (wanted.max + 1) // (given.max + 1)
    made: Tensor = larger * cast(convert_to_tensor(scale), wanted)
    return made


def as_floats(image: Any) -> tuple[Tensor, Any]:
    """Return the image as floats from 0 to 1, and the type that it had."""
    x = convert_to_tensor(image)
    if as_dtype(x._dtype).is_floating:
        return x, x._dtype
    return convert_image_dtype(x, "float32"), x._dtype
