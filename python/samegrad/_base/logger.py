"""The logger that programs set the level of."""

from __future__ import annotations

import logging


def get_logger() -> logging.Logger:
    """Return Python's logger of the name "samegrad".

    Example:
        >>> get_logger().name
        'samegrad'
    """
    return logging.getLogger("samegrad")


__all__ = ["get_logger"]
