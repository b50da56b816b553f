"""Iterators whose place in the data can be stored and found again."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from samegrad._base.shown import shown
from samegrad._base.tracebacks import keep_user_frames
from samegrad._core import InvalidArgumentError, tracing
from samegrad._function.reads_data import note_read
from samegrad._tensor.tensor import constant
from samegrad.data._cursor import Cursor, FeedCursor
from samegrad.data._nodes import Node, Run
from samegrad.data._random import mix, process_seed
from samegrad.data._structure import Structure, leaves_of
from samegrad.errors import OutOfRangeError

# Opens the elements of a run, as they are given to the user.
Opener = Callable[[Run], Cursor]


class EpochCounter:
    """The epoch of a dataset's next iterator."""

    __slots__ = ("next_epoch",)

    def __init__(self) -> None:
        self.next_epoch = 0


class ResumableIterator(Iterator[Structure]):
    """Walks once through a dataset, from any position on.

    Its state, as checkpoints store it, is `epoch` (how many iterators the dataset had before),
    `position` (how many elements were consumed; what was only prepared does not count) and `seed`
    (for stages without a seed of their own).

    Args:
        root: The last stage of the dataset.
        epochs: The dataset's counter.
        open_run: Opens the elements of a run.
    """

    def __init__(self, root: Node, epochs: EpochCounter, open_run: Opener) -> None:
        note_read("Dataset")
        self._root = root
        self._epochs = epochs
        self._open_run = open_run
        self._epoch = epochs.next_epoch
        ordinals = [node.ordinal for node in root.walk() if node.ordinal is not None]
        self._seed = mix(process_seed(), *ordinals[:1])
        self._consumed: Callable[[], int] | None = None
        self._rewind(0)
        epochs.next_epoch = self._epoch + 1

    def __iter__(self) -> ResumableIterator:
        return self

    def __next__(self) -> Structure:
        try:
            if tracing():
                note_read("Dataset")
            return self._next()
        except Exception as error:
            keep_user_frames(error)
            raise

    def _rewind(self, position: int) -> None:
        self._start = position
        self._consumed = None
        self._next: Callable[[], Structure] = self._open_and_next

    def _open_and_next(self) -> Structure:
        cursor = self._open_run(Run.of(self._root, self._epoch, self._seed))
        if self._start and cursor.skip(self._start) < self._start:
            raise StopIteration
        if isinstance(cursor, FeedCursor):  # the engine counts, and is called directly
            self._consumed = lambda: cursor.position
            self._next = cursor.fast_next
        else:
            self._count(cursor)
        return self._next()

    def _count(self, cursor: Cursor) -> None:
        consumed = self._start
        step = getattr(cursor, "elements_per_step", None)
        me = weakref.ref(self)  # without iterators, cursors and what they hold end at once
        turn = threading.RLock()  # several threads may share an iterator: one of them at a time

        def counting_next() -> Structure:
            nonlocal consumed
            with turn:
                try:
                    element = cursor.next()
                    consumed += 1 if step is None else step()
                except BaseException as error:
                    if isinstance(error, MemoryError) or not isinstance(error, Exception):
                        _rewind(me(), consumed)  # what it had in its hands is read again
                    raise
                return element

        self._consumed = lambda: consumed
        self._next = counting_next

    def _position(self) -> int:
        return self._start if self._consumed is None else self._consumed()

    def _checkpoint_state(self) -> Mapping[str, Any]:
        return {"epoch": self._epoch, "position": self._position(), "seed": self._seed}

    def _restore_state(self, values: Mapping[str, Any]) -> None:
        for name, value in values.items():
            if type(value) is not int or not 0 <= value < 2**63:
                raise ValueError(f"{name} must be an integer from 0 to 2^63-1: got {shown(value)}")
        self._epoch = int(values.get("epoch", self._epoch))
        self._seed = int(values.get("seed", self._seed))
        self._epochs.next_epoch = self._epoch + 1
        self._rewind(int(values.get("position", self._position())))


def _rewind(iterator: ResumableIterator | None, position: int) -> None:
    if iterator is not None:
        iterator._rewind(position)


class DatasetIterator(ResumableIterator):
    """Gives the elements of a `Dataset`; `tf.train.Checkpoint` stores its place.

    Example:
        >>> import samegrad as tf
        >>> iterator = iter(tf.data.Dataset.range(5))
        >>> int(next(iterator)), int(next(iterator))
        (0, 1)
    """

    def __init__(self, root: Node, epochs: EpochCounter) -> None:
        super().__init__(root, epochs, root.cursor)

    @property
    def element_spec(self) -> Structure:
        """The TensorSpecs of an element."""
        return self._root.spec

    def get_next(self) -> Structure:
        """Return the next element.

        Returns:
            The element.

        Raises:
            OutOfRangeError: The iterator is exhausted.

        Example:
            >>> import samegrad as tf
            >>> iterator = iter(tf.data.Dataset.range(2))
            >>> int(iterator.get_next()), int(iterator.get_next())
            (0, 1)
        """
        return get_next(self)

    def get_next_as_optional(self) -> Optional:
        """Return the next element, or an empty `Optional` at the end.

        Example:
            >>> import samegrad as tf
            >>> iterator = iter(tf.data.Dataset.range(1))
            >>> [bool(iterator.get_next_as_optional().has_value()) for _ in range(2)]
            [True, False]
        """
        return Optional.next_of(self)


def get_next(iterator: Iterator[Structure]) -> Structure:
    """Return the next element; raise OutOfRangeError at the end."""
    try:
        return next(iterator)
    except StopIteration:
        raise OutOfRangeError(
            "[get_next] the dataset has no more elements; begin again with iter(dataset), or call "
            ".repeat() on it."
        ) from None


class Optional:
    """An element, or nothing.

    Example:
        >>> import samegrad as tf
        >>> iterator = iter(tf.data.Dataset.range(1))
        >>> bool(iterator.get_next_as_optional().has_value())
        True
        >>> bool(iterator.get_next_as_optional().has_value())
        False
    """

    __slots__ = ("_elements",)

    def __init__(self, elements: list[Structure]) -> None:
        self._elements = elements

    @classmethod
    def next_of(cls, iterator: Iterator[Structure]) -> Optional:
        """Return the next element of an iterator, or an empty optional at its end.

        Args:
            iterator: Iterator over elements.

        Returns:
            `Optional` with or without an element.

        Raises:
            TypeError: iterator is not an iterator.

        Example:
            >>> import samegrad as tf
            >>> optional = tf.data.experimental.Optional.next_of(iter(tf.data.Dataset.range(1)))
            >>> int(optional.get_value())
            0
        """
        if not hasattr(iterator, "__next__"):
            raise TypeError(
                f"[Optional.next_of] an iterator is needed: got {shown(iterator)}; pass iter(it)."
            )
        try:
            return cls([next(iterator)])
        except StopIteration:
            return cls([])

    def has_value(self, name: str | None = None) -> Any:
        """Tell if there is an element.

        Returns:
            bool tensor of shape [].

        Example:
            >>> import samegrad as tf
            >>> optional = tf.data.experimental.Optional.next_of(iter(tf.data.Dataset.range(0)))
            >>> bool(optional.has_value())
            False
        """
        return constant(bool(self._elements))

    def get_value(self, name: str | None = None) -> Structure:
        """Return the element.

        Raises:
            InvalidArgumentError: The optional is empty.

        Example:
            >>> import samegrad as tf
            >>> optional = tf.data.experimental.Optional.next_of(iter(tf.data.Dataset.range(1)))
            >>> int(optional.get_value())
            0
        """
        if not self._elements:
            raise InvalidArgumentError("[Optional.get_value] there is no element; ask has_value().")
        return self._elements[0]


def check_splittable(root: Node) -> None:
    """ValueError if the elements are single examples."""
    if root.batched is None:
        splittable = all(len(spec.shape) > 0 for spec in leaves_of(root.spec))
    else:
        splittable = root.batched
    if not splittable:
        shapes = ", ".join(str(tuple(spec.shape)) for spec in leaves_of(root.spec))
        raise ValueError(
            "[experimental_distribute_dataset] each element must be a global batch, which is "
            f"split between the replicas: got single examples of shape {shapes}; call "
            ".batch(global_batch_size) first."
        )
