"""Every layer of the contract suite in onnxruntime: no less exact than four times our own error."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from layer_cases import CASES, class_of
from onnx_runs import error_ratio, flat_arrays, results_of, session_of

import samegrad as tf

# With another type of their own, or a product of float32 and float64.
NOT_WIDE = (
    "Discretization", "Dense, in 16 bits", "MelSpectrogram", "RandAugment", "RandomRotation",
)  # fmt: skip


def layer_of(name: str, floatx: str) -> Any:
    tf.keras.utils.set_random_seed(5)
    tf.keras.config.set_floatx(floatx)
    tf.keras.config.set_dtype_policy(floatx)
    return class_of(name)(**CASES[name].made())


def called(name: str, layer: Any, parts: Any) -> Any:
    inference = {"training": False} if layer._call_has_training_arg else {}
    return layer(*CASES[name].enter(*parts), **CASES[name].options, **inference)


def exact_results(name: str, weights: list[Any]) -> list[np.ndarray]:
    """Results of the layer in float64, with the same weights."""
    try:
        layer = layer_of(name, "float64")
        wide = [tf.constant(x.astype(x.dtype.kind + "8")) for x in CASES[name].inputs]
        called(name, layer, wide)
        layer.set_weights(
            [np.asarray(w, np.float64) if w.dtype.kind == "f" else w for w in weights]
        )
        return flat_arrays(called(name, layer, wide))
    finally:
        tf.keras.config.set_floatx("float32")
        tf.keras.config.set_dtype_policy("float32")


def readable(results: Any) -> Any:
    """Results in dtypes that onnxruntime shows to Python."""
    return tf.nest.map_structure(
        lambda part: tf.cast(part, "float32") if part.dtype == tf.bfloat16 else part, results
    )


def exported(name: str, layer: Any) -> Any:
    def serve(*parts: Any) -> Any:
        return readable(called(name, layer, parts))

    specs = [tf.TensorSpec([None, *x.shape[1:]], x.dtype) for x in CASES[name].inputs]
    return tf.export.to_onnx(serve, [*specs])


@pytest.mark.parametrize("name", CASES)
def test_a_layer_runs_in_onnxruntime(name: str) -> None:
    layer = layer_of(name, "float32")
    own = flat_arrays(readable(called(name, layer, [tf.constant(x) for x in CASES[name].inputs])))
    session = session_of(exported(name, layer))
    exact = own if name in NOT_WIDE else exact_results(name, layer.get_weights())
    assert error_ratio(results_of(session, CASES[name].inputs), own, exact) <= 1
    few = [x[:5] for x in CASES[name].inputs]
    assert [one.shape[1:] for one in results_of(session, few)] == [one.shape[1:] for one in own]
