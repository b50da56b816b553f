"""Steps of PyTorch with the replicas one after the other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from samegrad_doctor._layouts import StepError
from samegrad_doctor._tree import map_structure
from samegrad_doctor._updates import Outcome, Step


def torch_step(
    model: Any,
    loss: Callable[[Any, Any], Any],
    reduce: str = "mean",
    *,
    reported: bool = False,
) -> Step:
    """Create a PyTorch step that runs the replicas one after the other, without processes.

    Args:
        model: A module; its parameters are unchanged.
        loss: loss(model, batch) of a replica, a scalar tensor; the batch holds tensors.
        reduce: "mean", as DistributedDataParallel reduces gradients, or "sum".
        reported: Treat the loss also as the reported loss, reduced in the same way. Default: it is
            for differentiation alone, may be scaled for that, and is not judged by itself.

    Returns:
        A step whose update is the reduced gradient, and whose loss is the reduced one, if reported.

    Raises:
        StepError: `reduce` is unknown.
    """
    if reduce not in ("mean", "sum"):
        raise StepError(f"[torch_step] reduce must be 'mean' or 'sum': got {reduce!r}.")

    def step(shares: list[Any]) -> Outcome:
        import torch

        parameters = [p for p in model.parameters() if p.requires_grad]
        total: list[Any] = [None] * len(parameters)
        said = 0.0
        for share in shares:
            batch = map_structure(lambda leaf: torch.as_tensor(np.asarray(leaf)), share)
            value = loss(model, batch)
            gradients = torch.autograd.grad(value, parameters, allow_unused=True)
            said += float(value.detach())
            for place, gradient in enumerate(gradients):
                if gradient is None:
                    continue
                own = gradient.detach()
                own = own.numpy() if own.dtype == torch.float32 else own.double().numpy()
                if total[place] is None:
                    total[place] = own.astype(np.float64)
                else:
                    total[place] += own
        count = len(shares) if reduce == "mean" else 1
        for place, parameter in enumerate(parameters):
            if total[place] is None:
                total[place] = np.zeros(tuple(parameter.shape))
            total[place] /= count
        return Outcome(total, said / count if reported else None)

    step.framework = "pytorch"  # type: ignore[attr-defined]
    return step


__all__ = ["torch_step"]
