"""Elements as the rows of batches: of one size, padded, or collected by their lengths."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from samegrad._base.shown import shown
from samegrad._tensor.sizes import whole
from samegrad.data import _function_nodes as functions
from samegrad.data import _group_nodes as groups
from samegrad.data import _nodes as nodes
from samegrad.data._names import with_names
from samegrad.data._ordering import Ordering, at_least
from samegrad.data._padding import Padding
from samegrad.data._structure import Structure

Self = TypeVar("Self", bound="Batching")


class Batching(Ordering):
    """Stages that make batches of elements, and elements of batches."""

    def batch(
        self: Self,
        batch_size: int,
        drop_remainder: bool = False,
        num_parallel_calls: int | None = None,
        deterministic: bool | None = None,
        name: str | None = None,
    ) -> Self:
        """Combine consecutive elements into batches along a new axis 0.

        Under a strategy a batch is the *global* batch, which is split between the replicas.

        Args:
            batch_size: Number of elements in a batch, at least 1.
            drop_remainder: If True, drop a last batch that has fewer elements.
            num_parallel_calls: Ignored.
            deterministic: Ignored; the order is always the same.
            name: Ignored.

        Returns:
            Dataset of batches: a component of shape [...] becomes one of shape [batch_size, ...].

        Raises:
            InvalidArgumentError: batch_size is less than 1; while iterating, if shapes differ.

        Example:
            >>> import samegrad as tf
            >>> [batch.numpy().tolist() for batch in tf.data.Dataset.range(3).batch(2)]
            [[0, 1], [2]]
        """
        size = at_least(operator.index(batch_size), 1, "batch", "batch_size")
        return self._then(nodes.BatchNode(self._node, size, bool(drop_remainder)))

    def padded_batch(
        self: Self,
        batch_size: int,
        padded_shapes: Structure = None,
        padding_values: Structure = None,
        drop_remainder: bool = False,
        name: str | None = None,
    ) -> Self:
        """Combine consecutive elements into batches, padded at the ends of their axes.

        Args:
            batch_size: Number of elements in a batch, at least 1.
            padded_shapes: Shape to pad to, for each component. None or -1 as a size: the largest of
                the batch. None: always the largest.
            padding_values: Value to pad with: a number, or one per component, where None is zero.
                None: zeros.
            drop_remainder: If True, drop a last batch that has fewer elements.
            name: Ignored.

        Returns:
            Dataset of batches: a component of shape [...] becomes one of shape [batch_size, ...],
            its sizes those of padded_shapes.

        Raises:
            ValueError: batch_size is less than 1, or padded_shapes or padding_values do not fit
                the elements; while iterating, if an element is larger than padded_shapes or ranks
                differ.

        Example:
            >>> import samegrad as tf
            >>> rows = tf.data.Dataset.from_generator(
            ...     lambda: iter([[1], [2, 3]]), output_signature=tf.TensorSpec((None,), tf.int32))
            >>> next(rows.padded_batch(2).as_numpy_iterator())
            array([[1, 0],
                   [2, 3]], dtype=int32)
        """
        size = at_least(operator.index(batch_size), 1, "padded_batch", "batch_size")
        padding = Padding(self._node, padded_shapes, padding_values, "Dataset.padded_batch")
        node = nodes.BatchNode(self._node, size, bool(drop_remainder), padding.batch, padding)
        return self._then(node)

    def group_by_window(
        self: Self,
        key_func: Callable[..., Any],
        reduce_func: Callable[[Any, Self], Self],
        window_size: int | None = None,
        window_size_func: Callable[[Any], Any] | None = None,
        name: str | None = None,
    ) -> Self:
        """Collect elements by key, and replace each full window of them by a dataset.

        At the end, windows that are not full follow in the order of their keys. The functions run
        in Python. Their random ops depend on the seed and the index of the element or window only.

        Args:
            key_func: Maps an element (a tuple as several arguments) to its key, an integer.
            reduce_func: Maps a key (int64 tensor) and the dataset of a window to a dataset.
            window_size: Number of elements in a window.
            window_size_func: Alternative to window_size: maps a key to the size of its windows. It
                is called once for each key.
            name: Ignored.

        Returns:
            Dataset of the elements of the datasets that reduce_func returns.

        Raises:
            ValueError: Both sizes are given, or neither; window_size is less than 1.
            InvalidArgumentError: While iterating, if window_size_func returns less than 1.
            TypeError: While iterating, if a key is not an integer or reduce_func does not return a
                dataset.

        Example:
            >>> import samegrad as tf
            >>> dataset = tf.data.Dataset.range(7).group_by_window(
            ...     lambda x: x % 2, lambda key, window: window.batch(3), window_size=3)
            >>> [batch.numpy().tolist() for batch in dataset]
            [[0, 2, 4], [1, 3, 5], [6]]
        """
        if (window_size is None) == (window_size_func is None):
            raise ValueError(
                "[Dataset.group_by_window] one of window_size and window_size_func is needed: got "
                f"{'neither' if window_size is None else 'both'}."
            )
        if window_size_func is None:
            size = at_least(whole(window_size), 1, "group_by_window", "window_size")
        sizes = with_names(window_size_func or (lambda key: size))
        reduce_func = with_names(reduce_func)

        def reduced(key: Any, window: nodes.Node) -> nodes.Node:
            made = reduce_func(key, self._then(window))
            if not isinstance(made, Batching):
                raise TypeError(
                    "[Dataset.group_by_window] reduce_func must return a Dataset: got "
                    f"{type(made).__name__}; return e.g. window.batch(size)."
                )
            return made._node

        return self._then(
            groups.GroupByWindowNode(self._node, with_names(key_func), sizes, reduced)
        )

    def bucket_by_sequence_length(
        self: Self,
        element_length_func: Callable[..., Any],
        bucket_boundaries: Sequence[int],
        bucket_batch_sizes: Sequence[int],
        padded_shapes: Structure = None,
        padding_values: Structure = None,
        pad_to_bucket_boundary: bool = False,
        no_padding: bool = False,
        drop_remainder: bool = False,
        name: str | None = None,
    ) -> Self:
        """Combine elements of similar lengths into padded batches.

        Boundaries [3, 5] make three buckets: lengths below 3, from 3 to 4, and from 5 on. A batch
        is emitted when its bucket is full. At the end, the buckets that are not full follow,
        shortest first. The order depends on that of the elements only, so it is the same on any
        number of threads and replicas. Under a strategy each batch is a *global* batch, which is
        split between the replicas.

        For batches of about equal work give the number of tokens that one may hold, padding
        included: bucket_batch_sizes=[max(1, tokens // (b - 1)) for b in boundaries] and one more
        for longer elements.

        With pad_to_bucket_boundary all batches of a bucket have one length, so that a `tf.function`
        is traced at most once for each bucket. Otherwise it is traced once for each length that the
        longest sequence of a batch has.

        Args:
            element_length_func: Maps an element (a tuple as several arguments) to its length.
            bucket_boundaries: Upper bounds of the lengths, exclusive and ascending.
            bucket_batch_sizes: Number of elements in a batch of each bucket, one more than
                boundaries.
            padded_shapes: As for `padded_batch`.
            padding_values: As for `padded_batch`.
            pad_to_bucket_boundary: If True, pad sizes that are not known to the bucket's boundary
                less 1, rather than to the largest of the batch. After `map` no size is known: give
                padded_shapes where one is.
            no_padding: If True, do not pad: the elements of a batch have one shape.
            drop_remainder: If True, drop batches at the end that are not full.
            name: Ignored.

        Returns:
            Dataset of batches: a component of shape [length, ...] becomes one of shape [batch,
            length, ...].

        Raises:
            ValueError: The boundaries do not ascend; the number of sizes is not theirs plus one;
                a size is less than 1; the padding does not fit the elements.
            InvalidArgumentError: While iterating, if with pad_to_bucket_boundary an element is not
                shorter than the last boundary.

        Example:
            >>> import samegrad as tf
            >>> words = [[1], [2, 3, 4], [5, 6], [7, 8, 9, 10]]
            >>> dataset = tf.data.Dataset.from_generator(
            ...     lambda: iter(words), output_signature=tf.TensorSpec((None,), tf.int32))
            >>> batches = dataset.bucket_by_sequence_length(
            ...     lambda row: tf.shape(row)[0], [3], bucket_batch_sizes=[2, 2])
            >>> [batch.numpy().tolist() for batch in batches]
            [[[1, 0], [5, 6]], [[2, 3, 4, 0], [7, 8, 9, 10]]]
        """
        boundaries, sizes = _buckets(bucket_boundaries, bucket_batch_sizes)
        padding = None
        if not no_padding:
            who = "Dataset.bucket_by_sequence_length"
            padding = Padding(self._node, padded_shapes, padding_values, who)
        node = groups.BucketNode(
            self._node, with_names(element_length_func), boundaries, sizes, padding,
            bool(pad_to_bucket_boundary) and not no_padding, bool(drop_remainder),
        )  # fmt: skip
        return self._then(node)

    def unbatch(self: Self, name: str | None = None) -> Self:
        """Split each element into its slices along axis 0.

        Returns:
            Dataset of slices: a component of shape [batch, ...] becomes several elements of shape
            [...].

        Example:
            >>> import samegrad as tf
            >>> [int(n) for n in tf.data.Dataset.range(3).batch(2).unbatch()]
            [0, 1, 2]
        """
        return self._then(functions.UnbatchNode(self._node))


def _buckets(boundaries: Sequence[int], sizes: Sequence[int]) -> tuple[list[int], list[int]]:
    """Checked boundaries and batch sizes."""
    who = "bucket_by_sequence_length"
    bounds = [whole(value, "a boundary is an integer") for value in boundaries]
    counts = [
        at_least(whole(value, "a batch size is an integer"), 1, who, "each batch size")
        for value in sizes
    ]
    if any(b <= a for a, b in itertools.pairwise(bounds)):
        raise ValueError(f"[Dataset.{who}] boundaries must ascend: got {shown(bounds)}; sort them.")
    if len(counts) != len(bounds) + 1:
        raise ValueError(
            f"[Dataset.{who}] there must be one batch size more than boundaries: got "
            f"{len(counts)} sizes for {len(bounds)} boundaries; the last one is for elements that "
            "are not shorter than the last boundary."
        )
    return bounds, counts
