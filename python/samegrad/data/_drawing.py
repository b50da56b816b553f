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
        """Random whole numbers from 0 to 2^32 - 1 (int64), without end.

        They are a pure function of seed, epoch and place; they are not TensorFlow's.

        Args:
            seed: Any integer. None: derived from `tf.random.set_seed` when the iterator is made.
            rerandomize_each_iteration: Whether each epoch has numbers of its own; None: not.
            name: Ignored.

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
        """Whole numbers with a constant difference, without end.

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
        """The elements that the stages before can make; those that raise an error are left out.

        Args:
            log_warning: Whether a warning says what is left out.
            name: Ignored.

        Raises:
            RuntimeError: While iterating, if 100,000 elements one after the other cannot be made.

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
        """Elements with their classes before them, some left out, so that classes come as wanted.

        An element of class c stays with the probability r(c) / max r, where r(c) is the wanted
        share of the class by its share of the elements. The draws are a pure function of seed,
        epoch and place; they are not TensorFlow's.

        Args:
            class_func: Gets an element, a tuple as several arguments; returns its class: a whole
                number from 0 on.
            target_dist: The wanted share of each class.
            initial_dist: Its share of the elements. None: counted while they come.
            seed: Any integer. None: derived from `tf.random.set_seed` when the iterator is made.
            name: Ignored.

        Returns:
            A dataset of (class, element), classes as int32.

        Raises:
            ValueError: The shares are not 1 in sum, or are not as many.
            InvalidArgumentError: While iterating, if there is no share for a class.

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
        """Tensors of different sizes as rows of sparse tensors.

        Every number of an element is a value of the batch, zeros, too.

        Args:
            batch_size: Examples in a batch.
            row_shape: The sizes of a row, as many as an element has, or its one size; None or -1:
                the largest of the batch.
            name: Ignored.

        Raises:
            TypeError: row_shape is no list of sizes.
            ValueError: batch_size is less than 1, or elements are several components; while
                iterating, if an element has other axes or is larger than row_shape.

        Example:
            >>> import samegrad as tf
            >>> rows = tf.data.Dataset.range(1, 3).map(tf.range).sparse_batch(2, [3])
            >>> tf.sparse.to_dense(next(iter(rows)), default_value=-1).numpy()
            array([[ 0, -1, -1],
                   [ 0,  1, -1]])
        """
        who = "Dataset.sparse_batch"
        size = at_least(operator.index(batch_size), 1, "sparse_batch", "batch_size")
        if isinstance(row_shape, str | bytes):
            raise TypeError(
                f"[{who}] row_shape must be the sizes of a row: got {shown(row_shape)}; pass [3]."
            )
        entries = row_shape if np.iterable(row_shape) else [row_shape]
        sizes = [-1 if entry is None else operator.index(entry) for entry in entries]

        def stacked(members: list[Structure]) -> Structure:
            return sparse_rows(members, sizes, who)

        row = _SparseRow(self._node, sizes)
        return self._then(nodes.BatchNode(self._node, size, False, stacked, row))

    def ragged_batch(
        self: Self, batch_size: int, drop_remainder: bool = False,
        row_splits_dtype: DTypeLike = "int64", name: str | None = None,
    ) -> Self:  # fmt: skip
        """Like `batch` for elements of different lengths, which become ragged rows.

        Components without axes, and those whose sizes are known to be the same, become tensors.
        Behind `map` no size counts as known.

        Args:
            batch_size: Examples in a batch.
            drop_remainder: Whether a shorter last batch is left out.
            row_splits_dtype: Ignored.
            name: Ignored.

        Raises:
            ValueError: batch_size is less than 1; while iterating, if rows differ in other sizes
                than the first.

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
