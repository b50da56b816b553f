"""How many threads make elements when nobody says how many."""

from __future__ import annotations

import os
import threading
import time
from itertools import pairwise
from typing import Any

import pytest

import samegrad as tf
from samegrad.data import _cursor
from samegrad.data._threads import Threads

ALONE = 2e-3  # seconds of an element, by one thread


def windows(threads: Threads, seconds: Any, count: int) -> list[int]:
    """How many threads there are after each window of elements."""
    found = []
    for _ in range(count):
        for _ in range(8):
            threads.note(seconds(threads.now))
        found.append(threads.now)
    return found


def test_elements_that_wait_or_compute_elsewhere_get_all_threads():
    assert windows(Threads(4, True), lambda now: ALONE, 5) == [4] * 5


def test_quick_elements_in_blocks_that_are_long_enough_get_all_threads():
    threads = Threads(4, True)
    for _ in range(8):
        threads.note(32 * 75e-6, 32)
    assert threads.now == 4


def test_quick_elements_are_made_by_the_consumer():
    assert windows(Threads(4, True), lambda now: 1e-4, 5) == [0] * 5


def test_one_thread_works_ahead_of_the_consumer_where_elements_take_long():
    threads = Threads(1, True)
    assert threads.now == 0
    assert windows(threads, lambda now: ALONE, 5) == [1] * 5
    assert windows(threads, lambda now: 1e-4, 2) == [0] * 2


def test_elements_under_the_lock_are_tried_with_all_threads_less_and_less_often():
    found = windows(Threads(4, True), lambda now: ALONE * max(now, 1), 200)
    trials = [n for n, now in enumerate(found) if now == 4]
    assert trials[0] == 0
    gaps = [b - a for a, b in pairwise(trials)]
    assert len(trials) <= 6
    assert all(b > a for a, b in pairwise(gaps))


def test_elements_that_become_quick_are_left_to_the_consumer():
    threads = Threads(2, True)
    assert windows(threads, lambda now: ALONE, 2) == [2, 2]
    assert windows(threads, lambda now: 1e-4, 2) == [0, 0]


def test_slow_elements_are_judged_at_once():
    threads = Threads(2, True)
    threads.note(1.0)
    assert threads.now == 2


def test_a_slow_first_element_changes_nothing():
    threads = Threads(2, True)
    threads.note(0.05)
    for _ in range(16):
        threads.note(1e-4)
    assert threads.now == 0


def test_a_number_that_a_program_asks_for_is_kept():
    assert windows(Threads(3, False), lambda now: 1e-4, 2) == [3, 3]


def names_of_makers(
    function: Any, calls: int, count: int, monkeypatch: pytest.MonkeyPatch
) -> set[int]:
    """The threads that made the later half of the elements."""
    if hasattr(os, "sched_getaffinity"):
        monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2})
    makers: list[int] = []

    def noted(x: Any) -> Any:
        makers.append(threading.get_ident())
        return function(x)

    data = tf.data.Dataset.range(count).map(noted, num_parallel_calls=calls)
    makers.clear()
    assert [int(x) for x in data] == list(range(count))
    return set(makers[len(makers) // 2 :])


def waiting(x: Any) -> Any:
    time.sleep(0.003)
    return x


@pytest.mark.parametrize(("function", "count", "several"), [
    (waiting, 120, True), (lambda x: x, 400, False),
])  # fmt: skip
def test_autotune_finds_the_number_of_threads(function, count, several, monkeypatch):
    if not several:  # a machine at its limits may make them slowly
        monkeypatch.setattr("samegrad.data._threads._LONG_SECONDS", 1.0)
    makers = names_of_makers(function, tf.data.AUTOTUNE, count, monkeypatch)
    assert len(makers) > 1 if several else makers == {threading.get_ident()}


def test_interrupted_elements_are_made_by_the_next_call(monkeypatch):
    monkeypatch.setattr("samegrad.data._threads._LONG_SECONDS", 1.0)
    interrupts = iter([5, 20, 21])
    due = [next(interrupts)]

    def interrupted(x: Any) -> Any:
        due[0] -= 1
        if due[0] == 0:
            due[0] = next(interrupts, -1)
            raise KeyboardInterrupt
        return x + 0 * len(due)

    elements = iter(tf.data.Dataset.range(100).map(interrupted, num_parallel_calls=-1))
    found: list[int] = []
    caught = 0
    while len(found) < 100:
        try:
            found.append(int(next(elements)))
        except KeyboardInterrupt:
            caught += 1
    assert found == list(range(100)) and caught == 3
    assert next(elements, None) is None


def test_threads_that_are_given_up_end_and_the_elements_stay_in_order(monkeypatch):
    change = iter([2, 3, 1, 2, 1, 3] * 400)

    def note(self: Threads, seconds: float, size: int) -> None:
        self.now = next(change)

    monkeypatch.setattr(Threads, "note", note)
    cursors: list[Any] = []
    first = _cursor._Producer.__init__

    def kept(self: Any, *args: Any) -> None:
        cursors.append(self)
        first(self, *args)

    monkeypatch.setattr(_cursor._Producer, "__init__", kept)
    names_of_makers(waiting, tf.data.AUTOTUNE, 300, monkeypatch)
    deadline = time.monotonic() + 10
    while any(t.is_alive() for t in cursors[0]._running.values()) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not any(t.is_alive() for t in cursors[0]._running.values())
