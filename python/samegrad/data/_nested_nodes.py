"""The stages of a dataset that open datasets, or give them as elements."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from samegrad._tensor.spec import TensorSpec
from samegrad._tensor.text import Text, of_bytes
from samegrad.data._cursor import Cursor
from samegrad.data._function_nodes import ListCursor
from samegrad.data._nodes import (
    INFINITE,
    UNKNOWN,
    Node,
    PythonNode,
    Run,
    UncountedNode,
)
from samegrad.data._random import data_function, mix, take_ordinal
from samegrad.data._stand_ins import first_or_stand_in
from samegrad.data._structure import DatasetSpec, Structure, fill, leaves_of, map_leaves


class InterleaveNode(PythonNode):
    """The elements of the datasets that a function makes of elements, several at a time.

    Args:
        child: Where the elements come from.
        function: Gets an element; returns a stage.
        cycle_length: How many datasets are open.
        block_length: How many elements each gives in turn.
        spec: The TensorSpecs of the elements. None: those of the first dataset.
        of_files: Whether the elements are names of files, which the datasets read.
    """

    def __init__(
        self, child: Node, function: Callable[[Structure], Node], cycle_length: int,
        block_length: int, spec: Structure = None, of_files: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(child, batched=None)
        self.child, self._function = child, function
        self._cycle, self._block = cycle_length, block_length
        self.ordinal = take_ordinal()
        self._spec, self.of_files = spec, of_files

    @property
    def spec(self) -> Structure:
        if self._spec is None:
            element = first_or_stand_in(self.child)
            with data_function(0, 0):
                self._spec = self._function(element).spec
        return self._spec

    def cardinality(self) -> int:
        size = self.child.cardinality()
        return size if size in (0, INFINITE) else UNKNOWN

    def python_cursor(self, run: Run) -> Cursor:
        seed = run.draws_of(self)

        def opened(number: int, element: Structure) -> Cursor:
            with data_function(seed, number):
                node = self._function(element)
            return node.cursor(run.of_inner(node, mix(seed, number), run.epoch))

        return _InterleaveCursor(self.child.cursor(run), opened, self._cycle, self._block)


class _InterleaveCursor(Cursor):
    """TensorFlow's order: a place whose dataset has ended is filled when its turn comes again."""

    def __init__(
        self, child: Cursor, opened: Callable[[int, Structure], Cursor], cycle: int, block: int
    ) -> None:
        self._child, self._opened, self._block = child, opened, block
        self._places: list[Cursor | None] = [None] * cycle
        self._open = self._turn = self._given = self._count = 0
        self._ended = False

    def next(self) -> Structure:
        while not self._ended or self._open:
            cursor = self._places[self._turn] or self._fill()
            if cursor is None:
                self._pass_on()
                continue
            try:
                element = cursor.next()
            except StopIteration:
                self._places[self._turn] = None
                self._open -= 1
                self._pass_on()
                continue
            self._given += 1
            if self._given == self._block:
                self._pass_on()
            return element
        raise StopIteration

    def _fill(self) -> Cursor | None:
        if self._ended:
            return None
        try:
            element = self._child.next()
        except StopIteration:
            self._ended = True
            return None
        cursor = self._opened(self._count, element)
        self._count += 1
        self._open += 1
        self._places[self._turn] = cursor
        return cursor

    def _pass_on(self) -> None:
        self._given = 0
        self._turn = (self._turn + 1) % len(self._places)


class ElementsNode(PythonNode):
    """Elements that are there already."""

    def __init__(self, members: list[Structure], spec: Structure, batched: bool | None) -> None:
        super().__init__(batched=batched)
        self._members, self._spec = members, spec

    @property
    def spec(self) -> Structure:
        return self._spec

    def cardinality(self) -> int:
        return len(self._members)

    def python_cursor(self, run: Run) -> Cursor:
        return ListCursor(self._members)


class WindowsNode(PythonNode):
    """Datasets of neighbouring elements, one for each component.

    Args:
        child: Where the elements come from.
        size: Elements of a window.
        shift: From the beginning of one window to that of the next.
        stride: From one element of a window to the next.
        drop_remainder: Whether windows that are not full are left out.
        make: Makes a dataset of a stage.
    """

    def __init__(
        self, child: Node, size: int, shift: int, stride: int, drop_remainder: bool,
        make: Callable[[Node], Any],
    ) -> None:  # fmt: skip
        super().__init__(child, batched=None)
        self.child, self._size, self._shift, self._stride = child, size, shift, stride
        self._drop, self._make = drop_remainder, make

    @property
    def spec(self) -> Structure:
        return map_leaves(DatasetSpec, self.child.spec)

    def cardinality(self) -> int:
        count = self.child.cardinality()
        if count < 0:
            return count
        if self._drop:
            count -= (self._size - 1) * self._stride
        return max(0, -(-count // self._shift))

    def python_cursor(self, run: Run) -> Cursor:
        specs = leaves_of(self.child.spec)

        def windowed(members: list[Structure]) -> Structure:
            columns = zip(*map(leaves_of, members), strict=True)
            parts = [
                self._make(ElementsNode(list(column), spec, self.child.batched))
                for column, spec in zip(columns, specs, strict=True)
            ]
            return fill(members[0], parts)

        return _WindowsCursor(self.child.cursor(run), self, windowed)

    def span(self) -> tuple[int, int, int, bool]:
        """Size, shift, stride, and whether windows must be full."""
        return self._size, self._shift, self._stride, self._drop


class _WindowsCursor(Cursor):
    def __init__(
        self, child: Cursor, node: WindowsNode, windowed: Callable[[list[Structure]], Structure]
    ) -> None:
        self._child, self._windowed = child, windowed
        self._size, self._shift, self._stride, self._drop = node.span()
        self._held: list[Structure] = []
        self._behind = 0  # elements to be passed over before the next window begins
        self._ended = False

    def next(self) -> Structure:
        members = self._members()
        self._advance()
        return self._windowed(members)

    def skip(self, count: int) -> int:
        for done in range(count):
            try:
                self._members()
            except StopIteration:
                return done
            self._advance()
        return count

    def _members(self) -> list[Structure]:
        if self._behind and not self._ended:
            self._ended = self._child.skip(self._behind) < self._behind
            self._behind = 0
        span = (self._size - 1) * self._stride + 1
        while not self._ended and len(self._held) < span:
            try:
                self._held.append(self._child.next())
            except StopIteration:
                self._ended = True
        members = self._held[: span : self._stride]
        if not members or (self._drop and len(members) < self._size):
            raise StopIteration
        return members

    def _advance(self) -> None:
        self._behind = max(0, self._shift - len(self._held))
        del self._held[: self._shift]


class FileNode(UncountedNode):
    """Content of a file: strings that a function reads, in sequence.

    Args:
        path: The file.
        read: Reads it: bytes, or text that knows its place.
    """

    def __init__(self, path: str, read: Callable[[str], Iterable[bytes | Text]]) -> None:
        super().__init__(batched=False)
        self._path, self._read = path, read

    @property
    def spec(self) -> TensorSpec:
        return TensorSpec((), "string")

    def python_cursor(self, run: Run) -> Cursor:
        return _FileCursor(lambda: iter(self._read(self._path)), self._path)


class _FileCursor(Cursor):
    def __init__(self, read: Callable[[], Iterator[bytes | Text]], path: str) -> None:
        self._read, self._path = read, path
        self._rest: Iterator[bytes | Text] | None = None

    def next(self) -> Structure:
        if self._rest is None:
            self._rest = self._read()
        found = next(self._rest)
        return found if isinstance(found, Text) else of_bytes(found, self._path)
