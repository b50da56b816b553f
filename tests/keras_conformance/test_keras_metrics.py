"""Metrics count the examples of all replicas, however they change their variables."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from keras_programs import keras, shared

import samegrad as tf

ops = keras.ops
SHARES = [[3, 2], [2, 1, 1, 1], [5, 0]]


def _data() -> tuple[Any, Any]:
    rng = np.random.default_rng(4)
    return rng.integers(0, 2, (5, 1)).astype("float32"), rng.random((5, 1)).astype("float32")


def _over(metric: Any, sizes: list[int], y: Any, p: Any, steps: int = 2) -> float:
    strategy = tf.distribute.MirroredStrategy(replicas=len(sizes))

    @tf.function
    def run(a: Any, b: Any) -> None:
        strategy.run(lambda a, b: metric.update_state(a, b), (a, b))

    for _ in range(steps):
        run(shared(y, sizes), shared(p, sizes))
    return float(np.sum(np.asarray(metric.result())))


@pytest.mark.parametrize("sizes", SHARES)
@pytest.mark.parametrize(
    "make",
    [
        lambda: keras.metrics.MeanSquaredError(),
        lambda: keras.metrics.BinaryAccuracy(),
        lambda: keras.metrics.Precision(),
        lambda: keras.metrics.AUC(),
        lambda: keras.metrics.BinaryIoU(),
        lambda: keras.metrics.R2Score(),
        lambda: keras.metrics.F1Score(threshold=0.5),
    ],
)
def test_a_metric_of_shares_is_that_of_the_batch(make: Any, sizes: list[int]) -> None:
    y, p = _data()
    wanted = make()
    for _ in range(2):
        wanted.update_state(y, p)
    expected = float(np.sum(np.asarray(wanted.result())))
    assert _over(make(), sizes, y, p) == pytest.approx(expected, abs=1e-6)


class Largest(keras.metrics.Metric):  # type: ignore[misc,name-defined]
    """The largest prediction."""

    def __init__(self) -> None:
        super().__init__()
        self.largest = self.add_variable((), "zeros", name="largest")

    def update_state(self, y: Any, p: Any, sample_weight: Any = None) -> None:
        """Keeps the larger one."""
        self.largest.assign(ops.maximum(self.largest, ops.max(p, initial=0.0)))

    def result(self) -> Any:
        """The largest so far."""
        return self.largest


class Replaced(Largest):
    """What a replica saw last."""

    def update_state(self, y: Any, p: Any, sample_weight: Any = None) -> None:
        """Forgets what was."""
        self.largest.assign(ops.sum(p))


@pytest.mark.parametrize("sizes", [[3, 2], [2, 1, 1, 1]])
def test_a_metric_may_keep_the_largest_value(sizes: list[int]) -> None:
    y, p = _data()
    assert _over(Largest(), sizes, y, p) == pytest.approx(float(p.max()))


def test_a_metric_that_forgets_what_was_is_refused_on_several_replicas() -> None:
    y, p = _data()
    with pytest.raises(ValueError, match="assign_add"):
        _over(Replaced(), [3, 2], y, p)
