"""A BERT-size block with given weights and sentences, for any library: only NumPy here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from workloads import BERT, TAGS, EncoderSizes

Array = npt.NDArray[Any]
SIZES = EncoderSizes(dropout=0.0, attention_dropout=0.0)  # random numbers differ between libraries
LENGTHS = (512, 300)  # real tokens of each sentence
RATE, STEPS = 0.125, 2  # of gradient descent; the rate is the same in float32
_PATTERNS = 4


def numbers(shape: tuple[int, ...], seed: int) -> Array:
    """Numbers from -0.5 to 0.5; this generator's are the same in all versions of NumPy."""
    return np.random.RandomState(seed).random_sample(shape) - 0.5


def weights() -> dict[str, Array]:
    """Of the model, by name, in Keras's shapes; what multiplies what is normalized is near 1."""
    width, hidden, head = BERT.width, BERT.hidden, (BERT.heads, BERT.width // BERT.heads)
    shapes: dict[str, tuple[int, ...]] = {}
    for part in ("query", "key", "value"):
        shapes |= {f"attend/{part}/kernel": (width, *head), f"attend/{part}/bias": head}
    shapes |= {"attend/output/kernel": (*head, width), "attend/output/bias": (width,)}
    shapes |= {"rise/kernel": (width, hidden), "rise/bias": (hidden,)}
    shapes |= {"fall/kernel": (hidden, width), "fall/bias": (width,)}
    for norm in ("norm1", "norm2"):
        shapes |= {f"{norm}/gamma": (width,), f"{norm}/beta": (width,)}
    shapes |= {"tags/kernel": (width, TAGS), "tags/bias": (TAGS,)}
    return {  # queries and keys that tell tokens apart
        name: numbers(shape, seed) * (0.3 if name.startswith("attend") else 0.1)
        + (1.0 if name.endswith("gamma") else 0.0)
        for seed, (name, shape) in enumerate(shapes.items())
    }


def sentences() -> tuple[Array, npt.NDArray[np.int32]]:
    """Embeddings [2, 512, 768], and labels [2, 512]: 0 is padding."""
    x = 2 * numbers((len(LENGTHS), BERT.length, BERT.width), 100)
    labels = 1 + x[:, :, :TAGS].argmax(-1).astype(np.int32)
    for row, length in enumerate(LENGTHS):
        labels[row, length:] = 0
    return x, labels


def summary(name: str, array: Array, seed: int) -> dict[str, Array]:
    """A large array's norm, and its sums with some patterns of numbers."""
    sums = [(array * numbers(array.shape, 200 + 10 * seed + k)).sum() for k in range(_PATTERNS)]
    return {name: np.array([np.linalg.norm(array), *sums])}


def results(logits: Array, losses: list[float], gradients: Mapping[str, Array]) -> dict[str, Array]:
    """What is recorded: logits of real tokens, losses of all steps, gradients of the first."""
    rows = [logits[row, :length] for row, length in enumerate(LENGTHS)]
    found = {"logits": np.concatenate(rows), "losses": np.array(losses)}
    for seed, name in enumerate(weights()):
        found |= summary(name, gradients[name], seed)
    return found
