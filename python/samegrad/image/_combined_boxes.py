"""The best boxes of several classes in batches of images."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from samegrad._ops.host_arrays import host_arrays
from samegrad._tensor.sizes import whole
from samegrad._tensor.tensor import Tensor, convert_to_tensor
from samegrad.image._boxes import _suppressed

__all__ = ["combined_non_max_suppression"]
_WHO = "combined_non_max_suppression"


class CombinedNonMaxSuppression(NamedTuple):
    """Result of `combined_non_max_suppression`.

    Args:
        nmsed_boxes: The chosen boxes, the best first, and zeros.
        nmsed_scores: Their scores.
        nmsed_classes: Their classes, as floats.
        valid_detections: The number of chosen boxes of each image.
    """

    nmsed_boxes: Tensor
    nmsed_scores: Tensor
    nmsed_classes: Tensor
    valid_detections: Tensor


def combined_non_max_suppression(
    boxes: Any,
    scores: Any,
    max_output_size_per_class: Any,
    max_total_size: Any,
    iou_threshold: float = 0.5,
    score_threshold: float = float("-inf"),
    pad_per_class: bool = False,
    clip_boxes: bool = True,
    name: str | None = None,
) -> CombinedNonMaxSuppression:
    """Select the best boxes of each class that do not overlap with a better one of the class.

    It needs values: functions fall back to Python.

    Args:
        boxes: Floats [n, boxes, q, 4]: two opposite corners, [y, x, y, x]. q is 1, for the same
            boxes in all classes, or the number of classes.
        scores: Floats [n, boxes, classes].
        max_output_size_per_class: The largest number of boxes of a class.
        max_total_size: The largest number of boxes of an image.
        iou_threshold: Boxes overlap from this intersection over union on.
        score_threshold: Boxes must score more than this.
        pad_per_class: Give no more than `max_output_size_per_class` times the number of classes.
        clip_boxes: Clip the corners to [0, 1].
        name: Ignored.

    Returns:
        A named tuple: the boxes [n, total, 4], the scores [n, total] and the classes [n, total],
        all float32, and the number of boxes of each image, int32 [n]. The others are zeros.

    Raises:
        ValueError: A shape or threshold does not fit.

    Example:
        >>> found = combined_non_max_suppression([[[[0, 0, 1, 1.0]]]], [[[0.5, 0.8]]], 1, 3)
        >>> found.nmsed_classes.numpy(), found.valid_detections.numpy()
        (array([[1., 0., 0.]], dtype=float32), array([2], dtype=int32))
    """
    corners, rates = (array.astype(np.float32) for array in host_arrays(_WHO, boxes, scores))
    fits = corners.ndim == 4 and rates.ndim == 3 and corners.shape[:2] == rates.shape[:2]
    if not fits or corners.shape[3] != 4 or corners.shape[2] not in (1, rates.shape[2]):
        raise ValueError(
            f"[{_WHO}] boxes must be [n, boxes, 1 or classes, 4] and scores [n, boxes, classes]: "
            f"got {corners.shape} and {rates.shape}."
        )
    each, total, classes = whole(max_output_size_per_class), whole(max_total_size), rates.shape[2]
    size = min(total, each * classes) if pad_per_class else total
    made = np.zeros((len(corners), size, 6), np.float32)
    counts = np.zeros(len(corners), np.int32)
    options = (each, iou_threshold, score_threshold, 0.0)
    for image, (places, points) in enumerate(zip(corners, rates, strict=True)):
        rows = []
        for kind in range(classes):
            mine = places[:, kind if places.shape[1] > 1 else 0]
            for box in _suppressed(_WHO, mine, points[:, kind], options)[0]:
                rows.append([*mine[box], points[box, kind], kind])
        rows = sorted(rows, key=lambda row: -row[4])[:size]
        made[image, : len(rows)] = np.array(rows).reshape(-1, 6)
        counts[image] = len(rows)
    chosen = np.clip(made[..., :4], 0.0, 1.0) if clip_boxes else made[..., :4]
    parts = (chosen, made[..., 4], made[..., 5], counts)
    return CombinedNonMaxSuppression(*map(convert_to_tensor, parts))
