"""Names that programs written for TensorFlow use."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from samegrad._base.shown import shown
from samegrad._surface.boundary import guard
from samegrad._tensor.sizes import whole
from samegrad.data._csv import CsvDataset, make_csv_dataset
from samegrad.data._dataset import Dataset
from samegrad.data._drawn_nodes import CountedNode
from samegrad.data._iterator import Optional
from samegrad.data._mapped import to_element
from samegrad.data._nodes import INFINITE, UNKNOWN
from samegrad.data._options import AutoShardPolicy, DistributeOptions
from samegrad.data._python_cursors import stack_elements
from samegrad.data._sql import SqlDataset
from samegrad.data._structure import Structure

AUTOTUNE = -1
INFINITE_CARDINALITY = INFINITE
UNKNOWN_CARDINALITY = UNKNOWN


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


def assert_cardinality(expected_cardinality: int) -> Callable[[Any], Any]:
    """A function for `Dataset.apply`: the same elements, of which somebody knows the number.

    Args:
        expected_cardinality: How many there are, or `INFINITE_CARDINALITY`.

    Returns:
        A function from datasets to datasets. While iterating, FailedPreconditionError if there are
        more or fewer.

    Example:
        >>> import samegrad as tf
        >>> odd = tf.data.Dataset.range(6).filter(lambda x: x % 2 == 1)
        >>> len(odd.apply(tf.data.experimental.assert_cardinality(3)))
        3
    """
    count = whole(expected_cardinality, "expected_cardinality is an integer")
    if count < INFINITE:
        raise ValueError(
            f"[assert_cardinality] the number of elements must be known: got {count}; leave it out."
        )
    return lambda dataset: dataset._then(CountedNode(dataset._node, count))


def ignore_errors(log_warning: bool = False) -> Callable[[Any], Any]:
    """A function for `Dataset.apply`: `Dataset.ignore_errors`, as older programs write.

    Example:
        >>> import samegrad as tf
        >>> words = tf.data.Dataset.from_tensor_slices(["1", "two"]).map(tf.strings.to_number)
        >>> [int(n) for n in words.apply(tf.data.experimental.ignore_errors())]
        [1]
    """
    return lambda dataset: dataset.ignore_errors(log_warning)


def rejection_resample(
    class_func: Callable[..., Any], target_dist: Any, initial_dist: Any = None,
    seed: int | None = None,
) -> Callable[[Any], Any]:  # fmt: skip
    """A function for `Dataset.apply`: `Dataset.rejection_resample`, as older programs write.

    Example:
        >>> import samegrad as tf
        >>> kept = tf.data.experimental.rejection_resample(lambda x: 0, [1.0])
        >>> [(int(c), int(x)) for c, x in tf.data.Dataset.range(2).apply(kept)]
        [(0, 0), (0, 1)]
    """
    return lambda dataset: dataset.rejection_resample(class_func, target_dist, initial_dist, seed)


def shuffle_and_repeat(
    buffer_size: int, count: int | None = None, seed: int | None = None
) -> Callable[[Any], Any]:
    """A function for `Dataset.apply`: `shuffle` and `repeat`, as older programs write.

    Example:
        >>> import samegrad as tf
        >>> twice = tf.data.experimental.shuffle_and_repeat(3, count=2)
        >>> sorted(int(n) for n in tf.data.Dataset.range(3).apply(twice))
        [0, 0, 1, 1, 2, 2]
    """
    return lambda dataset: dataset.shuffle(buffer_size, seed).repeat(count)


def map_and_batch(
    map_func: Callable[..., Any], batch_size: int, num_parallel_batches: int | None = None,
    drop_remainder: bool = False, num_parallel_calls: int | None = None,
) -> Callable[[Any], Any]:  # fmt: skip
    """A function for `Dataset.apply`: `map` and `batch`, as older programs write.

    Example:
        >>> import samegrad as tf
        >>> doubled = tf.data.experimental.map_and_batch(lambda x: 2 * x, 2)
        >>> [batch.numpy().tolist() for batch in tf.data.Dataset.range(3).apply(doubled)]
        [[0, 2], [4]]
    """
    calls = num_parallel_batches if num_parallel_calls is None else num_parallel_calls
    return lambda dataset: dataset.map(map_func, calls).batch(batch_size, drop_remainder)


def parallel_interleave(
    map_func: Callable[..., Any], cycle_length: int, block_length: int = 1, sloppy: bool = False,
    buffer_output_elements: int | None = None, prefetch_input_elements: int | None = None,
) -> Callable[[Any], Any]:  # fmt: skip
    """A function for `Dataset.apply`: `Dataset.interleave`, as older programs write.

    Args:
        map_func: Gets an element; returns a dataset.
        cycle_length: How many datasets are open.
        block_length: How many elements each gives in turn.
        sloppy: Ignored; the order is always the same.
        buffer_output_elements: Ignored.
        prefetch_input_elements: Ignored.

    Example:
        >>> import samegrad as tf
        >>> turns = tf.data.experimental.parallel_interleave(
        ...     lambda n: tf.data.Dataset.from_tensors(n).repeat(2), cycle_length=2)
        >>> [int(n) for n in tf.data.Dataset.range(2).apply(turns)]
        [0, 1, 0, 1]
    """
    return lambda dataset: dataset.interleave(map_func, cycle_length, block_length)


def dense_to_ragged_batch(
    batch_size: int, drop_remainder: bool = False, row_splits_dtype: Any = "int64"
) -> Callable[[Any], Any]:
    """A function for `Dataset.apply`: `Dataset.ragged_batch`, as older programs write.

    Example:
        >>> import samegrad as tf
        >>> rows = tf.data.Dataset.range(3).map(tf.range)
        >>> next(iter(rows.apply(tf.data.experimental.dense_to_ragged_batch(3)))).to_list()
        [[], [0], [0, 1]]
    """
    return lambda dataset: dataset.ragged_batch(batch_size, drop_remainder, row_splits_dtype)


def prefetch_to_device(device: Any, buffer_size: int | None = None) -> Callable[[Any], Any]:
    """A function for `Dataset.apply`: `Dataset.prefetch`; there are no devices but the CPUs.

    Example:
        >>> import samegrad as tf
        >>> ahead = tf.data.experimental.prefetch_to_device("/cpu:0")
        >>> [int(n) for n in tf.data.Dataset.range(2).apply(ahead)]
        [0, 1]
    """
    return lambda dataset: dataset.prefetch(buffer_size)


def _method(name: str) -> Callable[..., Callable[[Any], Any]]:
    """A method of datasets as older programs write it: a function for `Dataset.apply`."""
    taken = inspect.signature(getattr(Dataset, name)).parameters
    names = [each for each in taken if each not in ("self", "name")]
    signature = inspect.Signature([taken[each] for each in names])

    def applied(*args: Any, **options: Any) -> Callable[[Any], Any]:
        signature.bind(*args, **options)
        return lambda dataset: getattr(dataset, name)(*args, **options)

    vars(applied)["__signature__"] = signature
    applied.__name__ = applied.__qualname__ = name
    applied.__doc__ = f"""A function for `Dataset.apply`: `Dataset.{name}`, as older programs write.

    Example:
        >>> import samegrad as tf
        >>> callable(tf.data.experimental.{name})
        True
    """
    return applied


scan, take_while = _method("scan"), _method("take_while")
unbatch, unique = _method("unbatch"), _method("unique")


def choose_from_datasets(
    datasets: Sequence[Any], choice_dataset: Any, stop_on_empty_dataset: bool = False
) -> Dataset:
    """Return `Dataset.choose_from_datasets`, which goes on when a dataset has no more elements.

    Args:
        datasets: At least one.
        choice_dataset: Its elements are numbers from 0 on (int64).
        stop_on_empty_dataset: Whether all ends with the first one that has no more elements.

    Returns:
        The dataset of the chosen elements.

    Raises:
        TypeError: Something is no dataset.
        ValueError: There is none; while iterating, if there is none of such a number.

    Example:
        >>> import samegrad as tf
        >>> a, b = tf.data.Dataset.range(1), tf.data.Dataset.range(10, 12)
        >>> choices = tf.data.Dataset.from_tensor_slices(tf.constant([0, 0, 1, 1], tf.int64))
        >>> [int(n) for n in tf.data.experimental.choose_from_datasets([a, b], choices)]
        [0, 10, 11]
    """
    return Dataset.choose_from_datasets(datasets, choice_dataset, stop_on_empty_dataset)


sample_from_datasets = Dataset.sample_from_datasets
Counter = Dataset.counter


def RandomDataset(  # noqa: N802
    seed: int | None = None, rerandomize_each_iteration: bool | None = None,
    name: str | None = None,
) -> Dataset:  # fmt: skip
    """As `Dataset.random`.

    Example:
        >>> import samegrad as tf
        >>> len(list(RandomDataset(seed=1).take(2)))
        2
    """
    return Dataset.random(seed, rerandomize_each_iteration, name)


load = Dataset.load


def save(
    dataset: Any, path: Any, compression: str | None = None,
    shard_func: Callable[..., Any] | None = None, checkpoint_args: Any = None,
) -> None:  # fmt: skip
    """Writes all elements into a folder: `Dataset.save`, as older programs write.

    Example:
        >>> import samegrad as tf
        >>> tf.data.experimental.save(tf.data.Dataset.range(2), "older")
        >>> [int(n) for n in tf.data.experimental.load("older")]
        [0, 1]
    """
    if not isinstance(dataset, Dataset):
        raise TypeError(f"[save] a Dataset is needed: got {shown(dataset)}.")
    dataset.save(path, compression, shard_func)


def get_single_element(dataset: Any) -> Structure:
    """The one element of a dataset: `Dataset.get_single_element`, as older programs write.

    Example:
        >>> import samegrad as tf
        >>> int(tf.data.experimental.get_single_element(tf.data.Dataset.range(1)))
        0
    """
    if not isinstance(dataset, Dataset):
        raise TypeError(f"[get_single_element] a Dataset is needed: got {shown(dataset)}.")
    return dataset.get_single_element()


def from_list(elements: Sequence[Any], name: str | None = None) -> Dataset:
    """The elements of a list: tensors of one shape, or tuples and dicts of them.

    Example:
        >>> import samegrad as tf
        >>> [(int(n), x.numpy()) for n, x in tf.data.experimental.from_list([(1, "a"), (2, "b")])]
        [(1, b'a'), (2, b'b')]
    """
    if not isinstance(elements, list | tuple) or not elements:
        raise ValueError(f"[from_list] a list of elements is needed: got {shown(elements)}.")
    members = [to_element(element, "from_list") for element in elements]
    return Dataset.from_tensor_slices(stack_elements(members))


__all__ = [
    "AUTOTUNE", "INFINITE_CARDINALITY", "UNKNOWN_CARDINALITY", "AutoShardPolicy", "Counter",
    "CsvDataset", "DistributeOptions", "Optional", "RandomDataset", "assert_cardinality",
    "bucket_by_sequence_length", "cardinality", "choose_from_datasets", "dense_to_ragged_batch",
    "from_list", "get_single_element", "group_by_window", "ignore_errors", "load",
    "make_csv_dataset", "map_and_batch", "parallel_interleave", "prefetch_to_device",
    "SqlDataset", "rejection_resample", "sample_from_datasets", "save", "scan",
    "shuffle_and_repeat",
    "take_while", "unbatch", "unique",
]  # fmt: skip

guard(__name__)
