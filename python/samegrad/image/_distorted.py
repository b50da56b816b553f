"""Parts of images drawn at random that show enough of an object."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from samegrad import math, random
from samegrad._base.shown import shown
from samegrad._core import InvalidArgumentError
from samegrad._ops.arrays import cast, reshape, stack, where
from samegrad._ops.gather import gather
from samegrad._tensor.tensor import Tensor, convert_to_tensor

Part = tuple[Tensor, Tensor, Tensor]


def sample_distorted_bounding_box(
    image_size: Any, bounding_boxes: Any, seed: int = 0, min_object_covered: float = 0.1,
    aspect_ratio_range: Any = None, area_range: Any = None, max_attempts: int | None = None,
    use_image_if_no_bounding_boxes: bool | None = None, name: str | None = None,
) -> Part:  # fmt: skip
    """Sample a random crop of random shape that shows enough of an object.

    Args:
        image_size: The shape of the image: [height, width, channels].
        bounding_boxes: The objects, floats of shape (1, n, 4): [y_min, x_min, y_max, x_max] in [0,
            1].
        seed: The seed of the op, as in `tf.random.uniform`; 0: none.
        min_object_covered: The fraction of at least one object's area that the crop must show.
        aspect_ratio_range: The smallest and largest width / height; default (0.75, 1.33).
        area_range: The smallest and largest fraction of the image's area; default (0.05, 1).
        max_attempts: The number of samples, default 100; without a right one, the crop is the
            image.
        use_image_if_no_bounding_boxes: Take the whole image as the object if there are no boxes.
        name: Ignored.

    Returns:
        A named tuple: [y, x, 0] and [height, width, -1] for `tf.slice`, both int32, and the crop as
        a box of shape (1, 1, 4) for `draw_bounding_boxes`.

    Raises:
        ValueError: An argument is out of its range, or there are no boxes.

    Example:
        >>> begin, size, box = sample_distorted_bounding_box(
        ...     [8, 6, 3], [[[0.0, 0.0, 1.0, 1.0]]], area_range=(1.0, 1.0),
        ...     aspect_ratio_range=(0.75, 0.75))
        >>> begin.numpy().tolist(), size.numpy().tolist()
        ([0, 0, 0], [8, 6, -1])
    """

    def draw(count: int) -> Tensor:
        return random.uniform([count, 4], seed=seed or None)

    return _sample(
        "sample_distorted_bounding_box", draw, image_size, bounding_boxes, min_object_covered,
        aspect_ratio_range, area_range, max_attempts, use_image_if_no_bounding_boxes,
    )  # fmt: skip


def stateless_sample_distorted_bounding_box(
    image_size: Any, bounding_boxes: Any, seed: Any, min_object_covered: float = 0.1,
    aspect_ratio_range: Any = None, area_range: Any = None, max_attempts: int | None = None,
    use_image_if_no_bounding_boxes: bool | None = None, name: str | None = None,
) -> Part:  # fmt: skip
    """Sample the crop of `sample_distorted_bounding_box` from a seed alone.

    Args:
        image_size: The shape of the image: [height, width, channels].
        bounding_boxes: The objects, floats of shape (1, n, 4): [y_min, x_min, y_max, x_max] in [0,
            1].
        seed: Two integers: a list, or a tensor [2].
        min_object_covered: The fraction of at least one object's area that the crop must show.
        aspect_ratio_range: The smallest and largest width / height; default (0.75, 1.33).
        area_range: The smallest and largest fraction of the image's area; default (0.05, 1).
        max_attempts: The number of samples, default 100; without a right one, the crop is the
            image.
        use_image_if_no_bounding_boxes: Take the whole image as the object if there are no boxes.
        name: Ignored.

    Returns:
        A named tuple: [y, x, 0] and [height, width, -1] for `tf.slice`, both int32, and the crop as
        a box of shape (1, 1, 4) for `draw_bounding_boxes`.

    Raises:
        ValueError: An argument is out of its range, or there are no boxes.

    Example:
        >>> boxes = [[[0.2, 0.2, 0.6, 0.6]]]
        >>> one, two = (stateless_sample_distorted_bounding_box([90, 60, 3], boxes, seed=[1, 2])
        ...             for _ in range(2))
        >>> one[0].numpy().tolist() == two[0].numpy().tolist()
        True
    """

    def draw(count: int) -> Tensor:
        return random.stateless_uniform([count, 4], seed)

    return _sample(
        "stateless_sample_distorted_bounding_box", draw, image_size, bounding_boxes,
        min_object_covered, aspect_ratio_range, area_range, max_attempts,
        use_image_if_no_bounding_boxes,
    )  # fmt: skip


def _sample(
    who: str, draw: Callable[[int], Tensor], image_size: Any, boxes: Any, covered: Any,
    aspects: Any, areas: Any, attempts: Any, whole: Any,
) -> Part:  # fmt: skip
    if not isinstance(covered, int | float) or not isinstance(attempts, int | None):
        raise TypeError(
            f"[{who}] min_object_covered must be a number and max_attempts an integer: got "
            f"{shown(covered)} and {shown(attempts)}."
        )
    aspects = _range(who, "aspect_ratio_range", (0.75, 1.33) if aspects is None else aspects, None)
    areas = _range(who, "area_range", (0.05, 1.0) if areas is None else areas, 1.0)
    if not 0.0 <= float(covered) <= 1.0:
        raise ValueError(f"[{who}] min_object_covered is a share from 0 to 1: got {covered}.")
    count = 100 if attempts is None else int(attempts)
    if count < 1:
        raise ValueError(f"[{who}] max_attempts must be at least 1: got {count}.")
    sizes = cast(convert_to_tensor(image_size), "float32")
    if tuple(sizes._shape) != (3,):
        raise InvalidArgumentError(
            f"[{who}] image_size must be [height, width, channels]: got {shown(image_size)}."
        )
    objects = _objects(who, boxes, whole)
    height, width = sizes[0], sizes[1]
    tops, lefts, heights, widths, fits = _candidates(draw(count), height, width, aspects, areas)
    seen = _seen_shares(tops, lefts, heights, widths, objects * stack([height, width] * 2))
    right = math.logical_and(fits, math.reduce_any(seen >= float(covered), axis=1))
    # The first that is right; behind them all stands the whole image.
    first = math.argmax(cast(right, "int32"), axis=0)
    found = math.reduce_any(right)
    top, left, high, wide = (
        where(found, gather(some, first), other)
        for some, other in ((tops, 0.0), (lefts, 0.0), (heights, height), (widths, width))
    )
    ends = [top / height, left / width, (top + high) / height, (left + wide) / width]
    begin = cast(stack([top, left, convert_to_tensor(0.0)]), "int32")
    size = cast(stack([high, wide, convert_to_tensor(-1.0)]), "int32")
    return begin, size, reshape(stack(ends), [1, 1, 4])


def _range(who: str, name: str, given: Any, largest: float | None) -> tuple[float, float]:
    try:
        ends = [float(end) for end in given]
    except (TypeError, ValueError):
        raise TypeError(f"[{who}] {name} must be two numbers: got {shown(given)}.") from None
    if len(ends) != 2 or not 0.0 < ends[0] <= ends[1] <= (largest or np.inf):
        limit = "" if largest is None else f" and at most {largest}"
        raise ValueError(
            f"[{who}] {name} must be two numbers above 0{limit}, the least first: got {ends}."
        )
    return ends[0], ends[1]


def _objects(who: str, boxes: Any, whole: Any) -> Tensor:
    """Return the boxes as rows of four."""
    given = cast(convert_to_tensor(boxes), "float32")
    if given._rank != 3 or given.shape[-1] != 4:
        raise InvalidArgumentError(
            f"[{who}] bounding_boxes must have the shape (1, n, 4): got {tuple(given._shape)}."
        )
    objects: Tensor = reshape(given, [-1, 4])
    if objects.shape[0] == 0:
        if not whole:
            raise InvalidArgumentError(
                f"[{who}] bounding_boxes must hold a box: got {tuple(given._shape)}; "
                "use_image_if_no_bounding_boxes=True takes the whole image."
            )
        objects = convert_to_tensor([[0.0, 0.0, 1.0, 1.0]])
    if not objects._symbolic:
        _check_boxes(who, np.asarray(objects))
    return objects


def _check_boxes(who: str, boxes: np.ndarray) -> None:
    wrong = (boxes < 0).any(1) | (boxes > 1).any(1) | (boxes[:, :2] >= boxes[:, 2:]).any(1)
    if wrong.any():
        raise InvalidArgumentError(
            f"[{who}] a box is [y_min, x_min, y_max, x_max] in [0, 1], its ends behind its "
            f"beginnings: got {boxes[wrong][0].tolist()}."
        )


def _candidates(
    draws: Tensor, height: Tensor, width: Tensor, aspects: tuple[float, float],
    areas: tuple[float, float],
) -> tuple[Tensor, ...]:  # fmt: skip
    """Return crops in integer pixels, and a mask of those inside of the image with a right area."""
    aspect = draws[:, 0] * (aspects[1] - aspects[0]) + aspects[0]
    least, most = (share * height * width for share in areas)
    low = math.round(math.sqrt(least / aspect))
    high = math.minimum(math.round(math.sqrt(most / aspect)), height)
    high = math.minimum(high, math.floor((width + 0.5 - 1e-4) / aspect))
    low = math.minimum(low, high)
    heights = low + math.minimum(math.floor(draws[:, 1] * (high - low + 1.0)), high - low)
    area = heights * math.round(heights * aspect)
    heights += cast(area < least, "float32") - cast(area > most, "float32")
    widths = math.round(heights * aspect)
    area = heights * widths
    fits = math.logical_and(heights >= 1.0, widths >= 1.0)
    fits = math.logical_and(fits, math.logical_and(heights <= height, widths <= width))
    fits = math.logical_and(fits, math.logical_and(area >= least, area <= most))
    # As in TensorFlow's kernel, no part ends at the last row or column unless it fills them.
    tops = math.floor(draws[:, 2] * (height - heights))
    lefts = math.floor(draws[:, 3] * (width - widths))
    return tops, lefts, heights, widths, fits


def _seen_shares(
    tops: Tensor, lefts: Tensor, heights: Tensor, widths: Tensor, objects: Tensor
) -> Tensor:
    """Return the fraction of each object that each crop shows, of shape (crops, objects)."""
    y0, x0, y1, x1 = (objects[None, :, k] for k in range(4))
    rows = math.minimum((tops + heights)[:, None], y1) - math.maximum(tops[:, None], y0)
    columns = math.minimum((lefts + widths)[:, None], x1) - math.maximum(lefts[:, None], x0)
    shown_area = math.maximum(rows, 0.0) * math.maximum(columns, 0.0)
    return shown_area / ((y1 - y0) * (x1 - x0))


__all__ = ["sample_distorted_bounding_box", "stateless_sample_distorted_bounding_box"]
