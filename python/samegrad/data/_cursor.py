"""Cursors: what walks along the elements of one run through a dataset."""

from __future__ import annotations

import atexit
import os
import threading
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any

from samegrad import _core
from samegrad.data._structure import Packer, Structure


class Cursor(ABC):
    """Gives elements one after the other."""

    @abstractmethod
    def next(self) -> Structure:
        """The next element. StopIteration at the end, and ever after."""

    def skip(self, count: int) -> int:
        """Passes over elements and returns how many there were."""
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
        """How many elements of the plan were given or skipped."""
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


PREFETCHED = 2  # elements that are made ahead


class BackgroundCursor(Cursor):
    """Runs another cursor on a thread and keeps its elements ready.

    Args:
        open_cursor: Makes the cursor.
        depth: How many elements are kept.
    """

    def __init__(self, open_cursor: Callable[[], Cursor], depth: int) -> None:
        self._open = open_cursor
        self._depth = max(1, depth)
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
        producer = _Producer(cursor, self._depth)
        weakref.finalize(self, producer.stop).atexit = False
        return producer


class _Producer:
    """The thread of a BackgroundCursor, which it must not keep alive."""

    def __init__(self, cursor: Cursor, depth: int) -> None:
        self.process = os.getpid()
        self._cursor = cursor
        # Elements as (element, None), or (None, what next() raised), of which an end stays. Queues
        # of C: an interrupt of the consumer comes before or after what it does with them.
        self._ready: SimpleQueue[tuple[Structure, BaseException | None]] = SimpleQueue()
        self._room: SimpleQueue[None] = SimpleQueue()
        for _ in range(depth):
            self._room.put(None)
        self._end: BaseException | None = None
        self._stopped = False
        self._thread = threading.Thread(target=self._run, name="samegrad-data", daemon=True)
        _producers.add(self)
        self._thread.start()

    def take(self) -> Structure:
        if self._end is None:
            element, error = self._ready.get()
            if error is None or not _ends(error):
                self._room.put(None)
            else:
                self._end = error
            if error is None:
                return element
            raise error
        raise self._end

    def stop(self) -> None:
        self._stopped = True
        self._room.put(None)

    def join(self, timeout: float) -> None:
        self._thread.join(timeout)

    def _run(self) -> None:
        error: BaseException | None = None
        while error is None or not _ends(error):
            element = error = None
            try:
                element = self._cursor.next()
            except BaseException as raised:  # next() of the consumer raises it
                error = raised
            self._room.get()
            if self._stopped:
                return
            self._ready.put((element, error))


def _ends(error: BaseException) -> bool:
    """Whether no element comes after it; others stand in the place of one element."""
    return isinstance(error, StopIteration | MemoryError) or not isinstance(error, Exception)


_producers: weakref.WeakSet[_Producer] = weakref.WeakSet()


@atexit.register
def _stop_producers() -> None:
    """No thread works on while the interpreter takes itself apart."""
    producers = [p for p in _producers if p.process == os.getpid()]
    for producer in producers:
        producer.stop()
    for producer in producers:
        producer.join(timeout=1.0)
