"""The stages of a dataset that run Python code or keep elements."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from samegrad._base.dtypes import string
from samegrad._base.shown import shown
from samegrad._core import InvalidArgumentError
from samegrad._tensor.spec import TensorSpec
from samegrad._tensor.tensor import Tensor, convert_to_tensor, is_tensor
from samegrad._tensor.text import Text, text_of
from samegrad.data import _python_cursors as cursors
from samegrad.data._cursor import (
    PREFETCHED,
    BackgroundCursor,
    Cursor,
    Made,
    WorkCursor,
    tried,
)
from samegrad.data._mapped import MappedFunction, by_python, call
from samegrad.data._nodes import (
    INFINITE,
    UNKNOWN,
    Indexed,
    Node,
    PythonNode,
    Run,
    SelectionNode,
    ShuffleNode,
    SliceNode,
    UncountedNode,
)
from samegrad.data._random import data_function, take_ordinal
from samegrad.data._stand_ins import spec_of_results
from samegrad.data._structure import (
    Structure,
    as_complex_where,
    common_spec,
    fill,
    leaves_of,
    map_leaves,
    spec_of,
)
from samegrad.data._threads import threads_of


class GeneratorNode(UncountedNode):
    """Elements that a Python generator yields.

    Args:
        function: Returns the generator.
        signature: TensorSpecs in the structure of an element; or dtypes, whose shapes have as many
            axes, of any size, as the first element shows.
    """

    def __init__(self, function: Callable[[], Any], signature: Structure) -> None:
        super().__init__(batched=None)
        self._function, self._signature = function, signature

    @cached_property
    def _specs(self) -> Structure:
        leaves = leaves_of(self._signature)
        if all(isinstance(leaf, TensorSpec) for leaf in leaves):
            return self._signature
        first = next(iter(self._function()), None)
        if first is None:
            return map_leaves(lambda dtype: TensorSpec((), dtype), self._signature)
        ranks = [_rank_of(part) for part in components_of(first, self._signature)]
        pairs = zip(leaves, ranks, strict=True)
        return fill(self._signature, [TensorSpec([None] * n, dtype) for dtype, n in pairs])

    @property
    def spec(self) -> Structure:
        return self._specs

    def python_cursor(self, run: Run) -> Cursor:
        return _GeneratorCursor(self._function, self._specs)


def components_of(value: Any, signature: Structure) -> list[Any]:
    """The components of what a generator yielded.

    Raises:
        TypeError: The signature has more or fewer of them.
    """
    if isinstance(signature, TensorSpec) and signature.shape and isinstance(value, tuple):
        return [value]  # one tensor of several numbers
    nested = isinstance(signature, tuple | dict)
    leaves = leaves_of(tuple(value) if isinstance(value, list) and nested else value)
    wanted = len(leaves_of(signature))
    if len(leaves) != wanted:
        raise TypeError(
            f"[Dataset.from_generator] an element must look like output_signature "
            f"{signature}: got {len(leaves)} components instead of {wanted}."
        )
    return leaves


def _rank_of(value: Any) -> int:
    return value._rank if isinstance(value, Tensor | Text) else _array_of(value).ndim


def _array_of(value: Any) -> Any:
    try:
        return np.asarray(value)
    except ValueError as error:
        raise InvalidArgumentError(
            "[Dataset.from_generator] the parts of an element's component must have one shape: got "
            f"{shown(value)} ({error}); pad the shorter ones or yield one row each."
        ) from None


class _GeneratorCursor(Cursor):
    def __init__(self, function: Callable[[], Any], signature: Structure) -> None:
        self._function, self._signature = function, signature
        self._specs: list[TensorSpec] = leaves_of(signature)
        self._iterator: Iterator[Any] | None = None

    def next(self) -> Structure:
        if self._iterator is None:
            self._iterator = iter(())  # a generator that fails is not called again
            self._iterator = iter(self._function())
        leaves = components_of(
            as_complex_where(self._signature, next(self._iterator), "Dataset.from_generator"),
            self._signature,
        )
        pairs = zip(leaves, self._specs, strict=True)
        return fill(self._signature, [self._to_tensor(leaf, spec) for leaf, spec in pairs])

    def _to_tensor(self, leaf: Any, spec: TensorSpec) -> Any:
        if spec.dtype is string:
            return self._to_text(leaf, spec)
        array = leaf._numpy() if isinstance(leaf, Tensor) else _array_of(leaf)
        wanted = spec.dtype.as_numpy_dtype
        if array.dtype != wanted and not np.can_cast(array.dtype, wanted, "same_kind"):
            raise InvalidArgumentError(
                f"[Dataset.from_generator] output_signature says {spec.dtype}: got {array.dtype}."
            )
        return self._checked(Tensor(np.array(array, wanted), copy=False), spec)

    def _to_text(self, leaf: Any, spec: TensorSpec) -> Any:
        return self._checked(text_of(leaf, "Dataset.from_generator"), spec)

    def _checked(self, tensor: Any, spec: TensorSpec) -> Any:
        if not spec.is_compatible_with(tensor):
            raise InvalidArgumentError(
                f"[Dataset.from_generator] output_signature says shape {tuple(spec.shape)}: got "
                f"{tensor._shape}."
            )
        return tensor


class MapNode(PythonNode):
    """function(element) for every element.

    Attributes:
        child: Where the elements come from.
        function: The user's, and what makes elements with it.
        calls: On how many threads it runs, ahead of the consumer; < 0: samegrad says. None: on the
            consumer's.
    """

    def __init__(self, child: Node, function: Callable[..., Any], calls: int | None) -> None:
        super().__init__(child, batched=child.batched)
        self.child, self.calls = child, calls
        self.function = MappedFunction(function, by_python=child.batched is True)
        self.ordinal = take_ordinal()
        self._spec: Structure = None

    @property
    def spec(self) -> Structure:
        if self._spec is None:
            self._spec = _spec_of_map(self)
        return self._spec

    def cardinality(self) -> int:
        return self.child.cardinality()

    def python_cursor(self, run: Run) -> Cursor:
        def open_cursor() -> Cursor:
            return _MapCursor(self.child.cursor(run), self.function, run.draws_of(self))

        if self.calls is None:
            return open_cursor()
        threads = threads_of(self.calls)
        return BackgroundCursor(open_cursor, threads=threads, tuned=self.calls < 0)

    def maker(self, run: Run) -> Callable[[int, Structure], Structure]:
        """Return a function of (index, input element) that computes an element."""
        seed = run.draws_of(self)
        return lambda position, element: self.function(seed, position, element)

    def after(self, child: Node) -> MapNode:
        """The same function of another stage's elements."""
        node = MapNode.__new__(MapNode)
        Node.__init__(node, child, batched=child.batched)
        node.child, node.function, node.calls = child, self.function, self.calls
        node.ordinal, node._spec = self.ordinal, self._spec
        return node


def through_maps(node: Node, stage: Callable[[Node], Node]) -> Node:
    """The stage before the functions after which it was called.

    For choosing, ordering and repeating elements it is the same, and elements nobody sees need not
    be made.
    """
    if isinstance(node, MapNode):
        return node.after(through_maps(node.child, stage))
    return stage(node)


def sizes_are_known(node: Node) -> bool:
    """Tell if the spec holds for all elements; a function's result is seen only once."""
    return not any(isinstance(stage, MapNode) for stage in node.walk())


def _spec_of_map(node: MapNode) -> Structure:
    """The specs of the first element; the number of rows of a batch may differ."""
    specs, element = spec_of_results(
        node, node.child, lambda part: by_python(node.function.python, 0, 0, part)
    )
    if element is None:
        return specs
    static = all(None not in spec.shape for spec in leaves_of(node.child.spec))

    def spec_in_any_batch(leaf: Any) -> Any:
        if not node.batched or static or not getattr(leaf, "_rank", 0):
            return spec_of(leaf)
        return spec_of(leaf, [None, *leaf._shape[1:]])

    return map_leaves(spec_in_any_batch, element)


class _MapCursor(WorkCursor):
    def __init__(self, child: Cursor, function: MappedFunction, seed: int) -> None:
        self._child, self._function, self._seed = child, function, seed
        self._position = 0

    def take(self) -> tuple[int, Structure]:
        element = self._child.next()
        self._position += 1  # whatever happens: behind an error the next element comes
        return self._position - 1, element

    def make(self, taken: tuple[int, Structure]) -> Structure:
        return self._function(self._seed, *taken)

    def make_all(self, taken: list[Any]) -> list[Made]:
        made = self._function.by_engine(self._seed, taken)
        return [
            tried(self._function.with_python, self._seed, *each)
            if element is None
            else (element, None)
            for each, element in zip(taken, made, strict=True)
        ]

    def skip(self, count: int) -> int:
        done = self._child.skip(count)
        self._position += done
        return done


class FilterNode(SelectionNode):
    """The elements for which a function is true."""

    def __init__(self, child: Node, predicate: Callable[..., Any]) -> None:
        super().__init__(child)
        self._predicate = predicate

    def _choice(self, seed: int) -> Callable[[int, Structure], bool]:
        return decided(self._predicate, seed, "filter")


def decided(
    predicate: Callable[..., Any], seed: int, op_name: str
) -> Callable[[int, Structure], bool]:
    """Evaluate the predicate; its random ops depend on the element's index."""

    def is_true(number: int, element: Structure) -> bool:
        with data_function(seed, number):
            found = call(predicate, element)
        if not isinstance(found, bool | np.bool_) and not _is_bool(found):
            raise ValueError(
                f"[Dataset.{op_name}] predicate must return one bool: got {shown(found)}; write a "
                "comparison, or samegrad.reduce_all of several."
            )
        return bool(found)

    return is_true


def _is_bool(value: Any) -> bool:
    """Return whether the value is a tensor, a variable or an array of one bool without axes."""
    if isinstance(value, np.ndarray):
        return value.dtype == bool and not value.ndim
    if not is_tensor(value):
        return False
    tensor = convert_to_tensor(value)
    return tensor._dtype == "bool" and not tensor._rank


class UnbatchNode(PythonNode):
    """The rows of each element."""

    def __init__(self, child: Node) -> None:
        super().__init__(child, batched=False)
        self.child = child

    @property
    def spec(self) -> Structure:
        return map_leaves(lambda s: TensorSpec(s.shape[1:], s.dtype), self.child.spec)

    def cardinality(self) -> int:
        size = self.child.cardinality()
        rows = leaves_of(self.child.spec)[0].shape[:1]
        if size < 0 or not rows or rows[0] is None:
            return INFINITE if size == INFINITE else UNKNOWN
        return size * int(rows[0])

    def python_cursor(self, run: Run) -> Cursor:
        return cursors.UnbatchCursor(self.child.cursor(run))


class ConcatenateNode(PythonNode):
    """The elements of one dataset, then those of another."""

    def __init__(self, first: Node, second: Node) -> None:
        batched = first.batched if first.batched == second.batched else None
        super().__init__(first, second, batched=batched)

    @property
    def spec(self) -> Structure:
        first, second = (leaves_of(node.spec) for node in self.inputs)
        pairs = zip(first, second, strict=True)
        return fill(self.inputs[0].spec, [common_spec(a, b) for a, b in pairs])

    def cardinality(self) -> int:
        sizes = [node.cardinality() for node in self.inputs]
        if INFINITE in sizes:
            return INFINITE
        return UNKNOWN if UNKNOWN in sizes else sum(sizes)

    def python_cursor(self, run: Run) -> Cursor:
        return _ConcatenateCursor([node.cursor(run) for node in self.inputs])


class _ConcatenateCursor(Cursor):
    def __init__(self, remaining: list[Cursor]) -> None:
        self._remaining = remaining

    def next(self) -> Structure:
        while self._remaining:
            try:
                return self._remaining[0].next()
            except StopIteration:
                self._remaining.pop(0)
        raise StopIteration

    def skip(self, count: int) -> int:
        done = 0
        while self._remaining and done < count:
            done += self._remaining[0].skip(count - done)
            if done < count:
                self._remaining.pop(0)
        return done


class CacheNode(Node):
    """Keeps what the stages before made in their first run."""

    def __init__(self, child: Node) -> None:
        super().__init__(child, batched=child.batched)
        self.child = child
        self._elements: list[Structure] | None = None  # of different shapes
        self._stacked: SliceNode | None = None  # of one shape

    @property
    def spec(self) -> Structure:
        return self.child.spec

    def cardinality(self) -> int:
        if self._stacked:
            return self._stacked.cardinality()
        return self.child.cardinality() if self._elements is None else len(self._elements)

    def index(self, run: Run) -> Indexed | None:
        if self._stacked or self._elements is not None:
            return self._stacked.index(run) if self._stacked else None
        shuffles = any(isinstance(node, ShuffleNode) for node in self.walk())
        inner = None if shuffles else self.child.index(run)
        if inner:
            return inner  # already in memory, and always the same
        size = self.child.cardinality()
        if size >= 0:
            with suppress(Exception):  # which comes again, at its element
                self.python_cursor(run).skip(size + 1)
        return self._stacked.index(run) if self._stacked else None

    def python_cursor(self, run: Run) -> Cursor:
        if self._elements is not None:
            return ListCursor(self._elements)
        if self.child.cardinality() == INFINITE:
            return self.child.cursor(run)
        first = replace(run, epoch=0)  # whichever run comes first
        return _RecordingCursor(self.child.cursor(first), self._keep)

    def _keep(self, elements: list[Structure]) -> None:
        """Take the elements of a whole run."""
        shapes = {tuple(map(_kind_of, leaves_of(e))) for e in elements}
        if len(shapes) == 1 and None not in next(iter(shapes)) and not self.batched:
            tensors = cursors.stack_elements(elements)
            self._stacked = SliceNode(tensors, len(elements), self.batched)
        else:
            self._elements = elements


def _kind_of(leaf: Any) -> Any:
    return (leaf._shape, leaf._dtype) if isinstance(leaf, Tensor | Text) else None


class ListCursor(Cursor):
    """Elements that are there already."""

    def __init__(self, elements: list[Structure]) -> None:
        self._elements = elements
        self._next = 0

    def next(self) -> Structure:
        if self._next >= len(self._elements):
            raise StopIteration
        self._next += 1
        return self._elements[self._next - 1]

    def skip(self, count: int) -> int:
        done = min(count, len(self._elements) - self._next)
        self._next += done
        return done


class _RecordingCursor(Cursor):
    """Remembers the elements, and hands them over once all have been seen."""

    def __init__(self, child: Cursor, keep: Callable[[list[Structure]], None]) -> None:
        self._child, self._keep = child, keep
        self._seen: list[Structure] = []

    def next(self) -> Structure:
        try:
            element = self._child.next()
        except StopIteration:
            self._keep(self._seen)
            raise
        self._seen.append(element)
        return element


class PrefetchNode(Node):
    """Elements are made ahead of the consumer; depth 0: as many as seems right."""

    def __init__(self, child: Node, depth: int) -> None:
        super().__init__(child, batched=child.batched)
        self.child, self._depth = child, depth

    @property
    def spec(self) -> Structure:
        return self.child.spec

    def cardinality(self) -> int:
        return self.child.cardinality()

    def index(self, run: Run) -> Indexed | None:
        inner = self.child.index(run)
        if inner is None or self._depth == 0:
            return inner
        return Indexed(inner.plan, inner.sources, inner.template, max(self._depth, PREFETCHED))

    def python_cursor(self, run: Run) -> Cursor:
        return BackgroundCursor(lambda: self.child.cursor(run), self._depth)
