"""Metrics that count stay exact beyond 2**24, where float32 has no odd numbers left."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from keras_programs import keras, shared

import samegrad as tf

metrics = keras.metrics
MANY = 2.0**24
Y = np.array([[1, 0], [1, 1], [0, 1], [1, 0], [0, 0]], "float32")
P = np.array([[0.9, 0.8], [0.3, 0.7], [0.6, 0.1], [0.8, 0.2], [0.4, 0.9]], "float32")
WEIGHTS = np.array([0.5, 2, 1.25, 3, 1], "float32")
CLASSES = (np.array([0, 1, 2, 1, 0]), np.array([0, 2, 2, 1, 1]))
SHARES = [[5], [3, 2], [2, 1, 1, 1], [5, 0]]

# A metric, its labels and its predictions.
CASES: dict[str, tuple[Any, Any, Any]] = {
    "TruePositives": (lambda: metrics.TruePositives(), Y, P),
    "TrueNegatives": (lambda: metrics.TrueNegatives(0.3), Y, P),
    "FalsePositives": (lambda: metrics.FalsePositives(thresholds=[0.3, 0.5]), Y, P),
    "FalseNegatives": (lambda: metrics.FalseNegatives(thresholds=[0.0, 0.5, 1.0]), Y, P),
    "Precision": (lambda: metrics.Precision(), Y, P),
    "Precision of the best": (lambda: metrics.Precision(top_k=1), Y, P),
    "Recall": (lambda: metrics.Recall(class_id=1), Y, P),
    "AUC": (lambda: metrics.AUC(num_thresholds=5), Y, P),
    "AUC of two labels": (lambda: metrics.AUC(num_thresholds=5, multi_label=True), Y, P),
    "AUC of uneven thresholds": (lambda: metrics.AUC(thresholds=[0.1, 0.7]), Y, P),
    "SensitivityAtSpecificity": (
        lambda: metrics.SensitivityAtSpecificity(0.5, num_thresholds=3), Y, P,
    ),
    "PrecisionAtRecall": (lambda: metrics.PrecisionAtRecall(0.5, num_thresholds=4), Y, P),
    "F1Score": (lambda: metrics.F1Score(average="weighted", threshold=0.5), Y, P),
    "FBetaScore": (lambda: metrics.FBetaScore(average="micro"), Y, P),
    "R2Score": (lambda: metrics.R2Score(num_regressors=1), Y, np.round(P)),
    "BinaryIoU": (lambda: metrics.BinaryIoU(), Y[:, 1], P[:, 1]),
    "MeanIoU": (lambda: metrics.MeanIoU(num_classes=3), *CLASSES),
    "BinaryAccuracy": (lambda: metrics.BinaryAccuracy(), Y, P),
}  # fmt: skip


def on_shares(metric: Any, sizes: list[int]) -> Callable[..., None]:
    """Counts batches of which each replica has its share."""
    strategy = tf.distribute.MirroredStrategy(replicas=len(sizes))

    @tf.function
    def step(*parts: Any) -> None:
        strategy.run(lambda *parts: metric.update_state(*parts), parts)

    return lambda *batch: step(*(shared(part, sizes) for part in batch))


def values(metric: Any) -> list[Any]:
    return [variable.numpy().astype("float64") for variable in metric.variables]


@pytest.mark.parametrize("sizes", SHARES, ids=str)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_what_comes_after_many_examples_counts(name: str, weighted: bool, sizes: list[int]) -> None:
    make, *batch = CASES[name]
    batch += [np.ceil(WEIGHTS).astype("int32") if "IoU" in name else WEIGHTS] if weighted else []
    few, many = make(), make()
    few.update_state(*batch)
    update = on_shares(many, sizes)
    update(*batch)
    for variable in many.variables:
        variable.assign(np.full(variable.shape, MANY))
    update(*batch)
    update(*batch)
    changes = values(few)
    assert any(np.any(change % 2) for change in changes)  # float32 would lose them
    for variable, change, found in zip(many.variables, changes, values(many), strict=True):
        np.testing.assert_array_equal(found, MANY + 2 * change, variable.name)


@pytest.mark.parametrize("name", CASES)
def test_results_are_of_the_counts(name: str) -> None:
    """A thousand million times the counts have the same ratios."""
    make, *batch = CASES[name]
    metric = make()
    metric.update_state(*batch)
    once = np.asarray(metric.result())
    for variable in metric.variables:
        variable.assign(variable.numpy() * 10**9)
    scale = 1e9 if name.startswith(("True", "False")) else 1.0
    # The adjustment of an R2Score depends on the number of examples.
    if name != "R2Score":
        np.testing.assert_allclose(np.asarray(metric.result()), once * scale, rtol=1e-6)
    assert metric.result().dtype == tf.float32
    metric.reset_state()
    assert not any(value.any() for value in values(metric))


def test_an_adjusted_score_counts_all_examples() -> None:
    """1 - (1 - R2) (n - 1) / (n - p - 1) with n - p - 1 = 1 (Theil, 1961): n is not rounded."""
    metric = metrics.R2Score(num_regressors=2**24 + 1)
    labels, found = np.array([[1.0], [2.0], [3.0]]), np.array([[1.0], [2.0], [3.0 + 2.0**-12]])
    metric.update_state(labels, found)
    metric.num_samples.assign(2**24 + 3)
    expected = 1 - 2.0**-24 / 2 * (2**24 + 2)
    assert float(metric.result()) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("dtype", ["float16", "float64"])
def test_values_are_compared_in_the_dtype_of_keras(dtype: str) -> None:
    """TensorFlow 2.21 says the same: these metrics compare in floatx, F1Score in its own dtype."""
    threshold = float(np.float32(0.1))
    for metric in (metrics.Precision(threshold, dtype=dtype), metrics.AUC(dtype=dtype)):
        metric.update_state([1.0, 1.0], np.array([0.1, 0.2]))
        assert metric.result().dtype == tf.float32
        assert {variable.dtype for variable in metric.variables} == {"float64"}
    positives = metrics.TruePositives(threshold, dtype=dtype)
    positives.update_state([1.0, 1.0], np.array([0.1 + 1e-9, 0.2]))  # in float32 not above it
    assert float(positives.result()) == 1.0
    score = metrics.F1Score(dtype=dtype)
    score.update_state(Y, P)
    assert score.result().dtype == dtype


def test_a_constraint_is_met_by_what_rounds_to_it() -> None:
    """4 of 5 is 0.8 as Keras's float32 has it, not less than the nearest float32 of 0.8."""
    metric = metrics.PrecisionAtRecall(0.8, num_thresholds=3)
    metric.update_state([1.0, 1.0, 1.0, 1.0, 1.0, 0.0], [0.9, 0.8, 0.7, 0.6, 0.1, 0.2])
    assert float(metric.result()) == 1.0


def test_a_subclass_counts_as_exactly() -> None:
    class OfPositives(metrics.Precision):  # type: ignore[misc,name-defined]
        """Precision under another name."""

    metric = OfPositives()
    metric.update_state([1.0, 0.0], [0.9, 0.8])
    metric.true_positives.assign([MANY])
    metric.update_state([1.0], [0.9])
    assert metric.true_positives.numpy() == MANY + 1


def test_a_metric_of_the_program_keeps_its_dtype() -> None:
    class Seen(metrics.Metric):  # type: ignore[misc,name-defined]
        """How many examples were seen."""

        def __init__(self) -> None:
            super().__init__()
            self.seen = self.add_weight((), "zeros", "int64", "seen")

        def update_state(self, y: Any, p: Any, sample_weight: Any = None) -> None:
            """Counts the examples."""
            self.seen.assign_add(tf.size(y, "int64"))

        def result(self) -> Any:
            """The number so far."""
            return self.seen.value

    metric = Seen()
    metric.seen.assign(2**53)
    on_shares(metric, [3, 2])(Y[:, 0], P[:, 0])
    assert metric.seen.numpy() == 2**53 + 5
