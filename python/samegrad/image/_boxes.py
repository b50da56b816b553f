"""Boxes in images: cut out, chosen, drawn; and patches on a grid."""

from __future__ import annotations

from typing import Any

import numpy as np

from samegrad import math
from samegrad._core import InvalidArgumentError
from samegrad._ops.arrays import cast, concat, reshape, where
from samegrad._ops.creation import range_
from samegrad._ops.elementary import exp
from samegrad._ops.gather import gather
from samegrad._ops.padding import pad
from samegrad._tensor.sizes import sizes_of, whole
from samegrad._tensor.tensor import Tensor, convert_to_tensor
from samegrad.image._shape import image_of

Pair = tuple[int, int]
_COLORS = np.array(
    [[1, 1, 0, 1], [0, 0, 1, 1], [1, 0, 0, 1], [0, 1, 0, 1], [0.5, 0, 0.5, 1], [0.5, 0.5, 0, 1],
     [0.5, 0, 0, 1], [0, 0, 0.5, 1], [0, 1, 1, 1], [1, 0, 1, 1]], np.float32,
)  # fmt: skip


def extract_patches(
    images: Any, sizes: Any, strides: Any, rates: Any, padding: str, name: str | None = None
) -> Tensor:
    """Extract patches on a grid; each patch becomes the channels of one pixel.

    Args:
        images: A tensor of shape [n, height, width, channels].
        sizes: The size of a patch: [1, height, width, 1].
        strides: The distance between patches: [1, height, width, 1].
        rates: The dilation rate of a patch: [1, height, width, 1].
        padding: "VALID", or "SAME", which pads with zeros.
        name: Ignored.

    Returns:
        A tensor [n, rows of patches, columns of patches, height * width * channels of a patch].

    Raises:
        ValueError: A size is not [1, height, width, 1], the padding is unknown, or a patch does not
            fit.

    Example:
        >>> import numpy as np
        >>> x = np.arange(16, dtype=np.float32).reshape(1, 4, 4, 1)
        >>> extract_patches(x, [1, 2, 2, 1], [1, 2, 2, 1], [1, 1, 1, 1], "VALID").numpy()[0, 0, 1]
        array([2., 3., 6., 7.], dtype=float32)
    """
    x = image_of(images, "extract_patches", (4,))
    spans = [_grid("sizes", sizes), _grid("strides", strides), _grid("rates", rates)]
    if padding not in ("VALID", "SAME"):
        raise ValueError(f"[extract_patches] padding must be 'VALID' or 'SAME': got {padding!r}.")
    counts = []
    frame = [[0, 0]]
    disjoint = spans[0] != (1, 1)  # the gradient of one slice keeps the sign of zeros
    for axis in (0, 1):
        size, stride, rate = (span[axis] for span in spans)
        old, reach = int(x.shape[axis + 1]), (size - 1) * rate + 1
        if padding == "VALID" and reach > old + stride - 1:
            raise InvalidArgumentError(
                f"[extract_patches] patches must fit into the images: got {reach} pixels for "
                f"{old}; use padding 'SAME', or smaller ones."
            )
        count = -(-old // stride) if padding == "SAME" else (old - reach) // stride + 1
        missing = max((count - 1) * stride + reach - old, 0) if padding == "SAME" else 0
        frame.append([missing // 2, missing - missing // 2])
        counts.append(count)
        disjoint &= reach <= stride
    x = pad(x, [*frame, [0, 0]])
    if disjoint:
        return _disjoint_patches(x, counts, *spans)
    parts = []
    for i in range(spans[0][0]):
        for j in range(spans[0][1]):
            at = (i * spans[2][0], j * spans[2][1])
            ends = [a + (n - 1) * s + 1 if n else a
                    for a, n, s in zip(at, counts, spans[1], strict=True)]  # fmt: skip
            parts.append(x[:, at[0] : ends[0] : spans[1][0], at[1] : ends[1] : spans[1][1]])
    return concat(parts, -1)


def _disjoint_patches(
    x: Tensor, counts: list[int], sizes: Pair, strides: Pair, rates: Pair
) -> Tensor:
    """Extract patches by one gather, whose gradient passes over the image once."""
    n, height, width, channels = x.shape
    rows, columns = (
        np.arange(counts[k])[:, None] * strides[k] + np.arange(sizes[k]) * rates[k] for k in (0, 1)
    )
    pixels = rows[:, None, :, None] * int(width) + columns[:, None]
    flat = reshape(x, [n, int(height) * int(width), channels])
    found = gather(flat, pixels.reshape(-1), axis=1)
    return reshape(found, [n, *counts, sizes[0] * sizes[1] * channels])


def _grid(name: str, value: Any) -> Pair:
    sizes = [whole(n) for n in sizes_of(value)]
    if len(sizes) != 4 or sizes[0] != 1 or sizes[3] != 1 or min(sizes) < 1:
        raise ValueError(
            f"[extract_patches] {name} must be [1, rows, columns, 1], each at least 1: got {sizes}."
        )
    return sizes[1], sizes[2]


def crop_and_resize(
    image: Any, boxes: Any, box_indices: Any, crop_size: Any, method: str = "bilinear",
    extrapolation_value: float = 0.0, name: str | None = None,
) -> Tensor:  # fmt: skip
    """Crop boxes out of images, and resize each to one size.

    Args:
        image: A tensor of shape [n, height, width, channels].
        boxes: Floats [boxes, 4]: top, left, bottom, right; 0 is the first pixel and 1 the last one.
            A bottom above the top, or a right before the left, flips the crop.
        box_indices: Integers [boxes]: the image of each box.
        crop_size: The new height and width.
        method: "bilinear" or "nearest".
        extrapolation_value: The value outside of the image.
        name: Ignored.

    Returns:
        A float32 tensor [boxes, new height, new width, channels].

    Raises:
        ValueError: A shape does not fit, or the method is unknown.

    Example:
        >>> import numpy as np
        >>> x = np.arange(4, dtype=np.float32).reshape(1, 2, 2, 1)
        >>> crop_and_resize(x, [[0.0, 0.0, 1.0, 1.0]], [0], [3, 3]).numpy()[0, 1, :, 0]
        array([1. , 1.5, 2. ], dtype=float32)
    """
    who = "crop_and_resize"
    x = cast(image_of(image, who, (4,)), "float32")
    corners, owners = convert_to_tensor(boxes), convert_to_tensor(box_indices)
    if corners._rank != 2 or corners.shape[-1] != 4 or owners._rank != 1:
        raise ValueError(
            f"[{who}] boxes must be [boxes, 4] and box_indices [boxes]: got shapes "
            f"{tuple(corners._shape)} and {tuple(owners._shape)}."
        )
    if method not in ("bilinear", "nearest"):
        raise ValueError(f"[{who}] method must be 'bilinear' or 'nearest': got {method!r}.")
    sizes = [whole(n) for n in sizes_of(crop_size)]
    rows = _places(corners[:, 0], corners[:, 2], sizes[0], int(x.shape[1]))
    columns = _places(corners[:, 1], corners[:, 3], sizes[1], int(x.shape[2]))
    first_rows = gather(range_(x.shape[0], dtype="int64") * int(x.shape[1]), cast(owners, "int32"))
    if method == "nearest":
        found = _picked(x, first_rows, math.floor(rows + 0.5), math.floor(columns + 0.5))
    else:
        found = _between(x, first_rows, rows, columns)
    inside = _within(rows, int(x.shape[1]))[:, :, None] & _within(columns, int(x.shape[2]))[:, None]
    return where(inside[..., None], found, float(extrapolation_value))


def _places(first: Tensor, last: Tensor, count: int, size: int) -> Tensor:
    """Return the positions of the pixels of each crop along an axis."""
    if count == 1:
        return ((first + last) * (0.5 * (size - 1)))[:, None]
    step = (last - first) * float(size - 1) / float(count - 1)
    return (first * float(size - 1))[:, None] + step[:, None] * np.arange(count, dtype=np.float32)


def _within(places: Tensor, size: int) -> Tensor:
    return math.logical_and(places >= 0.0, places <= float(size - 1))


def _picked(x: Tensor, first_rows: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
    def limited(places: Tensor, size: int) -> Tensor:
        return cast(math.maximum(math.minimum(places, float(size - 1)), 0.0), "int64")

    n, height, width, channels = x.shape
    lines = first_rows[:, None] + limited(rows, int(height))
    pixels = (lines * int(width))[:, :, None] + limited(columns, int(width))[:, None]
    return gather(reshape(x, [n * int(height) * int(width), channels]), pixels)


def _between(x: Tensor, first_rows: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
    top, left = math.floor(rows), math.floor(columns)
    below, right = math.ceil(rows), math.ceil(columns)
    down, across = (rows - top)[:, :, None, None], (columns - left)[:, None, :, None]
    upper = _picked(x, first_rows, top, left)
    upper = upper + (_picked(x, first_rows, top, right) - upper) * across
    lower = _picked(x, first_rows, below, left)
    lower = lower + (_picked(x, first_rows, below, right) - lower) * across
    return upper + (lower - upper) * down


def non_max_suppression(
    boxes: Any, scores: Any, max_output_size: Any, iou_threshold: float = 0.5,
    score_threshold: float = float("-inf"), name: str | None = None,
) -> Tensor:  # fmt: skip
    """Select the best boxes that do not overlap with a better one.

    It needs values: a `function` falls back to Python, and `Strategy.run` rejects it on several
    replicas.

    Args:
        boxes: Floats [boxes, 4]: two opposite corners, [y, x, y, x].
        scores: Floats [boxes].
        max_output_size: The largest number of boxes.
        iou_threshold: Boxes overlap from this intersection over union on.
        score_threshold: Boxes must score more than this.
        name: Ignored.

    Returns:
        Indices of the boxes, int32 [selected], the best first.

    Raises:
        ValueError: A shape or threshold does not fit.

    Example:
        >>> non_max_suppression([[0, 0, 1, 1.0], [0, 0, 1, 0.9], [2, 2, 3, 3]], [0.5, 0.9, 0.1], 9)
        <samegrad.Tensor: shape=(2,), dtype=int32, numpy=array([1, 2], dtype=int32)>
    """
    chosen, _ = _suppressed(
        "non_max_suppression", boxes, scores, (max_output_size, iou_threshold, score_threshold, 0.0)
    )
    return convert_to_tensor(np.array(chosen, np.int32))


def non_max_suppression_with_scores(
    boxes: Any, scores: Any, max_output_size: Any, iou_threshold: float = 0.5,
    score_threshold: float = float("-inf"), soft_nms_sigma: float = 0.0, name: str | None = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Select boxes as `non_max_suppression` does, and return their scores as well.

    With a sigma, overlaps lower the scores instead (Bodla, Singh, Chellappa and Davis, "Soft-NMS",
    2017).

    Args:
        boxes: Floats [boxes, 4]: two opposite corners, [y, x, y, x].
        scores: Floats [boxes].
        max_output_size: The largest number of boxes.
        iou_threshold: Boxes overlap from this intersection over union on; ignored with a sigma.
        score_threshold: Boxes must score more than this.
        soft_nms_sigma: The deviation of Soft-NMS; 0 leaves out the boxes that overlap.
        name: Ignored.

    Returns:
        A pair: the indices of the boxes, int32 [selected], and their scores, float32 [selected].

    Example:
        >>> found, scores = non_max_suppression_with_scores([[0, 0, 1, 1.0]], [0.5], 9)
        >>> found.numpy(), scores.numpy()
        (array([0], dtype=int32), array([0.5], dtype=float32))
    """
    chosen, kept = _suppressed(
        "non_max_suppression_with_scores", boxes, scores,
        (max_output_size, iou_threshold, score_threshold, float(soft_nms_sigma)),
    )  # fmt: skip
    return convert_to_tensor(np.array(chosen, np.int32)), convert_to_tensor(
        np.array(kept, np.float32)
    )


def _suppressed(
    who: str, boxes: Any, scores: Any, options: tuple[Any, float, float, float]
) -> tuple[list[int], list[float]]:
    corners = np.asarray(convert_to_tensor(boxes).numpy(), np.float32)
    rest = np.array(convert_to_tensor(scores).numpy(), np.float32)
    most, overlap, least, sigma = options
    if corners.ndim != 2 or corners.shape[1:] != (4,) or rest.shape != corners.shape[:1]:
        raise ValueError(
            f"[{who}] boxes must be [boxes, 4] and scores [boxes]: got {corners.shape} and "
            f"{rest.shape}."
        )
    if not 0 <= overlap <= 1:
        raise ValueError(f"[{who}] iou_threshold must lie in [0, 1]: got {overlap}.")
    left = np.flatnonzero(rest > least)
    boxes, rest = _sides_and_areas(corners[left]), rest[left]
    chosen: list[int] = []
    kept: list[float] = []
    count = whole(most)
    while left.size and len(chosen) < count:
        best = int(np.argmax(rest))
        chosen.append(int(left[best]))
        kept.append(float(rest[best]))
        shared = _overlaps(boxes, boxes[:, best])
        if sigma > 0:
            rest = np.asarray(rest * exp(-0.5 * shared**2 / sigma), np.float32)
            open_ = rest > least
        else:
            open_ = shared <= overlap
        open_[best] = False
        boxes, rest, left = boxes.compress(open_, 1), rest[open_], left[open_]
    return chosen, kept


def _sides_and_areas(corners: np.ndarray) -> np.ndarray:
    """Return the lower and upper end of each box along both axes, and its area: [5, boxes]."""
    low = np.minimum(corners[:, :2], corners[:, 2:]).T
    high = np.maximum(corners[:, :2], corners[:, 2:]).T
    sides = high - low
    return np.concatenate([low, high, sides[:1] * sides[1:]])


def _overlaps(boxes: np.ndarray, one: np.ndarray) -> np.ndarray:
    """Return the common part of a box and each other, divided by their union."""
    begin, end = np.maximum(boxes[:2], one[:2, None]), np.minimum(boxes[2:4], one[2:4, None])
    sides = np.maximum(end - begin, 0)
    common = sides[0] * sides[1]
    union = boxes[4] + one[4] - common
    valid = (boxes[4] > 0) & (one[4] > 0)
    shared: np.ndarray = np.where(valid, common / np.where(union > 0, union, 1), 0)
    return shared


def draw_bounding_boxes(images: Any, boxes: Any, colors: Any, name: str | None = None) -> Tensor:
    """Draw frames of one pixel around boxes.

    It needs values: a `function` falls back to Python, and `Strategy.run` rejects it on several
    replicas.

    Args:
        images: Floats in [0, 1] of shape [n, height, width, channels], with 1, 3 or 4 channels.
        boxes: Floats [n, boxes, 4]: top, left, bottom, right in [0, 1].
        colors: Floats [colors, channels], used in turn; None: ten default colors.
        name: Ignored.

    Returns:
        A float32 tensor of the shape of `images`.

    Raises:
        ValueError: A shape does not fit.

    Example:
        >>> import numpy as np
        >>> x = draw_bounding_boxes(np.zeros((1, 3, 3, 1), np.float32), [[[0, 0, 1, 1.0]]], [[1.0]])
        >>> x.numpy()[0, :, :, 0]
        array([[1., 1., 1.],
               [1., 0., 1.],
               [1., 1., 1.]], dtype=float32)
    """
    x = image_of(images, "draw_bounding_boxes", (4,))
    made = np.array(x.numpy(), np.float32)
    places = np.asarray(convert_to_tensor(boxes).numpy(), np.float32)
    if places.ndim != 3 or places.shape[0] != made.shape[0] or places.shape[2] != 4:
        raise ValueError(
            f"[draw_bounding_boxes] boxes must be [n, boxes, 4]: got {places.shape} for images of "
            f"shape {made.shape}."
        )
    given = None if colors is None else np.asarray(convert_to_tensor(colors).numpy(), np.float32)
    palette = _COLORS if given is None or not given.size else given
    if made.shape[-1] == 1 and given is None:
        palette = np.ones((1, 1), np.float32)
    for image, frames in zip(made, places, strict=True):
        for number, frame in enumerate(frames):
            _draw(image, frame, palette[number % len(palette)][: image.shape[-1]])
    return cast(convert_to_tensor(made), x._dtype)


def _draw(image: np.ndarray, frame: np.ndarray, color: np.ndarray) -> None:
    rows, columns = image.shape[:2]
    top, bottom = int(frame[0] * (rows - 1)), int(frame[2] * (rows - 1))
    left, right = int(frame[1] * (columns - 1)), int(frame[3] * (columns - 1))
    if top > bottom or left > right or top >= rows or bottom < 0 or left >= columns or right < 0:
        return
    across = slice(max(left, 0), min(right, columns - 1) + 1)
    down = slice(max(top, 0), min(bottom, rows - 1) + 1)
    for row in (top, bottom):
        if 0 <= row < rows:
            image[row, across] = color
    for column in (left, right):
        if 0 <= column < columns:
            image[down, column] = color


__all__ = [
    "crop_and_resize", "draw_bounding_boxes", "extract_patches", "non_max_suppression",
    "non_max_suppression_with_scores",
]  # fmt: skip
