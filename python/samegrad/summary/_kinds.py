"""Summaries: numbers, histograms, images, strings, and other values as they are.

The form is TensorFlow 2's: a tensor, and the name of the plugin of TensorBoard that shows it.
"""

from __future__ import annotations

import io
from typing import Any

import numpy as np

from samegrad._base.shown import shown
from samegrad.summary._writer import (
    number_of,
    package,
    should_record_summaries,
    summary_scope,
    writer,
)

_Array = np.ndarray[Any, Any]
_TYPES = {
    "float32": "DT_FLOAT", "float64": "DT_DOUBLE", "int32": "DT_INT32", "int64": "DT_INT64",
    "bool": "DT_BOOL", "uint8": "DT_UINT8", "int8": "DT_INT8", "int16": "DT_INT16",
}  # fmt: skip


def scalar(name: str, data: Any, step: Any = None, description: str | None = None) -> bool:
    """Write a number.

    Args:
        name: Of the series.
        data: A number, which is stored as float32.
        step: Integer. None: the step of the context.
        description: Shown beside it.

    Returns:
        Whether it was written: there is a writer, and `record_if` lets it.

    Raises:
        ValueError: data is not a single number; there is no step.
        RuntimeError: Inside `run` of several replicas.

    Example:
        >>> scalar("loss", 0.5, step=1)  # no writer
        False
    """
    if not should_record_summaries():
        return False
    array = np.asarray(data)
    if array.ndim:
        raise ValueError(f"[tf.summary.scalar] data must be one number: got {array.shape}.")
    return _written(name, array.astype(np.float32), step, "scalars", description)


def histogram(
    name: str,
    data: Any,
    step: Any = None,
    buckets: int | None = None,
    description: str | None = None,
) -> bool:
    """Write a histogram of numbers.

    Args:
        name: Of the series.
        data: Any shape.
        step: Integer. None: the step of the context.
        buckets: Number of buckets of equal width, from the least of the finite numbers to the
            greatest. None: 30.
        description: Shown beside it.

    Returns:
        Whether it was written.

    Raises:
        ValueError: There are less than one bucket; there is no step.
        RuntimeError: Inside `run` of several replicas.

    Example:
        >>> histogram("weights", [1.0, 2.0], step=1)  # no writer
        False
    """
    if not should_record_summaries():
        return False
    buckets = 30 if buckets is None else buckets
    if buckets < 1:
        raise ValueError(f"[tf.summary.histogram] buckets must be at least 1: got {buckets}.")
    values = np.asarray(data).astype(np.float64).ravel()
    values = values[np.isfinite(values)]
    if not len(values):
        rows = np.zeros((0, 3))
    elif values.min() == values.max():  # one bucket around it, as TensorBoard's own writer has
        rows = np.array([[values[0] - 0.5, values[0] + 0.5, len(values)]])
    else:
        counts, edges = np.histogram(values, buckets)
        rows = np.stack([edges[:-1], edges[1:], counts], axis=1)
    return _written(name, rows, step, "histograms", description)


def image(
    name: str,
    data: Any,
    step: Any = None,
    max_outputs: int = 3,
    description: str | None = None,
) -> bool:
    """Write images.

    Args:
        name: Of the series.
        data: Shape (images, height, width, channels), of 1 to 4 channels: floats from 0 to 1, which
            are clipped to it, or uint8.
        step: Integer. None: the step of the context.
        max_outputs: How many of them are written at most.
        description: Shown beside them.

    Returns:
        Whether they were written.

    Raises:
        ValueError: The shape is another; there is no step.
        RuntimeError: Inside `run` of several replicas.

    Example:
        >>> image("weights", [[[[0.0], [1.0]]]], step=1)  # no writer
        False
    """
    if not should_record_summaries():
        return False
    array = np.asarray(data)
    if array.ndim != 4 or not 1 <= array.shape[-1] <= 4 or 0 in array.shape[1:]:
        raise ValueError(
            "[tf.summary.image] data must have the shape (images, height, width, channels), of 1 "
            f"to 4 channels: got {array.shape}; reshape them."
        )
    if array.dtype.kind not in "ub":  # as tf.image.convert_image_dtype(..., saturate=True)
        scaled = np.nan_to_num(np.clip(array.astype(np.float64), 0.0, 1.0))
        array = (scaled * 255.5).astype(np.uint8)
    parts = [_png(part) for part in array.astype(np.uint8)[:max_outputs]]
    height, width = array.shape[1:3]
    texts = [str(width).encode(), str(height).encode(), *parts]
    return _written(name, texts, step, "images", description)


def text(name: str, data: Any, step: Any = None, description: str | None = None) -> bool:
    """Write a string, which TensorBoard renders as Markdown.

    Args:
        name: Of the series.
        data: A str, or an array or nested lists of them.
        step: Integer. None: the step of the context.
        description: Shown beside it.

    Returns:
        Whether it was written.

    Raises:
        ValueError: There is no step.
        TypeError: data is not a string.
        RuntimeError: Inside `run` of several replicas.

    Example:
        >>> text("note", "begun", step=1)  # no writer
        False
    """
    if not should_record_summaries():
        return False
    array = np.asarray(data, dtype=object)
    if not all(isinstance(part, str | bytes) for part in array.ravel()):
        raise TypeError(f"[tf.summary.text] data must be strings: got {shown(data)}; use str().")
    return _written(name, array, step, "text", description)


def write(
    tag: str, tensor: Any, step: Any = None, metadata: Any = None, name: str | None = None
) -> bool:
    """Write a value as it is, for a plugin of TensorBoard.

    Args:
        tag: Its whole name.
        tensor: An array, or a str.
        step: Integer. None: the step of the context.
        metadata: A `SummaryMetadata` of tensorboardX, which names the plugin.
        name: Not used.

    Returns:
        Whether it was written.

    Raises:
        ValueError: There is no step.
        RuntimeError: Inside `run` of several replicas.

    Example:
        >>> write("tag", 1.0, step=1)  # no writer
        False
    """
    if not should_record_summaries():
        return False
    known = np.asarray(tensor, object if isinstance(tensor, str | bytes) else None)
    protos = package().proto
    value = protos.summary_pb2.Summary.Value(tag=tag, tensor=_tensor(known), metadata=metadata)
    event = protos.event_pb2.Event(step=number_of(step))
    event.summary.value.append(value)
    writer().add(event)
    return True


def _written(name: str, data: Any, step: Any, plugin: str, description: str | None) -> bool:
    made = package().proto.summary_pb2.SummaryMetadata(summary_description=description or "")
    made.plugin_data.plugin_name = plugin
    array = np.array(data, object) if isinstance(data, list) else data
    with summary_scope(name) as (tag, _):
        return write(tag, array, step, made)


def _tensor(array: _Array) -> Any:
    protos = package().proto
    made = protos.tensor_pb2.TensorProto()
    for size in array.shape:
        made.tensor_shape.dim.add().size = size
    if array.dtype.kind in "OSU":
        made.dtype = protos.types_pb2.DT_STRING
        parts = array.ravel().tolist()
        made.string_val.extend(p if isinstance(p, bytes) else str(p).encode() for p in parts)
        return made
    if array.dtype.name not in _TYPES:
        array = array.astype(np.float32 if array.dtype.kind not in "iu" else np.int64)
    made.dtype = getattr(protos.types_pb2, _TYPES[array.dtype.name])
    made.tensor_content = array.tobytes()
    return made


def _png(array: _Array) -> bytes:
    try:
        from PIL import Image
    except ImportError as error:
        raise ImportError(
            f"[tf.summary.image] images are encoded by the package pillow: got {error}; pip "
            "install 'samegrad[tensorboard]'."
        ) from error
    output = io.BytesIO()
    Image.fromarray(array[..., 0] if array.shape[-1] == 1 else array).save(output, format="PNG")
    return output.getvalue()
