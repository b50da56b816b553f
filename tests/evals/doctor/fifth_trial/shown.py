"""What is reported of a step whose update is right."""

from __future__ import annotations

from torch_ranks import *

from .common import exact, over_all

REPORT: dict[str, Any] = {"where": "report"}


def far() -> tuple[np.ndarray, np.ndarray]:
    """Examples whose losses differ much."""
    x, y = vectors()
    return 3 * x, y


SPREAD: dict[str, Any] = {"batch": far, **REPORT}


def rounds(model: nn.Module, share: Any) -> list[tuple[float, int]]:
    """Backward over the micro-batches of one device, each by its examples: means and sizes."""
    size, said = sum(len(x) for x, _ in micros(share)), []
    for batch in micros(share):
        loss = sum_loss(model, batch)
        (loss / size).backward()
        said.append((loss.item() / len(batch[0]), len(batch[0])))
    return said


@case(
    "abhishekkrthakur/tez#19",
    "losses.update(loss, data_loader.batch_size): a smaller last batch counts as a full one",
    "1 / (K n_k) in the report",
    named="mean of the micro-batches' means",
    **ALONE, **SPREAD,
)  # fmt: skip
def last_counts_as_full(rank: Rank, model: nn.Module, share: Any) -> float:
    said = rounds(model, share)
    batch_size = max(n for _, n in said)
    return sum(loss * batch_size for loss, _ in said) / (batch_size * len(said))


@case(
    "lucidrains/med-seg-diff-pytorch#17",
    "before: the loss of the last batch alone is the epoch's",
    "1 / n_K for the last batch in the report, 0 for the others",
    named="only the last micro-batch is kept",
    equal_shards=True, **ALONE, **SPREAD,
)  # fmt: skip
def last_batch_alone(rank: Rank, model: nn.Module, share: Any) -> float:
    return rounds(model, share)[-1][0]


@case(
    "kgmonkhin/ESRNN-GPU#21",
    "epoch_loss / (batch_num + 1) after every batch: earlier losses are divided again and again",
    "k! / K! / n_k in the report",
    equal_shards=True, **ALONE, **SPREAD,
)  # fmt: skip
def divided_in_the_loop(rank: Rank, model: nn.Module, share: Any) -> float:
    epoch_loss = 0.0
    for batch_num, (loss, _) in enumerate(rounds(model, share)):
        epoch_loss += loss
        epoch_loss = epoch_loss / (batch_num + 1)
    return epoch_loss


@case(
    "vltanh/torchan#1",
    "loss_meter.add(loss), whatever the size of the batch",
    "1 / (K n_k) in the report",
    named="mean of the micro-batches' means",
    **ALONE, **SPREAD,
)  # fmt: skip
def meter_without_sizes(rank: Rank, model: nn.Module, share: Any) -> float:
    said = rounds(model, share)
    return sum(loss for loss, _ in said) / len(said)


@case(
    "vltanh/torchan#1",
    "as it should be: loss_meter.add(loss * bs, bs)",
    "1 / N in the report",
    "right",
    **ALONE, **SPREAD,
)  # fmt: skip
def meter_with_sizes(rank: Rank, model: nn.Module, share: Any) -> float:
    said = rounds(model, share)
    return sum(loss * n for loss, n in said) / sum(n for _, n in said)


@case(
    "SewoongLab/spectre-defense#3",
    "a step's own small batches of four: loss * batch_size / N is added, also for a smaller last",
    "4 / (m N) in the report, with m the examples of a small batch",
    **SPREAD,
)
def times_the_usual_size(rank: Rank, model: nn.Module, share: Any) -> float:
    exact(rank, model, share)
    with torch.no_grad():
        own = sum(float(mean_loss(model, part)) * 4 for part in pieces(share, 4))
    return float(rank.all_reduce(own) / rank.all_reduce(float(len(share[0]))))


@case(
    "cybertronai/transformer-xl#14",
    "before: the loss of the first machine is printed",
    "1 / n_0 for the first replica's examples in the report",
    named="the replicas are not reduced",
    equal_shards=True, **SPREAD,
)  # fmt: skip
def first_machine(rank: Rank, model: nn.Module, share: Any) -> float:
    exact(rank, model, share)
    return mean_loss(model, share).item()


@case(
    "cybertronai/transformer-xl#14",
    "the proposal: reduce_tensor of machines' means over their tokens",
    "w_i / (R W_r) in the report",
    named="mean of the replicas' means",
    **WORDS, **REPORT,
)  # fmt: skip
def reduced_means(rank: Rank, model: nn.Module, share: Any) -> float:
    total, count = token_sum(model, share)
    over_all(rank, total, count).backward()
    rank.average(model)
    return float(rank.all_reduce(total / count) / rank.world_size)


@case(
    "jia-zhuang/pytorch-multi-gpu-training#5",
    "a GPU's sum over the number of all samples: it shrinks with the number of GPUs",
    "1 / N for the first replica's examples in the report, 0 for the others",
    named="the replicas are not reduced, though divided by all",
    equal_shards=True, **SPREAD,
)  # fmt: skip
def own_sum_over_all(rank: Rank, model: nn.Module, share: Any) -> float:
    exact(rank, model, share)
    return float(sum_loss(model, share) / rank.all_reduce(float(len(share[0]))))


@case(
    "nntrainer/nntrainer#435",
    "losses of mini-batches are added, and not divided",
    "1 / n_k in the report, K times too much",
    named="micro-batches are not divided",
    equal_shards=True, **ALONE, **SPREAD,
)  # fmt: skip
def added_not_divided(rank: Rank, model: nn.Module, share: Any) -> float:
    return sum(loss for loss, _ in rounds(model, share))


@case(
    "alexklwong/calibrated-backprojection-network#5",
    "the loss of gathered outputs on the first GPU, printed as it is",
    "1 / N in the report",
    "right",
    **SPREAD,
)
def gathered_on_the_first(rank: Rank, model: nn.Module, share: Any) -> float:
    outputs = rank.gather_with_grad(model(share[0]))
    loss = F.cross_entropy(outputs, torch.cat(rank.all_gather(share[1])))
    loss.backward()
    rank.average(model)
    return loss.item()
