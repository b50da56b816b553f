"""Datasets under a strategy: each element is a global batch, split between the replicas."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from samegrad import _core
from samegrad._tensor.per_replica import PerReplica
from samegrad._tensor.spec import TensorSpec
from samegrad._tensor.text import Text
from samegrad.data._cursor import BackgroundCursor, Cursor
from samegrad.data._dataset import Dataset
from samegrad.data._fingerprint import description_of, order_depends_on_epoch
from samegrad.data._iterator import (
    EpochCounter,
    Optional,
    ResumableIterator,
    check_splittable,
    get_next,
)
from samegrad.data._nodes import Node, Run
from samegrad.data._options import AutoShardPolicy
from samegrad.data._structure import (
    Structure,
    fill,
    leaves_of,
    map_leaves,
)
from samegrad.distribute._job import gathered
from samegrad.distribute._own_data import OwnData, has_own_data, policy_of
from samegrad.distribute._own_rows import own_rows_of
from samegrad.distribute._same_data import check_same_data
from samegrad.distribute._split import Split, check_dense, check_numbers, split_rows


@dataclass(frozen=True)
class InputContext:
    """Context of a dataset function: its pipeline and the number of replicas.

    Attributes:
        num_input_pipelines: Number of datasets that feed the replicas together.
        input_pipeline_id: Index of this dataset among them.
        num_replicas_in_sync: Number of replicas that split a global batch.

    Example:
        >>> InputContext(num_replicas_in_sync=6).get_per_replica_batch_size(12)
        2
    """

    num_input_pipelines: int = 1
    input_pipeline_id: int = 0
    num_replicas_in_sync: int = 1

    def get_per_replica_batch_size(self, global_batch_size: int) -> int:
        """Return the size of each replica's batch.

        Args:
            global_batch_size: Number of examples in a global batch.

        Returns:
            global_batch_size divided by the number of replicas.

        Raises:
            ValueError: global_batch_size is not a multiple of the number of replicas.

        Example:
            >>> import samegrad as tf
            >>> context = tf.distribute.InputContext(1, 0, num_replicas_in_sync=4)
            >>> context.get_per_replica_batch_size(64)
            16
        """
        if global_batch_size % self.num_replicas_in_sync:
            raise ValueError(
                "[InputContext] the global batch size must be a multiple of the replicas: got "
                f"{global_batch_size} and {self.num_replicas_in_sync}."
            )
        return global_batch_size // self.num_replicas_in_sync


class InputStrategy(Protocol):
    """Protocol of a strategy, as far as datasets need it."""

    @property
    def num_replicas_in_sync(self) -> int:
        """Return the number of replicas that split a batch."""

    @property
    def processes(self) -> tuple[int, ...]:
        """The first replica of each process and the number of all; empty: there is one process."""


class DistributedDataset:
    """Each element of a dataset, split between the replicas.

    Made by `Strategy.experimental_distribute_dataset` and `distribute_datasets_from_function`.
    Iterating gives `PerReplica` values (plain tensors if there is one replica), in the structure of
    the dataset's elements. Batches are split by rows; a replica without rows takes part with shape
    `(0, …)`. Every iterator is an epoch of its own.

    Args:
        dataset: Its elements are global batches; with `own`, batches of one replica.
        strategy: Strategy of the replicas. A batch of n examples is divided between N replicas in
            contiguous chunks of ceil(n / N); the last chunks are shorter or empty.
        own: Each replica takes an element of its own, in order; after the last one, batches
            without rows.

    Raises:
        TypeError: `dataset` is not a `samegrad.data.Dataset`.
        ValueError: Its elements are single examples, for `.batch()` was not called; or processes
            that take their rows of the same batches have made different datasets.

    Example:
        >>> import samegrad as tf
        >>> strategy = tf.distribute.MirroredStrategy(replicas=2)
        >>> dataset = DistributedDataset(tf.data.Dataset.range(7).batch(4), strategy)
        >>> for batch in dataset:
        ...     print([part.numpy().tolist() for part in batch.values])
        [[0, 1], [2, 3]]
        [[4, 5], [6]]
    """

    def __init__(self, dataset: Dataset, strategy: InputStrategy, *, own: bool = False) -> None:
        if not isinstance(dataset, Dataset):
            raise TypeError(
                "[experimental_distribute_dataset] a samegrad.data.Dataset is needed: got "
                f"{type(dataset).__name__}; make one, e.g. with "
                "Dataset.from_tensor_slices(arrays).batch(global_batch_size)."
            )
        self._node = dataset._node
        self._split = Split(strategy.num_replicas_in_sync, own, strategy.processes)
        self._epochs = EpochCounter()
        self._data: OwnData | None = None
        self._sharing = 0  # processes with data of their own
        self._compares_epochs = False
        if not own and has_own_data(dataset):
            self._sharing = max(1, len(strategy.processes) - 1)
        if self._sharing > 1:
            self._data = OwnData(dataset, self._split)
            self._node = self._data.root
        elif strategy.processes and policy_of(dataset) is AutoShardPolicy.HINT:
            raise ValueError(
                "[experimental_distribute_dataset] AutoShardPolicy.HINT has no place to look for: "
                f"got it for {len(strategy.processes) - 1} processes; call Dataset.shard with "
                "mpi.size() and rank(), and choose AutoShardPolicy.OFF."
            )
        elif strategy.processes and not own:
            check_same_data("experimental_distribute_dataset", description_of(self._node))
            self._compares_epochs = order_depends_on_epoch(self._node)
        if not own:  # a replica may have a single example of its own
            check_splittable(self._node)

    def __iter__(self) -> DistributedIterator:
        opened = self._data.open if self._data else self._open
        return DistributedIterator(self._node, self._epochs, self._split, opened, self._sharing)

    def _open(self, run: Run) -> Cursor:
        if self._compares_epochs:
            check_same_data("next of a distributed dataset", [("epoch", str(run.epoch))])
        return _open(self._node, run, self._split)

    def __len__(self) -> int:
        size = self._data.cardinality() if self._data else self._node.cardinality()
        if size < 0:
            raise TypeError("[DistributedDataset] len() needs a known number of elements.")
        return -(-size // self._split.elements_per_step)

    def __bool__(self) -> bool:
        return True

    @property
    def element_spec(self) -> Structure:
        """The TensorSpecs of one replica's share."""
        return _share_spec(self._node, self._split)

    def __repr__(self) -> str:
        return f"<DistributedDataset for {self._split.replicas} replicas>"


class DistributedIterator(ResumableIterator):
    """Gives each replica its share; `tf.train.Checkpoint` stores its place.

    A checkpoint counts the dataset's elements, so it can go on with another number of replicas.

    Example:
        >>> import samegrad as tf
        >>> strategy = tf.distribute.MirroredStrategy(replicas=2)
        >>> iterator = iter(DistributedDataset(tf.data.Dataset.range(4).batch(2), strategy))
        >>> [part.numpy().tolist() for part in iterator.get_next().values]
        [[0], [1]]
    """

    def __init__(
        self, root: Node, epochs: EpochCounter, split: Split, open_run: Callable[[Run], Cursor],
        sharing: int = 0,
    ) -> None:  # fmt: skip
        super().__init__(root, epochs, open_run)
        self._split, self._sharing = split, sharing

    @property
    def element_spec(self) -> Structure:
        """The TensorSpecs of one replica's share."""
        return _share_spec(self._root, self._split)

    def _checkpoint_state(self) -> Mapping[str, Any]:
        found = super()._checkpoint_state()
        return {**found, "processes": self._sharing} if self._sharing else found

    def _restore_state(self, values: Mapping[str, Any]) -> None:
        of_place = dict(values)
        sharing = of_place.pop("processes", 0)
        if values.get("position") and sharing != self._sharing:
            raise ValueError(
                "[experimental_distribute_dataset] with AutoShardPolicy.FILE or OFF what was read "
                "before depends on the number of processes, so that a checkpoint within an epoch "
                f"goes on with as many: got one of {sharing or 'the policy DATA'} for "
                f"{self._sharing or 'the policy DATA'}; start as many, save between two epochs, or "
                "choose AutoShardPolicy.DATA."
            )
        super()._restore_state(of_place)

    def get_next(self) -> Structure:
        """Return the next global batch.

        Returns:
            `PerReplica`, or a structure of them; tensors if there is one replica.

        Raises:
            OutOfRangeError: The iterator is exhausted.
        """
        return get_next(self)

    def get_next_as_optional(self) -> Optional:
        """The next global batch, or nothing: ask `has_value()`, then `get_value()`."""
        return Optional.next_of(self)


def distribute_from_function(
    dataset_fn: Callable[[InputContext], Dataset], strategy: InputStrategy
) -> DistributedDataset:
    """Return the dataset of `Strategy.distribute_datasets_from_function`.

    Args:
        dataset_fn: Gets an `InputContext`; returns a dataset of batches, each for one replica.
        strategy: Whose replicas they are for.

    Returns:
        A dataset each of whose elements is one batch per replica.

    Raises:
        TypeError: `dataset_fn` did not return a dataset.

    Example:
        >>> import samegrad as tf
        >>> strategy = tf.distribute.MirroredStrategy(replicas=2)
        >>> dataset = distribute_from_function(
        ...     lambda context: tf.data.Dataset.range(6).batch(2), strategy)
        >>> for batch in dataset:
        ...     print([part.numpy().tolist() for part in batch.values])
        [[0, 1], [2, 3]]
        [[4, 5], []]
    """
    processes = strategy.processes
    first, _ = _core.own_replicas(processes)
    context = InputContext(
        num_input_pipelines=max(1, len(processes) - 1),
        input_pipeline_id=processes.index(first) if processes else 0,
        num_replicas_in_sync=strategy.num_replicas_in_sync,
    )
    return DistributedDataset(dataset_fn(context), strategy, own=True)


def _open(root: Node, run: Run, split: Split) -> Cursor:
    indexed = root.index(run)
    if indexed and root.batched and not (split.own and split.processes):
        return indexed.open(
            run.epoch, split=split.name, replicas=split.replicas, per_replica=PerReplica, lazy=True,
            own=split.own_range,
        )  # fmt: skip
    if split.processes and not split.own:
        own_rows = own_rows_of(root, run, split)
        if own_rows is not None:
            return own_rows
    child = BackgroundCursor(lambda: root.cursor(run))
    if split.own and split.processes:
        return _OwnCursor(child, split, root.spec)
    return _SplitCursor(child, split)


def _share_spec(root: Node, split: Split) -> Structure:
    if split.replicas == 1:
        return root.spec
    return map_leaves(lambda s: TensorSpec((None, *s.shape[1:]), s.dtype), root.spec)


class _SplitCursor(Cursor):
    """Splits batches that Python made."""

    def __init__(self, child: Cursor, split: Split) -> None:
        self._child, self._split = child, split
        self._taken = 0

    def elements_per_step(self) -> int:
        """Return the number of elements of the dataset in the last step."""
        return self._taken

    def skip(self, count: int) -> int:
        return self._child.skip(count)

    def next(self) -> Structure:
        split = self._split
        element = self._child.next()
        self._taken = 1
        if split.replicas == 1:
            return map_leaves(_mark_numbers, element)
        if split.own:
            return self._own_elements(element)
        leaves = leaves_of(element)
        for leaf in leaves:
            check_dense(leaf)
        rows = _rows_of(leaves)
        bounds = _core.share_bounds(rows, split.replicas)
        own = split.own_range
        return fill(element, [split_rows(leaf, bounds, own) for leaf in leaves])

    def _own_elements(self, first: Structure) -> Structure:
        elements = [leaves_of(first)]
        if any(leaf._rank == 0 for leaf in elements[0]):
            return self._own_examples(first)
        while len(elements) < self._split.replicas:
            try:
                elements.append(leaves_of(self._child.next()))
                self._taken += 1
            except StopIteration:
                elements.append([leaf[:0] for leaf in elements[0]])
        for leaves in elements:
            _rows_of(leaves)
        columns = zip(*elements, strict=True)
        return fill(first, [PerReplica(tuple(map(_mark_numbers, column))) for column in columns])

    def _own_examples(self, first: Structure) -> Structure:
        """A single example for each replica; what is left at the end cannot be divided."""
        elements = [leaves_of(first)]
        while len(elements) < self._split.replicas:
            try:
                elements.append(leaves_of(self._child.next()))
            except StopIteration:
                raise ValueError(
                    "[distribute_datasets_from_function] the last examples must be as many as the "
                    f"replicas, {self._split.replicas}: got {len(elements)}; call .batch() in the "
                    "function, so that a replica may have none."
                ) from None
            self._taken += 1
        columns = zip(*elements, strict=True)
        return fill(first, [PerReplica(column) for column in columns])


class _OwnCursor(Cursor):
    """Batches that each process makes for its own replicas."""

    def __init__(self, child: Cursor, split: Split, spec: Structure) -> None:
        self._child, self._split, self._spec = child, split, spec
        self._taken = 0

    def elements_per_step(self) -> int:
        """Return the number of elements of this process's dataset in the last step."""
        return self._taken

    def skip(self, count: int) -> int:
        return self._child.skip(count)

    def next(self) -> Structure:
        own: list[list[Any]] = []
        while len(own) < self._split.own_count:
            try:
                own.append([_mark(leaf) for leaf in leaves_of(self._child.next())])
            except StopIteration:
                break
        self._taken = len(own)
        for leaves in own:
            _rows_of(leaves)
        shapes = [[tuple(leaf._shape) for leaf in leaves] for leaves in own]
        of_processes = gathered("a batch of distribute_datasets_from_function", shapes)
        known = next((found[0] for found in of_processes if found), None)
        if known is None:
            raise StopIteration
        none = [(0, *shape[1:]) for shape in known]
        sizes = [found + [none] * count for found, count in zip(of_processes, self._missing(
            [len(found) for found in of_processes]), strict=True)]  # fmt: skip
        own += [self._no_rows(none)] * (self._split.own_count - len(own))
        first, _ = self._split.own_range
        of_replicas = [shapes for found in sizes for shapes in found]
        columns = zip(zip(*own, strict=True), zip(*of_replicas, strict=True), strict=True)
        return fill(
            self._spec,
            [
                PerReplica(_core.spread_parts(list(parts), first, [list(s) for s in column]))
                for parts, column in columns
            ],
        )

    def _missing(self, counts: list[int]) -> list[int]:
        """Return how many replicas of each process have no batch left."""
        firsts = self._split.processes
        return [
            end - begin - count
            for begin, end, count in zip(firsts[:-1], firsts[1:], counts, strict=True)
        ]

    def _no_rows(self, shapes: list[tuple[int, ...]]) -> list[Any]:
        return [
            _mark(_core.ops.zeros(shape=list(shape), dtype=spec.dtype.name))
            for spec, shape in zip(leaves_of(self._spec), shapes, strict=True)
        ]


def _mark_numbers(leaf: Any) -> Any:
    """The component of a batch, numbers with their examples on axis 0."""
    return leaf if isinstance(leaf, Text) else _mark(leaf)


def _mark(tensor: Any) -> Any:
    """The tensor, with its examples on axis 0."""
    check_numbers(tensor)
    if tensor._rank == 0:
        return tensor
    return tensor if tensor._example_axis == (0, 1) else tensor._as_examples(0, 1)


def _rows_of(leaves: list[Any]) -> int:
    """The number of rows that all leaves have."""
    sizes = {int(leaf._shape[0]) if leaf._rank else -1 for leaf in leaves}
    if len(sizes) != 1 or -1 in sizes:
        shapes = ", ".join(str(leaf._shape) for leaf in leaves)
        raise ValueError(
            "[experimental_distribute_dataset] all components of a batch must have the same number "
            f"of examples along axis 0: got shapes {shapes}."
        )
    return sizes.pop()


__all__ = ["DistributedDataset", "DistributedIterator", "InputContext", "distribute_from_function"]
