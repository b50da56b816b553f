"""Print size and load time of saved models of samegrad, or of TensorFlow 2.21.

    python tests/benchmarks/saved_model_duels.py
    python tests/benchmarks/saved_model_duels.py --tensorflow

Times are CPU seconds of the process, the best of three.
"""

from __future__ import annotations

import argparse
import importlib
import pathlib
import tempfile
import time
from collections.abc import Callable
from typing import Any

import numpy as np

MODELS = ("ResNet50", "MobileNetV2")
ROUNDS = 3


def best(run: Callable[[], Any]) -> float:
    """Return the CPU seconds of the fastest of some runs."""
    seconds = []
    for _ in range(ROUNDS):
        begin = time.process_time()
        run()
        seconds.append(time.process_time() - begin)
    return min(seconds)


def measure(tf: Any, name: str, folder: str) -> None:
    """Print one model's row: bytes of the folder, export, load, load with a first call."""
    model = getattr(tf.keras.applications, name)(weights=None)
    export = best(lambda: model.export(folder, verbose=False))
    files = [path for path in pathlib.Path(folder).rglob("*") if path.is_file()]
    sizes = [path.stat().st_size / 1e6 for path in files]
    image = tf.constant(np.zeros((1, 224, 224, 3), np.float32))

    def call() -> Any:
        loaded = tf.saved_model.load(folder)
        return loaded.serve(image)

    load, first = best(lambda: tf.saved_model.load(folder)), best(call)
    total, weights = sum(sizes), max(sizes)
    print(
        f"{name}: {total:.2f} MB, {total - weights:.2f} MB of it without the weights, "
        f"export {export:.2f} s, load {load:.2f} s, with the first call {first:.2f} s"
    )


def main() -> None:
    """Measure all models."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tensorflow", action="store_true")
    library: Any = importlib.import_module(
        "tensorflow" if parser.parse_args().tensorflow else "samegrad"
    )
    for name in MODELS:
        with tempfile.TemporaryDirectory() as folder:
            measure(library, name, f"{folder}/model")


if __name__ == "__main__":
    main()
