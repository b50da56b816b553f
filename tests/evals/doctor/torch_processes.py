"""Programs of real DistributedDataParallel: each build is called in processes joined by gloo."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from eval_case import decorator
from torch import distributed as dist
from torch import nn
from torch.nn import functional as F  # noqa: N812
from torch_ranks import LENGTHS, PAD, convolutions, images, micros, mlp, tagger, targets, text
from torch_ranks import vectors as _vectors

from samegrad_doctor.adapters import ddp_step


def _of_processes(build: Callable[[], Any], settings: dict[str, Any]) -> Callable[[], Any]:
    batch = settings.pop("batch", _vectors)
    adapter = settings.pop("adapter", {"whole_shard": True})
    return lambda: (ddp_step(build, **adapter), batch())


case = decorator(_of_processes)  # of build(), which returns a module and run(model, share)


def total(value: Any) -> torch.Tensor:
    """dist.all_reduce of a number."""
    value = torch.as_tensor(value, dtype=torch.float32).clone()
    dist.all_reduce(value)
    return value


def tokens(model: nn.Module, batch: Any) -> tuple[torch.Tensor, torch.Tensor]:
    """The sum of losses and the number of tokens."""
    x, labels = batch
    logits = model(x.float()).flatten(0, 1)
    labels = labels.long()
    loss = F.cross_entropy(logits, labels.flatten(), ignore_index=PAD, reduction="sum")
    return loss, (labels != PAD).sum()


def mean_loss(model: nn.Module, batch: Any) -> torch.Tensor:
    """Cross entropy."""
    return F.cross_entropy(model(batch[0].float()), batch[1].long())


LOSS: dict[str, Any] = {"adapter": {}}
WINDOWS: dict[str, Any] = {"micro_batches": (1, 2), "replicas": (2,)}
WORDS: dict[str, Any] = {"batch": text, "weights": LENGTHS}

__all__ = [
    "LENGTHS", "LOSS", "PAD", "WINDOWS", "WORDS", "Any", "Callable", "F", "case", "convolutions",
    "dist", "images", "mean_loss", "micros", "mlp", "nn", "tagger", "targets", "text", "tokens",
    "torch", "total",
]  # fmt: skip
