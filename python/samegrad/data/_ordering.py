"""Transformations that select and reorder the elements of a dataset."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, TypeVar

from samegrad._core import InvalidArgumentError
from samegrad.data import _function_nodes as functions
from samegrad.data import _nodes as nodes
from samegrad.data._iterator import EpochCounter

_MAX_COUNT = 2**63 - 1
Self = TypeVar("Self", bound="Ordering")


def at_least(value: int, least: int, who: str, what: str) -> int:
    """Return the value, which must be neither too small nor too large for the engine.

    Raises:
        InvalidArgumentError: It is.
    """
    if value < least:
        raise InvalidArgumentError(f"[Dataset.{who}] {what} must be at least {least}: got {value}.")
    if value > _MAX_COUNT:
        raise InvalidArgumentError(
            f"[Dataset.{who}] {what} must be at most {_MAX_COUNT}: got {value}."
        )
    return value


def calls_at_once(value: int | None, who: str) -> int | None:
    """Return num_parallel_calls: None, AUTOTUNE or at least 1.

    Raises:
        InvalidArgumentError: It is another number.
    """
    calls = None if value is None else operator.index(value)
    return calls if calls in (None, -1) else at_least(calls, 1, who, "num_parallel_calls")


class Ordering:
    """Choosing, ordering and repeating elements: what leaves them as they are."""

    _options: Any = None

    def __init__(self: Self, node: nodes.Node) -> None:
        self._node = node
        self._epochs = EpochCounter()

    @classmethod
    def _made(cls: type[Self], node: nodes.Node) -> Self:
        """A plain dataset of a stage, of whatever class this one is."""
        raise NotImplementedError

    def _then(self: Self, node: nodes.Node) -> Self:
        """A dataset of a later stage, with the options of this one."""
        made = self._made(node)
        made._options = self._options
        return made

    def enumerate(self: Self, start: int = 0, name: str | None = None) -> Self:
        """Pair each element with its number.

        Args:
            start: First number.
            name: Ignored.

        Returns:
            Dataset of (number, element), numbers as int64 scalars.

        Example:
            >>> import samegrad as tf
            >>> dataset = tf.data.Dataset.from_tensor_slices([0.5, 1.5]).enumerate()
            >>> [(int(n), float(x)) for n, x in dataset]
            [(0, 0.5), (1, 1.5)]
        """
        numbers = nodes.RangeNode(operator.index(start), 1, nodes.INFINITE)
        return self._then(nodes.ZipNode((numbers, self._node)))

    def shuffle(
        self: Self,
        buffer_size: int,
        seed: int | None = None,
        reshuffle_each_iteration: bool | None = True,
        name: str | None = None,
    ) -> Self:
        """Shuffle the elements with a buffer of the next `buffer_size` ones.

        A buffer as large as the dataset gives a uniformly random order. The element at index p is
        the one at index floor(u(p) · held / 2^63) of the `held` ones in the buffer, where u(p) is
        the Philox integer of (seed, epoch, p). The next element takes its place. So the order is a
        pure function of seed and epoch, on every machine and for any number of replicas.

        Args:
            buffer_size: Number of elements in the buffer, at least 1.
            seed: Any integer. None: derived from `tf.random.set_seed` when the iterator is made.
            reshuffle_each_iteration: If True (the default), every epoch has its own order: every
                pass of a later `repeat`, and every iterator.
            name: Ignored.

        Returns:
            Dataset of the shuffled elements.

        Raises:
            InvalidArgumentError: buffer_size is less than 1.

        Example:
            >>> import samegrad as tf
            >>> dataset = tf.data.Dataset.range(5).shuffle(5, seed=1)
            >>> sorted(int(n) for n in dataset)
            [0, 1, 2, 3, 4]
        """
        size = at_least(operator.index(buffer_size), 1, "shuffle", "buffer_size")
        fixed = None if seed is None else operator.index(seed)
        reshuffle = reshuffle_each_iteration is not False
        return self._chosen(lambda node: nodes.ShuffleNode(node, size, fixed, reshuffle))

    def repeat(self: Self, count: int | None = None, name: str | None = None) -> Self:
        """Repeat the elements.

        Args:
            count: Number of repetitions. None or negative: without end.
            name: Ignored.

        Returns:
            Dataset of the repeated elements.

        Example:
            >>> import samegrad as tf
            >>> [int(n) for n in tf.data.Dataset.range(2).repeat(2)]
            [0, 1, 0, 1]
        """
        times = -1 if count is None else operator.index(count)
        return self._chosen(lambda node: nodes.RepeatNode(node, times))

    def take(self: Self, count: int, name: str | None = None) -> Self:
        """Take the first elements.

        Args:
            count: Number of elements. Negative: all.
            name: Ignored.

        Returns:
            Dataset of at most `count` elements.

        Example:
            >>> import samegrad as tf
            >>> [int(n) for n in tf.data.Dataset.range(9).take(2)]
            [0, 1]
        """
        number = operator.index(count)
        return self._chosen(lambda node: nodes.TakeNode(node, number))

    def skip(self: Self, count: int, name: str | None = None) -> Self:
        """Skip the first elements.

        Args:
            count: Number of elements to skip. Negative: all.
            name: Ignored.

        Returns:
            Dataset of the other elements.

        Example:
            >>> import samegrad as tf
            >>> [int(n) for n in tf.data.Dataset.range(4).skip(2)]
            [2, 3]
        """
        number = operator.index(count)
        return self._chosen(lambda node: nodes.SkipNode(node, number))

    def shard(self: Self, num_shards: int, index: int, name: str | None = None) -> Self:
        """Take every num_shards-th element, from element `index` on.

        Args:
            num_shards: Number of shards.
            index: Index of this shard, from 0.
            name: Ignored.

        Returns:
            Dataset of the elements of the shard.

        Raises:
            InvalidArgumentError: index is not one of 0 … num_shards - 1.

        Example:
            >>> import samegrad as tf
            >>> [int(n) for n in tf.data.Dataset.range(7).shard(3, 1)]
            [1, 4]
        """
        count, number = operator.index(num_shards), operator.index(index)
        if not 0 <= number < count:
            raise InvalidArgumentError(
                "[Dataset.shard] index must be one of 0 … num_shards - 1: got "
                f"num_shards={count} and index={number}."
            )
        return self._chosen(lambda node: nodes.ShardNode(node, count, number))

    def _chosen(self: Self, stage: Callable[[nodes.Node], nodes.Node]) -> Self:
        return self._then(functions.through_maps(self._node, stage))
