"""`tf.data.Dataset`: where batches come from."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from samegrad import _core
from samegrad._tensor import Tensor, constant, convert_to_tensor
from samegrad.data import _function_nodes as functions
from samegrad.data import _nodes as nodes
from samegrad.data import _python_cursors as cursors
from samegrad.data._iterator import DatasetIterator, EpochCounter
from samegrad.data._structure import Structure, TensorSpec, leaves_of, map_leaves

AUTOTUNE = -1
INFINITE_CARDINALITY = nodes.INFINITE
UNKNOWN_CARDINALITY = nodes.UNKNOWN


class Dataset:
    """Elements, one after the other: tensors, or tuples and dicts of them.

    A dataset only describes what to do; an iterator does it. Slicing, shuffling, repeating and
    batching are done by the engine: it gathers the next batches on a thread of its own while a
    step runs. Functions (`map`, `filter`, `from_generator`) run in Python.

    Every iterator is an epoch of its own: the first one shuffles as epoch 0, the next one as epoch
    1. What comes at which place of which epoch depends on the seeds only, so an iterator restored
    from a checkpoint goes on with the very same elements.

    Example:
        >>> import numpy as np
        >>> import samegrad as tf
        >>> images, labels = np.zeros((5, 2, 2), np.float32), np.arange(5)
        >>> dataset = tf.data.Dataset.from_tensor_slices((images, labels)).batch(2)
        >>> for image, label in dataset:
        ...     print(image.shape, label.numpy())
        (2, 2, 2) [0 1]
        (2, 2, 2) [2 3]
        (1, 2, 2) [4]
    """

    def __init__(self, node: nodes.Node) -> None:
        self._node = node
        self._epochs = EpochCounter()

    @staticmethod
    def from_tensor_slices(tensors: Structure, name: str | None = None) -> Dataset:
        """Elements are the slices of the tensors along axis 0.

        NumPy arrays are **borrowed**, not copied: changing one changes the elements not gathered
        yet. Arrays that are not contiguous in memory are copied once.

        Args:
            tensors: Arrays, tensors or lists of equal length, or tuples and dicts of them.
            name: Accepted.

        Raises:
            ValueError: A tensor has no axis, or the lengths differ.
            TypeError: A dtype that samegrad does not have.

        Example:
            >>> import samegrad as tf
            >>> dataset = tf.data.Dataset.from_tensor_slices({"a": [1, 2], "b": [3.0, 4.0]})
            >>> [(int(e["a"]), float(e["b"])) for e in dataset]
            [(1, 3.0), (2, 4.0)]
        """
        borrowed = map_leaves(lambda value: _borrow(value, "from_tensor_slices"), tensors)
        leaves = leaves_of(borrowed)
        sizes = [leaf._shape[0] if leaf._rank else None for leaf in leaves]
        if not leaves or None in sizes or len(set(sizes)) > 1:
            raise ValueError(
                "[Dataset.from_tensor_slices] all tensors must have the same length along axis 0: "
                f"got shapes {', '.join(str(leaf._shape) for leaf in leaves) or 'of no tensor'}."
            )
        return Dataset(nodes.SliceNode(borrowed, sizes[0]))

    @staticmethod
    def from_tensors(tensors: Structure, name: str | None = None) -> Dataset:
        """One element: the tensors as they are.

        Example:
            >>> import samegrad as tf
            >>> len(tf.data.Dataset.from_tensors([1, 2, 3]))
            1
        """

        def as_row(value: Any) -> Tensor:
            return Tensor(_borrow(value, "from_tensors")._view()[None], copy=False)

        return Dataset(nodes.SliceNode(map_leaves(as_row, tensors), 1, batched=None))

    @staticmethod
    def range(*args: Any, name: str | None = None) -> Dataset:
        """Whole numbers (int64): range(stop), range(start, stop) or range(start, stop, step).

        Raises:
            ValueError: The step is 0.

        Example:
            >>> import samegrad as tf
            >>> list(tf.data.Dataset.range(1, 8, 3).as_numpy_iterator())
            [1, 4, 7]
        """
        numbers = range(*(operator.index(arg) for arg in args))
        return Dataset(nodes.RangeNode(numbers.start, numbers.step, len(numbers)))

    @staticmethod
    def from_generator(
        generator: Callable[..., Any],
        output_signature: Structure = None,
        args: tuple[Any, ...] = (),
        name: str | None = None,
    ) -> Dataset:
        """Elements are what `generator(*args)` yields; it is called anew by each iterator.

        Args:
            generator: Returns something that can be iterated over.
            output_signature: TensorSpecs in the structure of an element.
            args: What it is called with.
            name: Accepted.

        Raises:
            TypeError: `generator` cannot be called, or there is no signature. While iterating,
                TypeError and ValueError where an element does not fit it.

        Example:
            >>> import samegrad as tf
            >>> dataset = tf.data.Dataset.from_generator(
            ...     lambda: iter([1.0, 2.0]), output_signature=tf.TensorSpec((), tf.float32))
            >>> list(dataset.as_numpy_iterator())
            [1.0, 2.0]
        """
        specs = leaves_of(output_signature)
        if not callable(generator) or not all(isinstance(s, TensorSpec) for s in specs):
            raise TypeError(
                "[Dataset.from_generator] a function and output_signature=TensorSpec(shape, dtype) "
                f"(or a tuple or dict of them) are needed: got {type(generator).__name__} and "
                f"{output_signature!r}."
            )
        return Dataset(functions.GeneratorNode(lambda: generator(*args), output_signature))

    @staticmethod
    def zip(*datasets: Any, name: str | None = None) -> Dataset:
        """Elements of several datasets side by side, until the shortest ends.

        Args:
            datasets: Several, or one tuple or dict of them.
            name: Accepted.

        Raises:
            TypeError: Something else is among them.

        Example:
            >>> import samegrad as tf
            >>> a, b = tf.data.Dataset.range(2), tf.data.Dataset.range(5, 9)
            >>> list(tf.data.Dataset.zip((a, b)).as_numpy_iterator())
            [(0, 5), (1, 6)]
        """
        structure = datasets[0] if len(datasets) == 1 else datasets
        return Dataset(nodes.ZipNode(map_leaves(_node_of, structure)))

    def concatenate(self, dataset: Dataset, name: str | None = None) -> Dataset:
        """These elements, then those of another dataset.

        Example:
            >>> import samegrad as tf
            >>> both = tf.data.Dataset.range(2).concatenate(tf.data.Dataset.range(7, 9))
            >>> list(both.as_numpy_iterator())
            [0, 1, 7, 8]
        """
        return Dataset(functions.ConcatenateNode(self._node, _node_of(dataset)))

    def enumerate(self, start: int = 0, name: str | None = None) -> Dataset:
        """Elements with their numbers (int64) before them.

        Example:
            >>> import samegrad as tf
            >>> dataset = tf.data.Dataset.from_tensor_slices([0.5, 1.5]).enumerate()
            >>> list(dataset.as_numpy_iterator())
            [(0, 0.5), (1, 1.5)]
        """
        numbers = nodes.RangeNode(operator.index(start), 1, nodes.INFINITE)
        return Dataset(nodes.ZipNode((numbers, self._node)))

    def shuffle(
        self,
        buffer_size: int,
        seed: int | None = None,
        reshuffle_each_iteration: bool | None = None,
        name: str | None = None,
    ) -> Dataset:
        """The elements in random order, drawn from a buffer of the next `buffer_size` ones.

        A buffer as large as the dataset gives a uniformly random order. The element at place p is
        the one in place floor(u(p) · held / 2^63) of the `held` ones in the buffer, where u(p) is
        the Philox integer of (seed, epoch, p); the next element takes its place. So the order is a
        pure function of seed and epoch, on every machine and for any number of replicas.

        Args:
            buffer_size: Elements in the buffer, at least 1.
            seed: Any integer. None: derived from `tf.random.set_seed` when the iterator is made.
            reshuffle_each_iteration: Whether every epoch has an order of its own (the default):
                every pass of a later `repeat`, and every iterator.
            name: Accepted.

        Raises:
            ValueError: buffer_size is less than 1.

        Example:
            >>> import samegrad as tf
            >>> dataset = tf.data.Dataset.range(5).shuffle(5, seed=1)
            >>> sorted(dataset.as_numpy_iterator())
            [0, 1, 2, 3, 4]
        """
        size = _at_least(operator.index(buffer_size), 1, "shuffle", "buffer_size")
        fixed = None if seed is None else operator.index(seed)
        reshuffle = reshuffle_each_iteration is not False
        return self._chosen(lambda node: nodes.ShuffleNode(node, size, fixed, reshuffle))

    def repeat(self, count: int | None = None, name: str | None = None) -> Dataset:
        """The elements `count` times; for ever if it is None or negative.

        Example:
            >>> import samegrad as tf
            >>> list(tf.data.Dataset.range(2).repeat(2).as_numpy_iterator())
            [0, 1, 0, 1]
        """
        times = -1 if count is None else operator.index(count)
        return self._chosen(lambda node: nodes.RepeatNode(node, times))

    def take(self, count: int, name: str | None = None) -> Dataset:
        """The first `count` elements; all if it is negative.

        Example:
            >>> import samegrad as tf
            >>> list(tf.data.Dataset.range(9).take(2).as_numpy_iterator())
            [0, 1]
        """
        number = operator.index(count)
        return self._chosen(lambda node: nodes.TakeNode(node, number))

    def skip(self, count: int, name: str | None = None) -> Dataset:
        """All but the first `count` elements; none if it is negative.

        Example:
            >>> import samegrad as tf
            >>> list(tf.data.Dataset.range(4).skip(2).as_numpy_iterator())
            [2, 3]
        """
        number = operator.index(count)
        return self._chosen(lambda node: nodes.SkipNode(node, number))

    def shard(self, num_shards: int, index: int, name: str | None = None) -> Dataset:
        """Every num_shards-th element, from element `index` on.

        Raises:
            ValueError: index is not one of 0 … num_shards - 1.

        Example:
            >>> import samegrad as tf
            >>> list(tf.data.Dataset.range(7).shard(3, 1).as_numpy_iterator())
            [1, 4]
        """
        count, number = operator.index(num_shards), operator.index(index)
        if not 0 <= number < count:
            raise ValueError(
                "[Dataset.shard] index must be one of 0 … num_shards - 1: got "
                f"num_shards={count} and index={number}."
            )
        return self._chosen(lambda node: nodes.ShardNode(node, count, number))

    def _chosen(self, stage: Callable[[nodes.Node], nodes.Node]) -> Dataset:
        return Dataset(functions.through_maps(self._node, stage))
