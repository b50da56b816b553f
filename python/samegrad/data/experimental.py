"""Names that programs written for TensorFlow use."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable, Sequence
from typing import Any

from samegrad._base.shown import shown
from samegrad._context.devices import device_of
from samegrad._surface.boundary import guard
from samegrad._tensor.sizes import whole
from samegrad.data._csv import CsvDataset, make_csv_dataset
from samegrad.data._dataset import Dataset
from samegrad.data._drawn_nodes import CountedNode
from samegrad.data._iterator import Optional
from samegrad.data._mapped import to_element
from samegrad.data._nodes import INFINITE, UNKNOWN
from samegrad.data._options import AutoShardPolicy, DistributeOptions, ThreadingOptions
from samegrad.data._python_cursors import stack_elements
from samegrad.data._sql import SqlDataset
from samegrad.data._structure import Structure
from samegrad.errors import OutOfRangeError
from samegrad.io._parsing import parse_example

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
    """Return `Dataset.bucket_by_sequence_length` as a function for `Dataset.apply`.

    Args:
        element_length_func: Maps an element to its length.
        bucket_boundaries: Upper bounds of the lengths.
        bucket_batch_sizes: Examples in a batch of each bucket.
        padded_shapes: Shapes to pad to.
        padding_values: Values to pad with.
        pad_to_bucket_boundary: If True, pad unknown sizes to the bucket's boundary less 1.
        no_padding: If True, do not pad.
        drop_remainder: If True, drop batches that are not full.

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
    """Return `Dataset.group_by_window` as a function for `Dataset.apply`.

    Args:
        key_func: Maps an element to its key, an integer.
        reduce_func: Maps a key and the dataset of a window to a dataset.
        window_size: Number of elements in a window.
        window_size_func: Alternative to window_size: maps a key to the size of its windows.

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
    """Return the number of elements of a dataset: `Dataset.cardinality`.

    Args:
        dataset: Dataset.

    Returns:
        int64 tensor of shape []; `INFINITE_CARDINALITY` or `UNKNOWN_CARDINALITY` where it applies.

    Raises:
        TypeError: dataset is not a dataset.

    Example:
        >>> import samegrad as tf
        >>> int(tf.data.experimental.cardinality(tf.data.Dataset.range(3)))
        3
    """
    if not hasattr(dataset, "cardinality"):
        raise TypeError(f"[cardinality] a Dataset is needed: got {shown(dataset)}; make one.")
    return dataset.cardinality()


def assert_cardinality(expected_cardinality: int) -> Callable[[Any], Any]:
    """Return a function for `Dataset.apply` that asserts the number of elements.

    Args:
        expected_cardinality: Number of elements, or `INFINITE_CARDINALITY`.

    Returns:
        Function from datasets to datasets. While iterating, it raises FailedPreconditionError if
        there are more or fewer elements.

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
    """Return `Dataset.ignore_errors` as a function for `Dataset.apply`.

    Args:
        log_warning: If True, log a warning for each dropped element.

    Returns:
        Function from datasets to datasets.

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
    """Return `Dataset.rejection_resample` as a function for `Dataset.apply`.

    Args:
        class_func: Maps an element to its class, an integer from 0.
        target_dist: Target frequency of each class, shape [classes].
        initial_dist: Initial frequency of each class. None: counted as they arrive.
        seed: Any integer. None: derived from `tf.random.set_seed`.

    Returns:
        Function from datasets to datasets of (class, element).

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
    """Return `shuffle` and `repeat` as a function for `Dataset.apply`.

    Args:
        buffer_size: Number of elements in the buffer of `shuffle`.
        count: Number of repetitions. None or negative: without end.
        seed: Any integer. None: derived from `tf.random.set_seed`.

    Returns:
        Function from datasets to datasets.

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
    """Return `map` and `batch` as a function for `Dataset.apply`.

    Args:
        map_func: Maps an element to an element.
        batch_size: Number of elements in a batch.
        num_parallel_batches: Default of num_parallel_calls.
        drop_remainder: If True, drop a last batch that has fewer elements.
        num_parallel_calls: Number of threads of `map`.

    Returns:
        Function from datasets to datasets.

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
    """Return `Dataset.interleave` as a function for `Dataset.apply`.

    Args:
        map_func: Maps an element to a dataset.
        cycle_length: Number of datasets that are read in turn.
        block_length: Number of consecutive elements from each.
        sloppy: Ignored; the order is always the same.
        buffer_output_elements: Ignored.
        prefetch_input_elements: Ignored.

    Returns:
        Function from datasets to datasets.

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
    """Return `Dataset.ragged_batch` as a function for `Dataset.apply`.

    Args:
        batch_size: Number of elements in a batch.
        drop_remainder: If True, drop a last batch that has fewer elements.
        row_splits_dtype: Ignored.

    Returns:
        Function from datasets to datasets.

    Example:
        >>> import samegrad as tf
        >>> rows = tf.data.Dataset.range(3).map(tf.range)
        >>> next(iter(rows.apply(tf.data.experimental.dense_to_ragged_batch(3)))).to_list()
        [[], [0], [0, 1]]
    """
    return lambda dataset: dataset.ragged_batch(batch_size, drop_remainder, row_splits_dtype)


def prefetch_to_device(device: Any, buffer_size: int | None = None) -> Callable[[Any], Any]:
    """Return `Dataset.prefetch` as a function for `Dataset.apply`; the only devices are CPUs.

    Args:
        device: Name of a device, such as "/gpu:0".
        buffer_size: Maximum number of prefetched elements. None: left to samegrad.

    Returns:
        Function from datasets to datasets.

    Raises:
        ValueError: The name is not that of a device.
        InvalidArgumentError: The machine lacks the device, and soft placement is off.

    Example:
        >>> import samegrad as tf
        >>> ahead = tf.data.experimental.prefetch_to_device("/cpu:0")
        >>> [int(n) for n in tf.data.Dataset.range(2).apply(ahead)]
        [0, 1]
    """
    device_of("prefetch_to_device", device)
    return lambda dataset: dataset.prefetch(buffer_size)


def _args_of(method: Callable[..., Any], names: list[str]) -> str:
    """Return the Args section of a method's docstring; empty without parameters."""
    documented = (inspect.getdoc(method) or "").partition("\nArgs:\n")[2].partition("\n\n")[0]
    entries = [line for line in documented.splitlines() if not line.startswith("    name:")]
    return textwrap.indent("\n".join(["", "Args:", *entries, ""]), "    ") if names else ""


def _method(name: str) -> Callable[..., Callable[[Any], Any]]:
    """Return a method of datasets as a function for `Dataset.apply`."""
    taken = inspect.signature(getattr(Dataset, name)).parameters
    names = [each for each in taken if each not in ("self", "name")]
    signature = inspect.Signature([taken[each] for each in names])

    def applied(*args: Any, **options: Any) -> Callable[[Any], Any]:
        signature.bind(*args, **options)
        return lambda dataset: getattr(dataset, name)(*args, **options)

    vars(applied)["__signature__"] = signature
    applied.__name__ = applied.__qualname__ = name
    applied.__doc__ = f"""Return `Dataset.{name}` as a function for `Dataset.apply`.
{_args_of(getattr(Dataset, name), names)}
    Returns:
        Function from datasets to datasets.

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
    """Return `Dataset.choose_from_datasets` that skips exhausted datasets by default.

    Args:
        datasets: Non-empty list of datasets.
        choice_dataset: Dataset of int64 scalars: indices into datasets.
        stop_on_empty_dataset: If True, stop at the first dataset that has no more elements.

    Returns:
        Dataset of the chosen elements.

    Raises:
        TypeError: A member of datasets, or choice_dataset, is not a dataset.
        ValueError: datasets is empty. While iterating, if an index is out of range.

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
    """Generate random int64 scalars, without end: `Dataset.random`.

    Args:
        seed: Any integer. None: derived from `tf.random.set_seed`.
        rerandomize_each_iteration: If True, each epoch has its own numbers. None: False.
        name: Ignored.

    Returns:
        Infinite dataset of int64 scalars.

    Example:
        >>> import samegrad as tf
        >>> len(list(RandomDataset(seed=1).take(2)))
        2
    """
    return Dataset.random(seed, rerandomize_each_iteration, name)


def load(
    path: Any, element_spec: Any = None, compression: str | None = None,
    reader_func: Callable[[Any], Any] | None = None, wait: bool = False,
) -> Dataset:  # fmt: skip
    """Read the elements that `Dataset.save` wrote; see `Dataset.load`.

    Args:
        path: The folder.
        element_spec: The TensorSpecs that the elements must have. None: those of the files.
        compression: "GZIP", or None; as given to `save`.
        reader_func: Takes a dataset of one dataset per file, and returns the dataset of elements.
        wait: Ignored.

    Returns:
        The dataset.

    Example:
        >>> import tempfile
        >>> path = tempfile.mkdtemp()
        >>> save(Dataset.range(3), path)
        >>> [int(n) for n in load(path)]
        [0, 1, 2]
    """
    return Dataset.load(path, element_spec, compression, reader_func, wait)


def save(
    dataset: Any, path: Any, compression: str | None = None,
    shard_func: Callable[..., Any] | None = None, checkpoint_args: Any = None,
) -> None:  # fmt: skip
    """Write all elements into a folder: `Dataset.save`.

    Args:
        dataset: Dataset to write.
        path: Folder, created if it does not exist.
        compression: "GZIP" to compress elements, or None.
        shard_func: Maps an element to the index of its file. None: one file for all.
        checkpoint_args: Ignored.

    Raises:
        TypeError: dataset is not a dataset.

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
    """Return the only element of a dataset: `Dataset.get_single_element`.

    Args:
        dataset: Dataset of one element.

    Returns:
        The element.

    Raises:
        TypeError: dataset is not a dataset.
        InvalidArgumentError: The dataset is empty, or has more than one element.

    Example:
        >>> import samegrad as tf
        >>> int(tf.data.experimental.get_single_element(tf.data.Dataset.range(1)))
        0
    """
    if not isinstance(dataset, Dataset):
        raise TypeError(f"[get_single_element] a Dataset is needed: got {shown(dataset)}.")
    return dataset.get_single_element()


def enumerate_dataset(start: int = 0) -> Callable[[Any], Any]:
    """Return `Dataset.enumerate` as a function for `Dataset.apply`.

    Args:
        start: The number of the first element.

    Returns:
        Function from datasets to datasets.
    """
    return lambda dataset: dataset.enumerate(start)


def copy_to_device(target_device: str, source_device: str = "/cpu:0") -> Callable[[Any], Any]:
    """Return a function for `Dataset.apply` that changes nothing: replicas run on CPUs.

    Args:
        target_device: Ignored.
        source_device: Ignored.

    Returns:
        Function from datasets to datasets.
    """
    return lambda dataset: dataset


def get_structure(dataset_or_iterator: Any) -> Structure:
    """Return the specs of the elements of a dataset or iterator: `element_spec`.

    Args:
        dataset_or_iterator: Dataset or iterator.

    Returns:
        TensorSpec, or structure of them.

    Raises:
        TypeError: The argument is something else.

    Example:
        >>> import samegrad as tf
        >>> tf.data.experimental.get_structure(tf.data.Dataset.range(3))
        TensorSpec(shape=(), dtype=samegrad.int64)
    """
    if not hasattr(dataset_or_iterator, "element_spec"):
        raise TypeError(
            f"[get_structure] a dataset or iterator is needed: got {shown(dataset_or_iterator)}."
        )
    return dataset_or_iterator.element_spec


def parse_example_dataset(
    features: Any, num_parallel_calls: int = 1, deterministic: bool | None = None
) -> Callable[[Any], Any]:
    """Return a function for `Dataset.apply` that parses batches of serialized examples.

    Args:
        features: As in `tf.io.parse_example`.
        num_parallel_calls: Ignored.
        deterministic: Ignored: the order stays.

    Returns:
        Function from datasets of string vectors to datasets of dicts.
    """
    return lambda dataset: dataset.map(lambda batch: parse_example(batch, features))


def snapshot(
    path: Any,
    compression: str = "AUTO",
    reader_func: Callable[..., Any] | None = None,
    shard_func: Callable[..., Any] | None = None,
) -> Callable[[Any], Any]:
    """Return `Dataset.snapshot` as a function for `Dataset.apply`.

    Args:
        path: The folder.
        compression: Ignored.
        reader_func: None: a snapshot is one file.
        shard_func: None: a snapshot is one file.

    Returns:
        Function from datasets to datasets; it raises what the method raises.
    """
    return lambda dataset: dataset.snapshot(path, compression, reader_func, shard_func)


def at(dataset: Any, index: Any) -> Structure:
    """Return the element at an index, without those before it where they can be skipped.

    Args:
        dataset: Dataset.
        index: The index, from 0.

    Returns:
        The element.

    Raises:
        TypeError: dataset is not a dataset, or the index is not an integer.
        OutOfRangeError: There is no such element.

    Example:
        >>> import samegrad as tf
        >>> int(tf.data.experimental.at(tf.data.Dataset.range(5), 3))
        3
    """
    if not isinstance(dataset, Dataset):
        raise TypeError(f"[at] a Dataset is needed: got {shown(dataset)}.")
    place = whole(index, "an index is an integer")
    found = list(dataset.skip(place).take(1)) if place >= 0 else []
    if not found:
        raise OutOfRangeError(f"[at] the index must be that of an element: got {place}.")
    return found[0]


def from_list(elements: Sequence[Any], name: str | None = None) -> Dataset:
    """Create a dataset of the elements of a list.

    Args:
        elements: Non-empty list of tensors of one shape, or of tuples and dicts of them.
        name: Ignored.

    Returns:
        Dataset of the elements.

    Raises:
        ValueError: elements is not a non-empty list.

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
    "CsvDataset", "DistributeOptions", "Optional", "RandomDataset", "ThreadingOptions",
    "assert_cardinality", "at",
    "bucket_by_sequence_length", "cardinality", "choose_from_datasets", "copy_to_device",
    "dense_to_ragged_batch", "enumerate_dataset", "get_structure", "parse_example_dataset",
    "from_list", "get_single_element", "group_by_window", "ignore_errors", "load",
    "make_csv_dataset", "map_and_batch", "parallel_interleave", "prefetch_to_device",
    "SqlDataset", "rejection_resample", "sample_from_datasets", "save", "scan",
    "shuffle_and_repeat", "snapshot",
    "take_while", "unbatch", "unique",
]  # fmt: skip

guard(__name__)
