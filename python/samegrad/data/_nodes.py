"""The stages of a dataset whose elements can be named by row numbers.

A chain of such stages becomes one plan of the engine, which gathers whole batches on a thread of
its own. Each stage can also do its work in Python, for where a stage before it needs Python.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from samegrad import _core
from samegrad._tensor.spec import TensorSpec
from samegrad._tensor.tensor import Tensor
from samegrad._tensor.text import Text
from samegrad.data import _python_cursors as cursors
from samegrad.data._cursor import Cursor, FeedCursor
from samegrad.data._random import mix, take_ordinal
from samegrad.data._structure import (
    Structure,
    leaves_of,
    map_leaves,
    packer_of,
    with_rows,
)

INFINITE = -1
UNKNOWN = -2


@dataclass(frozen=True)
class Indexed:
    """Elements named by row numbers: a plan of the engine, and where the rows are.

    Attributes:
        plan: A `_core.IndexPlan`.
        sources: Per leaf (tensor or None, column of the plan, first number, step).
        template: The structure of an element.
        depth: How many elements the user wants to have ready; 0 if that is ours to say.
    """

    plan: Any
    sources: list[tuple[Tensor | None, int, int, int]]
    template: Structure
    depth: int = 0

    def open(self, epoch: int, **options: Any) -> FeedCursor:
        """A cursor over one epoch."""
        return FeedCursor(
            self.plan, self.sources, packer_of(self.template),
            epoch=epoch, depth=self.depth, **options,
        )  # fmt: skip


@dataclass(frozen=True)
class Run:
    """One run through a dataset.

    Attributes:
        epoch: How many runs there were before.
        seed: What stages without a seed of their own derive theirs from.
        numbers: The number of each stage that draws, by its id: other draws for each.
        suffix: Of files that keep elements, where processes have elements of their own.
    """

    epoch: int
    seed: int
    numbers: dict[int, int] = field(default_factory=dict)
    suffix: str = ""

    @classmethod
    def of(cls, root: Node, epoch: int, seed: int) -> Run:
        """A run whose last stage is `root`."""
        drawing = [node for node in root.walk() if node.ordinal is not None]
        return cls(epoch, seed, {id(node): number for number, node in enumerate(drawing)})

    def of_inner(self, root: Node, seed: int, epoch: int = 0) -> Run:
        """The run of a dataset that a stage of this run has made."""
        return replace(Run.of(root, epoch, seed), suffix=self.suffix)

    def seed_of(self, node: Node) -> int:
        """The seed of a stage that draws."""
        return mix(self.seed, self.numbers[id(node)])

    def draws_of(self, node: Node) -> int:
        """The seed of what a stage's functions draw in this epoch."""
        return mix(self.seed_of(node), self.epoch)


class HasSpec(Protocol):
    """Protocol of a node with TensorSpecs of its elements."""

    @property
    def spec(self) -> Structure:
        """The TensorSpecs of an element."""


class Node(ABC):
    """A stage of a dataset; immutable.

    Attributes:
        inputs: The stages before.
        batched: Whether an element is a batch of examples. None: the user's own elements.
        ordinal: The number of its draw in the process, if it has no seed of its own.
    """

    ordinal: int | None = None

    def __init__(self, *inputs: Node, batched: bool | None) -> None:
        self.inputs = inputs
        self.batched = batched

    @property
    @abstractmethod
    def spec(self) -> Structure:
        """The TensorSpecs of an element."""

    @abstractmethod
    def cardinality(self) -> int:
        """Return the number of elements of a run; INFINITE or UNKNOWN."""

    @abstractmethod
    def index(self, run: Run) -> Indexed | None:
        """Its elements by row numbers; None where Python has to make them."""

    @abstractmethod
    def python_cursor(self, run: Run) -> Cursor:
        """Its elements made by Python, if there is no index."""

    def cursor(self, run: Run) -> Cursor:
        """Its elements in their order."""
        indexed = self.index(run)
        return indexed.open(run.epoch) if indexed else self.python_cursor(run)

    def walk(self) -> Iterator[Node]:
        """All stages, the first ones first."""
        for node in self.inputs:
            yield from node.walk()
        yield self


class PythonNode(Node):
    """A stage whose elements Python makes, one after the other."""

    def index(self, run: Run) -> None:
        return None


class UncountedNode(PythonNode):
    """A stage of which nobody knows how many elements it has before they are made."""

    def cardinality(self) -> int:
        return UNKNOWN


class SelectionNode(UncountedNode):
    """Some elements of another stage, in their order."""

    def __init__(self, child: Node) -> None:
        super().__init__(child, batched=child.batched)
        self.child = child
        self.ordinal = take_ordinal()

    @property
    def spec(self) -> Structure:
        return self.child.spec

    def python_cursor(self, run: Run) -> Cursor:
        return cursors.SelectionCursor(self.child.cursor(run), self._choice(run.draws_of(self)))

    @abstractmethod
    def _choice(self, seed: int) -> Callable[[int, Structure], bool]:
        """Says of each element, given its number, whether it is chosen; StopIteration ends all."""


class SliceNode(Node):
    """Rows of tensors."""

    def __init__(self, tensors: Structure, rows: int, batched: bool | None = False) -> None:
        super().__init__(batched=batched)
        self._tensors = tensors
        self._rows = rows

    @property
    def spec(self) -> Structure:
        return map_leaves(lambda t: TensorSpec(t._shape[1:], t._dtype), self._tensors)

    def cardinality(self) -> int:
        return self._rows

    def index(self, run: Run) -> Indexed:
        leaves = leaves_of(self._tensors)
        # Of text the engine reads the numbers of the rows.
        sources = [(None if isinstance(t, Text) else t, 0, 0, 1) for t in leaves]
        return Indexed(_core.IndexPlan.rows(self._rows), sources, self._tensors)

    def python_cursor(self, run: Run) -> Cursor:
        return self.index(run).open(run.epoch)


class RangeNode(Node):
    """Numbers with a constant difference."""

    def __init__(self, first: int, step: int, count: int) -> None:
        super().__init__(batched=False)
        self._first, self._step, self._count = first, step, count

    @property
    def spec(self) -> TensorSpec:
        return TensorSpec((), "int64")

    def cardinality(self) -> int:
        return self._count

    def index(self, run: Run) -> Indexed:
        plan = _core.IndexPlan.rows(self._count)
        return Indexed(plan, [(None, 0, self._first, self._step)], 0)

    def python_cursor(self, run: Run) -> Cursor:
        return self.index(run).open(run.epoch)


class ZipNode(Node):
    """Elements of several datasets side by side."""

    def __init__(self, nodes: Structure) -> None:
        parts = leaves_of(nodes)
        batched = parts[0].batched if len({node.batched for node in parts}) == 1 else None
        super().__init__(*parts, batched=batched)
        self._nodes = nodes

    @property
    def spec(self) -> Structure:
        return map_leaves(lambda node: node.spec, self._nodes)

    def cardinality(self) -> int:
        sizes = [node.cardinality() for node in self.inputs]
        if UNKNOWN in sizes:
            return 0 if 0 in sizes else UNKNOWN
        return min((size for size in sizes if size != INFINITE), default=INFINITE)

    def index(self, run: Run) -> Indexed | None:
        parts = [node.index(run) for node in self.inputs]
        indexed = [part for part in parts if part is not None]
        if len(indexed) < len(parts) or any(node.batched for node in self.inputs):
            return None
        sources, columns = [], 0
        for part in indexed:
            sources += [(t, column + columns, a, b) for t, column, a, b in part.sources]
            columns += part.plan.columns
        templates = iter(indexed)
        template = map_leaves(lambda _: next(templates).template, self._nodes)
        return Indexed(_core.IndexPlan.zip([part.plan for part in indexed]), sources, template)

    def python_cursor(self, run: Run) -> Cursor:
        return cursors.ZipCursor(map_leaves(lambda node: node.cursor(run), self._nodes))


class _Stage(Node):
    """One input, whose elements are chosen or ordered, but not changed."""

    def __init__(self, child: Node) -> None:
        super().__init__(child, batched=child.batched)
        self.child = child

    @property
    def spec(self) -> Structure:
        return self.child.spec

    def index(self, run: Run) -> Indexed | None:
        inner = self.child.index(run)
        return inner and replace(inner, plan=self._plan(inner.plan, run))

    @abstractmethod
    def _plan(self, inner: Any, run: Run) -> Any:
        """The plan of the engine, given that of the input."""


class ShuffleNode(_Stage):
    """Elements in random order, through a buffer."""

    def __init__(self, child: Node, buffer_size: int, seed: int | None, reshuffle: bool) -> None:
        super().__init__(child)
        self._buffer_size, self._seed, self._reshuffle = buffer_size, seed, reshuffle
        if seed is None:
            self.ordinal = take_ordinal()

    def cardinality(self) -> int:
        return self.child.cardinality()

    def index(self, run: Run) -> Indexed | None:
        return None if self.batched else super().index(run)

    def _plan(self, inner: Any, run: Run) -> Any:
        return inner.shuffle(self._buffer_size, self._seed_in(run), self._reshuffle)

    def _seed_in(self, run: Run) -> int:
        return run.seed_of(self) if self._seed is None else self._seed & (1 << 64) - 1

    def python_cursor(self, run: Run) -> Cursor:
        epoch = run.epoch if self._reshuffle else 0
        return cursors.ShuffleCursor(
            self.child.cursor(run), self._buffer_size, self._seed_in(run), epoch
        )


class RepeatNode(_Stage):
    """The input several times, each time an epoch of its own; count < 0: forever."""

    def __init__(self, child: Node, count: int) -> None:
        super().__init__(child)
        self._count = count

    def cardinality(self) -> int:
        size = self.child.cardinality()
        if size == 0 or self._count == 0:
            return 0
        if size == UNKNOWN:
            return UNKNOWN
        return INFINITE if size == INFINITE or self._count < 0 else size * self._count

    def _plan(self, inner: Any, run: Run) -> Any:
        return inner.repeat(self._count)

    def python_cursor(self, run: Run) -> Cursor:
        first = run.epoch << 32 if self._count < 0 else run.epoch * self._count
        return cursors.RepeatCursor(
            lambda n: self.child.cursor(replace(run, epoch=first + n)),
            self._count,
            self.child.cardinality(),
        )


class TakeNode(_Stage):
    """The first elements; count < 0: all."""

    def __init__(self, child: Node, count: int) -> None:
        super().__init__(child)
        self._count = count

    def cardinality(self) -> int:
        size = self.child.cardinality()
        if self._count < 0 or size == UNKNOWN:
            return size
        return self._count if size == INFINITE else min(size, self._count)

    def _plan(self, inner: Any, run: Run) -> Any:
        return inner.take(self._count)

    def python_cursor(self, run: Run) -> Cursor:
        return cursors.TakeCursor(self.child.cursor(run), self._count)


class SkipNode(_Stage):
    """All but the first elements; count < 0: none."""

    def __init__(self, child: Node, count: int) -> None:
        super().__init__(child)
        self._count = count

    def cardinality(self) -> int:
        size = self.child.cardinality()
        if self._count < 0:
            return 0
        return size if size < 0 else max(0, size - self._count)

    def _plan(self, inner: Any, run: Run) -> Any:
        return inner.skip(self._count)

    def python_cursor(self, run: Run) -> Cursor:
        if self._count < 0:
            return cursors.TakeCursor(self.child.cursor(run), 0)
        return cursors.SkipCursor(self.child.cursor(run), self._count)


class ShardNode(_Stage):
    """Every n-th element, as sharding takes them."""

    def __init__(self, child: Node, count: int, index: int) -> None:
        super().__init__(child)
        self._count, self._index = count, index

    def cardinality(self) -> int:
        size = self.child.cardinality()
        return size if size < 0 else (size - self._index + self._count - 1) // self._count

    def _plan(self, inner: Any, run: Run) -> Any:
        return inner.shard(self._count, self._index)

    def python_cursor(self, run: Run) -> Cursor:
        return cursors.ShardCursor(self.child.cursor(run), self._count, self._index)


class BatchNode(Node):
    """Consecutive elements as rows of one.

    Args:
        child: Where they come from.
        batch_size: How many.
        drop_remainder: Whether a shorter last batch is left out.
        stack: Makes a batch of elements, if not the engine; then shapes may differ.
        row: Knows the `spec` of a row then.
    """

    def __init__(
        self,
        child: Node,
        batch_size: int,
        drop_remainder: bool,
        stack: Callable[[list[Structure]], Structure] | None = None,
        row: HasSpec | None = None,
    ) -> None:
        super().__init__(child, batched=True)
        self.child = child
        self._size, self._drop = batch_size, drop_remainder
        self._stack, self._row = stack, row or child

    @property
    def spec(self) -> Structure:
        rows = self._size if self._drop else None
        return map_leaves(lambda leaf: with_rows(leaf, rows), self._row.spec)

    def cardinality(self) -> int:
        size = self.child.cardinality()
        return size if size < 0 else (size if self._drop else size + self._size - 1) // self._size

    def index(self, run: Run) -> Indexed | None:
        inner = None if self.child.batched or self._stack else self.child.index(run)
        return inner and replace(inner, plan=inner.plan.batch(self._size, self._drop))

    def python_cursor(self, run: Run) -> Cursor:
        stack = self._stack or cursors.stack_elements
        return cursors.BatchCursor(self.child.cursor(run), self._size, self._drop, stack)
