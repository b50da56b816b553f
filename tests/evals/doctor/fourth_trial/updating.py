"""What is done with gradients: limits, loss scales, schedules, reductions, and optimizers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from torch_ranks import *


def clip(model: nn.Module, most: float) -> None:
    """nn.utils.clip_grad_norm_."""
    nn.utils.clip_grad_norm_(model.parameters(), most)


@contextmanager
def change_of(model: nn.Module) -> Iterator[None]:
    """What steps of an optimizer change is the update of this program."""
    before = [p.detach().clone() for p in model.parameters()]
    yield
    for p, old in zip(model.parameters(), before, strict=True):
        p.grad = old - p.detach()


@case(
    "victorchall/EveryDream2trainer#175",
    "each GPU's scaled gradient is clipped by itself before they are averaged",
    "c_r / (R n_r), c_r what the limit makes of each replica's gradient",
    named="gradients are clipped before the all-reduce",
    equal_shards=True,
)
def clipped_while_scaled(rank: Rank, model: nn.Module, share: Any) -> None:
    scale = 1024.0
    (mean_loss(model, share) * scale).backward()
    clip(model, 0.1 * scale)
    scale_grads(model, 1 / scale)
    rank.average(model)


@case(
    "victorchall/EveryDream2trainer#175",
    "unscaled, averaged, and then clipped",
    "c / N, which is 1 / (R n_r) for equal shares, c of the whole gradient",
    "even",
)
def clipped_when_unscaled(rank: Rank, model: nn.Module, share: Any) -> None:
    scale = 1024.0
    (mean_loss(model, share) * scale).backward()
    rank.average(model)
    scale_grads(model, 1 / scale)
    clip(model, 0.1)


@case(
    "ROCm/apex#157",
    "the scaler doubles its scale between micro-batches, the last one unscales all",
    "2^(k - K) / (K n_k): earlier micro-batches count less",
    named="what is accumulated is halved with each later micro-batch",
    equal_shards=True,
    **ALONE,
)
def scale_grows_in_a_window(rank: Rank, model: nn.Module, share: Any) -> None:
    window, scale = micros(share), 256.0
    for i, batch in enumerate(window):
        if i:
            scale *= 2
        (mean_loss(model, batch) / len(window) * scale).backward()
    scale_grads(model, 1 / scale)


@case(
    "ROCm/apex#157",
    "one scale for all micro-batches of an update, each weighted by its examples",
    "1 / N",
    "right",
    **ALONE,
)
def one_scale_in_a_window(rank: Rank, model: nn.Module, share: Any) -> None:
    window, scale = micros(share), 256.0
    n = sum(len(x) for x, _ in window)
    for batch in window:
        (mean_loss(model, batch) * len(batch[0]) / n * scale).backward()
    scale_grads(model, 1 / scale)


@case(
    "waifu-diffusion/network-trainer#2",
    "what is accumulated so far is clipped after every backward",
    "the limit acts after each micro-batch, 1 / (K n_k) where it does not act",
    named="gradients are clipped in every micro-batch",
    equal_shards=True,
    **ALONE,
)
def clipped_after_every_backward(rank: Rank, model: nn.Module, share: Any) -> None:
    window = micros(share)
    for batch in window:
        (mean_loss(model, batch) / len(window)).backward()
        clip(model, 0.12)


@case(
    "lucidrains/alphafold3-pytorch#23",
    "no sync while accumulating, the loss over the steps, clipped once before the step",
    "c / (R K n_rk), which is c / N for equal shares, c of the whole gradient",
    "even",
    **WINDOWS,
)
def clipped_once(rank: Rank, model: nn.Module, share: Any) -> None:
    window = micros(share)
    for batch in window:
        (mean_loss(model, batch) / len(window)).backward()
    rank.average(model)
    clip(model, 0.15)


@case(
    "lucidrains/alphafold3-pytorch#23",
    "clipped once, and averaged after that",
    "c_r / (R K n_rk), c_r of each replica's accumulated gradient",
    named="gradients are clipped before the all-reduce",
    equal_shards=True,
    **WINDOWS,
)
def clipped_before_the_mean(rank: Rank, model: nn.Module, share: Any) -> None:
    window = micros(share)
    for batch in window:
        (mean_loss(model, batch) / len(window)).backward()
    clip(model, 0.15)
    rank.average(model)


@case(
    "h2oai/h2o-llmstudio#663",
    "the scheduler is stepped at every batch, a warm-up is K times as fast",
    "(K + 1) / (K n_k): the rate of an update grows with K",
    equal_shards=True,
    **ALONE,
)
def scheduler_at_every_batch(rank: Rank, model: nn.Module, share: Any) -> None:
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 0.1 * (step + 1))
    window = micros(share)
    optimizer.step()  # of the window before, when the rate was 0.1
    with change_of(model):
        for i, batch in enumerate(window):
            (mean_loss(model, batch) / len(window)).backward()
            scheduler.step()
            if i == len(window) - 1:
                optimizer.step()


@case(
    "ildoonet/pytorch-gradual-warmup-lr#22",
    "scheduler.step() is called behind optimizer.step(), once for an update",
    "1 / N times the rate",
    "right",
    **ALONE,
)
def scheduler_behind_the_optimizer(rank: Rank, model: nn.Module, share: Any) -> None:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1.0)
    window = micros(share)
    n = sum(len(x) for x, _ in window)
    with change_of(model):
        for batch in window:
            (sum_loss(model, batch) / n).backward()
        optimizer.step()
        scheduler.step()


@case(
    "ildoonet/pytorch-gradual-warmup-lr#22",
    "the multiplier of the linear scaling rule is the number of GPUs, gradients are averaged",
    "1 / n_r, R times what one GPU does",
    named="mean per replica, then sum",
    equal_shards=True,
)
def linear_scaling_rule(rank: Rank, model: nn.Module, share: Any) -> None:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1 * rank.world_size)
    mean_loss(model, share).backward()
    rank.average(model)
    with change_of(model):
        optimizer.step()


@case(
    "saforem2/ezpz#123",
    "the prepared scheduler steps once for each process and update",
    "R / (R n_r): a warm-up is R times as fast",
    named="mean per replica, then sum",
    equal_shards=True,
)
def scheduler_for_each_process(rank: Rank, model: nn.Module, share: Any) -> None:
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 0.05 * step)
    optimizer.step()  # the first update, whose rate is 0
    for _ in range(rank.world_size):
        scheduler.step()
    mean_loss(model, share).backward()
    rank.average(model)
    with change_of(model):
        optimizer.step()


@case(
    "huggingface/open-muse#45",
    "warm-up counts updates, gradients are accumulated and averaged",
    "1 / (R K n_rk), which is 1 / N for equal shares",
    "even",
    **WINDOWS,
)
def warm_up_counts_updates(rank: Rank, model: nn.Module, share: Any) -> None:
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 0.2 * (step + 1))
    window = micros(share)
    for batch in window:
        (mean_loss(model, batch) / len(window)).backward()
    rank.average(model)
    with change_of(model):
        optimizer.step()


@case(
    "alex-hh/profam#518",
    "the optimizer steps on every batch, where one update of all is wanted",
    "K updates instead of one, 1 / n_k each, later ones from moved parameters",
    named="the parameters change between micro-batches",
    equal_shards=True,
    **ALONE,
)
def step_on_every_batch(rank: Rank, model: nn.Module, share: Any) -> None:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2)
    with change_of(model):
        for batch in micros(share):
            optimizer.zero_grad()
            mean_loss(model, batch).backward()
            optimizer.step()


@case(
    "Haian-Jin/LVSM#22",
    "gradients are synchronised at every accumulated step: slow, but the same",
    "1 / (R K n_rk), which is 1 / N for equal shares",
    "even",
    **WINDOWS,
)
def synchronised_at_every_step(rank: Rank, model: nn.Module, share: Any) -> None:
    window = micros(share)
    for batch in window:
        (mean_loss(model, batch) / len(window)).backward()
        rank.average(model)


@case(
    "bytedance/byteps#366",
    "p.grad is pushed and pulled as a sum after every backward: the first parts are added again",
    "R^(K - k) / (R K n_rk): earlier micro-batches count more",
    named="gradients are reduced again in every micro-batch",
    equal_shards=True,
    **WINDOWS,
)
def sums_are_summed_again(rank: Rank, model: nn.Module, share: Any) -> None:
    window = micros(share)
    for batch in window:
        (mean_loss(model, batch) / len(window)).backward()
        rank.add(model)
    scale_grads(model, 1.0 / rank.world_size)


@case(
    "bytedance/byteps#366",
    "no_sync for all but the last backward, a sum over processes, over all examples",
    "1 / N",
    "right",
    **WINDOWS,
)
def pushed_and_pulled_once(rank: Rank, model: nn.Module, share: Any) -> None:
    n = 0
    for batch in micros(share):
        sum_loss(model, batch).backward()
        n += len(batch[0])
    rank.add(model)
    scale_grads(model, 1.0 / rank.all_reduce(n))


@case(
    "Chris-hughes10/pytorch-accelerated#30",
    "no sync in the forward and backward of accumulated batches, averaged at the last one",
    "1 / (R K n_rk), which is 1 / N for equal shares",
    "even",
    **WINDOWS,
)
def averaged_at_the_last(rank: Rank, model: nn.Module, share: Any) -> None:
    window = micros(share)
    for batch in window:
        (mean_loss(model, batch) / len(window)).backward()
    rank.average(model)


@case(
    "meta-pytorch/tnt#251",
    "the step where weights are not updated runs without sync, and the last one overwrites",
    "1 / (R K n_rK) for the last micro-batch of each rank, 1 / (K n_0k) for others on copy 0",
    named="the replicas' parameters differ",
    equal_shards=True,
    **WINDOWS,
)
def kept_apart_from_the_sync(rank: Rank, model: nn.Module, share: Any) -> None:
    window = micros(share)
    local = [torch.zeros_like(p) for p in model.parameters()]
    for batch in window[:-1]:
        (mean_loss(model, batch) / len(window)).backward()
        for kept, p in zip(local, model.parameters(), strict=True):
            kept += p.grad
        model.zero_grad()
    (mean_loss(model, window[-1]) / len(window)).backward()
    rank.average(model)
    for kept, p in zip(local, model.parameters(), strict=True):
        p.grad += kept


@case(
    "pytorch/xla#1279",
    "drop_last: batches of two on each core, a smaller last one is dropped",
    "1 / (R m_r), m_r the examples in full batches, 0 for the rest",
    named="each replica splits its own shard",
    batch=targets,
    replicas=(2, 3),
)
def last_is_dropped(rank: Rank, model: nn.Module, share: Any) -> None:
    full = [batch for batch in pieces(share, 2) if len(batch[0]) == 2]
    for x, y in full:
        (F.mse_loss(model(x), y) / len(full)).backward()
    rank.average(model)


@case(
    "fredzzhang/pvic#15",
    "drop_last in the sampler: every rank keeps as many as the shortest; losses count instances",
    "w_i / W of those kept, 0 for what is dropped",
    named="what is longer than the shortest share is dropped",
    batch=text,
    model=tagger,
    replicas=(2, 3),
)
def sampler_drops_the_tail(rank: Rank, model: nn.Module, share: Any) -> None:
    least = min(int(n) for n in rank.all_gather(torch.tensor(len(share[0]))))
    loss, instances = token_sum(model, tuple(a[:least] for a in share))
    (loss * rank.world_size / rank.all_reduce(instances)).backward()
    rank.average(model)


@case(
    "finegrain-ai/refiners#210",
    "the optimizer's rate is divided by the accumulated steps, and the loss as well",
    "1 / (K^2 n_k)",
    named="micro-batches are divided twice",
    equal_shards=True,
    **ALONE,
)
def rate_over_the_steps_too(rank: Rank, model: nn.Module, share: Any) -> None:
    window = micros(share)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5 / len(window))
    for batch in window:
        (mean_loss(model, batch) / len(window)).backward()
    with change_of(model):
        optimizer.step()
