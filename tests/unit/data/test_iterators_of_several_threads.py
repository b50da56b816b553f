"""Threads may share an iterator: each element goes to one of them, and all come to the end."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest

import samegrad as tf

Dataset = tf.data.Dataset
COUNT = 2000


def generated():
    for n in range(300):
        time.sleep(1e-5)  # another thread may come in here
        yield n


DATASETS = {
    "range": lambda: Dataset.range(COUNT),
    "map": lambda: Dataset.range(COUNT).map(lambda x: x * 1),
    "threads": lambda: Dataset.range(COUNT).map(lambda x: x * 1, tf.data.AUTOTUNE),
    "prefetch": lambda: Dataset.range(COUNT).filter(lambda x: x >= 0).prefetch(2),
    "shuffle": lambda: Dataset.range(COUNT).filter(lambda x: x >= 0).shuffle(50),
    "generator": lambda: Dataset.from_generator(
        generated, output_signature=tf.TensorSpec([], tf.int64)
    ),
}


@pytest.mark.parametrize("name", DATASETS)
def test_each_element_goes_to_one_thread(name):
    iterator = iter(DATASETS[name]())
    found: list[int] = []
    errors: list[Any] = []

    def take_all() -> None:
        try:
            for element in iterator:
                found.append(int(element))
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=take_all, daemon=True) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert not any(thread.is_alive() for thread in threads)
    assert not errors
    assert sorted(found) == list(range(300 if name == "generator" else COUNT))
    assert iterator._position() == len(found)
