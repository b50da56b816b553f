"""Cursors: what walks along the elements of one run through a dataset."""

from __future__ import annotations

import atexit
import contextlib
import copy
import os
import threading
import time
import weakref
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Any, TypeAlias

from samegrad import _core
from samegrad._context.weak import WeakIds
from samegrad.data._structure import Packer, Structure
from samegrad.data._threads import Threads


class Cursor(ABC):
    """Gives elements one after the other."""

    @abstractmethod
    def next(self) -> Structure:
        """The next element. StopIteration at the end, and ever after."""

    def skip(self, count: int) -> int:
        """Pass over elements and return how many there were."""
        for done in range(count):
            try:
                self.next()
            except StopIteration:
                return done
        return count


class FeedCursor(Cursor):
    """Elements that the engine gathers, on a thread of its own.

    Args:
        plan: The order of the rows.
        sources: Where they are, as `_core.Feed` takes them.
        pack: Makes elements of leaves.
        options: Further arguments of `_core.Feed`.
    """

    def __init__(self, plan: Any, sources: list[Any], pack: Packer, **options: Any) -> None:
        self._plan = plan

        def make(position: int) -> _core.Feed:
            return _core.Feed(plan, sources, pack, position=position, **options)

        self._make = make
        self._feed = self._make(0)

    @property
    def position(self) -> int:
        """Return the number of elements that were given or skipped."""
        return int(self._feed.position)

    @property
    def fast_next(self) -> Callable[[], Structure]:
        """The engine's own `next`; another one after `skip`."""
        return self._feed.next

    def next(self) -> Structure:
        return self._feed.next()

    def skip(self, count: int) -> int:
        begin = self.position
        end = begin + count if self._plan.size < 0 else min(begin + count, self._plan.size)
        if end > begin:
            self._feed = self._make(end)
        return end - begin


PREFETCHED = 2  # elements that are made ahead, or blocks of those that are made quickly
_LEAST_BLOCKS = 4  # of the elements ahead: the consumer empties one while others are made
_BLOCK_SECONDS = 2e-3
_LARGEST_BLOCK = 32

Made: TypeAlias = "tuple[Structure, BaseException | None]"


def tried(make: Callable[..., Structure], *args: Any) -> Made:
    """Call a function; return its result and None, or None and its error."""
    try:
        return make(*args), None
    except BaseException as error:
        return None, error


class WorkCursor(Cursor):
    """A cursor whose elements are taken one after the other and may be worked on side by side."""

    @abstractmethod
    def take(self) -> Any:
        """Return the inputs of the next element; raise StopIteration from the end on."""

    @abstractmethod
    def make(self, taken: Any) -> Structure:
        """The element of what was taken."""

    def make_all(self, taken: list[Any]) -> list[Made]:
        """The elements of some that were taken, or what make() raised."""
        return [tried(self.make, each) for each in taken]

    def next(self) -> Structure:
        return self.make(self.take())


class BackgroundCursor(Cursor):
    """Runs another cursor on a thread and keeps its elements ready.

    Args:
        open_cursor: Makes the cursor.
        ahead: At most so many elements are made before the consumer asks for them; 0: samegrad
            chooses.
        threads: How many work on elements of a WorkCursor; their order stays.
        tuned: Whether there are fewer threads, or none, where that is faster.
    """

    def __init__(
        self, open_cursor: Callable[[], Cursor], ahead: int = 0, threads: int = 1,
        tuned: bool = False,
    ) -> None:  # fmt: skip
        self._open = open_cursor
        self._ahead, self._threads, self._tuned = ahead, threads, tuned
        self._position = 0
        self._moved: Cursor | None = None  # by skip(), before there is a thread
        self._producer: _Producer | None = None

    def next(self) -> Structure:
        if self._producer is None or self._producer.process != os.getpid():
            self._producer = self._start()
        element = self._producer.take()
        self._position += 1
        return element

    def skip(self, count: int) -> int:
        if self._producer is not None:
            return super().skip(count)
        if self._moved is None:
            self._moved = self._open()
        done = self._moved.skip(count)
        self._position += done
        return done

    def _start(self) -> _Producer:
        cursor, self._moved = self._moved, None
        if cursor is None:  # new, or in a forked child: there the parent's thread does not exist
            cursor = self._open()
            cursor.skip(self._position)
        producer = _Producer(cursor, self._ahead, Threads(self._threads, self._tuned))
        weakref.finalize(self, producer.stop).atexit = False
        return producer


class _Stop:
    """Tells threads that nobody waits for them. It keeps nothing alive of what they work on."""

    def __init__(self, room: SimpleQueue[None], most: int) -> None:
        self.asked = False
        self._room, self._most = room, most

    def __call__(self) -> None:
        self.asked = True
        for _ in range(self._most):
            self._room.put(None)


class _Producer:
    """The threads of a BackgroundCursor, which they must not keep alive."""

    def __init__(self, cursor: Cursor, ahead: int, threads: Threads) -> None:
        self.process = os.getpid()
        self._cursor = cursor
        self._turn = threading.Lock()  # of who takes from the cursor
        # A place for each block of elements, in their order, which gets a list of (element, None),
        # or (None, what next() raised), of which an end stays. Queues of C: an interrupt of the
        # consumer comes before or after what it does with them.
        self._ready: SimpleQueue[_Place] = SimpleQueue()
        self._room: SimpleQueue[None] = SimpleQueue()
        # Of elements where their number is given, else of blocks of them.
        self._counts_elements = ahead > 0
        self._room_of_block = 1  # which the consumer has
        for _ in range(ahead or (PREFETCHED + 1) * threads.most):
            self._room.put(None)
        self._block: deque[Made] = deque()
        self._inputs: list[Made] = []  # of a block that the consumer makes
        self._size = 1
        largest = max(1, ahead // _LEAST_BLOCKS) if ahead else _LARGEST_BLOCK
        self._largest = min(largest, _LARGEST_BLOCK)
        self._end: BaseException | None = None
        self._ended = False
        self._threads = threads
        self.stop = _Stop(self._room, threads.most)
        self._running: dict[int, threading.Thread] = {}
        _producers.set(self, None)
        self._start()

    def take(self) -> Structure:
        if self._end is not None:
            raise _bare(self._end)
        if not self._block and not self._make_here():
            self._block = self._ready.get().get()
            self._room_of_block = len(self._block) if self._counts_elements else 1
        element, error = self._block.popleft()
        if not self._block:
            for _ in range(self._room_of_block):
                self._room.put(None)
        if error is None:
            return element
        if _ends(error):
            self._end, self._block = _bare(error), deque()
        try:
            raise error
        finally:
            del error  # which holds this frame

    def join(self, timeout: float) -> None:
        for thread in list(self._running.values()):
            thread.join(timeout)

    def _make_here(self) -> bool:
        """Make a block on the consumer's thread where there should be no others.

        What an interrupt leaves is made by the next call.
        """
        if self._threads.now and not self._inputs:
            return False
        with self._turn:
            if not self._ready.empty():  # blocks of threads that have ended since
                return False
            begin = time.perf_counter()
            if not self._inputs:
                self._take(self._size, self._inputs)
            made = self._made(self._inputs)
            for _, error in made:
                if isinstance(error, KeyboardInterrupt):
                    self._ended = False
                    if error is self._inputs[-1][1]:
                        self._inputs.pop()
                    raise error
            self._inputs, self._block, self._room_of_block = [], deque(made), 0
            self._threads.note(*self._timed(time.perf_counter() - begin, len(made)))
            self._start()
        return True

    def _timed(self, seconds: float, size: int) -> tuple[float, int]:
        """Return the arguments; blocks after those that are made quickly are larger.

        Threads that wait for each other often wait for the system.
        """
        if seconds < _BLOCK_SECONDS and size == self._size:
            self._size = min(2 * size, self._largest)
        return seconds, size

    def _start(self) -> None:
        """Start the threads that there should be and are not."""
        for number in range(self._threads.now):
            if number not in self._running:
                thread = self._running[number] = threading.Thread(
                    target=self._run, args=(number,), name="samegrad-data", daemon=True
                )
                try:
                    thread.start()
                except RuntimeError:  # the system has none to give
                    del self._running[number]
                    if not self._running:
                        self._threads.now = 0  # the consumer goes on by itself
                        raise

    def _run(self, number: int) -> None:
        last: tuple[float, int] | None = None  # the seconds and the size of its last block
        while not self._ended:
            self._room.get()
            if self.stop.asked:
                return
            place: _Place = SimpleQueue()
            begin = time.perf_counter()
            with self._turn:
                if self._ended:
                    break
                if number >= self._threads.now:
                    del self._running[number]
                    break
                if last is not None:  # whatever it changes, the consumer may wait for this block
                    self._threads.note(*last)
                    self._start()
                self._ready.put(place)
                size = self._size_in_room()
                taken = self._take(size, [])
            place.put(deque(self._made(taken)))
            last = self._timed(time.perf_counter() - begin, size)
        self._room.put(None)  # for the other threads

    def _size_in_room(self) -> int:
        """Return the size of the next block, which has room for one element."""
        if not self._counts_elements:
            return self._size
        size = 1
        with contextlib.suppress(Empty):
            while size < self._size:
                self._room.get_nowait()
                size += 1
        if self.stop.asked:  # other threads wait for what is there
            for _ in range(1, size):
                self._room.put(None)
        return size

    def _take(self, size: int, found: list[Made]) -> list[Made]:
        """Append the inputs of the next elements."""
        cursor = self._cursor
        take = cursor.take if isinstance(cursor, WorkCursor) else cursor.next
        while len(found) < size and not self._ended:
            found.append(tried(take))  # next() of the consumer raises what it raises
            error = found[-1][1]
            if error is not None:
                self._ended = _ends(error)
                if isinstance(error, StopIteration):
                    error.__traceback__ = None  # whose frames hold what is here
        return found

    def _made(self, taken: list[Made]) -> list[Made]:
        cursor = self._cursor
        if not isinstance(cursor, WorkCursor):
            return taken
        made = iter(cursor.make_all([each for each, error in taken if error is None]))
        found = [next(made) if error is None else (None, error) for _, error in taken]
        self._ended = self._ended or any(e is not None and _ends(e) for _, e in found)
        return found


def _ends(error: BaseException) -> bool:
    """Tell if no element follows the error; other errors replace one element."""
    return isinstance(error, StopIteration | MemoryError) or not isinstance(error, Exception)


def _bare(error: BaseException) -> BaseException:
    """The same error without the frames it has gone through, which hold cursors and elements."""
    try:
        return copy.copy(error)
    except Exception:  # one that cannot be rebuilt
        return error.with_traceback(None)


_Place: TypeAlias = "SimpleQueue[deque[Made]]"
_producers: WeakIds[None] = WeakIds()


@atexit.register
def _stop_producers() -> None:
    """No thread works on while the interpreter takes itself apart."""
    producers = [p for p in _producers.living() if p.process == os.getpid()]
    for producer in producers:
        producer.stop()
    for producer in producers:
        producer.join(timeout=1.0)
