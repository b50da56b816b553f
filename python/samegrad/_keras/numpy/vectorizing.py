"""Functions of single elements as functions of tensors."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from keras.src.backend.common.backend_utils import vectorize_impl

import samegrad as tf


def _mapped(fn: Callable[..., Any], in_axes: Any = 0) -> Callable[..., Any]:
    """The function of each row of those arguments whose axis is 0; others are the same for all."""

    @functools.wraps(fn)
    def wrapped(*args: Any) -> Any:
        axes = in_axes if isinstance(in_axes, tuple) else (in_axes,) * len(args)

        def of_rows(rows: tuple[Any, ...]) -> Any:
            row = iter(rows)
            parts = [x if axis is None else next(row) for x, axis in zip(args, axes, strict=True)]
            return fn(*parts)

        mapped = [x for x, axis in zip(args, axes, strict=True) if axis is not None]
        return tf.vectorized_map(of_rows, tuple(mapped))

    return wrapped


def vectorize(pyfunc: Callable[..., Any], *, excluded: Any = None, signature: Any = None) -> Any:
    """A function that takes tensors and computes `pyfunc` of their elements.

    Args:
        pyfunc: A function of numbers, or of the axes that `signature` names.
        excluded: Arguments that are passed on as they are.
        signature: As NumPy's, such as "(n),(n)->()".
    """
    return vectorize_impl(pyfunc, _mapped, excluded=excluded, signature=signature)
