"""Resolvers of clusters: a program that looks for a TPU finds none and goes on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from samegrad._base.shown import shown
from samegrad._surface.boundary import guard
from samegrad._surface.missing_names import getattr_of


class TPUClusterResolver:
    """Raises ValueError, as TensorFlow does where there is no TPU.

    Raises:
        ValueError: Always.

    Example:
        >>> try:
        ...     tpu = TPUClusterResolver()
        ... except ValueError:
        ...     tpu = None
        >>> tpu is None
        True
    """

    def __init__(self, tpu: str | None = None, *more: Any, **named: Any) -> None:
        raise ValueError(
            f"[TPUClusterResolver] there is no TPU here: got {shown(tpu)}; use "
            "samegrad.distribute.MirroredStrategy(replicas=8)."
        )


__all__ = ["TPUClusterResolver"]

if not TYPE_CHECKING:
    __getattr__ = getattr_of(__name__)
guard(__name__)
