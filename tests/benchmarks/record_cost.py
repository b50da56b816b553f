"""Cost of `tf.record_run`: the time of a training step with a record, divided by that without.

Both are measured in turns. Run: `python tests/benchmarks/record_cost.py [--pairs 7]`.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import samegrad as tf

L = tf.keras.layers


def cnn() -> Any:
    """Return the tutorial's CNN."""
    return tf.keras.Sequential(
        [
            tf.keras.Input([28, 28, 1]),
            *(L.Conv2D(32, 3, activation="relu"), L.MaxPooling2D()),
            *(L.Conv2D(64, 3, activation="relu"), L.MaxPooling2D()),
            *(L.Flatten(), L.Dense(64, activation="relu"), L.Dense(10)),
        ]
    )


def dense() -> Any:
    """Return two wide dense layers, whose gradients are never in memory."""
    wide = [L.Dense(4096, activation="relu") for _ in range(2)]
    return tf.keras.Sequential([tf.keras.Input([784]), *wide, L.Dense(10)])


def resnet50() -> Any:
    """Return ResNet-50 for images of 64 x 64 pixels."""
    return tf.keras.applications.ResNet50(
        weights=None, input_shape=(64, 64, 3), classes=10, classifier_activation=None
    )


WORKLOADS: dict[str, tuple[Callable[[], Any], int, int]] = {  # batch size, steps of a turn
    "cnn": (cnn, 128, 100),
    "dense": (dense, 128, 20),
    "resnet50": (resnet50, 32, 4),
}


def measure(name: str, pairs: int) -> None:
    """Print medians of the time of a step and of the ratio of pairs."""
    make, batch, steps = WORKLOADS[name]
    with tf.distribute.MirroredStrategy(replicas=2).scope():
        model = make()
        loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        model.compile("adam", loss)
    generator = np.random.default_rng(0)
    x = generator.normal(size=(batch, *model.input_shape[1:])).astype("float32")
    y = generator.integers(0, 10, batch)

    def turn() -> float:
        model.train_on_batch(x, y)  # the first recorded step also hashes all variables before it
        start = time.perf_counter()
        for _ in range(steps):
            model.train_on_batch(x, y)
        return (time.perf_counter() - start) / steps * 1e3

    plain, recorded = [], []
    with tempfile.TemporaryDirectory() as folder:
        for pair in range(pairs):
            plain.append(turn())
            with tf.record_run(Path(folder) / f"{pair}.sgrec"):
                recorded.append(turn())
        size = (Path(folder) / "0.sgrec").stat().st_size
    ratio = statistics.median(b / a for a, b in zip(plain, recorded, strict=True))
    print(
        f"{name:10} {statistics.median(plain):8.2f} ms, recorded "
        f"{statistics.median(recorded):8.2f} ms, ratio {ratio:.3f}, "
        f"{size:,} bytes for {steps + 1} steps",
        flush=True,
    )


def main() -> None:
    """Measure all workloads, or those that are named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--only", nargs="+", choices=WORKLOADS, default=[*WORKLOADS])
    options = parser.parse_args()
    for name in options.only:
        measure(name, options.pairs)


if __name__ == "__main__":
    main()
