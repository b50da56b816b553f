"""Images from files: decode, resize, flip, shuffle, batch, beside tf.data on the same files.

    python tests/benchmarks/pipeline.py --peer-python PEERS/bin/python [--pairs 5] [--train]

Pillow writes JPEG and PNG files into a temporary folder. Each run is a process of its own; the two
sides alternate (tf.data, samegrad, tf.data, ...), so that a machine that slows down slows both. A
run reads all files once to warm up, and then times some epochs. With --train each batch is a step
of the tutorial's CNN, and "in_memory" says how fast that is without files.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

SIZE, NEW_SIZE, BATCH = 64, 28, 64
HERE = Path(__file__).resolve()


def write_files(folder: Path, count: int) -> None:
    """Files of noise over gradients, half of them JPEG, half PNG: class_0/0.jpg, class_1/1.png."""
    from PIL import Image

    rng = np.random.default_rng(0)
    slope = np.linspace(0, 200, SIZE)[:, None, None]
    for number in range(count):
        noise = rng.normal(0, 12, (SIZE // 4, SIZE // 4, 3)).repeat(4, 0).repeat(4, 1)
        pixels = (slope * rng.random(3) + noise + 20).clip(0, 255).astype(np.uint8)
        target = folder / f"class_{number % 2}"
        target.mkdir(exist_ok=True)
        name = f"{number}.{'png' if number % 2 else 'jpg'}"
        Image.fromarray(pixels).save(target / name, quality=90)


def pipeline(tf: Any, folder: Path, parallel: bool) -> Any:
    """The dataset, written as one writes it for TensorFlow."""
    files = sorted(str(path) for path in folder.glob("*/*"))
    labels = [int(Path(path).parent.name.removeprefix("class_")) for path in files]

    def load(path: Any, label: Any) -> tuple[Any, Any]:
        image = tf.io.decode_image(tf.io.read_file(path), channels=3, expand_animations=False)
        image = tf.image.resize(image, [NEW_SIZE, NEW_SIZE])
        return tf.image.random_flip_left_right(image) / 255.0, label

    data = tf.data.Dataset.from_tensor_slices((files, labels)).shuffle(len(files), seed=1)
    data = data.map(load, num_parallel_calls=tf.data.AUTOTUNE if parallel else None)
    return data.batch(BATCH).prefetch(tf.data.AUTOTUNE)


def run(backend: str, folder: Path, epochs: int, train: bool) -> dict[str, float]:
    """Images per second of one process, over some epochs."""
    if backend == "samegrad":
        import samegrad as tf
    else:
        import tensorflow as tf
    data = pipeline(tf, folder, True)
    if not train:
        return timed(lambda: consume(data), epochs)
    step = training(tf)
    kept = data.cache()
    memory = timed(lambda: train_on(kept, step), epochs)
    return timed(lambda: train_on(data, step), epochs) | {"in_memory": memory["per_second"]}


def timed(epoch: Callable[[], tuple[int, float]], epochs: int) -> dict[str, float]:
    """Images per second of an epoch's function, which is called once more before."""
    count, total = epoch()
    begin = time.perf_counter()
    for _ in range(epochs):
        again, _ = epoch()
        assert again == count
    seconds = time.perf_counter() - begin
    return {"per_second": epochs * count / seconds, "images": count, "mean": total / count}


def training(tf: Any) -> Callable[[Any, Any], Any]:
    """A step of the tutorial's CNN, for coloured images of two classes."""
    layers = tf.keras.layers
    model = tf.keras.Sequential(
        [
            layers.Conv2D(32, 3, activation="relu"),
            layers.MaxPooling2D(),
            layers.Conv2D(64, 3, activation="relu"),
            layers.MaxPooling2D(),
            layers.Flatten(),
            layers.Dense(64, activation="relu"),
            layers.Dense(10),
        ]
    )
    model.build([None, NEW_SIZE, NEW_SIZE, 3])
    optimizer = tf.keras.optimizers.Adam()
    optimizer.build(model.trainable_variables)
    per_example = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True, reduction=None)

    @tf.function
    def step(images: Any, labels: Any) -> Any:
        with tf.GradientTape() as tape:
            losses = per_example(labels, model(images, training=True))
            loss = tf.nn.compute_average_loss(losses)
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        return loss

    return step


def train_on(data: Any, step: Callable[[Any, Any], Any]) -> tuple[int, float]:
    """How many images there are, and the sum of their losses."""
    count, losses = 0, []
    for images, labels in data:
        losses.append((int(labels.shape[0]), step(images, labels)))
        count += losses[-1][0]
    return count, sum(rows * float(loss) for rows, loss in losses)


def consume(data: Any) -> tuple[int, float]:
    """How many images there are, and the sum of their means."""
    count, total = 0, 0.0
    for images, labels in data:
        count += int(labels.shape[0])
        total += float(np.asarray(images).mean()) * int(labels.shape[0])
    return count, total


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """The figures of both sides, pair by pair."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_files(folder, options.files)
        sides = {"tf": options.peer_python, "samegrad": options.python}
        found: dict[str, list[dict[str, float]]] = {side: [] for side in sides}
        for _ in range(options.pairs):
            for side, python in sides.items():
                command = [python, str(HERE), "--run", side, name, "--epochs", str(options.epochs)]
                command += ["--train"] * options.train
                done = subprocess.run(command, capture_output=True, text=True, check=True)
                found[side].append(json.loads(done.stdout.splitlines()[-1]))
                print(side, round(found[side][-1]["per_second"]), file=sys.stderr)
    return summarize(found["samegrad"], found["tf"])


def summarize(ours: list[dict[str, float]], theirs: list[dict[str, float]]) -> dict[str, Any]:
    """Medians of both sides, and that of the factors of the pairs."""
    pairs = list(zip(ours, theirs, strict=True))
    memory = {
        f"{name} in memory": median(side["in_memory"] for side in found)
        for name, found in (("samegrad", ours), ("tf.data", theirs))
        if "in_memory" in found[0]
    }
    return {
        "samegrad": median(side["per_second"] for side in ours),
        "tf.data": median(side["per_second"] for side in theirs),
        "factor": median(a["per_second"] / b["per_second"] for a, b in pairs),
        "pairs": len(pairs),
        **memory,
    }


def main() -> int:
    """Prints images per second of both sides."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peer-python", default=sys.executable, help="has TensorFlow")
    parser.add_argument("--python", default=sys.executable, help="has samegrad")
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--files", type=int, default=2000)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--train", action="store_true", help="a step of a CNN for each batch")
    parser.add_argument("--run", nargs=2, metavar=("SIDE", "FOLDER"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.run:
        print(json.dumps(run(options.run[0], Path(options.run[1]), options.epochs, options.train)))
    else:
        print(json.dumps(measure(options), indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
