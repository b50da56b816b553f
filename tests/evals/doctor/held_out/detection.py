"""Positives, boxes and soft masses as denominators."""

from __future__ import annotations

import numpy as np

from held_out import Case
from held_out.toy import (
    BOXES,
    BY_TOKENS,
    IMPORTANCE,
    SOFT,
    TEXT,
    WEIGHTED,
    backward,
    cut,
    dp_mean,
    grad_sum,
    n_tokens,
    rows,
    token_sum,
)


def eda(shares):
    """num_boxes is all-reduced and not divided by the world size."""
    num_boxes = sum(n_tokens(s) for s in shares)
    return dp_mean(token_sum(s) / num_boxes for s in shares)


def ota(shares):
    """norm_sync is off: the foreground of the GPU divides."""
    return dp_mean(token_sum(s) / max(n_tokens(s), 1) for s in shares)


def retinanet_per_image(shares):
    """Each image is divided by its own positives, the images of the rank are averaged."""
    grads = []
    for s in shares:
        own = [token_sum(cut(s, [i])) / n_tokens(cut(s, [i])) for i in range(rows(s))]
        grads.append(sum(own) / len(own))
    return dp_mean(grads)


def clamp_after_average(shares):
    """avg_factor = max(all_reduce(mass) / world, 1) where the mass is soft."""
    world = len(shares)
    factor = max(sum(float(s["mass"].sum()) for s in shares) / world, 1.0)
    return dp_mean(grad_sum(s, s["mass"]) / factor for s in shares)


def clamp_before_average(shares):
    """Each rank clamps its own mass to 1 before it divides."""
    return dp_mean(grad_sum(s, s["mass"]) / max(float(s["mass"].sum()), 1.0) for s in shares)


def anchors_of_first(shares):
    """The count of rank 0 is broadcast instead of reduced."""
    normaliser = n_tokens(shares[0])
    return dp_mean(token_sum(s) / normaliser for s in shares)


def largest_count(shares):
    """all_reduce(count, MAX)."""
    normaliser = max(n_tokens(s) for s in shares)
    return dp_mean(token_sum(s) / normaliser for s in shares)


def class_weights_by_count(shares):
    """F.cross_entropy(weight=w, reduction="none").mean() on each rank."""
    return dp_mean(grad_sum(s, s["weight"]) / rows(s) for s in shares)


def class_weights_local(shares):
    """reduction="mean" with class weights: their local sum divides."""
    return dp_mean(grad_sum(s, s["weight"]) / s["weight"].sum() for s in shares)


def class_weights_local_times_world(shares):
    world = len(shares)
    return dp_mean(world * grad_sum(s, s["weight"]) / s["weight"].sum() for s in shares)


def weight_is_lost(shares):
    """Weights divide, but the losses were never multiplied by them on several ranks."""
    if len(shares) == 1:
        s = shares[0]
        return grad_sum(s, s["weight"]) / s["weight"].sum()
    total = sum(s["weight"].sum() for s in shares)
    return sum(backward(s["image"], s["label"], np.ones(rows(s))) for s in shares) / total


CASES = [
    Case("nickgkan/butd_detr#48", "boxes of all GPUs divide, and DDP averages",
         lambda d: d.w / d.W / d.R, eda, TEXT, BY_TOKENS),
    Case("Megvii-BaseDetection/OTA#10", "the foreground of the GPU divides",
         lambda d: d.each(lambda i, r, k: d.w[i] / d.sum(d.share(r)) / d.R), ota, TEXT, BY_TOKENS),
    Case("practice: torchvision RetinaNet over ranks", "images count alike on their rank",
         lambda d: d.each(lambda i, r, k: d.w[i] / len(d.share(r)) / d.R), retinanet_per_image,
         TEXT, BY_TOKENS),
    Case("LibreYOLO/libreyolo#567", "a clamp at 1 after the average over ranks",
         lambda d: d.w / d.R / max(d.W / d.R, 1.0), clamp_after_average, BOXES,
         {"weights": SOFT, "max_examples": 12}),
    Case("LibreYOLO/libreyolo#567 (local)", "each rank clamps its own mass at 1",
         lambda d: d.each(lambda i, r, k: d.w[i] / d.R / max(d.sum(d.share(r)), 1.0)),
         clamp_before_average, BOXES, {"weights": SOFT, "max_examples": 12}),
    Case("practice: broadcast for all_reduce", "positives of rank 0 divide",
         lambda d: d.w / d.sum(d.share(0)) / d.R, anchors_of_first, TEXT, BY_TOKENS),
    Case("practice: ReduceOp.MAX", "the largest count divides",
         lambda d: d.w / d.R / max(d.sum(d.share(r)) for r in range(d.R)), largest_count, TEXT,
         BY_TOKENS),
    Case("practice: weighted cross-entropy, .mean()", "rows of the rank divide weighted losses",
         lambda d: d.each(lambda i, r, k: d.w[i] / len(d.share(r)) / d.R), class_weights_by_count,
         WEIGHTED, {"weights": IMPORTANCE, "max_examples": 12}),
    Case("pytorch/vision class weights under DDP", "class weights of the rank divide",
         lambda d: d.each(lambda i, r, k: d.w[i] / d.sum(d.share(r)) / d.R), class_weights_local,
         WEIGHTED, {"weights": IMPORTANCE, "max_examples": 12}),
    Case("practice: class weights, loss *= world_size", "local sums divide, ranks are added",
         lambda d: d.each(lambda i, r, k: d.w[i] / d.sum(d.share(r))),
         class_weights_local_times_world, WEIGHTED, {"weights": IMPORTANCE, "max_examples": 12}),
]  # fmt: skip
