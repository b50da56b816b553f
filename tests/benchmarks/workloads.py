"""What every framework trains on: the data, the batch per replica, the shape of a program.

The arrays, batch sizes and model sizes live here once, so that no framework can be given
easier work than another.
"""

from __future__ import annotations

import gzip
import os
import resource
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

Arrays = tuple[npt.NDArray[Any], ...]

# 784-W-W-10: weights that fit into a second cache, and some that do not.
DENSE = {"dense_1024": 1024, "dense_2048": 2048, "dense_4096": 4096}
PIXELS, CLASSES = 784, 10

# Tables of embeddings, of which a step looks up some: the optimizer and the rows.
EMBEDDINGS = {
    f"{name}_{rows}": (name, rows)
    for name in ("sparse_sgd", "sparse_adam")
    for rows in (10_000, 100_000, 1_000_000)
}
EMBEDDED = 64  # numbers of a row

# Gradients that are there already: all-reduce and Adam alone, of so many million parameters.
GIVEN = {"given_25": 25, "given_50": 50}


@dataclass(frozen=True)
class EncoderSizes:
    """Of a block of an encoder, and of the sentences that it reads; at first those of BERT-base."""

    length: int = 512
    width: int = 768
    heads: int = 12
    hidden: int = 3072
    dropout: float = 0.1
    attention_dropout: float = 0.1  # of the weights of attention


BERT = EncoderSizes()
# Without dropout of its weights, PyTorch's attention on CPUs keeps no array of all pairs either.
BERT_BLOCKS = {"bert_block": BERT, "bert_block_plain": replace(BERT, attention_dropout=0.0)}

TAGS = 9  # of names: persons, places, organizations and others, begun or gone on with; or none

BATCH = {"cnn": 64, "tiny": 8, "wgan_gp": 32, "transformer": 32}  # per replica
BATCH |= {"dense_1024": 32, "dense_2048": 128, "dense_4096": 128}
BATCH |= dict.fromkeys(EMBEDDINGS, 4096) | dict.fromkeys(GIVEN, 1)
BATCH |= dict.fromkeys(BERT_BLOCKS, 8)

NOISE = 100  # inputs of the generator
VOCABULARY, LENGTH, LAYERS, WIDTH, HIDDEN, HEADS = 8192, 40, 4, 128, 512, 8


@dataclass(frozen=True)
class Job:
    """One training run: who trains what, on how many replicas.

    `batch` is per replica and `threads` is per process (None leaves the framework's default).
    """

    workload: str
    backend: str
    replicas: int
    batch: int
    threads: int | None = None

    @property
    def global_batch(self) -> int:
        return self.batch * self.replicas

    @property
    def units_per_step(self) -> int:
        """Examples in a step; tokens for the transformer, parameters for given gradients."""
        if self.workload in GIVEN:
            return GIVEN[self.workload] * 1_000_000
        lengths = {"transformer": LENGTH, **dict.fromkeys(BERT_BLOCKS, BERT.length)}
        return self.global_batch * lengths.get(self.workload, 1)


@dataclass(frozen=True)
class Program:
    """A training loop: `step(i)` trains once, `value(loss)` waits and reads the loss.

    Attributes:
        parameters: How many are trained, where that is told.
        import_memory_mib: Peak memory after the import of the framework, where that is told.
        explain: Measures the steps of samegrad's plan in so many runs.
    """

    step: Callable[[int], Any]
    value: Callable[[Any], float]
    version: str
    parameters: int = 0
    import_memory_mib: float = 0
    explain: Callable[[int], Any] | None = None


def load(workload: str) -> Arrays:
    """Returns the whole training set of a workload as NumPy arrays."""
    if workload == "cnn":
        return fashion_mnist()
    if workload == "wgan_gp":
        images = fashion_mnist()[0]
        images *= 2
        images -= 1
        return (images,)
    if workload == "transformer":
        return sentences()
    if workload in BERT_BLOCKS:
        return tagged_sentences()
    rng = np.random.default_rng(0)
    if workload in DENSE:
        rows = rng.normal(size=(2048, PIXELS)).astype(np.float32)
        return rows, rng.integers(0, CLASSES, 2048).astype(np.int32)
    if workload in EMBEDDINGS:
        return (rng.integers(0, EMBEDDINGS[workload][1], 1 << 18),)
    if workload in GIVEN:
        return (np.full((GIVEN[workload] * 1000, 1000), 1e-3, np.float32),)
    inputs, targets = rng.normal(size=(4096, 8)), rng.normal(size=(4096, 1))
    return inputs.astype(np.float32), targets.astype(np.float32)


def fashion_mnist() -> Arrays:
    """Returns images (60000, 28, 28, 1) in [0, 1] and int32 labels (60000,)."""
    folder = fashion_mnist_folder()
    pixels = _read_idx(folder / "train-images-idx3-ubyte.gz", header=16)
    labels = _read_idx(folder / "train-labels-idx1-ubyte.gz", header=8)
    # Written straight to float32: a second full copy here would set the peak memory of every run.
    images = np.empty((len(labels), 28, 28, 1), np.float32)
    np.divide(pixels.reshape(images.shape), np.float32(255), out=images)
    return images, labels.astype(np.int32)


def fashion_mnist_folder() -> Path:
    """Returns the folder named by DATA, else the one of Debian's dataset-fashion-mnist."""
    if "DATA" in os.environ:
        return Path(os.environ["DATA"])
    listing = subprocess.run(
        ["dpkg", "-L", "dataset-fashion-mnist"], capture_output=True, text=True, check=True
    ).stdout
    files = [Path(line) for line in listing.splitlines()]
    return next(file.parent for file in files if file.name == "train-images-idx3-ubyte.gz")


def _read_idx(path: Path, header: int) -> npt.NDArray[np.uint8]:
    with gzip.open(path) as stream:
        return np.frombuffer(stream.read(), np.uint8, offset=header)


def sentences(count: int = 4096) -> Arrays:
    """Returns random token ids of lengths 10..39, padded with 0; time does not depend on them."""
    rng = np.random.default_rng(0)
    source = rng.integers(3, VOCABULARY, (count, LENGTH)).astype(np.int32)
    target = rng.integers(3, VOCABULARY, (count, LENGTH + 1)).astype(np.int32)
    for row, length in enumerate(rng.integers(10, LENGTH, count)):
        source[row, length:] = 0
        target[row, length:] = 0
    return source, target


def tagged_sentences(count: int = 24) -> Arrays:
    """Returns embeddings of sentences of 384..512 tokens, and labels: 0 is padding, then tags.

    A tag is the largest of the first numbers of its token, so that there is something to learn.
    """
    rng = np.random.default_rng(0)
    x = rng.standard_normal((count, BERT.length, BERT.width), np.float32)
    labels = 1 + x[:, :, :TAGS].argmax(-1).astype(np.int32)
    for row, length in enumerate(rng.integers(384, BERT.length + 1, count)):
        x[row, length:] = 0
        labels[row, length:] = 0
    return x, labels


def peak_memory_mib() -> float:
    """Returns the most memory this process has held, in MiB.

    Linux's VmHWM is preferred: ru_maxrss survives exec, so it would include the parent's.
    """
    try:
        status = Path("/proc/self/status").read_text()
        line = next(line for line in status.splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) / 1024
    except (OSError, StopIteration):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
