"""The stages of a dataset as one of several processes has them: with files and batches of its own.

As in TensorFlow, whose rule this is, each process takes every n-th name of a file, in the order
before any shuffling: it then shuffles its own files, and opens the same ones in every epoch.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar, cast

from samegrad._tensor.text import Text
from samegrad.data._csv import RowsNode
from samegrad.data._drawn_nodes import CountedNode, IgnoreErrorsNode
from samegrad.data._function_nodes import (
    CacheNode,
    ConcatenateNode,
    MapNode,
    PrefetchNode,
    UnbatchNode,
)
from samegrad.data._group_nodes import GroupNode
from samegrad.data._keeping import FileCacheNode
from samegrad.data._nested_nodes import InterleaveNode
from samegrad.data._nodes import (
    UNKNOWN,
    BatchNode,
    Node,
    RangeNode,
    RepeatNode,
    Run,
    SelectionNode,
    ShardNode,
    ShuffleNode,
    SkipNode,
    SliceNode,
    TakeNode,
    ZipNode,
)
from samegrad.data._state_nodes import RebatchNode, ScanNode
from samegrad.data._structure import leaves_of, map_leaves

SomeNode = TypeVar("SomeNode", bound=Node)
_WHO = "[experimental_distribute_dataset]"
_ORDER = (ShuffleNode, RepeatNode, PrefetchNode, CacheNode, FileCacheNode)
_CHOICE = (*_ORDER, TakeNode, SkipNode, ShardNode, SelectionNode, CountedNode)
_SAME_ELEMENTS = (*_CHOICE, IgnoreErrorsNode)
_BATCHES = (BatchNode, RebatchNode)
_PASSING = (
    *_SAME_ELEMENTS, *_BATCHES, MapNode, InterleaveNode, UnbatchNode, GroupNode, ScanNode, RowsNode,
)  # fmt: skip
_REMEDY = "choose AutoShardPolicy.DATA, with which processes read all and have the bits of one"


@dataclass
class FilesOfProcess:
    """Gives one of several processes its files.

    Args:
        count: How many processes there are.
        index: Which one this is.

    Attributes:
        names: The names of all files, as far as they were given as a list.
    """

    count: int
    index: int
    names: list[Text] = field(default_factory=list)

    def of(self, node: Node) -> Node:
        """The stage over this process's files.

        Raises:
            ValueError: The dataset reads no files, fewer than there are processes, or has a stage
                of which nobody knows what becomes of it.
        """
        names = names_of_files(node)
        if names:
            self.names += names
            return self._dealt(node)
        if isinstance(node, InterleaveNode) and node.of_files:
            self.names += _texts(node.child)
            return with_child(node, self._dealt(node.child))
        if isinstance(node, CountedNode):  # it counted the elements of all processes
            return self.of(node.child)
        if isinstance(node, ZipNode | ConcatenateNode):
            return _with_parts(node, self.of)
        if not isinstance(node, _PASSING):
            kind = type(node).__name__.removesuffix("Node")
            raise ValueError(
                f"{_WHO} AutoShardPolicy.FILE needs a dataset that reads files: got one of "
                f"{_KINDS.get(kind, kind)}; begin with Dataset.list_files, TFRecordDataset, "
                "TextLineDataset, or from_tensor_slices of names of files that are there, or "
                f"{_REMEDY}."
            )
        return with_child(node, self.of(node.child))

    def _dealt(self, node: Node) -> Node:
        """Every n-th file; what shuffles and repeats them comes after."""
        if isinstance(node, _ORDER):
            return with_child(node, self._dealt(node.child))
        found = node.cardinality()
        if found == UNKNOWN:
            found = node.cursor(Run.of(node, 0, 0)).skip(self.count)
        if 0 <= found < self.count:
            raise ValueError(
                f"{_WHO} AutoShardPolicy.FILE needs a file for each process: got {found} files for "
                f"{self.count} processes; write more files, start fewer processes, or {_REMEDY}."
            )
        return ShardNode(node, self.count, self.index)


_KINDS = {
    "Slice": "from_tensor_slices whose elements are not names of existing files",
    "Range": "range",
    "Generator": "from_generator",
    "Stored": "load",
    "Choose": "sample_from_datasets or choose_from_datasets",
    "Windows": "window",
}


def names_of_files(node: Node) -> list[Text]:
    """The names of files among which stages choose; none if it is another kind of dataset.

    The first name tells: there must be such a file or folder.
    """
    if all(isinstance(part, (*_CHOICE, ZipNode, SliceNode, RangeNode)) for part in node.walk()):
        return [text for text in _texts(node) if _is_file(text)]
    return []


def _texts(node: Node) -> list[Text]:
    """The text of lists from which stages take elements."""
    slices = [part for part in node.walk() if isinstance(part, SliceNode)]
    leaves = [leaf for part in slices for leaf in leaves_of(part._tensors)]
    return [leaf for leaf in leaves if isinstance(leaf, Text)]


def _is_file(text: Text) -> bool:
    values = text.encoded.reshape(-1)
    return not values.size or (bool(values[0]) and os.path.exists(os.fsdecode(values[0])))


@dataclass
class RowsOfProcess:
    """Makes the global batches of a dataset batches of one process's rows.

    Args:
        share: How many rows of a global batch of that size each process has.
        index: Which process this one is.

    Attributes:
        sizes: Of the global batches.
        drops: Whether batches that are not full are left out.
    """

    share: Callable[[int], list[int]]
    index: int
    sizes: list[int] = field(default_factory=list)
    drops: bool = True

    def of(self, node: Node) -> Node:
        """The stage with smaller batches.

        Raises:
            ValueError: The size of a batch is not known, or a process would have no row.
        """
        if isinstance(node, BatchNode):
            self.drops = self.drops and node._drop
            made = with_child(node, node.child)
            made._size = self._own(node._size)
            return made
        if isinstance(node, RebatchNode) and len(node._sizes) == 1:
            self.drops = self.drops and node._drop
            rebatched = with_child(node, node.child)
            rebatched._sizes = [self._own(node._sizes[0])]
            return rebatched
        if isinstance(node, ZipNode | ConcatenateNode):
            return _with_parts(node, self.of)
        if isinstance(node, (*_SAME_ELEMENTS, MapNode)):
            return with_child(node, self.of(node.child))
        raise ValueError(
            f"{_WHO} AutoShardPolicy.FILE and OFF need batches of one size, of which each process "
            "makes its rows: got a dataset that does not end with batch; call "
            f".batch(global_batch_size) last, or {_REMEDY}."
        )

    def _own(self, size: int) -> int:
        shares = self.share(size)
        if 0 in shares:
            raise ValueError(
                f"{_WHO} AutoShardPolicy.FILE and OFF need rows of a global batch for each "
                f"process: got a batch of {size}, distributed as {shares}; take larger batches, or "
                "fewer replicas."
            )
        self.sizes.append(size)
        return shares[self.index]


def with_child(node: SomeNode, child: Node) -> SomeNode:
    """The same stage of another one's elements."""
    made: Any = copy.copy(node)
    made.inputs, made.child = (child,), child
    if isinstance(made, CacheNode):  # what it may hold are elements of all processes
        made._elements = made._stacked = None
    if isinstance(node, BatchNode):
        made._row = _of_child(node._row, node.child, child)
        stack = node._stack
        if stack is not None and getattr(stack, "__self__", None) is node._row:
            made._stack = getattr(made._row, stack.__name__)
    return cast("SomeNode", made)


def _of_child(row: Any, old: Node, child: Node) -> Any:
    """Rebind an object that knows the specs of elements to another node."""
    if row is old:
        return child
    made = copy.copy(row)
    if getattr(row, "_child", None) is old:
        made._child = child
    return made


def _with_parts(node: Node, of: Callable[[Node], Node]) -> Node:
    """Stages side by side, or one after the other, each replaced."""
    if isinstance(node, ZipNode):
        return ZipNode(map_leaves(of, node._nodes))
    return ConcatenateNode(*map(of, node.inputs))


def own_run(run: Run, root: Node, count: int, index: int) -> Run:
    """The run with other draws on each process, but for what chooses what it gets.

    Before `shard` all processes have to draw alike, so that their parts are disjoint. Files that
    keep elements have other names on each, wherever the parts were chosen.
    """
    shared = {
        id(each) for node in root.walk() if isinstance(node, ShardNode) for each in node.walk()
    }
    numbers = {
        key: number if key in shared else number + (index << 32)
        for key, number in run.numbers.items()
    }
    return replace(run, numbers=numbers, suffix=f".{index}of{count}")


__all__ = ["FilesOfProcess", "RowsOfProcess", "names_of_files", "own_run", "with_child"]
