"""A classifier with one hidden layer, for images and for tokens, with its gradient by hand."""

from __future__ import annotations

from typing import Any

import numpy as np

RNG = np.random.default_rng(20260101)
FEATURES, HIDDEN, CLASSES, LENGTH = 9, 7, 4, 6
A, B = RNG.normal(size=(FEATURES, HIDDEN)) / 2, RNG.normal(size=(HIDDEN, CLASSES)) / 2
SIZE = A.size + B.size

IMAGES = {"image": RNG.normal(size=(40, FEATURES)), "label": RNG.integers(0, CLASSES, 40)}
LENGTHS = RNG.integers(1, LENGTH + 1, 40)
TEXT = {
    "input_ids": RNG.normal(size=(40, LENGTH, FEATURES)),
    "labels": np.where(
        np.arange(LENGTH) < LENGTHS[:, None], RNG.integers(0, CLASSES, (40, LENGTH)), -100
    ),
}
IMPORTANCE = RNG.uniform(0.2, 3.0, 40)
WEIGHTED = {**IMAGES, "weight": IMPORTANCE}
SOFT = RNG.uniform(0.03, 0.3, 40)
BOXES = {**IMAGES, "mass": SOFT}

PLAIN = {"max_examples": 12}
WINDOWS = {"replicas": (1, 2, 3), "micro_batches": (1, 2), "max_examples": 14}
ONE_DEVICE = {"replicas": (1,), "micro_batches": (1, 2, 3), "max_examples": 14}
BY_TOKENS = {"weights": LENGTHS, "max_examples": 12}
TOKEN_WINDOWS = {**WINDOWS, "weights": LENGTHS}
NOISE = RNG.normal(size=SIZE)


def forward(x: Any, y: Any) -> tuple[Any, Any, Any]:
    hidden = np.tanh(x @ A)
    logits = hidden @ B
    logits = logits - logits.max(axis=1, keepdims=True)
    chances = np.exp(logits)
    chances /= chances.sum(axis=1, keepdims=True)
    return hidden, chances, -np.log(chances[np.arange(len(y)), y])


def backward(x: Any, y: Any, weights: Any) -> Any:
    """The gradient of Σ weights · cross-entropy."""
    hidden, chances, _ = forward(x, y)
    error = (chances - np.eye(CLASSES)[y]) * np.asarray(weights, dtype=float)[:, None]
    inner = error @ B.T * (1 - hidden**2)
    return np.concatenate([(x.T @ inner).ravel(), (hidden.T @ error).ravel()])


def images(batch: Any) -> tuple[Any, Any]:
    return batch["image"], batch["label"]


def grad_sum(batch: Any, weights: Any = None) -> Any:
    x, y = images(batch)
    return backward(x, y, np.ones(len(y)) if weights is None else weights)


def grad_mean(batch: Any) -> Any:
    return grad_sum(batch) / len(batch["label"])


def losses(batch: Any) -> Any:
    return forward(*images(batch))[2]


def valid(batch: Any) -> Any:
    return batch["labels"] != -100


def n_tokens(batch: Any) -> int:
    return int(valid(batch).sum())


def token_sum(batch: Any) -> Any:
    real = valid(batch)
    return backward(batch["input_ids"][real], batch["labels"][real], np.ones(int(real.sum())))


def token_losses(batch: Any) -> Any:
    real = valid(batch)
    return forward(batch["input_ids"][real], batch["labels"][real])[2]


def rows(batch: Any) -> int:
    return len(next(iter(batch.values())))


def cut(batch: Any, which: Any) -> Any:
    return {name: value[which] for name, value in batch.items()}


def merged(batches: Any) -> Any:
    return {name: np.concatenate([b[name] for b in batches]) for name in batches[0]}


def windows(shares: Any) -> list[list[Any]]:
    return [share if isinstance(share, list) else [share] for share in shares]


def flat(shares: Any) -> list[Any]:
    return [part for window in windows(shares) for part in window]


def dp_mean(gradients: Any) -> Any:
    gradients = list(gradients)
    return sum(gradients) / len(gradients)


def clip(gradient: Any, limit: float) -> Any:
    return gradient * min(1.0, limit / (float(np.linalg.norm(gradient)) + 1e-12))
