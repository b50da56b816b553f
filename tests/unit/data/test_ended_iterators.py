"""Iterators that ended or were left, and what they held, are gone at once."""

from __future__ import annotations

import gc
import threading
import time
from contextlib import suppress
from typing import Any

import pytest

import samegrad as tf
from samegrad.data import _cursor

Dataset = tf.data.Dataset


def failing(x):
    if x == 20:
        raise ValueError("no such element")
    return x


@pytest.fixture
def no_collector():
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def some(data: Any, count: int) -> None:
    for number, _ in enumerate(data):
        if number == count:
            break


def are_gone(before: int, collect: bool = False) -> bool:
    """Whether no producers and threads were left; threads take a moment to end."""
    for _ in range(100):
        if collect:
            gc.collect()
        if len(_cursor._producers) <= before and "samegrad-data" not in {
            thread.name for thread in threading.enumerate()
        }:
            return True
        time.sleep(0.02)
    return False


STAGES = {
    "threads": lambda data: data.map(lambda x: x + 1, num_parallel_calls=2),
    "prefetch": lambda data: data.filter(lambda x: x >= 0).prefetch(2),
    "both": lambda data: data.map(lambda x: x, num_parallel_calls=2).batch(4).prefetch(2),
    "shuffled": lambda data: data.map(lambda x: x, 2).filter(lambda x: x >= 0).shuffle(9).repeat(2),
}


@pytest.mark.parametrize("count", [3, 10**6])
@pytest.mark.parametrize("name", STAGES)
def test_nothing_is_left_of_them(name, count, no_collector):
    before = len(_cursor._producers)
    data = STAGES[name](Dataset.range(60))
    for _ in range(4):
        some(data, count)
    assert are_gone(before)


def test_nor_of_those_that_failed():
    gc.collect()
    before = len(_cursor._producers)
    data = Dataset.range(60).map(failing, num_parallel_calls=2).prefetch(2)
    for _ in range(4):
        with suppress(ValueError):
            some(data, 10**6)
    assert are_gone(before, collect=True)


def test_an_iterator_that_ended_goes_on_saying_so():
    iterator = iter(Dataset.range(5).map(lambda x: x, num_parallel_calls=2))
    assert len(list(iterator)) == 5
    for _ in range(3):
        with pytest.raises(StopIteration):
            next(iterator)
