"""Steps of PyTorch with the replicas one after the other."""

from __future__ import annotations

import contextlib
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
    whole_shard: bool = False,
    reported: bool = False,
) -> Step:
    """Create a PyTorch step that runs the replicas one after the other, without processes.

    Micro-batches are treated as by `ddp_step`: their gradients are summed before the reduction.

    Args:
        model: A module; its parameters are unchanged.
        loss: loss(model, batch) of a replica, a scalar tensor; the batch holds tensors.
        reduce: "mean", as DistributedDataParallel reduces gradients, or "sum".
        whole_shard: Instead of a loss, run(model, share), which calls `backward` itself, is given
            the list of micro-batches where there are several, and returns the loss that the
            replica reports, or None.
        reported: Treat the loss also as the reported loss, reduced in the same way. Default: it is
            for differentiation alone, may be scaled for that, and is not judged by itself.

    Returns:
        A step whose update is the reduced gradient, and whose loss is the reduced one, if reported.

    Raises:
        StepError: `reduce` is unknown.

    Example:
        >>> step = torch_step(model, loss)  # doctest: +SKIP
        >>> diagnose(step, batch, micro_batches=(1, 2)).correct  # doctest: +SKIP
        False
    """
    if reduce not in ("mean", "sum"):
        raise StepError(f"[torch_step] reduce must be 'mean' or 'sum': got {reduce!r}.")

    def step(shares: list[Any]) -> Outcome:
        parameters = [p for p in model.parameters() if p.requires_grad]
        kept = [p.grad for p in parameters]
        total = [np.zeros(tuple(p.shape)) for p in parameters]
        known: list[float] = []
        try:
            for share in shares:
                for parameter in parameters:
                    parameter.grad = None
                parts = [tensors_of(part) for part in parts_of(share)]
                said = accumulate("torch_step", model, loss, parts, whole_shard, reported)
                known += [] if said is None else [said]
                for own, parameter in zip(total, parameters, strict=True):
                    if parameter.grad is not None:
                        own += array_of(parameter, parameter.grad)
        finally:
            for parameter, gradient in zip(parameters, kept, strict=True):
                parameter.grad = gradient
        count = len(shares) if reduce == "mean" else 1
        update = [own / count for own in total]
        return Outcome(update, sum(known) / count if known else None)

    step.framework, step.source = "pytorch", loss  # type: ignore[attr-defined]
    return step


def parts_of(share: Any) -> list[Any]:
    """Return the micro-batches of a share: the share itself, where there is one."""
    return share if isinstance(share, list) else [share]


def tensors_of(batch: Any) -> Any:
    """Return a batch of arrays as tensors."""
    import torch

    return map_structure(lambda leaf: torch.as_tensor(np.asarray(leaf)), batch)


def accumulate(
    who: str,
    model: Any,
    function: Callable[[Any, Any], Any],
    parts: list[Any],
    whole_shard: bool,
    reported: bool,
) -> float | None:
    """Accumulate the gradients of a replica's micro-batches in the parameters.

    A wrapped module reduces in the last backward only.

    Args:
        who: The adapter, for messages.
        model: A module, or DistributedDataParallel around it.
        function: loss(model, batch), or run(model, share) for a whole shard.
        parts: The micro-batches, as tensors.
        whole_shard: Let the function call `backward`.
        reported: Whether the loss is reported.

    Returns:
        The reported loss: of micro-batches, the sum of their losses.

    Raises:
        TypeError: The loss is not a tensor.
    """
    if whole_shard:
        value = function(model, parts if len(parts) > 1 else parts[0])
        return None if value is None else float(value)
    total = 0.0
    for place, part in enumerate(parts):
        last = place == len(parts) - 1 or not hasattr(model, "no_sync")
        with contextlib.nullcontext() if last else model.no_sync():
            value = function(model, part)
            if not hasattr(value, "backward"):
                raise TypeError(
                    f"[{who}] loss(model, batch) must return a tensor: got {value!r:.60}; "
                    "a function that calls backward itself needs whole_shard=True."
                )
            value.backward()
        total += float(value.detach())
    return total if reported else None


def array_of(parameter: Any, gradient: Any) -> Any:
    """Return a gradient as an array, zeros for a parameter without one."""
    if gradient is None:
        return np.zeros(tuple(parameter.shape), dtype=np.float32)
    known = str(gradient.dtype) in ("torch.float32", "torch.float64")
    return (gradient if known else gradient.float()).detach().cpu().numpy()
