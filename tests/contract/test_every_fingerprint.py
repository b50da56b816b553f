"""The fingerprint of each layer, optimizer and metric is that of its twin and of its checkpoint."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import test_every_layer
import test_every_optimizer
from layer_cases import CASES
from public_classes import public_classes

import samegrad as tf
from samegrad.train._values import values_of

metrics = tf.keras.metrics
# Arguments of metrics that need some.
ARGUMENTS: dict[str, dict[str, Any]] = {
    "IoU": {"num_classes": 2, "target_class_ids": [0]},
    "MeanMetricWrapper": {"fn": abs},
    "MeanIoU": {"num_classes": 2},
    "MeanRelativeError": {"normalizer": [1.0]},
    "OneHotIoU": {"num_classes": 2, "target_class_ids": [0]},
    "OneHotMeanIoU": {"num_classes": 2},
    "PrecisionAtRecall": {"recall": 0.5},
    "RecallAtPrecision": {"precision": 0.5},
    "SensitivityAtSpecificity": {"specificity": 0.5},
    "SpecificityAtSensitivity": {"sensitivity": 0.5},
}


def check(one: Any, twin: Any, folder: Path) -> None:
    """Compare an object with another one made later, and with a checkpoint of it."""
    arrays = values_of(one, "test").arrays
    assert list(arrays) == list(values_of(twin, "test").arrays)
    assert len(arrays) >= len(one.variables)  # optimizers have some that Keras does not list
    path = tf.train.Checkpoint(one=one).write(folder / "ckpt")
    assert tf.fingerprint(one) == tf.fingerprint(twin) == tf.fingerprint(path)


@pytest.mark.parametrize("name", CASES)
def test_fingerprint_of_a_layer(name: str, tmp_path: Path) -> None:
    layers = []
    for _ in range(2):
        layer = test_every_layer.create(name)
        test_every_layer.call(name, layer, test_every_layer.constants(name))
        layers.append(layer)
    if layers[0].variables:
        check(*layers, tmp_path)
    else:
        with pytest.raises(ValueError, match="at least one array"):
            tf.fingerprint(layers[0])


@pytest.mark.parametrize("name", test_every_optimizer.NAMES)
def test_fingerprint_of_an_optimizer(name: str, tmp_path: Path) -> None:
    options = {"use_ema": True, "gradient_accumulation_steps": 2}
    check(*(test_every_optimizer.train(name, count, options)[0] for count in (1, 2)), tmp_path)


@pytest.mark.parametrize("name", public_classes(metrics, metrics.Metric))
def test_fingerprint_of_a_metric(name: str, tmp_path: Path) -> None:
    one, twin = (getattr(metrics, name)(**ARGUMENTS.get(name, {})) for _ in range(2))
    if one.variables:
        check(one, twin, tmp_path)
