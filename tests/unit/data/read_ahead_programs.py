"""Pipelines over a source that counts its elements, to see how far each transformation reads ahead.

Each program takes the package and the source, and returns the pipeline. The names of those that
work on several elements side by side begin with "parallel".
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

SETTLED = 0.05  # seconds without another element, after which threads have done what they would
LONGEST = 10.0  # seconds for threads that have little of a processor
STEPS = 6

PROGRAMS: dict[str, Callable[[Any, Any], Any]] = {
    "source": lambda tf, d: d,
    "map": lambda tf, d: d.map(lambda x: x + 1),
    "filter": lambda tf, d: d.filter(lambda x: x % 2 == 1),
    "batch": lambda tf, d: d.batch(3),
    "batch_unbatch": lambda tf, d: d.batch(3).unbatch(),
    "padded_batch": lambda tf, d: d.padded_batch(2, padded_shapes=[]),
    "ragged_batch": lambda tf, d: d.map(lambda x: tf.ones([x])).ragged_batch(2),
    "rebatch": lambda tf, d: d.batch(4).rebatch(2),
    "take": lambda tf, d: d.take(5),
    "skip": lambda tf, d: d.skip(4),
    "shard": lambda tf, d: d.shard(3, 1),
    "repeat": lambda tf, d: d.take(4).repeat(2),
    "enumerate": lambda tf, d: d.enumerate(),
    "zip": lambda tf, d: tf.data.Dataset.zip((d, d)),
    "concatenate": lambda tf, d: d.take(2).concatenate(d),
    "window": lambda tf, d: d.window(3, shift=1).flat_map(lambda w: w),
    "flat_map": lambda tf, d: d.flat_map(lambda x: tf.data.Dataset.range(2)),
    "interleave": lambda tf, d: d.interleave(lambda x: tf.data.Dataset.range(2), 3),
    "interleave_of_blocks": lambda tf, d: d.interleave(
        lambda x: tf.data.Dataset.range(4), cycle_length=2, block_length=2
    ),
    "scan": lambda tf, d: d.scan(np.int64(0), lambda s, x: (s + x, s + x)),
    "take_while": lambda tf, d: d.take_while(lambda x: x < 9),
    "unique": lambda tf, d: d.map(lambda x: x // 2).unique(),
    "cache": lambda tf, d: d.cache(),
    "group_by_window": lambda tf, d: d.group_by_window(
        lambda x: x % 2, lambda key, window: window.batch(3), window_size=3
    ),
    "bucket_by_sequence_length": lambda tf, d: d.map(
        lambda x: tf.ones([x % 4 + 1])
    ).bucket_by_sequence_length(lambda x: tf.shape(x)[0], [3], [2, 2]),
    "shuffle_1": lambda tf, d: d.shuffle(1, seed=1),
    "shuffle_5": lambda tf, d: d.shuffle(5, seed=1),
    "shuffle_of_batches": lambda tf, d: d.batch(2).shuffle(3, seed=1),
    "choose_from_datasets": lambda tf, d: tf.data.Dataset.choose_from_datasets(
        [d, d], tf.data.Dataset.range(2).repeat()
    ),
    "prefetch_1": lambda tf, d: d.prefetch(1),
    "prefetch_5": lambda tf, d: d.prefetch(5),
    "prefetch_40": lambda tf, d: d.prefetch(40),
    "prefetch_of_map": lambda tf, d: d.map(lambda x: x + 1).prefetch(5),
    "prefetch_of_batches": lambda tf, d: d.batch(3).prefetch(2),
    "prefetch_before_map": lambda tf, d: d.prefetch(4).map(lambda x: x + 1),
    "prefetch_twice": lambda tf, d: d.prefetch(3).prefetch(2),
    "prefetch_of_shuffle": lambda tf, d: d.shuffle(4, seed=1).prefetch(2),
    "parallel_map_of_1": lambda tf, d: d.map(lambda x: x + 1, num_parallel_calls=1),
    "parallel_map_of_2": lambda tf, d: d.map(lambda x: x + 1, num_parallel_calls=2),
    "parallel_map_of_4": lambda tf, d: d.map(lambda x: x + 1, num_parallel_calls=4),
    "parallel_map_prefetched": lambda tf, d: d.map(lambda x: x + 1, num_parallel_calls=2).prefetch(
        3
    ),
    "parallel_map_of_batches": lambda tf, d: d.batch(3).map(lambda x: x + 1, num_parallel_calls=2),
    "parallel_map_batched": lambda tf, d: d.map(lambda x: x + 1, num_parallel_calls=2).batch(3),
    "parallel_batch": lambda tf, d: d.batch(3, num_parallel_calls=2),
    "parallel_interleave": lambda tf, d: d.interleave(
        lambda x: tf.data.Dataset.range(2), cycle_length=2, num_parallel_calls=2
    ),
}


def read_ahead(
    tf: Any, program: Callable[[Any, Any], Any], expected: list[int] | None = None
) -> list[int]:
    """Return how many elements of the source were read after each of the first steps.

    Args:
        tf: The package.
        program: One of `PROGRAMS`.
        expected: The counts that threads come to in time; None: those that stay a while.
    """
    read = [0]

    def numbers() -> Iterator[Any]:
        for n in range(1000):
            read[0] += 1
            yield np.int64(n)

    options = tf.data.Options()  # TensorFlow adds a prefetch behind some pipelines by itself
    options.autotune.enabled = options.experimental_warm_start = False
    options.experimental_optimization.inject_prefetch = False
    source = tf.data.Dataset.from_generator(numbers, output_signature=tf.TensorSpec((), tf.int64))
    made = program(tf, source).with_options(options)
    assert made.element_spec is not None  # for which samegrad may make an element
    read[0] = 0
    elements, found = iter(made), []
    for step in range(STEPS):
        if next(elements, None) is None:
            break
        end = time.monotonic() + LONGEST
        while expected and read[0] < expected[step] and time.monotonic() < end:
            time.sleep(SETTLED / 10)
        found.append(settled(read))
    return found


def settled(read: list[int]) -> int:
    """Return the count once it has not changed for a while."""
    last, since = read[0], time.monotonic()
    while time.monotonic() - since < SETTLED:
        time.sleep(SETTLED / 10)
        if read[0] != last:
            last, since = read[0], time.monotonic()
    return last
