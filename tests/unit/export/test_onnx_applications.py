"""Applications of Keras in onnxruntime, with random weights at small sizes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx_runs import error_ratio, flat_arrays, results_of, session_of

import samegrad as tf

APPLICATIONS: dict[str, dict[str, Any]] = {
    "MobileNet": {"alpha": 0.25},
    "MobileNetV2": {"alpha": 0.35},
    "MobileNetV3Small": {"alpha": 0.75},
    "ResNet50": {},
    "ResNet50V2": {},
    "DenseNet121": {},
    "EfficientNetB0": {},
    "EfficientNetV2B0": {},
    "NASNetMobile": {},
    "Xception": {"side": 71},
    "InceptionV3": {"side": 75},
    "ConvNeXtTiny": {},
    "VGG16": {"include_top": False, "pooling": "avg"},
}


def model_of(name: str, floatx: str) -> Any:
    tf.keras.utils.set_random_seed(3)
    tf.keras.config.set_floatx(floatx)
    tf.keras.config.set_dtype_policy(floatx)
    options = {"side": 32, "include_top": True, **APPLICATIONS[name]}
    side = options.pop("side")
    if options["include_top"]:
        options.update(classes=10, classifier_activation=None)
    create = getattr(tf.keras.applications, name)
    return create(weights=None, input_shape=(side, side, 3), **options)


@pytest.mark.parametrize("name", APPLICATIONS)
def test_an_application_runs_in_onnxruntime(name: str, tmp_path: Path) -> None:
    model = model_of(name, "float32")
    rng = np.random.default_rng(0)
    weights = [
        w * rng.uniform(0.5, 1.5, w.shape).astype(w.dtype) + 0.01 for w in model.get_weights()
    ]
    model.set_weights(weights)
    images = rng.uniform(0, 255, (2, *model.input_shape[1:])).astype(np.float32)
    own = flat_arrays(model(images))
    model.export(tmp_path / "m.onnx", format="onnx", verbose=False)
    found = results_of(session_of(str(tmp_path / "m.onnx")), [images])
    try:
        exact = model_of(name, "float64")
        exact.set_weights(weights)
        right = flat_arrays(exact(images.astype(np.float64)))
    finally:
        tf.keras.config.set_floatx("float32")
        tf.keras.config.set_dtype_policy("float32")
    assert error_ratio(found, own, right) <= 1
