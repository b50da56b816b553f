"""Names that programs written for TensorFlow use."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from samegrad._base.enums import IntChoice
from samegrad._base.shown import shown
from samegrad._surface.boundary import guard
from samegrad.data._csv import CsvDataset, make_csv_dataset
from samegrad.data._nodes import INFINITE, UNKNOWN
from samegrad.data._structure import Structure

AUTOTUNE = -1
INFINITE_CARDINALITY = INFINITE
UNKNOWN_CARDINALITY = UNKNOWN


class AutoShardPolicy(IntChoice):
    """How TensorFlow deals out files between workers; accepted and not used.

    Example:
        >>> AutoShardPolicy.DATA.name
        'DATA'
    """

    OFF = -1
    AUTO = 0
    FILE = 1
    DATA = 2
    HINT = 3


def bucket_by_sequence_length(
    element_length_func: Callable[..., Any],
    bucket_boundaries: Sequence[int],
    bucket_batch_sizes: Sequence[int],
    padded_shapes: Structure = None,
    padding_values: Structure = None,
    pad_to_bucket_boundary: bool = False,
    no_padding: bool = False,
    drop_remainder: bool = False,
) -> Callable[[Any], Any]:
    """A function for `Dataset.apply`: `Dataset.bucket_by_sequence_length`, as older programs write.

    Args:
        element_length_func: As there, and so are all others.
        bucket_boundaries: Upper bounds of the lengths.
        bucket_batch_sizes: Examples in a batch of each bucket.
        padded_shapes: Sizes to pad to.
        padding_values: What to pad with.
        pad_to_bucket_boundary: Whether unknown sizes become the longest of the bucket.
        no_padding: The elements of a batch have one shape.
        drop_remainder: Whether batches that are not full are left out.

    Returns:
        A function from datasets to datasets; it raises what the method raises.

    Example:
        >>> import samegrad as tf
        >>> buckets = tf.data.experimental.bucket_by_sequence_length(
        ...     lambda row: tf.shape(row)[0], [3], [2, 2])
        >>> batches = tf.data.Dataset.from_tensor_slices([[1, 2], [3, 4]]).apply(buckets)
        >>> [batch.numpy().tolist() for batch in batches]
        [[[1, 2], [3, 4]]]
    """
    return lambda dataset: dataset.bucket_by_sequence_length(
        element_length_func, bucket_boundaries, bucket_batch_sizes, padded_shapes, padding_values,
        pad_to_bucket_boundary, no_padding, drop_remainder,
    )  # fmt: skip


def group_by_window(
    key_func: Callable[..., Any],
    reduce_func: Callable[[Any, Any], Any],
    window_size: int | None = None,
    window_size_func: Callable[[Any], Any] | None = None,
) -> Callable[[Any], Any]:
    """A function for `Dataset.apply`: `Dataset.group_by_window`, as older programs write.

    Args:
        key_func: As there, and so are all others.
        reduce_func: Gets a key and the dataset of a window; returns a dataset.
        window_size: Elements in a window.
        window_size_func: Instead: gets a key, returns the size of its windows.

    Returns:
        A function from datasets to datasets; it raises what the method raises.

    Example:
        >>> import samegrad as tf
        >>> windows = tf.data.experimental.group_by_window(
        ...     lambda x: x % 2, lambda key, window: window.batch(2), window_size=2)
        >>> [batch.numpy().tolist() for batch in tf.data.Dataset.range(4).apply(windows)]
        [[0, 2], [1, 3]]
    """
    return lambda dataset: dataset.group_by_window(
        key_func, reduce_func, window_size, window_size_func
    )


def cardinality(dataset: Any) -> Any:
    """How many elements a dataset has: `Dataset.cardinality`, as older programs write.

    Example:
        >>> import samegrad as tf
        >>> int(tf.data.experimental.cardinality(tf.data.Dataset.range(3)))
        3
    """
    if not hasattr(dataset, "cardinality"):
        raise TypeError(f"[cardinality] a Dataset is needed: got {shown(dataset)}; make one.")
    return dataset.cardinality()


__all__ = [
    "AUTOTUNE", "INFINITE_CARDINALITY", "UNKNOWN_CARDINALITY", "AutoShardPolicy",
    "CsvDataset", "bucket_by_sequence_length", "cardinality", "group_by_window", "make_csv_dataset",
]  # fmt: skip

guard(__name__)
