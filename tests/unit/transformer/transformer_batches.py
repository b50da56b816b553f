"""Small models and batches of sentences of any lengths."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import samegrad as tf
from samegrad.cli._translate._blocks import Sizes
from samegrad.cli._translate._model import Transformer

TOKENS = 23
Batch = tuple[np.ndarray, np.ndarray]


def small(dtype: str = "float64", tokens: int = TOKENS, **options: Any) -> Transformer:
    """A model of one or a few small blocks, the same each time."""
    tf.keras.utils.set_random_seed(0)
    sizes = {"layers": 1, "width": 8, "hidden": 12, "heads": 2, "dropout": 0.1} | options
    return Transformer(tokens, tokens, Sizes(**sizes), dtype=dtype)


def sentences(lengths: Sequence[int], seed: int = 0, longest: int = 0) -> np.ndarray:
    """Tokens [n, longest], so many of them real in each row."""
    rng = np.random.default_rng(seed)
    rows = np.zeros((len(lengths), max([longest, *lengths])), np.int32)
    for row, length in zip(rows, lengths, strict=True):
        row[:length] = rng.integers(3, TOKENS, length)
    return rows


def pairs(lengths: Sequence[int], longest: int = 0) -> Batch:
    """Sources, and targets that begin with token 1 and have so many tokens to predict."""
    targets = sentences(lengths, 1, longest)
    return sentences(lengths, 0, longest), np.pad(targets, [(0, 0), (1, 0)], constant_values=1)
