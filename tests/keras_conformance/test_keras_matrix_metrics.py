"""Every metric of Keras, with masks and weights, on shares: the figures of one device."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from keras_programs import keras, shared
from matrix_programs import (
    SHARES,
    assert_finite,
    assert_near,
    masked,
    public_classes,
    total,
)

import samegrad as tf

ops, metrics = keras.ops, keras.metrics


def _error(y: Any, p: Any) -> Any:
    return ops.mean(ops.square(y - p), axis=-1)


# Class: (kind of targets, kind of predictions, arguments), once for each path through it.
CASES: list[tuple[str, str, str, dict[str, Any]]] = [
    ("Accuracy", "labels", "labels", {}),
    ("AUC", "bit", "unit", {"num_thresholds": 7}),
    ("AUC", "bit", "unit", {"curve": "PR", "thresholds": [0.3, 0.6]}),
    ("AUC", "bits", "units", {"multi_label": True, "num_labels": 3, "num_thresholds": 5}),
    ("AUC", "bits", "reals", {"from_logits": True, "num_thresholds": 5}),
    ("BinaryAccuracy", "bits", "units", {"threshold": 0.4}),
    ("BinaryCrossentropy", "bits", "units", {"label_smoothing": 0.1}),
    ("BinaryIoU", "bit", "unit", {"threshold": 0.4, "dtype": "float64"}),
    ("CategoricalAccuracy", "one_hot", "chances", {}),
    ("CategoricalCrossentropy", "one_hot", "chances", {}),
    ("CategoricalHinge", "one_hot", "reals", {}),
    ("ConcordanceCorrelation", "reals", "units", {}),
    ("CosineSimilarity", "reals", "units", {}),
    ("F1Score", "bits", "units", {"threshold": 0.4}),
    ("F1Score", "one_hot", "chances", {"average": "micro"}),
    ("FBetaScore", "one_hot", "chances", {"average": "weighted", "beta": 2.0}),
    ("FBetaScore", "bits", "units", {"average": "macro", "threshold": 0.5}),
    ("FalseNegatives", "bits", "units", {"thresholds": [0.2, 0.6]}),
    ("FalsePositives", "bits", "units", {}),
    ("Hinge", "bits", "reals", {}),
    ("IoU", "labels", "labels", {"num_classes": 3, "target_class_ids": [0, 2], "dtype": "float64"}),
    ("KLDivergence", "chances", "chances", {}),
    ("LogCoshError", "reals", "units", {}),
    ("Mean", "none", "reals", {}),
    ("MeanAbsoluteError", "reals", "units", {}),
    ("MeanAbsolutePercentageError", "reals", "units", {}),
    ("MeanIoU", "labels", "labels", {"num_classes": 3, "ignore_class": 1, "dtype": "float64"}),
    ("MeanMetricWrapper", "reals", "units", {"fn": _error}),
    ("MeanSquaredError", "reals", "units", {}),
    ("MeanSquaredLogarithmicError", "chances", "units", {}),
    (
        "OneHotIoU",
        "one_hot",
        "chances",
        {"num_classes": 3, "target_class_ids": [1], "dtype": "float64"},
    ),
    ("OneHotMeanIoU", "one_hot", "chances", {"num_classes": 3, "dtype": "float64"}),
    ("PearsonCorrelation", "reals", "units", {}),
    ("Poisson", "chances", "units", {}),
    ("Precision", "bits", "units", {"thresholds": [0.2, 0.6]}),
    ("Precision", "bits", "units", {"top_k": 2, "class_id": 1}),
    ("PrecisionAtRecall", "bits", "units", {"recall": 0.5, "num_thresholds": 5}),
    ("R2Score", "reals", "units", {}),
    ("R2Score", "reals", "units", {"class_aggregation": "variance_weighted_average"}),
    ("Recall", "bits", "units", {"top_k": 2}),
    ("RecallAtPrecision", "bits", "units", {"precision": 0.3, "num_thresholds": 5}),
    ("RootMeanSquaredError", "reals", "units", {}),
    ("SensitivityAtSpecificity", "bits", "units", {"specificity": 0.5, "num_thresholds": 5}),
    ("SparseCategoricalAccuracy", "labels", "chances", {}),
    ("SparseCategoricalCrossentropy", "labels", "chances", {"ignore_class": 1}),
    ("SparseTopKCategoricalAccuracy", "labels", "chances", {"k": 2}),
    ("SpecificityAtSensitivity", "bits", "units", {"sensitivity": 0.5, "num_thresholds": 5}),
    ("SquaredHinge", "bits", "reals", {}),
    ("Sum", "none", "reals", {}),
    ("TopKCategoricalAccuracy", "one_hot", "chances", {"k": 2}),
    ("TrueNegatives", "bits", "units", {}),
    ("TruePositives", "bits", "units", {"thresholds": [0.2, 0.6]}),
]
LEFT_OUT = {"Metric": "it is the base class"}


def _values(kind: str, shape: tuple[int, ...], rng: Any) -> Any:
    chances = rng.random((*shape, 3)) + 0.01
    made = {
        "reals": lambda: rng.normal(size=(*shape, 3)),
        "units": lambda: chances / 1.02,
        "unit": lambda: rng.random((*shape, 1)),
        "bits": lambda: (chances > 0.5).astype("float64"),
        "bit": lambda: (rng.random((*shape, 1)) > 0.5).astype("float64"),
        "chances": lambda: chances / chances.sum(-1, keepdims=True),
        "labels": lambda: rng.integers(0, 3, shape),
        "one_hot": lambda: np.eye(3)[rng.integers(0, 3, shape)],
    }
    return made[kind]()


def _batch(count: int, inner: tuple[int, ...], y: str, p: str, seed: int) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    shape = (count, *inner)
    mask = rng.random(shape) < 0.6
    mask[0] = True
    parts = {
        "p": _values(p, shape, rng),
        "mask": mask,
        "weight": np.round(2 * rng.random(shape), 2),
    }
    return parts if y == "none" else {"y": _values(y, shape, rng), **parts}


def _made(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    cases = ("", "mask", "weight", "mask and weight")
    return {case: getattr(metrics, name)(**arguments) for case in cases}


def _step(made: dict[str, Any]) -> Any:
    def step(p: Any, mask: Any, weight: Any, y: Any = None) -> None:
        for case, metric in made.items():
            seen = masked(ops.copy(p), mask if "mask" in case else None)
            weights = {"sample_weight": weight} if "weight" in case else {}
            metric.update_state(*([seen] if y is None else [y, seen]), **weights)

    return step


def _figures(made: dict[str, Any]) -> dict[str, Any]:
    found = {}
    for case, metric in made.items():
        found[f"{case} result"] = np.asarray(metric.result())
        for i, variable in enumerate(metric.variables):
            found[f"{case} {i} {variable.name}"] = variable.numpy()
    return found


def _over(made: dict[str, Any], batches: list[Any], sizes: Sequence[int], traced: bool) -> Any:
    strategy = tf.distribute.MirroredStrategy(replicas=len(sizes))
    step = _step(made)

    def run(**parts: Any) -> None:
        strategy.run(step, kwargs=parts)

    run = tf.function(run) if traced else run
    for batch in batches:
        run(**{name: shared(array, sizes) for name, array in batch.items()})
    return _figures(made)


def test_every_metric_of_keras_is_in_the_table() -> None:
    assert {case[0] for case in CASES} | LEFT_OUT.keys() == public_classes(metrics)


@pytest.mark.parametrize("traced", [True, False])
@pytest.mark.parametrize("inner", [(), (3,)])
@pytest.mark.parametrize(("name", "y", "p", "arguments"), CASES)
def test_a_metric_of_shares_is_that_of_the_batches(
    float64: None, name: str, y: str, p: str, arguments: Any, inner: Any, traced: bool
) -> None:
    if inner and not issubclass(getattr(metrics, name), metrics.Mean | metrics.Sum):
        return
    for sizes in SHARES if traced else [[3, 2]]:
        batches = [_batch(total(sizes), inner, y, p, seed) for seed in (1, 2)]
        wanted = _made(name, arguments)
        for batch in batches:
            _step(wanted)(**{n: tf.convert_to_tensor(array) for n, array in batch.items()})
        expected = _figures(wanted)
        assert_finite(expected, sizes)
        assert_near(_over(_made(name, arguments), batches, sizes, traced), expected, sizes)
