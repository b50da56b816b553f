"""Datasets of random numbers, and elements that are left out."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from samegrad._base.dtypes import DTypeLike, as_dtype
from samegrad._base.shown import shown
from samegrad._ops.arrays import cast
from samegrad._tensor.ragged_rows import stacked as stacked_rows
from samegrad._tensor.sizes import whole
from samegrad._tensor.sparse import sparse_rows
from samegrad._tensor.spec import TensorSpec
from samegrad.data import _drawn_nodes as drawn
from samegrad.data import _function_nodes as functions
from samegrad.data import _nodes as nodes
from samegrad.data import _python_cursors as cursors
from samegrad.data._choosing import Choosing
from samegrad.data._names import with_names
from samegrad.data._ordering import at_least
from samegrad.data._structure import Structure, fill, leaves_of, map_leaves

Self = TypeVar("Self", bound="Drawing")


class _SparseRow:
    """An element that is as large as a row of a sparse batch."""

    def __init__(self, elements: nodes.Node, sizes: list[int]) -> None:
        self._elements = elements
        self._shape = [None if size < 0 else size for size in sizes]

    @property
    def spec(self) -> Structure:
        """The shape and the dtype of a row."""
        return map_leaves(lambda leaf: TensorSpec(self._shape, leaf.dtype), self._elements.spec)


class Drawing(Choosing):
    """Stages that draw, pass over errors, or make ragged batches."""

    @classmethod
    def random(
        cls: type[Self], seed: int | None = None, rerandomize_each_iteration: bool | None = None,
        name: str | None = None,
    ) -> Self:  # fmt: skip
        """Generate random int64 scalars from 0 to 2^32 - 1, without end.

        They are a pure function of seed, epoch and index. They differ from TensorFlow's.

        Args:
            seed: Any integer. None: derived from `tf.random.set_seed` when the iterator is made.
            rerandomize_each_iteration: If True, each epoch has its own numbers. None: False.
            name: Ignored.

        Returns:
            Infinite dataset of int64 scalars.

        Example:
            >>> import samegrad as tf
            >>> numbers = [int(n) for n in tf.data.Dataset.random(seed=4).take(3)]
            >>> all(0 <= n < 2**32 for n in numbers)
            True
        """
        fixed = None if seed is None else operator.index(seed)
        return cls._made(drawn.RandomNode(fixed, bool(rerandomize_each_iteration)))

    @classmethod
    def counter(
        cls: type[Self], start: int = 0, step: int = 1, dtype: DTypeLike = "int64",
        name: str | None = None,
    ) -> Self:  # fmt: skip
        """Count from start in steps, without end.

        Args:
            start: First element.
            step: Difference of consecutive elements.
            dtype: Dtype of the elements.
            name: Ignored.

        Returns:
            Infinite dataset of scalars.

        Example:
            >>> import samegrad as tf
            >>> [int(n) for n in tf.data.Dataset.counter(start=3, step=2).take(3)]
            [3, 5, 7]
        """
        first, difference = whole(start, "start is an integer"), whole(step)
        node: nodes.Node = nodes.RangeNode(first, difference, nodes.INFINITE)
        kind = as_dtype(dtype)
        if kind.name != "int64":
            node = functions.MapNode(node, lambda n: cast(n, kind), None)
        return cls._made(node)

    def ignore_errors(self: Self, log_warning: bool = False, name: str | None = None) -> Self:
        """Drop elements that raise an error in an earlier transformation.

        Args:
            log_warning: If True, log a warning for each dropped element.
            name: Ignored.

        Returns:
            Dataset of the other elements.

        Raises:
            RuntimeError: While iterating, if 100,000 consecutive elements raise errors.

        Example:
            >>> import samegrad as tf
            >>> words = tf.data.Dataset.from_tensor_slices(["1", "two", "3"])
            >>> [int(n) for n in words.map(tf.strings.to_number).ignore_errors()]
            [1, 3]
        """
        return self._then(drawn.IgnoreErrorsNode(self._node, bool(log_warning)))

    def rejection_resample(
        self: Self, class_func: Callable[..., Any], target_dist: Any, initial_dist: Any = None,
        seed: int | None = None, name: str | None = None,
    ) -> Self:  # fmt: skip
        """Drop elements at random, so that classes have the wanted frequencies.

        An element of class c is kept with probability r(c) / max r, where r(c) is the target
        frequency of the class divided by its initial one. The samples are a pure function of seed,
        epoch and index. They differ from TensorFlow's.

        Args:
            class_func: Maps an element (a tuple as several arguments) to its class, an integer from
                0.
            target_dist: Target frequency of each class, shape [classes].
            initial_dist: Initial frequency of each class, shape [classes]. None: counted as they
                arrive.
            seed: Any integer. None: derived from `tf.random.set_seed` when the iterator is made.
            name: Ignored.

        Returns:
            Dataset of (class, element), classes as int32.

        Raises:
            ValueError: Frequencies do not sum to 1, or target_dist and initial_dist differ in
                length.
            InvalidArgumentError: While iterating, if a class has no frequency.

        Example:
            >>> import samegrad as tf
            >>> even = tf.data.Dataset.range(6).rejection_resample(
            ...     lambda x: x % 2, target_dist=[1.0, 0.0], initial_dist=[0.5, 0.5])
            >>> [(int(c), int(x)) for c, x in even]
            [(0, 0), (0, 2), (0, 4)]
        """
        who = "rejection_resample"
        target = drawn.shares_of(target_dist, who, "target_dist")
        initial = None
        if initial_dist is not None:
            initial = drawn.shares_of(initial_dist, who, "initial_dist")
            if len(initial) != len(target):
                raise ValueError(
                    f"[Dataset.{who}] initial_dist and target_dist must have a share for each "
                    f"class: got {len(initial)} and {len(target)}."
                )
        fixed = None if seed is None else operator.index(seed)
        node = drawn.ResampleNode(self._node, with_names(class_func), target, initial, fixed)
        return self._then(node)

    def sparse_batch(self: Self, batch_size: int, row_shape: Any, name: str | None = None) -> Self:
        """Combine tensors of different sizes into batches of sparse tensors.

        Every value of an element is stored, including zeros.

        Args:
            batch_size: Number of elements in a batch.
            row_shape: Shape of an element in the batch, or its one size. None or -1: the largest of
                the batch.
            name: Ignored.

        Returns:
            Dataset of `tf.sparse.SparseTensor` of shape [batch_size, *row_shape].

        Raises:
            TypeError: row_shape is not a list of sizes.
            ValueError: batch_size is less than 1, or elements have several components. While
                iterating, if an element has another rank or is larger than row_shape.

        Example:
            >>> import samegrad as tf
            >>> rows = tf.data.Dataset.range(1, 3).map(tf.range).sparse_batch(2, [3])
            >>> tf.sparse.to_dense(next(iter(rows)), default_value=-1).numpy()
            array([[ 0, -1, -1],
                   [ 0,  1, -1]])
        """
        who = "Dataset.sparse_batch"
        size = at_least(operator.index(batch_size), 1, "sparse_batch", "batch_size")
        several = np.iterable(row_shape) and not isinstance(row_shape, str | bytes)
        entries = list(row_shape) if several else [row_shape]
        if not all(entry is None or hasattr(entry, "__index__") for entry in entries):
            raise TypeError(
                f"[{who}] row_shape must be the sizes of a row: got {shown(row_shape)}; pass [3]."
            )
        sizes = [-1 if entry is None else operator.index(entry) for entry in entries]

        def stacked(members: list[Structure]) -> Structure:
            return sparse_rows(members, sizes, who)

        row = _SparseRow(self._node, sizes)
        return self._then(nodes.BatchNode(self._node, size, False, stacked, row))

    def ragged_batch(
        self: Self, batch_size: int, drop_remainder: bool = False,
        row_splits_dtype: DTypeLike = "int64", name: str | None = None,
    ) -> Self:  # fmt: skip
        """Combine elements of different lengths into ragged batches.

        Components of shape [], and those whose shapes are known to be equal, become tensors. After
        `map` no size is known.

        Args:
            batch_size: Number of elements in a batch.
            drop_remainder: If True, drop a last batch that has fewer elements.
            row_splits_dtype: Ignored.
            name: Ignored.

        Returns:
            Dataset of batches: a component of shape [length, ...] becomes a `tf.RaggedTensor` of
            shape [batch_size, None, ...].

        Raises:
            ValueError: batch_size is less than 1. While iterating, if elements differ in other
                sizes than the first.

        Example:
            >>> import samegrad as tf
            >>> rows = tf.data.Dataset.range(3).map(tf.range).ragged_batch(3)
            >>> next(iter(rows)).to_list()
            [[], [0], [0, 1]]
        """
        size = at_least(operator.index(batch_size), 1, "ragged_batch", "batch_size")
        known: list[bool] = []
        if functions.sizes_are_known(self._node):
            known = [None not in leaf.shape for leaf in leaves_of(self._node.spec)]

        def stacked(members: list[Structure]) -> Structure:
            columns = list(zip(*map(leaves_of, members), strict=True))
            same = known or [False] * len(columns)
            parts = [
                cursors.stacked(column)
                if fixed or not column[0]._rank
                else stacked_rows(column, "Dataset.ragged_batch")
                for column, fixed in zip(columns, same, strict=True)
            ]
            return fill(members[0], parts)

        node = nodes.BatchNode(self._node, size, bool(drop_remainder), stacked, self._node)
        return self._then(node)
