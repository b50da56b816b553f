"""Which layers are being called: what an inner layer takes over from the outer one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from samegrad import _core
from samegrad._context import changed
from samegrad._examples import static_shape
from samegrad._nest import map_structure
from samegrad._tensor import Tensor, TensorShape, constant


def entered(training: bool | None) -> _core.Guard:
    """Inside, layers that are called take `training` over.

    Example:
        >>> from samegrad._context import current
        >>> with entered(True):
        ...     current().training
        True
    """
    return changed(in_layer=True, training=training)


def shape_of(value: Any) -> Any:
    """The shapes of nested tensors, None for the axis of the examples.

    Example:
        >>> shape_of(constant([[1.0, 2.0]]))
        (1, 2)
    """
    return map_structure(lambda t: TensorShape(static_shape(t)), value)


def is_shape(value: Any) -> bool:
    """Whether the value is one shape, rather than a list of shapes.

    Example:
        >>> is_shape((None, 28, 28, 1)), is_shape([(None, 2), (None, 3)])
        (True, False)
    """
    return isinstance(value, list | tuple) and all(
        size is None or isinstance(size, int | np.integer) for size in value
    )


def traced_on(who: str, shape: Any, dtype: str, function: Callable[[Any], Any]) -> Any:
    """Calls a function on tensors of given shapes in a trace that is thrown away.

    Args:
        who: Who wants them, for messages.
        shape: (None, sizes...) or a nested structure of such shapes.
        dtype: Of the tensors.
        function: Gets a tensor for each shape, with examples on axis 0. Operations on them compute
            nothing.

    Returns:
        What the function returns.

    Raises:
        ValueError: A size other than the first is unknown.

    Example:
        >>> traced_on("doc", (None, 3), "float32", static_shape)
        (None, 3)
    """
    trace = _core.Trace(1)
    with _core.tracing_into(trace, {"requirements": {}, "batches": []}):
        return function(_make(who, trace, shape, dtype))


def _make(who: str, trace: Any, shape: Any, dtype: str) -> Any:
    if isinstance(shape, dict):
        return {key: _make(who, trace, part, dtype) for key, part in shape.items()}
    if not is_shape(shape):
        return [_make(who, trace, part, dtype) for part in shape]
    if not shape or any(size is None for size in shape[1:]):
        raise ValueError(
            f"[{who}] all sizes but that of the examples must be known: got input shape "
            f"{tuple(shape)}."
        )
    return trace.argument([_example(tuple(int(size) for size in shape[1:]), dtype)])


def _example(sizes: tuple[int, ...], dtype: str) -> Tensor:
    return constant(np.zeros((1, *sizes), dtype))._as_examples(0, 1)
