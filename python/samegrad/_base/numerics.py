"""Versions of the numerics: builds with equal versions give equal bits for one program."""

from __future__ import annotations

from samegrad import _core


def numerics() -> dict[str, int]:
    """Return the version of the reduction order and that of the functions."""
    return {
        "reduction_order": _core.reduction_order(),
        "function_version": _core.function_version(),
    }
