"""Global batches of rows that each process has read by itself, from files of its own, say."""

from __future__ import annotations

import hashlib
from itertools import pairwise
from typing import Any

from samegrad import _core
from samegrad._tensor.per_replica import PerReplica
from samegrad.data._cursor import BackgroundCursor, Cursor
from samegrad.data._dataset import Dataset
from samegrad.data._nodes import INFINITE, UNKNOWN, Node, Run
from samegrad.data._options import AutoShardPolicy
from samegrad.data._own_files import FilesOfProcess, RowsOfProcess, own_run
from samegrad.data._structure import Structure, fill, leaves_of
from samegrad.distribute._job import gathered
from samegrad.distribute._split import Split, check_numbers

_WHO = "[experimental_distribute_dataset]"
_OWN = (AutoShardPolicy.FILE, AutoShardPolicy.OFF)


def has_own_data(dataset: Dataset) -> bool:
    """Tell if the dataset's options let each process read other elements."""
    return policy_of(dataset) in _OWN


def policy_of(dataset: Dataset) -> AutoShardPolicy:
    """Return the `AutoShardPolicy` of the dataset's options."""
    policy: AutoShardPolicy = dataset.options().experimental_distribute.auto_shard_policy
    return policy


class OwnData:
    """Dataset of this process, whose examples form global batches with those of the others.

    A global batch has as many rows as `batch` says, and each replica as many of them as of any
    other dataset. At the end of the data of one process its replicas have fewer rows, then none,
    until all have come to theirs; where the remainder is dropped, the first end is that of all.

    Args:
        dataset: With the policy FILE or OFF.
        split: Division of a global batch between the replicas of all processes.

    Attributes:
        root: The last stage of this process.

    Raises:
        ValueError: As `FilesOfProcess` and `RowsOfProcess`; processes list other files.
        RuntimeError: Another process could not.
    """

    def __init__(self, dataset: Dataset, split: Split) -> None:
        self._split, self._policy = split, policy_of(dataset)
        self._index = split.processes.index(split.own_range[0])
        self._count = len(split.processes) - 1
        self._rows = RowsOfProcess(self._shares, self._index)
        self._files = FilesOfProcess(self._count, self._index)
        root: Node | None = None
        size = UNKNOWN
        error: Exception | None = None
        try:
            root = self._own_root(dataset._node)
            size = root.cardinality()
        except Exception as found:
            error = found
        names: tuple[int, str] | None = _digest([text.encoded for text in self._files.names])
        if error is not None and not self._files.names:
            names = None  # it has not come so far
        told = gathered("own data of a dataset", (names, size, _text(error)))
        _check_names([names for names, _, _ in told])  # which may be why one could not
        _raise_on_all("make its dataset", [text for _, _, text in told], error)
        assert root is not None
        self.root = root
        # With OFF the others' data are not what these stages would be there.
        self._sizes = [size for _, size, _ in told]

    @property
    def processes(self) -> int:
        """Return the number of processes that read the data."""
        return self._count

    def _own_root(self, whole: Node) -> Node:
        node = self._rows.of(whole)
        return self._files.of(node) if self._policy is AutoShardPolicy.FILE else node

    def _bounds(self, rows: int) -> list[int]:
        found: list[int] = _core.share_bounds(rows, self._split.replicas)
        return found

    def _shares(self, rows: int) -> list[int]:
        """Return each process's number of examples of a global batch."""
        bounds = self._bounds(rows)
        return [bounds[end] - bounds[begin] for begin, end in pairwise(self._split.processes)]

    def cardinality(self) -> int:
        """Return the number of global batches; INFINITE or UNKNOWN."""
        sizes = self._sizes
        if UNKNOWN in sizes:
            return UNKNOWN
        if INFINITE in sizes and not self._rows.drops:
            return INFINITE
        ends = [size for size in sizes if size != INFINITE]
        return (min(ends) if self._rows.drops else max(ends)) if ends else INFINITE

    def open(self, run: Run) -> Cursor:
        """The global batches of a run."""
        own = own_run(run, self.root, self._count, self._index)
        child = BackgroundCursor(lambda: self.root.cursor(own))
        return _OwnDataCursor(child, self)

    def counts(self, index: int, rows: int) -> list[int]:
        """Return the number of examples of each replica of a process."""
        begin, end = self._split.processes[index : index + 2]
        for size in self._rows.sizes:
            bounds = self._bounds(size)[begin : end + 1]
            if bounds[-1] - bounds[0] == rows:
                return [b - a for a, b in pairwise(bounds)]
        short = _core.share_bounds(rows, end - begin)
        return [b - a for a, b in pairwise(short)]

    def joined(self, like: Structure, leaves: list[Any], shapes: list[Any]) -> Structure | None:
        """A global batch of this process's rows.

        Args:
            like: The structure of a batch, with the names of dtypes.
            leaves: The components of its batch; empty at the end of its data.
            shapes: The shapes of each process's components; None at the end of its data.

        Returns:
            None at the end of all.
        """
        there = [found for found in shapes if found is not None]
        if not there or (self._rows.drops and len(there) < len(shapes)):
            return None
        _check_alike(shapes)
        rows = [0 if found is None else found[0][0] for found in shapes]
        counts = [self.counts(index, count) for index, count in enumerate(rows)]
        of_replicas = [count for own in counts for count in own]
        bounds = [sum(counts[self._index][:n]) for n in range(len(counts[self._index]) + 1)]
        first = self._split.own_range[0]
        inner = [shape[1:] for shape in there[0]]
        own = leaves or [_no_rows(*each) for each in zip(leaves_of(like), inner, strict=True)]
        return fill(
            like,
            [
                PerReplica(
                    _core.spread_parts(
                        list(_core.split_rows(leaf, bounds)), first,
                        [[count, *sizes] for count in of_replicas],
                    )
                )
                for leaf, sizes in zip(own, inner, strict=True)
            ],
        )  # fmt: skip


class _OwnDataCursor(Cursor):
    def __init__(self, child: Cursor, data: OwnData) -> None:
        self._child, self._data = child, data
        self._ended = self._all_ended = False
        self._like: Structure = None  # the structure of a batch, with the names of dtypes

    def next(self) -> Structure:
        if self._all_ended:
            raise StopIteration
        before = self._like
        leaves: list[Any] = []
        error: Exception | None = None
        try:
            leaves = self._own()
        except Exception as raised:
            error = raised
        shapes = [tuple(leaf._shape) for leaf in leaves] or None
        # Who has no rows at all is told by others what they are.
        like = None if before is not None else self._like
        found = gathered("a batch of own data", (shapes, like, _text(error)))
        _raise_on_all("read its rows of a batch", [text for _, _, text in found], error)
        told = (like for _, like, _ in found if like is not None)
        self._like = self._like if self._like is not None else next(told, None)
        batch = self._data.joined(self._like, leaves, [shapes for shapes, _, _ in found])
        if batch is None:
            self._all_ended = True
            raise StopIteration
        return batch

    def _own(self) -> list[Any]:
        """The components of this process's batch; none at the end of its data."""
        if self._ended:
            return []
        try:
            element = self._child.next()
        except StopIteration:
            self._ended = True
            return []
        leaves = leaves_of(element)
        for leaf in leaves:
            check_numbers(leaf)
        if len({leaf._shape[:1] for leaf in leaves}) > 1 or not leaves[0]._rank:
            shapes = ", ".join(str(leaf._shape) for leaf in leaves)
            raise ValueError(
                f"{_WHO} all components of a batch must have the same number of examples along "
                f"axis 0: got shapes {shapes}."
            )
        if self._like is None:
            self._like = fill(element, [leaf.dtype.name for leaf in leaves])
        return leaves

    def skip(self, count: int) -> int:
        self._child.skip(count)  # a process whose data end before has no rows then
        return count


def _no_rows(dtype: str, inner: tuple[int, ...]) -> Any:
    return _core.ops.zeros(shape=[0, *inner], dtype=dtype)


def _text(error: Exception | None) -> str | None:
    return None if error is None else f"{type(error).__name__}: {error}"


def _raise_on_all(what: str, told: list[str | None], own: Exception | None) -> None:
    """This process's error, or RuntimeError where others have one."""
    if own is not None:
        raise own
    others = [f"rank {rank} got {text}" for rank, text in enumerate(told) if text is not None]
    if others:
        raise RuntimeError(f"{_WHO} each process must {what}: {'; '.join(others)}")


def _digest(names: list[Any]) -> tuple[int, str]:
    """Return the number of file names, and a hash of them."""
    everything = hashlib.sha256()
    for values in names:
        for value in values.reshape(-1).tolist():
            everything.update(len(value).to_bytes(8, "little") + value)
    return sum(values.size for values in names), everything.hexdigest()


def _check_names(found: list[tuple[int, str] | None]) -> None:
    """ValueError on all processes where they have other lists of files."""
    lists = {rank: names for rank, names in enumerate(found) if names is not None}
    if len(set(lists.values())) > 1:
        told = ", ".join(f"{count} on rank {rank}" for rank, (count, _) in lists.items())
        raise ValueError(
            f"{_WHO} AutoShardPolicy.FILE deals out one list of files, which all processes must "
            f"have: got lists that differ, {told} names; give all the same folder, or let each "
            "process read what it has with AutoShardPolicy.OFF."
        )


def _check_alike(shapes: list[Any]) -> None:
    """ValueError on all processes where elements of one batch have other shapes on others."""
    inner = {
        rank: [tuple(shape[1:]) for shape in found]
        for rank, found in enumerate(shapes)
        if found is not None
    }
    first = next(iter(inner.values()))
    for rank, found in inner.items():
        if found != first:
            raise ValueError(
                f"{_WHO} elements of one global batch must have one shape on all processes: got "
                f"{first} on rank {next(iter(inner))} and {found} on rank {rank}; pad to a size "
                "that is given, as in padded_batch(n, padded_shapes=[64])."
            )


__all__ = ["OwnData", "has_own_data", "policy_of"]
