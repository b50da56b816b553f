"""Programs of PyTorch that the processes of DistributedDataParallel import. Needs PyTorch."""

from __future__ import annotations

import os
import sys
import time

import torch
from torch import distributed

START = torch.Generator().manual_seed(1)
W = torch.randn(6, 5, generator=START, dtype=torch.float64)
V = torch.randn(5, 2, generator=START, dtype=torch.float64)


class Network(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.w, self.v = torch.nn.Parameter(W.clone()), torch.nn.Parameter(V.clone())

    def forward(self, x):
        return torch.tanh(x @ self.w) @ self.v


def losses(model, batch):
    """One per example."""
    return ((model(batch[0]) - batch[1]) ** 2).sum(dim=1)


def summed(value):
    """Over the ranks; no gradient flows through it."""
    total = torch.as_tensor(float(value), dtype=torch.float64)
    distributed.all_reduce(total)
    return total


def build_mean():
    """What everybody writes: DDP averages the ranks' means."""
    return Network(), lambda model, batch: losses(model, batch).mean()


def build_normalised():
    """Batch normalization with the moments of each rank; it refuses a single example."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Linear(6, 5), torch.nn.BatchNorm1d(5), torch.nn.Tanh(), torch.nn.Linear(5, 2)
    )
    return model.double(), lambda model, batch: losses(model, batch).mean()


def build_right():
    """The sum, by the true count of all ranks, times the ranks that DDP divides by."""

    def loss(model, batch):
        world = distributed.get_world_size()
        return losses(model, batch).sum() * world / summed(len(batch[0]))

    return Network(), loss


def build_right_windows():
    """The same with micro-batches, which are reduced once."""

    def run(model, share):
        parts = share if isinstance(share, list) else [share]
        count = summed(sum(len(part[0]) for part in parts))
        reported = 0.0
        for part in parts[:-1]:
            with model.no_sync():
                loss = losses(model, part).sum() * distributed.get_world_size() / count
                loss.backward()
            reported += float(loss.detach())
        loss = losses(model, parts[-1]).sum() * distributed.get_world_size() / count
        loss.backward()
        return reported + float(loss.detach())

    return Network(), run


def build_forgotten():
    """no_sync around all of it: the ranks are never joined."""

    def run(model, share):
        with model.no_sync():
            losses(model, share).mean().backward()

    return Network(), run


def build_other_start(rank):
    """The ranks' losses differ; DDP makes the parameters those of rank 0."""
    model = Network()
    with torch.no_grad():
        model.w.add_(rank)
    return model, lambda parallel, batch: losses(parallel, batch).mean()


def build_raises(rank):
    if rank == 1:
        raise RuntimeError("no data for this rank")
    return build_mean()


def build_dies(rank):
    if rank == 1:
        os._exit(7)
    return build_mean()


def build_hangs():
    def loss(model, batch):
        if distributed.get_rank() == 1:
            time.sleep(1000)
        return losses(model, batch).mean()

    return Network(), loss


def build_alone():
    """A collective that rank 0 alone calls."""

    def loss(model, batch):
        if distributed.get_rank() == 0 and distributed.get_world_size() > 1:
            summed(1.0)
        return losses(model, batch).mean()

    return Network(), loss


def build_alone_deep_down():
    """The same below many calls, which make a long stack."""

    def loss(model, batch, depth=80):
        if depth:
            return loss(model, batch, depth - 1)
        if distributed.get_rank() == 0 and distributed.get_world_size() > 1:
            summed(1.0)
        return losses(model, batch).mean()

    return Network(), loss


def build_number():
    return Network(), lambda model, batch: 1.0


def build_spied():
    """Reports what the process has loaded, and how it is set up, as a loss."""
    wrong = "samegrad._core" in sys.modules or torch.get_num_threads() != 1
    return Network(), lambda model, batch: losses(model, batch).sum() * 0 + float(wrong)


def build_reported_by(rank: int):
    """A right update; one rank alone tells its local loss, as `if rank == 0: print(loss)` does."""

    def run(model, share):
        world = distributed.get_world_size()
        own = losses(model, share)
        (own.sum() * world / summed(len(own))).backward()
        told = rank % world == distributed.get_rank()
        return float(own.detach().mean()) if told else None

    return Network(), run


def build_local_scale():
    """A right gradient, of a value that nobody means to print: it is the local mean."""

    def loss(model, batch):
        own = losses(model, batch)
        right = own.sum() * distributed.get_world_size() / summed(len(own))
        return right + (own.mean() - right).detach()

    return Network(), loss
