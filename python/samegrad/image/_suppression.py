"""Suppression of boxes with results of a fixed size, as a step can compute them."""

from __future__ import annotations

from typing import Any

import numpy as np

from samegrad import math
from samegrad._control.control_flow import while_loop
from samegrad._core import InvalidArgumentError
from samegrad._ops.arrays import cast, expand_dims, reshape, where
from samegrad._ops.creation import zeros_like
from samegrad._ops.gather import gather
from samegrad._tensor.sizes import whole
from samegrad._tensor.tensor import Tensor, convert_to_tensor
from samegrad.math._order import argsort

_SMALL = 1e-8  # TensorFlow adds it to the union of two boxes


def non_max_suppression_padded(
    boxes: Any, scores: Any, max_output_size: Any, iou_threshold: float = 0.5,
    score_threshold: float = float("-inf"), pad_to_max_output_size: bool = False,
    name: str | None = None, sorted_input: bool = False, canonicalized_coordinates: bool = False,
    tile_size: int = 512,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Select the best boxes that do not overlap with a better one, padded to a fixed number.

    With padding, sizes are fixed, so that functions and `Strategy.run` compile it.

    Args:
        boxes: Floats [..., boxes, 4]: two opposite corners, [y, x, y, x], of positive area, with a
            coordinate above 0.
        scores: Floats [..., boxes].
        max_output_size: The largest number of boxes.
        iou_threshold: Boxes overlap from this intersection over union on.
        score_threshold: Boxes must score more than this.
        pad_to_max_output_size: Return `max_output_size` indices, zeros behind the selected ones.
        name: Ignored.
        sorted_input: True if the scores descend.
        canonicalized_coordinates: Ignored: each box may have its own order of corners, where
            TensorFlow takes that of the first box.
        tile_size: Ignored.

    Returns:
        A pair: the indices of the boxes, int32 [..., selected], the best first, and the number of
        boxes, int32 [...].

    Raises:
        ValueError: Boxes have batch axes without padding.
        InvalidArgumentError: A shape does not fit.

    Example:
        >>> boxes = [[0, 0, 1, 1.0], [0, 0, 1, 0.9], [2, 2, 3, 3]]
        >>> found, count = non_max_suppression_padded(
        ...     boxes, [0.5, 0.9, 0.1], 4, pad_to_max_output_size=True)
        >>> found.numpy(), int(count)
        (array([1, 2, 0, 0], dtype=int32), 2)
    """
    who = "non_max_suppression_padded"
    corners = cast(convert_to_tensor(boxes), "float32")
    marks = cast(convert_to_tensor(scores), "float32")
    if corners._rank < 2 or corners.shape[-1] != 4 or corners.shape[:-1] != marks.shape:
        raise InvalidArgumentError(
            f"[{who}] boxes must be [..., boxes, 4] and scores [..., boxes]: got shapes "
            f"{tuple(corners._shape)} and {tuple(marks._shape)}."
        )
    if corners._rank > 2 and not pad_to_max_output_size:
        raise ValueError(
            f"[{who}] boxes of several images have selections of one size: got shape "
            f"{tuple(corners._shape)}; pass pad_to_max_output_size=True."
        )
    count, batch = corners.shape[-2], list(corners.shape[:-2])
    most = whole(max_output_size)
    corners, marks = reshape(corners, [-1, count, 4]), reshape(marks, [-1, count])
    order = _order(marks, sorted_input)
    marks, corners = (gather(x, order, axis=1, batch_dims=1) for x in (marks, corners))
    fits = (marks > score_threshold) & math.reduce_any(corners > 0.0, -1)
    chosen, number = _selected(corners, fits, order, most, iou_threshold)
    found, number = reshape(chosen, [*batch, most]), reshape(number, batch)
    return (found if pad_to_max_output_size else found[:number]), number


def _order(marks: Tensor, is_sorted: bool) -> Tensor:
    if is_sorted:
        return zeros_like(cast(marks, "int32")) + np.arange(marks.shape[1], dtype=np.int32)
    return argsort(marks, axis=1, direction="DESCENDING", stable=True)


def _selected(
    corners: Tensor, fits: Tensor, order: Tensor, most: int, threshold: float
) -> tuple[Tensor, Tensor]:
    """Return the indices of the boxes [n, most] and their number, of boxes in their order."""
    low = math.minimum(corners[..., :2], corners[..., 2:])
    high = math.maximum(corners[..., :2], corners[..., 2:])
    columns = np.arange(most, dtype=np.int32)
    boxes = np.arange(corners.shape[1], dtype=np.int32)
    first = zeros_like(order[:, :1])

    def more(step: Any, open_: Tensor, chosen: Tensor, number: Tensor) -> Any:
        return (step < most) & math.reduce_any(open_)

    def take(step: Any, open_: Tensor, chosen: Tensor, number: Tensor) -> Any:
        best = math.argmax(cast(open_, "int32"), axis=1, output_type="int32")
        some = math.reduce_any(open_, 1)
        overlap = _overlap(low, high, expand_dims(best, 1))
        left = open_ & (overlap < threshold) & (expand_dims(best, 1) != boxes)
        index = gather(order, expand_dims(best, 1), axis=1, batch_dims=1)
        chosen = where((columns == step) & expand_dims(some, 1), index, chosen)
        return step + 1, left, chosen, number + cast(some, "int32")

    start = (convert_to_tensor(0), fits, first + np.zeros(most, np.int32), first[:, 0])
    _, _, chosen, number = while_loop(more, take, start)
    return chosen, number


def _overlap(low: Tensor, high: Tensor, index: Tensor) -> Tensor:
    """Return the intersection over union of one box and all, for each image."""
    begin, end = (gather(x, index, axis=1, batch_dims=1) for x in (low, high))
    sides = math.maximum(math.minimum(high, end) - math.maximum(low, begin), 0.0)
    common = sides[..., 0] * sides[..., 1]
    area, own = (math.reduce_prod(x, -1) for x in (high - low, end - begin))
    return common / (area + own - common + _SMALL)
