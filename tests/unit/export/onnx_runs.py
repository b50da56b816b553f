"""Exported models in onnxruntime, against our own float32 and float64."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import samegrad as tf

onnx = pytest.importorskip("onnx", reason="the extra samegrad[onnx] is not installed")
onnxruntime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")

# Errors of exports may be so many times ours, or this part of the largest element.
FACTOR, FLOOR = 4.0, 2e-6


def session_of(model: Any) -> Any:
    """A checked model, ready to run on one thread."""
    source = model
    if not isinstance(model, str):
        onnx.checker.check_model(model, full_check=True)
        source = model.SerializeToString()
    else:
        onnx.checker.check_model(model)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])


def results_of(session: Any, inputs: Sequence[Any]) -> list[np.ndarray]:
    """The outputs of a session for inputs in the order of its signature."""
    names = [one.name for one in session.get_inputs()]
    return session.run(None, dict(zip(names, map(np.asarray, inputs), strict=True)))


def flat_arrays(structure: Any) -> list[np.ndarray]:
    return [np.asarray(part.numpy()) for part in tf.nest.flatten(structure)]


def error_ratio(exported: Any, own: Any, exact: Any) -> float:
    """The largest error of an export, as a part of what it may be."""
    worst = 0.0
    for found, ours, right in zip(exported, own, exact, strict=True):
        assert found.shape == ours.shape == right.shape
        right = right.astype(np.float64)
        if not np.issubdtype(ours.dtype, np.floating):
            assert np.array_equal(found, ours)
            continue
        assert found.dtype == ours.dtype
        finite = np.isfinite(right)
        assert np.array_equal(np.isfinite(found), finite)
        found, ours, right = found[finite], ours[finite], right[finite]
        scale = np.max(np.abs(right), initial=0.0)
        allowed = max(FACTOR * np.max(np.abs(ours - right), initial=0.0), FLOOR * scale, 1e-30)
        worst = max(worst, float(np.max(np.abs(found - right), initial=0.0) / allowed))
    return worst
