"""Calls of loss and metric functions, with a warning where labels broadcast to predictions."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from samegrad._base.location import warn
from samegrad._base.shown import shown
from samegrad._context.user_code import converted


def compared(function: Callable[..., Any], y_true: Any, y_pred: Any, **options: Any) -> Any:
    """Return what a function makes of labels and predictions; warn of (n,) against (n, 1).

    Example:
        >>> import numpy as np
        >>> compared(np.subtract, np.ones(2), np.zeros(2))
        array([1., 1.])
    """
    try:
        values = converted(function)(y_true, y_pred, **options)
    except Exception as error:
        error.add_note(f"[{_name_of(function)}] called with {_shapes_of(y_true, y_pred)}.")
        raise
    if getattr(values, "ndim", 0) == 2 and values.shape[1] != 1 and _meet(y_true, y_pred):
        narrow, one = ("labels", y_true) if y_true.ndim == 1 else ("predictions", y_pred)
        if values.shape[1] == one.shape[0]:  # not columns that the function made
            labels, predictions, both = (shape_text(x.shape) for x in (y_true, y_pred, values))
            warn(
                f"[{_name_of(function)}] labels and predictions must have one shape: got {labels} "
                f"and {predictions}, which broadcast to {both}; pass {narrow}[:, None]."
            )
    return values


def _name_of(function: Callable[..., Any]) -> str:
    """Return the name of a loss or metric, given its function or method."""
    name = getattr(getattr(function, "__self__", function), "name", None)
    return str(name or getattr(function, "__name__", "loss"))


def _shapes_of(y_true: Any, y_pred: Any) -> str:
    labels, predictions = (
        shape_text(x.shape) if hasattr(x, "shape") else shown(x) for x in (y_true, y_pred)
    )
    return f"labels of shape {labels} and predictions of shape {predictions}"


def _meet(one: Any, other: Any) -> bool:
    """Tell if one has the shape (n,) and the other (n, 1)."""
    ranks = [getattr(x, "ndim", 0) for x in (one, other)]
    if sorted(ranks) != [1, 2]:
        return False
    wide = one if ranks[0] == 2 else other
    return type(wide.shape[1]) is int and wide.shape[1] == 1


def shape_text(sizes: Iterable[Any]) -> str:
    """Return a shape as messages show it.

    Example:
        >>> shape_text((None, 3)), shape_text([4])
        ('(?, 3)', '(4,)')
    """
    texts = [str(size) if type(size) is int else "?" for size in sizes]
    return f"({', '.join(texts)}{',' * (len(texts) == 1)})"
