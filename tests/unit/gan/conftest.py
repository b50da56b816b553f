"""Compute in float64."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import samegrad as tf


@pytest.fixture
def float64() -> Iterator[None]:
    """Layers, losses and metrics compute in float64."""
    tf.keras.config.set_floatx("float64")
    yield
    tf.keras.config.set_floatx("float32")
