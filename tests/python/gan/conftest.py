"""Helpers of the folder above, and layers in float64."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import samegrad as tf

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))


@pytest.fixture
def float64() -> Iterator[None]:
    """Layers, losses and metrics compute in float64."""
    tf.keras.config.set_floatx("float64")
    yield
    tf.keras.config.set_floatx("float32")
