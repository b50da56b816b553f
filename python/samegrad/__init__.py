"""samegrad: one model, any number of replicas, the bits of one device."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from samegrad._api import *  # noqa: F403

_PACKAGES = frozenset({
    "autograph", "cli", "config", "data", "debugging", "distribute", "errors", "experimental",
    "image", "keras", "linalg", "math", "nest", "nn", "random", "testing", "train",
})  # fmt: skip


def __getattr__(name: str) -> Any:
    """Loads what is asked for: `samegrad.testing` must not bring the engine along."""
    if name in _PACKAGES:
        return importlib.import_module(f"samegrad.{name}")
    if name.startswith("_") and name not in ("__all__", "__version__"):
        raise AttributeError(f"module 'samegrad' has no attribute {name!r}")
    value = getattr(importlib.import_module("samegrad._api"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(importlib.import_module("samegrad._api").__all__)
