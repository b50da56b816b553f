"""Programs of real DistributedDataParallel."""

from __future__ import annotations

from torch_processes import *


@case(
    "ChenmienTan/RL2#11",
    "the question's version: token sums over the count of all, not multiplied by the world size",
    "w_i / (R W)",
    named="divided by the global batch, then averaged",
    batch=text,
    weights=LENGTHS,
)
def not_multiplied() -> Any:
    def run(model: nn.Module, share: Any) -> None:
        loss, count = tokens(model, share)
        (loss / total(count)).backward()

    return tagger(), run


@case(
    "mead-ml/mead-baseline#783",
    "a batch mean on the loss, ranks have batches of their own sizes",
    "1 / (R n_r)",
    named="mean of the replicas' means",
    adapter={},
)
def batch_mean() -> Any:
    return mlp(), mean_loss


@case(
    "meta-pytorch/torchrec#4691",
    "the boundary of the window is off by one: the first micro-batch is synchronised, not the last",
    "1 / (R K n_r1) for the first micro-batch's, and each copy adds its own others",
    named="the replicas' parameters differ",
    equal_shards=True,
    **WINDOWS,
)
def synchronised_at_the_start() -> Any:
    def run(model: nn.Module, share: Any) -> None:
        window = micros(share)
        (mean_loss(model, window[0]) / len(window)).backward()
        for batch in window[1:]:
            with model.no_sync():
                (mean_loss(model, batch) / len(window)).backward()

    return mlp(), run


@case(
    "huggingface/diffusers#721",
    "clip_grad_norm_ after every backward under no_sync, each process its own",
    "limits of each micro-batch's own gradient on its rank",
    named="gradients are clipped in every micro-batch",
    equal_shards=True,
    **WINDOWS,
)
def clipped_under_no_sync() -> Any:
    def run(model: nn.Module, share: Any) -> None:
        window = micros(share)
        for batch in window[:-1]:
            with model.no_sync():
                (mean_loss(model, batch) / len(window)).backward()
            nn.utils.clip_grad_norm_(model.parameters(), 0.05)
        (mean_loss(model, window[-1]) / len(window)).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.05)

    return mlp(), run


@case(
    "ShiqiYu/OpenGait#36",
    "the loss is multiplied by the world size, but it is a mean of the own examples",
    "1 / n_r, R times too much",
    named="mean per replica, then sum",
    equal_shards=True,
    adapter={},
)
def mean_times_world_size() -> Any:
    return mlp(), lambda model, batch: mean_loss(model, batch) * dist.get_world_size()


@case(
    "official-stockfish/nnue-pytorch#390",
    "the global batch is split evenly and each rank has a mean",
    "1 / (R n_r), which is 1 / N for equal shares",
    "even",
    batch=targets,
    adapter={},
)
def split_evenly() -> Any:
    return mlp(), lambda model, batch: F.mse_loss(model(batch[0]), batch[1])


@case(
    "mead-ml/mead-baseline#793",
    "gradients are multiplied by the world size, token sums by the count of all",
    "w_i / W",
    "right",
    batch=text,
    weights=LENGTHS,
)
def scaled_after_backward() -> Any:
    def run(model: nn.Module, share: Any) -> None:
        loss, count = tokens(model, share)
        (loss / total(count)).backward()
        for p in model.parameters():
            p.grad *= dist.get_world_size()

    return tagger(), run
