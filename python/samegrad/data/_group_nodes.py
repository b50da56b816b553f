"""The stages of a dataset that collect elements by a key."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import Any

from samegrad._base.shown import shown
from samegrad._core import InvalidArgumentError
from samegrad._tensor.sizes import whole
from samegrad._tensor.tensor import constant
from samegrad.data import _python_cursors as cursors
from samegrad.data._cursor import Cursor
from samegrad.data._function_nodes import ListCursor, sizes_are_known
from samegrad.data._mapped import call
from samegrad.data._nested_nodes import ElementsNode
from samegrad.data._nodes import INFINITE, UNKNOWN, Node, PythonNode, Run
from samegrad.data._padding import Padding
from samegrad.data._random import data_function, mix, take_ordinal
from samegrad.data._structure import Structure, map_leaves, spec_of, with_rows

_WINDOWS = 1  # seeds of the windows are others than those of the keys


class GroupNode(PythonNode):
    """Elements in windows of one key; what becomes of a window is said by the classes below."""

    def __init__(self, child: Node, key_func: Callable[..., Any], batched: bool | None) -> None:
        super().__init__(child, batched=batched)
        self.child, self._key_func = child, key_func
        self.ordinal = take_ordinal()

    def cardinality(self) -> int:
        return INFINITE if self.child.cardinality() == INFINITE else UNKNOWN


class GroupByWindowNode(GroupNode):
    """Elements of the datasets that a function makes of windows.

    Args:
        child: Where the elements come from.
        key_func: Gets an element; returns an integer.
        size_func: Gets a key (int64); returns how many elements its windows have.
        reduce_func: Gets a key and a stage; returns the stage of the result.
    """

    def __init__(
        self, child: Node, key_func: Callable[..., Any], size_func: Callable[[Any], Any],
        reduce_func: Callable[[Any, Node], Node],
    ) -> None:  # fmt: skip
        super().__init__(child, key_func, None)
        self._size_func, self._reduce_func = size_func, reduce_func
        self._spec: Structure = None

    @property
    def spec(self) -> Structure:
        if self._spec is None:
            self._spec = self._peek_spec()
        return self._spec

    def _peek_spec(self) -> Structure:
        """The specs of what the first window becomes."""
        try:
            key, members = self._windows(Run.of(self, 0, 0)).next_window()
        except StopIteration:
            key, members = 0, []
        with data_function(0, 0):
            return self._reduced(key, members).spec

    def _reduced(self, key: int, members: list[Structure]) -> Node:
        return self._reduce_func(constant(key, "int64"), WindowNode(members, self.child))

    def _windows(self, run: Run) -> GroupCursor:
        seed = run.draws_of(self)
        window_seed = mix(seed, _WINDOWS)

        def key_of(element: Structure) -> int:
            return whole(call(self._key_func, element), "a key is an integer", "return an int")

        def size_of(key: int) -> int:
            size = whole(self._size_func(constant(key, "int64")), "a window's size is an integer")
            if size < 1:
                raise InvalidArgumentError(
                    "[Dataset.group_by_window] a window must have at least 1 element: got "
                    f"{size} for key {key}."
                )
            return size

        def reduced(number: int, key: int, members: list[Structure]) -> Cursor:
            with data_function(window_seed, number):
                node = self._reduced(key, members)
            return node.cursor(run.of_inner(node, mix(window_seed, number)))

        return GroupCursor(self.child.cursor(run), key_of, seed, size_of, reduced)

    def python_cursor(self, run: Run) -> Cursor:
        return self._windows(run)


class BucketNode(GroupNode):
    """Elements of similar lengths as batches.

    Args:
        child: Where the elements come from.
        length_func: Gets an element; returns its length.
        boundaries: Ascending; bucket b has lengths from boundary b - 1 to below boundary b.
        batch_sizes: One more than boundaries.
        padding: What the elements are padded to. None: they have one shape.
        to_boundary: Whether unknown sizes become the longest length of the bucket.
        drop_remainder: Whether shorter batches at the end are left out.
    """

    def __init__(
        self, child: Node, length_func: Callable[..., Any], boundaries: Sequence[int],
        batch_sizes: Sequence[int], padding: Padding | None, to_boundary: bool,
        drop_remainder: bool,
    ) -> None:  # fmt: skip
        super().__init__(child, length_func, True)
        self._boundaries, self._sizes, self._padding = boundaries, batch_sizes, padding
        self._to_boundary, self._drop = to_boundary, drop_remainder

    @property
    def spec(self) -> Structure:
        inner = self._padding.spec if self._padding else self.child.spec
        return map_leaves(lambda leaf: with_rows(leaf, None), inner)

    def python_cursor(self, run: Run) -> Cursor:
        seed = run.draws_of(self)
        return GroupCursor(
            self.child.cursor(run), self._bucket_of, seed, self._sizes.__getitem__, self._opened
        )

    def _bucket_of(self, element: Structure) -> int:
        length = whole(call(self._key_func, element), "a length is an integer", "return an int")
        bucket = bisect_right(self._boundaries, length)
        if self._to_boundary and bucket == len(self._boundaries):
            raise InvalidArgumentError(
                "[Dataset.bucket_by_sequence_length] pad_to_bucket_boundary=True needs lengths "
                f"below the last boundary: got length {length} and boundaries "
                f"{shown(list(self._boundaries))}; add a boundary, or filter or cut longer ones."
            )
        return bucket

    def _opened(self, number: int, bucket: int, members: list[Structure]) -> Cursor:
        if self._drop and len(members) < self._sizes[bucket]:
            return ListCursor([])
        longest = self._boundaries[bucket] - 1 if self._to_boundary else None

        def stacked() -> Structure:
            if self._padding is None:
                return cursors.stack_elements(members)
            return self._padding.batch(members, longest)

        return _OneCursor(stacked)


class GroupCursor(Cursor):
    """Collects elements by their keys and opens each full window; at the end, those left.

    Args:
        child: The elements.
        key_of: The key of an element.
        seed: Of what `key_of` draws.
        size_of: How many elements a window of a key has.
        opened: Gets the number of a window, its key and its elements; opens what becomes of it.
    """

    def __init__(
        self, child: Cursor, key_of: Callable[[Structure], int], seed: int,
        size_of: Callable[[int], int], opened: Callable[[int, int, list[Structure]], Cursor],
    ) -> None:  # fmt: skip
        self._child, self._key_of, self._seed = child, key_of, seed
        self._size_of, self._opened = size_of, opened
        self._held: dict[int, list[Structure]] = {}
        self._wanted: dict[int, int] = {}
        self._read = self._count = 0
        self._ended = False
        self._window: Cursor | None = None

    def next(self) -> Structure:
        while True:
            window = self._window or self._open_next()
            try:
                return window.next()
            except StopIteration:
                self._window = None

    def skip(self, count: int) -> int:
        done = 0
        while done < count:
            try:
                window = self._window or self._open_next()
            except StopIteration:
                break
            done += window.skip(count - done)
            if done < count:
                self._window = None
        return done

    def next_window(self) -> tuple[int, list[Structure]]:
        """Return the key and the elements of the next window, or raise StopIteration."""
        while not self._ended:
            try:
                element = self._child.next()
            except StopIteration:
                self._ended = True
                break
            with data_function(self._seed, self._read):
                key = self._key_of(element)
                wanted = self._wanted.get(key) or self._wanted.setdefault(key, self._size_of(key))
            self._read += 1
            members = self._held.setdefault(key, [])
            members.append(element)
            if len(members) == wanted:
                return key, self._held.pop(key)
        if not self._held:
            raise StopIteration
        key = min(self._held)
        return key, self._held.pop(key)

    def _open_next(self) -> Cursor:
        key, members = self.next_window()
        self._count += 1
        self._window = self._opened(self._count - 1, key, members)
        return self._window


class _OneCursor(Cursor):
    """One element, which is made only if it is wanted."""

    def __init__(self, make: Callable[[], Structure]) -> None:
        self._make = make
        self._given = False

    def next(self) -> Structure:
        if self._given:
            raise StopIteration
        self._given = True
        return self._make()

    def skip(self, count: int) -> int:
        done = min(count, 0 if self._given else 1)
        self._given = self._given or done > 0
        return done


class WindowNode(ElementsNode):
    """Elements of a list, as another stage gave them."""

    def __init__(self, members: list[Structure], source: Node) -> None:
        super().__init__(members, None, source.batched)
        self._source = source

    @property
    def spec(self) -> Structure:
        if sizes_are_known(self._source) or not self._members:
            return self._source.spec

        return map_leaves(
            lambda leaf: spec_of(leaf, [None] * getattr(leaf, "_rank", 0)), self._members[0]
        )


__all__ = ["BucketNode", "GroupByWindowNode", "GroupNode", "WindowNode"]
