"""Programs of real DistributedDataParallel: each build is called in processes joined by gloo."""

from __future__ import annotations

from torch_processes import *


def mean(model: nn.Module, share: Any) -> torch.Tensor:
    """nn.CrossEntropyLoss()."""
    return F.cross_entropy(model(share[0].float()), share[1].long())


def accumulate(model: nn.Module, window: list[Any], loss: Callable[[Any], Any]) -> None:
    """Backward of each micro-batch; only the last one is synchronised."""
    for batch in window[:-1]:
        with model.no_sync():
            loss(batch).backward()
    loss(window[-1]).backward()


@case(
    "facebookresearch/maskrcnn-benchmark#84",
    "gradients are averaged in backward; losses are reduced for logging alone, equal shares",
    "1 / (R n_r), which is 1 / N for equal shares, in the report, too",
    "even",
)
def reduced_for_logging() -> Any:
    def run(model: nn.Module, share: Any) -> Any:
        loss = mean(model, share)
        loss.backward()
        return total(loss.detach()) / dist.get_world_size()

    return mlp(), run


@case(
    "PKU-YuanGroup/Open-Sora-Plan#377",
    "each rank takes the mean over the tokens that it has, and uses its own loss in backward",
    "w_i / (R W_r)",
    named="mean of the replicas' means",
    **WORDS,
)
def own_loss_in_backward() -> Any:
    def run(model: nn.Module, share: Any) -> None:
        loss, count = tokens(model, share)
        (loss / count).backward()

    return tagger(), run


@case(
    "RL-Align/RL-Kernel#49",
    "partial sums of masked tokens are all-reduced before the division",
    "w_i / W",
    "right",
    **WORDS,
)
def global_division() -> Any:
    def run(model: nn.Module, share: Any) -> None:
        loss, count = tokens(model, share)
        (loss * dist.get_world_size() / total(count)).backward()

    return tagger(), run


@case(
    "PrimeIntellect-ai/prime-rl#1957",
    "before: the mean over a rank's unmasked tokens in each micro-step, over the steps",
    "w_i / (R K W_rk)",
    named="mean of the micro-batches' means",
    **WORDS, **WINDOWS,
)  # fmt: skip
def mean_of_micro_steps() -> Any:
    def run(model: nn.Module, share: Any) -> None:
        window = micros(share)

        def loss(batch: Any) -> torch.Tensor:
            value, count = tokens(model, batch)
            return value / count / len(window)

        accumulate(model, window, loss)

    return tagger(), run


@case(
    "PrimeIntellect-ai/prime-rl#1957",
    "local sums times the world size over the tokens of all ranks and steps",
    "w_i / W",
    "right",
    **WORDS, **WINDOWS,
)  # fmt: skip
def tokens_of_ranks_and_steps() -> Any:
    def run(model: nn.Module, share: Any) -> None:
        window = micros(share)
        count = total(sum((labels != PAD).sum() for _, labels in window))
        accumulate(model, window, lambda b: tokens(model, b)[0] * dist.get_world_size() / count)

    return tagger(), run


@case(
    "open-lm-engine/lm-engine#56",
    "gradients are averaged over the accumulation steps, of one size, and over processes",
    "1 / (R K n_rk), which is 1 / N for equal shares",
    "even",
    **WINDOWS,
)
def averaged_over_steps() -> Any:
    def run(model: nn.Module, share: Any) -> None:
        window = micros(share)
        accumulate(model, window, lambda batch: mean(model, batch))
        for p in model.parameters():
            p.grad /= len(window)

    return mlp(), run


@case(
    "agokrani/distillKitPlus#5",
    "the loss is summed across all batches without the accumulation steps",
    "1 / (R n_rk), K times too much",
    named="micro-batches are not divided",
    **WINDOWS, equal_shards=True,
)  # fmt: skip
def summed_across_batches() -> Any:
    def run(model: nn.Module, share: Any) -> None:
        accumulate(model, micros(share), lambda batch: mean(model, batch))

    return mlp(), run


@case(
    "tenstorrent/tt-metal#17568",
    "gradients are synchronised and clipped after every backward pass, not before the step",
    "c(... c(g_1) + g_2 ...) of the micro-batches' averaged gradients with 1 / (R K n_rk)",
    named="gradients are clipped in every micro-batch",
    **WINDOWS, equal_shards=True,
)  # fmt: skip
def clipped_after_every_backward() -> Any:
    def run(model: nn.Module, share: Any) -> None:
        window = micros(share)
        for batch in window:
            (mean(model, batch) / len(window)).backward()
            nn.utils.clip_grad_norm_(model.parameters(), 0.1)

    return mlp(), run


def embedded(model: nn.Module, share: Any) -> tuple[torch.Tensor, torch.Tensor]:
    """Two views of each example: its features, and these shifted by the targets."""
    x, y = share
    shifted = x + 0.3 * F.pad(y, (0, x.shape[1] - y.shape[1]))
    z = model(torch.cat([x, shifted]))
    return z[: len(x)], z[len(x) :]


def info_nce(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """The mean over rows of a; their keys are the same rows of b."""
    logits = F.normalize(a, dim=1) @ F.normalize(b, dim=1).T / 0.3
    return F.cross_entropy(logits, torch.arange(len(a)))


def gathered(own: torch.Tensor) -> torch.Tensor:
    """all_gather of equal parts without a gradient; the own part is put back."""
    parts = [torch.zeros_like(own) for _ in range(dist.get_world_size())]
    dist.all_gather(parts, own.detach())
    parts[dist.get_rank()] = own
    return torch.cat(parts)


@case(
    "JohnGiorgi/DeCLUTR#212",
    "all_gather without remote gradients, the loss is not multiplied by the world size",
    "1 / (R N), negatives of all",
    named="divided by the global batch, then averaged",
    batch=targets, equal_shards=True,
)  # fmt: skip
def scale_is_off() -> Any:
    def run(model: nn.Module, share: Any) -> None:
        a, b = embedded(model, share)
        info_nce(gathered(a), gathered(b)).backward()

    return mlp(), run


@case(
    "luyug/GradCache#25",
    "the same loss, times the world size",
    "1 / N, negatives of all",
    "even",
    batch=targets,
)  # fmt: skip
def scale_is_right() -> Any:
    def run(model: nn.Module, share: Any) -> None:
        a, b = embedded(model, share)
        (info_nce(gathered(a), gathered(b)) * dist.get_world_size()).backward()

    return mlp(), run


@case(
    "microsoft/UniCL#5",
    "features are said to be gathered, and are not: pairs of a GPU's own batch",
    "1 / N for equal shares, but negatives are those of the replica's share",
    named="batch statistics are not synchronised",
    batch=targets, equal_shards=True,
)  # fmt: skip
def not_gathered() -> Any:
    def run(model: nn.Module, share: Any) -> None:
        info_nce(*embedded(model, share)).backward()

    return mlp(), run


@case(
    "allenai/OLMo#453",
    "only rank 0 reduces the loss that it logs; ranks have as many examples",
    "1 / (R n_r), which is 1 / N for equal shares, in the report, too",
    "even",
)
def logged_by_rank_0() -> Any:
    def run(model: nn.Module, share: Any) -> Any:
        loss = mean(model, share)
        loss.backward()
        reduced = loss.detach().clone()
        dist.reduce(reduced, 0)
        return reduced / dist.get_world_size() if dist.get_rank() == 0 else None

    return mlp(), run


@case(
    "KellerJordan/modded-nanogpt#2",
    "the loss of rank 0 is logged, without the call of all_reduce",
    "the report counts 1 / n_0 for the first rank's examples, 0 for others",
    named="the replicas are not reduced",
    where="report",
)
def logged_without_the_call() -> Any:
    def run(model: nn.Module, share: Any) -> Any:
        x, y = share
        loss = F.cross_entropy(model(x), y.long(), reduction="sum")
        (loss * dist.get_world_size() / total(len(x))).backward()
        return loss.detach() / len(x) if dist.get_rank() == 0 else None

    return mlp(), run
