"""Losses and optimizers of Keras: how each is made, and data for them."""

from __future__ import annotations

from typing import Any

import numpy as np

import samegrad as tf

ops = tf.keras.ops
HEADS = {
    "real": lambda z: z,
    "unit": ops.sigmoid,
    "positive": ops.softplus,
    "classes": ops.softmax,
    "direction": lambda z: ops.normalize(z, axis=-1),
}
# Class: (head of the predictions, kind of targets, arguments), once for each path through it.
LOSSES: list[tuple[str, str, str, dict[str, Any]]] = [
    ("BinaryCrossentropy", "unit", "bits", {"label_smoothing": 0.1}),
    ("BinaryCrossentropy", "real", "bits", {"from_logits": True}),
    ("BinaryFocalCrossentropy", "unit", "bits", {"apply_class_balancing": True}),
    ("CategoricalCrossentropy", "classes", "one_hot", {"label_smoothing": 0.1}),
    ("CategoricalCrossentropy", "real", "one_hot", {"from_logits": True}),
    ("CategoricalFocalCrossentropy", "classes", "one_hot", {}),
    ("CategoricalGeneralizedCrossEntropy", "classes", "labels", {}),
    ("CategoricalHinge", "real", "one_hot", {}),
    ("Circle", "direction", "labels", {"gamma": 2.0}),
    ("CosineSimilarity", "real", "reals", {}),
    ("CTC", "real", "words", {}),
    ("Dice", "unit", "bits", {}),
    ("Dice", "unit", "bits", {"axis": -1}),
    ("Hinge", "real", "bits", {}),
    ("Huber", "real", "reals", {"delta": 0.7}),
    ("KLDivergence", "classes", "chances", {}),
    ("LogCosh", "real", "reals", {}),
    ("MeanAbsoluteError", "real", "reals", {}),
    ("MeanAbsolutePercentageError", "real", "reals", {}),
    ("MeanSquaredError", "real", "reals", {}),
    ("MeanSquaredLogarithmicError", "positive", "chances", {}),
    ("Poisson", "positive", "chances", {}),
    ("SparseCategoricalCrossentropy", "classes", "labels", {}),
    ("SparseCategoricalCrossentropy", "real", "labels", {"from_logits": True, "ignore_class": 1}),
    ("SquaredHinge", "real", "bits", {}),
    ("Tversky", "unit", "bits", {"alpha": 0.3, "beta": 0.7}),
    ("Tversky", "unit", "bits", {"axis": -1}),
]
OPTIMIZERS: list[tuple[str, dict[str, Any]]] = [
    ("Adadelta", {"learning_rate": 0.5}),
    ("Adafactor", {"learning_rate": 0.1}),
    ("Adagrad", {"learning_rate": 0.1}),
    ("Adam", {"learning_rate": 0.1, "amsgrad": True}),
    ("AdamW", {"learning_rate": 0.1}),
    ("Adamax", {"learning_rate": 0.1}),
    ("Ftrl", {"learning_rate": 0.1, "l1_regularization_strength": 0.01}),
    ("Lamb", {"learning_rate": 0.1}),
    ("Lion", {"learning_rate": 0.1}),
    ("Muon", {"learning_rate": 0.1}),
    ("Nadam", {"learning_rate": 0.1}),
    ("RMSprop", {"learning_rate": 0.1, "centered": True, "momentum": 0.5}),
    ("SGD", {"learning_rate": 0.1, "momentum": 0.9, "nesterov": True}),
    ("ScheduleFreeAdamW", {"learning_rate": 0.1, "warmup_steps": 2}),
]
OPTIMIZER_VARIANTS: list[dict[str, Any]] = [
    {},
    {"clipnorm": 0.2, "weight_decay": 0.05},
    {"global_clipnorm": 0.3, "use_ema": True, "ema_momentum": 0.7, "ema_overwrite_frequency": 2},
    {"clipvalue": 0.05, "gradient_accumulation_steps": 2, "loss_scale_factor": 8.0},
]


def targets_for(kind: str, shape: tuple[int, ...], rng: np.random.Generator) -> Any:
    """Targets of a kind for three classes.

    Args:
        kind: The third column of `LOSSES`.
        shape: Sizes of all axes but that of the classes.
        rng: Draws them.
    """
    labels = rng.integers(0, 3, shape)
    chances = rng.random((*shape, 3))
    made = {
        "reals": lambda: rng.normal(size=(*shape, 3)),
        "bits": lambda: (chances > 0.5).astype("float64"),
        "chances": lambda: chances / chances.sum(-1, keepdims=True),
        "one_hot": lambda: np.eye(3)[labels],
        "labels": lambda: labels,
        "words": lambda: rng.integers(1, 3, (shape[0], 2)),
    }
    return made[kind]()
