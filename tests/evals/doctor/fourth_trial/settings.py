"""Options and batches of more than one module."""

from __future__ import annotations

from torch_ranks import *


def pairs(rows: int = 16) -> tuple[np.ndarray, np.ndarray]:
    """Two views of each example."""
    rng = np.random.default_rng(241)
    one = rng.normal(size=(rows, 8))
    two = one + 0.5 * rng.normal(size=(rows, 8))
    return one.astype(np.float32), two.astype(np.float32)


def masks(rows: int = 16) -> tuple[np.ndarray, np.ndarray]:
    """Features of twelve pixels of each image, and a mask, small in some images."""
    rng = np.random.default_rng(242)
    sizes = np.array([1, 6, 3, 9, 2, 5, 8, 1, 4, 7, 2, 10, 3, 6, 1, 5])
    inside = np.arange(12) < sizes[:, None]
    return rng.normal(size=(rows, 12, 5)).astype(np.float32), inside[:rows].astype(np.float32)


def encoder() -> nn.Module:
    """What embeds a view."""
    return nn.Sequential(nn.Linear(8, 10), nn.Tanh(), nn.Linear(10, 6))


def pixels() -> nn.Module:
    """A score of each pixel."""
    return nn.Sequential(nn.Linear(5, 9), nn.Tanh(), nn.Linear(9, 1))


def normalized() -> nn.Module:
    """A classifier with batch normalization."""
    return nn.Sequential(nn.Linear(8, 12), nn.BatchNorm1d(12), nn.Tanh(), nn.Linear(12, 3))


VIEWS: dict[str, Any] = {"batch": pairs, "model": encoder}
MASKS: dict[str, Any] = {"batch": masks, "model": pixels}
PICTURES: dict[str, Any] = {"batch": images}


def average(rank: Rank, value: torch.Tensor) -> torch.Tensor:
    """The mean of a number of all ranks, without a gradient."""
    return rank.all_reduce(value) / rank.world_size


def squares(model: nn.Module) -> torch.Tensor:
    """The sum of the squares of all parameters."""
    return sum((p**2).sum() for p in model.parameters())
