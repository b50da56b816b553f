"""TensorFlow's switches of its graph optimizer: remembered, and without effect on samegrad's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from samegrad._base.shown import shown
from samegrad._surface.boundary import guard as _guard

_options: dict[str, Any] = {}
_jit = False


def set_experimental_options(options: Mapping[str, Any]) -> None:
    """Store options of TensorFlow's graph optimizer, for `get_experimental_options`.

    They choose how TensorFlow computes, not what. samegrad's passes always run and keep the bits,
    so that nothing changes.

    Args:
        options: Names and values, beside those that were set before.

    Raises:
        TypeError: options is not a dict with strings as keys.

    Example:
        >>> import samegrad as tf
        >>> tf.config.optimizer.set_experimental_options({"constant_folding": True})
        >>> tf.config.optimizer.get_experimental_options()["constant_folding"]
        True
    """
    if not isinstance(options, Mapping) or not all(isinstance(key, str) for key in options):
        raise TypeError(
            "[config.optimizer.set_experimental_options] options must be a dict with strings as "
            f"keys: got {shown(options)}; pass {{'constant_folding': True}}."
        )
    _options.update(options)


def get_experimental_options() -> dict[str, Any]:
    """Return the options that `set_experimental_options` has set."""
    return dict(_options)


def set_jit(enabled: bool | str) -> None:
    """Store the setting of XLA compilation; samegrad always compiles functions.

    Args:
        enabled: True, False or "autoclustering".

    Raises:
        ValueError: It is something else.

    Example:
        >>> import samegrad as tf
        >>> tf.config.optimizer.set_jit(True)
        >>> tf.config.optimizer.get_jit()
        'autoclustering'
    """
    global _jit
    if not isinstance(enabled, bool) and enabled != "autoclustering":
        raise ValueError(
            "[config.optimizer.set_jit] enabled must be True, False or 'autoclustering': got "
            f"{shown(enabled)}."
        )
    _jit = bool(enabled)


def get_jit() -> str:
    """Return 'autoclustering' where `set_jit` was given True, otherwise ''."""
    return "autoclustering" if _jit else ""


__all__ = ["get_experimental_options", "get_jit", "set_experimental_options", "set_jit"]
_guard(__name__)
