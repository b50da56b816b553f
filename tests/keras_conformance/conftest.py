"""Keras on samegrad, registered before any test imports it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from samegrad._keras import register

keras = register.load()


@pytest.fixture
def float64() -> Iterator[None]:
    """Layers, losses and metrics compute in float64."""
    keras.config.set_floatx("float64")
    keras.config.set_dtype_policy("float64")
    yield
    keras.config.set_floatx("float32")
    keras.config.set_dtype_policy("float32")
