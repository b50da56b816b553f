"""A small network on examples and on sequences, and what frameworks do with its gradients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from steps import REGULARISATION, W1, W2, X, Y, count, flat, losses, mean, total

from samegrad_doctor import Outcome

RNG = np.random.default_rng(23)
LENGTHS = RNG.integers(1, 8, size=30)
LONGEST = 7
TOKENS = RNG.normal(size=(30, LONGEST, 6))
TARGETS = RNG.normal(size=(30, LONGEST, 2))
MASK = np.arange(LONGEST)[None, :] < LENGTHS[:, None]
EXAMPLES = (X, Y)
SEQUENCES = (TOKENS, TARGETS, MASK)
WINDOW = {"replicas": (1, 2, 3), "micro_batches": (1, 2), "max_examples": 14}
OF_TOKENS = {"weights": LENGTHS}

Array = np.ndarray
Share = tuple[Array, ...]


def windows(shares: Sequence[Any]) -> list[list[Share]]:
    """Lists of micro-batches, also where there is one."""
    return [share if isinstance(share, list) else [share] for share in shares]


def token_sum(share: Share) -> Array:
    """The gradient of the sum of the losses of all tokens."""
    x, y, mask = share
    return total((x[mask], y[mask]))


def tokens(share: Share) -> int:
    return int(share[2].sum())


def token_mean(share: Share) -> Array:
    return token_sum(share) / tokens(share)


def sequence_mean(share: Share) -> Array:
    """The mean over sequences of their means over tokens."""
    parts = [token_mean(tuple(leaf[i : i + 1] for leaf in share)) for i in range(len(share[0]))]
    return np.mean(parts, axis=0)


def token_loss(share: Share) -> float:
    """The sum of the losses of all tokens."""
    x, y, mask = share
    return float(losses((x[mask], y[mask])).sum())


def ddp(gradients: Sequence[Array]) -> Array:
    """As DistributedDataParallel, FSDP and Horovod join: the mean over ranks."""
    return np.mean(gradients, axis=0)


def clip(gradient: Array, limit: float) -> Array:
    return gradient * min(1.0, limit / float(np.linalg.norm(gradient)))


def join(shares: Sequence[Share]) -> Share:
    return tuple(np.concatenate(leaves) for leaves in zip(*shares, strict=True))


__all__ = [
    "EXAMPLES", "LENGTHS", "LONGEST", "OF_TOKENS", "REGULARISATION", "SEQUENCES", "W1", "W2",
    "WINDOW", "Outcome", "X", "Y", "Array", "Share", "clip", "count", "ddp", "flat", "join",
    "losses", "mean", "sequence_mean", "token_loss", "token_mean", "token_sum", "tokens", "total",
    "windows",
]  # fmt: skip
