"""How each public loss and metric is made and fed, and those left out."""

from __future__ import annotations

from typing import Any

import numpy as np

import samegrad as tf

ROWS, CLASSES, STEPS = 12, 3, 5
_RNG = np.random.default_rng(2)
LABELS = _RNG.integers(0, CLASSES, ROWS)
CHANCES = _RNG.dirichlet(np.ones(CLASSES), ROWS).astype(np.float32)

# Arguments of the constructors of losses; one that needs none has no entry.
LOSS_ARGUMENTS: dict[str, dict[str, Any]] = {
    "Dice": {"axis": -1},
    "Tversky": {"axis": -1},
}
# Losses that take whole numbers as targets.
TAKES_LABELS = {"CategoricalGeneralizedCrossEntropy", "Circle", "SparseCategoricalCrossentropy"}
# The loss of a row depends on other rows, too.
COMPARES_ROWS = {"Circle"}

# Arguments of the constructors of metrics.
METRIC_ARGUMENTS: dict[str, dict[str, Any]] = {
    "IoU": {"num_classes": CLASSES, "target_class_ids": [0, 2]},
    "MeanIoU": {"num_classes": CLASSES},
    "MeanMetricWrapper": {"fn": tf.keras.losses.mean_squared_error},
    "OneHotIoU": {"num_classes": CLASSES, "target_class_ids": [1]},
    "OneHotMeanIoU": {"num_classes": CLASSES},
    "MeanRelativeError": {"normalizer": [0.5]},
    "PrecisionAtRecall": {"recall": 0.5},
    "RecallAtPrecision": {"precision": 0.4},
    "SensitivityAtSpecificity": {"specificity": 0.5},
    "SpecificityAtSensitivity": {"sensitivity": 0.5},
}
COMPARES_LABELS = {"Accuracy", "IoU", "MeanIoU"}
TAKES_ONE_COLUMN = {"BinaryIoU"}


def outputs_of(name: str) -> int:
    """How many numbers a model gives for an example of this loss."""
    return STEPS * CLASSES if name == "CTC" else CLASSES


def predicted(name: str, numbers: Any) -> Any:
    """Predictions as the loss takes them, of `outputs_of` numbers per example."""
    if name == "CTC":
        return tf.reshape(numbers, (-1, STEPS, CLASSES))
    return tf.nn.softmax(numbers)


def truth(name: str, labels: np.ndarray = LABELS) -> np.ndarray:
    """Targets as the loss takes them."""
    if name == "CTC":
        return np.stack([labels % 2 + 1, 2 - labels % 2], 1)
    one_hot: np.ndarray = np.eye(CLASSES, dtype=np.float32)[labels]
    return labels if name in TAKES_LABELS else one_hot


def metric_inputs(name: str) -> tuple[np.ndarray, ...]:
    """What a metric's `update_state` is given."""
    if name in ("Mean", "Sum"):
        return (CHANCES,)
    if name in COMPARES_LABELS:
        return LABELS, CHANCES.argmax(1)
    if name in TAKES_ONE_COLUMN:
        return truth(name)[:, :1], CHANCES[:, :1]
    return (LABELS if name.startswith("Sparse") else truth(name)), CHANCES
