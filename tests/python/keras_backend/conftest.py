"""Keras on samegrad, registered before any test imports it; helpers of the folder above."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from samegrad._keras import register

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
keras = register.load()


@pytest.fixture
def float64() -> Iterator[None]:
    """Layers, losses and metrics compute in float64."""
    keras.config.set_floatx("float64")
    keras.config.set_dtype_policy("float64")
    yield
    keras.config.set_floatx("float32")
    keras.config.set_dtype_policy("float32")
