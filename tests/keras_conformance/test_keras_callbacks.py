"""Keras's callbacks give what they give on TensorFlow, on any number of replicas."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import callback_programs
import pytest

import samegrad as tf

keras = tf.keras
RECORDED = json.loads(Path(__file__).with_name("keras_callbacks.json").read_text())
TOLERANCE = {"float32": 1e-6, "float64": 1e-12}


def compare(found: Any, recorded: Any, tolerance: float, where: str) -> None:
    if isinstance(recorded, dict):
        assert set(found) == set(recorded), where
        for name in recorded:
            compare(found[name], recorded[name], tolerance, f"{where} {name}")
    elif isinstance(recorded, list):
        assert len(found) == len(recorded), where
        for number, pair in enumerate(zip(found, recorded, strict=True)):
            compare(*pair, tolerance, f"{where}[{number}]")
    elif isinstance(recorded, float):
        assert found == pytest.approx(recorded, rel=tolerance, abs=tolerance), where
    else:
        assert found == recorded, where


@pytest.mark.parametrize("replicas", [1, 2, 3])
@pytest.mark.parametrize("kind", ["float32", "float64"])
@pytest.mark.parametrize("name", callback_programs.PROGRAMS)
def test_a_callback_gives_what_it_gives_on_tensorflow(
    name: str, kind: str, replicas: int, tmp_path: Path
) -> None:
    recorded = RECORDED[f"{name} {kind}"]
    assert recorded
    with tf.distribute.MirroredStrategy(replicas=replicas).scope():
        found = callback_programs.run(keras, name, kind, tmp_path)
    compare(json.loads(json.dumps(found)), recorded, TOLERANCE[kind], name)
