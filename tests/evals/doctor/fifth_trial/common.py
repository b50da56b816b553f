"""What several files of the trial use: layouts, models, and sums over ranks."""

from __future__ import annotations

from torch_ranks import *

WEIGHTED: dict[str, Any] = {"batch": weighted, "weights": WEIGHTS}
NUMBERS: dict[str, Any] = {"batch": targets}


def pictures() -> nn.Module:
    """Convolutions and a norm of the batch."""
    return nn.Sequential(
        nn.Conv2d(2, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(64, 3)
    )


PICTURES: dict[str, Any] = {"batch": images, "model": pictures}


def over_all(rank: Rank, total: torch.Tensor, count: Any) -> torch.Tensor:
    """A sum of this rank, over the count of all, times the ranks that DDP divides by."""
    return total * rank.world_size / rank.all_reduce(count)


def exact(rank: Rank, model: nn.Module, batch: Any) -> None:
    """The gradient of the mean over the examples of all ranks."""
    total = F.cross_entropy(model(batch[0]), batch[1], reduction="sum")
    over_all(rank, total, len(batch[0])).backward()
    rank.average(model)
