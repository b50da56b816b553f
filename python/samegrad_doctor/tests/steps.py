"""Training steps in NumPy, right and wrong: a small network's gradient for shares of a batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

RNG = np.random.default_rng(11)
X, Y = RNG.normal(size=(30, 6)), RNG.normal(size=(30, 2))
WEIGHTS = RNG.uniform(0.5, 3.0, size=30)
W1, W2 = RNG.normal(size=(6, 5)), RNG.normal(size=(5, 2))
Gradient = np.ndarray
Share = tuple[np.ndarray, ...]


def total(share: Share, weights: np.ndarray | None = None) -> Gradient:
    """The gradient of the sum of the (weighted) losses of a share."""
    x, y = share[:2]
    hidden = np.tanh(x @ W1)
    error = 2 * (hidden @ W2 - y)
    if weights is not None:
        error = error * weights[:, None]
    back = error @ W2.T * (1 - hidden**2)
    return np.concatenate([(x.T @ back).ravel(), (hidden.T @ error).ravel()])


def mean(share: Share) -> Gradient:
    return total(share) / len(share[0])


def count(shares: Sequence[Share]) -> int:
    return sum(len(share[0]) for share in shares)


def losses(share: Share) -> np.ndarray:
    return np.square(np.tanh(share[0] @ W1) @ W2 - share[1]).sum(axis=1)


def flat(windows: Sequence[Sequence[Share]]) -> list[Share]:
    """All micro-batches of all replicas."""
    return [part for window in windows for part in window]


REGULARISATION = np.random.default_rng(5).normal(size=40)

Step = Callable[[list[Any]], Any]
