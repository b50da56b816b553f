"""Loops of other packages around a step of PyTorch: Lightning, Accelerate, a Trainer, one's own."""

from __future__ import annotations

import contextlib
import logging
import os
import warnings
from collections.abc import Callable, Iterator
from typing import Any

from samegrad_doctor._updates import Step
from samegrad_doctor.adapters._ddp import step_of_ranks
from samegrad_doctor.adapters._ddp_worker import Ran
from samegrad_doctor.adapters._torch import array_of

_TIMEOUT = 120.0  # seconds: the first run imports the package


def loop_step(
    build: Callable[..., tuple[Any, Callable[[Any, list[Any]], Any]]],
    *,
    seed: int = 0,
    timeout: float = _TIMEOUT,
) -> Step:
    """Create a step of any PyTorch training loop, with one process per replica.

    It judges the gradients that optimizers apply. Use it for programs that wrap the model, call
    `backward` and step, such as the Trainer of transformers. The loop gets one window of
    micro-batches and must update once.

    Args:
        build: build() or build(rank), called in each process for each run; returns a module and
            run(model, batches) with the micro-batches of the rank (tensors), which returns the
            loss that the rank reports, or None. A function that the processes can import.
        seed: The seed of PyTorch, set in each process before each run.
        timeout: The seconds for one run.

    Returns:
        A step whose update is the gradient that the optimizers of rank 0 apply.

    Raises:
        StepError: As for `ddp_step`; no optimizer steps, or one steps twice.

    Example:
        >>> diagnose(loop_step(build), batch, micro_batches=(1, 2))  # doctest: +SKIP
    """
    return step_of_ranks("loop_step", build, run_loop, {"seed": seed}, timeout)


def lightning_step(
    build: Callable[..., Any],
    *,
    report: str | None = None,
    seed: int = 0,
    timeout: float = _TIMEOUT,
    **options: Any,
) -> Step:
    """Create a step of Lightning's Trainer with its "ddp" strategy, one process per replica.

    Micro-batches are `accumulate_grad_batches`, by which Lightning divides their losses.

    Args:
        build: build() or build(rank), called in each process for each run; returns a
            LightningModule. A function that the processes can import.
        report: The name of a logged metric that is also judged.
        seed: The seed of PyTorch, set in each process before each run.
        timeout: The seconds for one run.
        **options: Options of the Trainer, such as gradient_clip_val=1.0.

    Returns:
        A step whose update is the gradient that the optimizers of rank 0 apply.

    Raises:
        StepError: As for `loop_step`; Lightning is not installed; no metric has that name.

    Example:
        >>> diagnose(lightning_step(build, report="loss"), batch)  # doctest: +SKIP
    """
    given = {"options": options, "report": report, "seed": seed}
    return step_of_ranks("lightning_step", build, run_lightning, given, timeout)


def accelerate_step(
    build: Callable[..., tuple[Any, Any, Callable[[Any, Any, Any, list[Any]], Any]]],
    *,
    seed: int = 0,
    timeout: float = _TIMEOUT,
    **options: Any,
) -> Step:
    """Create a step of a loop with Accelerate's Accelerator, one process per replica.

    Micro-batches are `gradient_accumulation_steps`, by which `backward` divides their losses.

    Args:
        build: build() or build(rank), called in each process for each run; returns a module, an
            optimizer, and train(accelerator, model, optimizer, batches): the loop, which is given
            what `prepare` makes of both, and returns the loss that the rank reports, or None. A
            function that the processes can import.
        seed: The seed of PyTorch, set in each process before each run.
        timeout: The seconds for one run.
        **options: Options of the Accelerator.

    Returns:
        A step whose update is the gradient that the optimizers of rank 0 apply.

    Raises:
        StepError: As for `loop_step`; Accelerate is not installed.

    Example:
        >>> diagnose(accelerate_step(build), batch, micro_batches=(1, 2))  # doctest: +SKIP
    """
    given = {"options": options, "seed": seed}
    return step_of_ranks("accelerate_step", build, run_accelerate, given, timeout)


def run_loop(built: Any, parts: list[Any], options: dict[str, Any]) -> Ran:
    """A loop that wraps the module by itself."""
    model, run = built
    with _applied("loop_step") as seen:
        value = run(model, parts)
    return _gradients("loop_step", model, seen), None if value is None else float(value)


def run_lightning(built: Any, parts: list[Any], options: dict[str, Any]) -> Ran:
    """Lightning's Trainer, which finds the group of processes by their environment."""
    from lightning.pytorch import Trainer
    from torch.utils.data import DataLoader

    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    trainer = Trainer(
        **{
            "accelerator": "cpu", "strategy": "ddp", "devices": int(os.environ["WORLD_SIZE"]),
            "accumulate_grad_batches": len(parts), "max_epochs": 1, "logger": False,
            "use_distributed_sampler": False, "enable_checkpointing": False,
            "enable_progress_bar": False, "enable_model_summary": False,
            **options["options"],
        }
    )  # fmt: skip
    with _applied("lightning_step") as seen, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # on workers of loaders, and short epochs
        trainer.fit(built, DataLoader(parts, batch_size=None))
    name, loss = options["report"], None
    if name is not None:
        if name not in trainer.callback_metrics:
            raise KeyError(
                f"[lightning_step] report must be the name of a logged metric: got {name!r}; the "
                f"module logs {sorted(trainer.callback_metrics)}."
            )
        loss = float(trainer.callback_metrics[name])
    return _gradients("lightning_step", built, seen), loss


def run_accelerate(built: Any, parts: list[Any], options: dict[str, Any]) -> Ran:
    """A loop with an Accelerator, whose state of the run before is left behind."""
    from accelerate import Accelerator
    from accelerate.state import AcceleratorState, GradientState

    AcceleratorState._reset_state(reset_partial_state=True)
    GradientState._reset_state()
    model, optimizer, train = built
    accelerator = Accelerator(
        **{"cpu": True, "gradient_accumulation_steps": len(parts), **options["options"]}
    )
    with _applied("accelerate_step") as seen:
        value = train(accelerator, *accelerator.prepare(model, optimizer), parts)
    return _gradients("accelerate_step", model, seen), None if value is None else float(value)


@contextlib.contextmanager
def _applied(who: str) -> Iterator[dict[Any, Any]]:
    """The gradient of each parameter that an optimizer steps with, after limits.

    It is taken after the step, for a step may compute it first (in a closure).
    """
    from torch.optim.optimizer import register_optimizer_step_post_hook

    seen: dict[Any, Any] = {}

    def take(optimizer: Any, *_: Any) -> None:
        for parameter in (p for group in optimizer.param_groups for p in group["params"]):
            if parameter in seen:
                raise RuntimeError(
                    f"[{who}] the loop must update once: a parameter is updated again; accumulate "
                    "the micro-batches that it is given, or judge one (micro_batches=(1,))."
                )
            gradient = parameter.grad
            seen[parameter] = array_of(parameter, None if gradient is None else gradient.clone())

    handle = register_optimizer_step_post_hook(take)
    try:
        yield seen
    finally:
        handle.remove()


def _gradients(who: str, model: Any, seen: dict[Any, Any]) -> list[Any]:
    if not seen:
        raise RuntimeError(f"[{who}] the loop must update once: no optimizer of torch.optim steps.")
    return [
        seen[p] if p in seen else array_of(p, None) for p in model.parameters() if p.requires_grad
    ]
