"""What a batch of another length costs a training step of a Transformer: CPU seconds.

    python tests/benchmarks/lengths.py [LAYERS]

Prints, for one trace that leaves lengths open and for a trace for each length, what the first call
for each pair of lengths took (trace, plan and step), and a later one (the step).
"""

from __future__ import annotations

import sys
import time
from typing import Any

import numpy as np

import samegrad as tf
from samegrad.cli._translate._blocks import Sizes
from samegrad.cli._translate._model import Transformer
from samegrad.cli._translate._steps import TranslationSteps, adam

LENGTHS = (12, 18, 27, 40, 60)
SENTENCES, TOKENS = 16, 1000


def seconds(step: Any, batch: Any) -> float:
    """CPU time of one call."""
    start = time.process_time()
    step(batch)
    return time.process_time() - start


def measure(layers: int, apart: bool) -> list[tuple[float, float]]:
    """First and second call for each length."""
    tf.keras.utils.set_random_seed(0)
    steps = TranslationSteps(
        tf.distribute.MirroredStrategy(replicas=1),
        lambda: Transformer(TOKENS, TOKENS, Sizes(layers=layers)),
        lambda: adam(1e-3),
    )
    step = tf.function(steps.train_step.python_function) if apart else steps.train_step
    rng, found = np.random.default_rng(0), []
    for length in LENGTHS:
        rows = [
            rng.integers(3, TOKENS, (SENTENCES, n)).astype(np.int32) for n in (length, length + 2)
        ]
        batch = tuple(tf.constant(part)._as_examples(0, 1) for part in rows)
        found.append((seconds(step, batch), seconds(step, batch)))
    return found


def main() -> None:
    """Prints both."""
    layers = int(sys.argv[1]) if len(sys.argv) > 1 else 4
    for name, apart in (("one trace", False), ("a trace each", True)):
        for length, (first, later) in zip(LENGTHS, measure(layers, apart), strict=True):
            print(f"{name:13} length {length:3}: {first:6.2f} s, then {later:6.2f} s")


if __name__ == "__main__":
    main()
