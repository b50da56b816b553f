"""Describe a dataset in words that processes compare: sources, transformations, arguments, seeds.

Two datasets of the same description have the same elements in the same order, as far as this can
be known: functions are not compared, and of large arrays only a sample is read.
"""

from __future__ import annotations

import hashlib
import os
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from samegrad._tensor.ragged import RaggedTensor
from samegrad._tensor.tensor import Tensor
from samegrad._tensor.text import Text
from samegrad.data import _csv as csv
from samegrad.data import _drawn_nodes as drawn
from samegrad.data import _function_nodes as functions
from samegrad.data import _group_nodes as groups
from samegrad.data import _keeping as keeping
from samegrad.data import _nested_nodes as nested
from samegrad.data import _nodes as nodes
from samegrad.data import _ragged_rows as ragged
from samegrad.data import _state_nodes as states
from samegrad.data._random import process_seed

_WHOLE_BYTES = 64 << 20  # an array up to this size is hashed whole, a larger one in blocks
_BLOCK_BYTES = 64 << 10
_MOST_STRINGS = 1 << 16
_MOST_FILES = 64  # whose sizes are read: on a network each may take a millisecond

# The public name of each transformation, and which of its attributes decide what its elements are.
# Without a name: elements and their order stay as they are.
TRANSFORMATIONS: dict[type[nodes.Node], tuple[str, tuple[str, ...]]] = {
    csv.RowsNode: ("CsvDataset", ()),
    drawn.CountedNode: ("", ()),
    drawn.IgnoreErrorsNode: ("ignore_errors", ()),
    drawn.RandomNode: ("random", ("_seed", "_each_epoch")),
    drawn.ResampleNode: ("rejection_resample", ("_target", "_initial", "_seed")),
    functions.CacheNode: ("", ()),
    functions.ConcatenateNode: ("concatenate", ()),
    functions.FilterNode: ("filter", ()),
    functions.MapNode: ("map", ()),
    functions.PrefetchNode: ("", ()),
    functions.UnbatchNode: ("unbatch", ()),
    groups.BucketNode: ("bucket_by_sequence_length", ("_boundaries", "_sizes", "_drop")),
    groups.GroupByWindowNode: ("group_by_window", ()),
    keeping.FileCacheNode: ("", ()),
    keeping.StoredNode: ("load", ("_path", "_count")),
    nested.InterleaveNode: ("interleave", ("_cycle", "_block")),
    nested.WindowsNode: ("window", ("_size", "_shift", "_stride", "_drop")),
    nodes.BatchNode: ("batch", ("_size", "_drop")),
    nodes.RangeNode: ("range", ("_first", "_step", "_count")),
    nodes.RepeatNode: ("repeat", ("_count",)),
    nodes.ShardNode: ("shard", ("_count", "_index")),
    nodes.ShuffleNode: ("shuffle", ("_buffer_size", "_seed", "_reshuffle")),
    nodes.SkipNode: ("skip", ("_count",)),
    nodes.SliceNode: ("from_tensor_slices", ("_tensors",)),
    nodes.TakeNode: ("take", ("_count",)),
    nodes.ZipNode: ("zip", ()),
    ragged.RaggedRowsNode: ("from_tensor_slices", ("_tensors",)),
    states.ChooseNode: ("choice between datasets", ("_weights", "_seed", "_stop")),
    states.RebatchNode: ("rebatch", ("_sizes", "_drop")),
    states.ScanNode: ("scan", ("_state",)),
    states.TakeWhileNode: ("take_while", ()),
    states.UniqueNode: ("unique", ()),
}
# They yield what only they know, or are made inside a step of a dataset.
UNKNOWN = (functions.GeneratorNode, nested.FileNode, nested.ElementsNode)


def description_of(root: nodes.Node) -> list[tuple[str, str]]:
    """Return names and values of what decides which elements a dataset has, and in which order.

    Args:
        root: The last transformation.

    Returns:
        A pair for each transformation, the sources first, and one for seeds that the process
        gives; nothing where a generator is among the sources: what it yields cannot be known.

    Example:
        >>> import samegrad as tf
        >>> for name, value in description_of(tf.data.Dataset.range(9).take(4).batch(2)._node):
        ...     print(name, value)
        transformation 1 range(first=0, step=1, count=9)
        transformation 2 take(count=4)
        transformation 3 batch(size=2, drop=False)
    """
    found = list(root.walk())
    if any(isinstance(node, UNKNOWN) for node in found):
        return []
    named = ((*TRANSFORMATIONS[type(node)], node) for node in found)
    values = [f"{name}({_arguments(node, names)})" for name, names, node in named if name]
    pairs = [(f"transformation {number}", value) for number, value in enumerate(values, 1)]
    if any(node.ordinal is not None and getattr(node, "_seed", 0) is None for node in found):
        first = next(node.ordinal for node in found if node.ordinal is not None)
        seeds = f"{process_seed()} of tf.random.set_seed, after {first} other random operations"
        pairs.append(("seed", seeds))
    return pairs


def order_depends_on_epoch(root: nodes.Node) -> bool:
    """Return whether the iterators of a dataset, whose sources are known, give different orders.

    Example:
        >>> import samegrad as tf
        >>> numbers = tf.data.Dataset.range(9)
        >>> [order_depends_on_epoch(data._node) for data in (numbers, numbers.shuffle(9))]
        [False, True]
    """
    found = list(root.walk())
    return any(hasattr(node, "_seed") for node in found) and not any(
        isinstance(node, UNKNOWN) for node in found
    )


def _arguments(node: nodes.Node, names: tuple[str, ...]) -> str:
    return ", ".join(f"{name[1:]}={content_of(getattr(node, name))}" for name in names)


def content_of(value: Any) -> str:
    """Return what a value holds, the same in all processes: arrays and strings by a hash.

    Example:
        >>> content_of({"x": (1, "a"), "f": len})
        "{'x': (1, 'a'), 'f': builtin_function_or_method}"
    """
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key!r}: {content_of(part)}" for key, part in value.items()) + "}"
    if isinstance(value, Text):
        return _content_of_text(value)
    if isinstance(value, RaggedTensor):
        parts = [value.flat_values, *value.nested_row_splits]
        return f"ragged ({', '.join(map(content_of, parts))})"
    if isinstance(value, tuple | list):
        return f"({', '.join(map(content_of, value))})"
    if isinstance(value, str) and os.path.isfile(value):
        return f"{os.path.basename(value)!r} of {os.path.getsize(value)} bytes"
    if value is None or isinstance(value, bool | int | float | str | bytes):
        return repr(value)
    if isinstance(value, Tensor):
        return _content_of_array(value._view())
    array = np.asarray(value) if hasattr(value, "__array__") else None
    if array is None or array.dtype.hasobject:
        return type(value).__name__
    return _content_of_array(array)


def _content_of_array(array: np.ndarray[Any, Any]) -> str:
    rows = array
    if array.nbytes > _WHOLE_BYTES and not array.flags.c_contiguous:
        rows = array[:: 1 + array.nbytes // _WHOLE_BYTES]  # which are copied
    data = np.ascontiguousarray(rows).reshape(-1).view(np.uint8)
    digest = hashlib.sha256()
    for block in _blocks(data):
        digest.update(zlib.crc32(block.data).to_bytes(4, "little"))
    return f"{array.dtype}{list(array.shape)} with hash {digest.hexdigest()[:12]}"


def _blocks(data: np.ndarray[Any, Any]) -> Iterator[np.ndarray[Any, Any]]:
    """Yield all of the bytes, or blocks at even distances where there are many."""
    if data.size <= _WHOLE_BYTES:
        yield data
        return
    count = _WHOLE_BYTES // _BLOCK_BYTES
    for number in range(count):
        begin = (data.size - _BLOCK_BYTES) * number // (count - 1)
        yield data[begin : begin + _BLOCK_BYTES]


def _content_of_text(value: Text) -> str:
    """Hash strings; of names of files without their folders, and with some sizes."""
    strings = value.encoded.reshape(-1)
    sample = [os.fsdecode(string) for string in _sample(strings, _MOST_FILES)]
    of_files = bool(sample) and os.path.isfile(sample[0])
    digest = hashlib.sha256()
    change: Callable[[bytes], bytes] = os.path.basename if of_files else bytes
    for string in map(change, _sample(strings, _MOST_STRINGS)):
        digest.update(len(string).to_bytes(8, "little") + string)
    if of_files:
        sizes = [os.path.getsize(path) if os.path.isfile(path) else -1 for path in sample]
        digest.update(repr(sizes).encode())
    kind = "files" if of_files else "strings"
    return f"{kind}{list(value.encoded.shape)} with hash {digest.hexdigest()[:12]}"


def _sample(strings: Any, most: int) -> list[bytes]:
    step = max(1, -(-len(strings) // most))
    return list(strings[::step])


__all__ = ["TRANSFORMATIONS", "UNKNOWN", "content_of", "description_of", "order_depends_on_epoch"]
