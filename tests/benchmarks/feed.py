"""What a batch costs: the time of `next(iterator)`, and what the feed gathers at most.

python tests/benchmarks/feed.py
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np

import samegrad as tf

CALLS = 20000
PAUSE = 30e-6  # between calls, as a small step would take


def iterator_of(arrays: tuple[Any, ...], batch_size: int, replicas: int) -> Iterator[Any]:
    """An endless iterator over shuffled global batches."""
    dataset = tf.data.Dataset.from_tensor_slices(arrays)
    dataset = dataset.shuffle(len(arrays[0]), seed=1).repeat().batch(batch_size)
    strategy = tf.distribute.MirroredStrategy(replicas=replicas)
    iterator: Iterator[Any] = iter(strategy.experimental_distribute_dataset(dataset))
    return iterator


def microseconds_per_next(replicas: int) -> tuple[float, float]:
    """Median and mean over calls with pauses; 8 examples of 8 + 1 numbers per replica."""
    arrays = (np.zeros((4096, 8), np.float32), np.zeros((4096, 1), np.float32))
    iterator = iterator_of(arrays, 8 * replicas, replicas)
    next(iterator)
    times = []
    for _ in range(CALLS):
        end = time.perf_counter() + PAUSE
        while time.perf_counter() < end:
            pass
        begin = time.perf_counter()
        next(iterator)
        times.append(time.perf_counter() - begin)
    return float(np.median(times)) * 1e6, float(np.mean(times)) * 1e6


def images_per_second(replicas: int, batch_size: int = 512) -> float:
    """Best of five runs over 60,000 images of 28 x 28 float32 numbers."""
    arrays = (np.ones((60000, 28, 28, 1), np.float32), np.ones(60000, np.uint8))
    iterator = iterator_of(arrays, batch_size, replicas)
    next(iterator)
    best = 0.0
    for _ in range(5):
        begin = time.perf_counter()
        for _ in range(120):
            next(iterator)
        best = max(best, 120 * batch_size / (time.perf_counter() - begin))
    return best


def main() -> None:
    """Prints the table."""
    print("replicas  us per next(): median  mean   images/s at most")
    for replicas in (1, 8):
        median, mean = microseconds_per_next(replicas)
        print(f"{replicas:8}  {median:22.2f} {mean:5.2f}   {images_per_second(replicas):16,.0f}")


if __name__ == "__main__":
    main()
